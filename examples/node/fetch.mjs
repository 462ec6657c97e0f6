// Print the rows of some steps of a blend, one JSON object per line:
//
//     node fetch.mjs ADDRESS BLEND OFFSET STEPS
//
// Everything it knows of Blender stands in blender.proto.
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { tableFromIPC } from "apache-arrow";

const PROTO = new URL("../../blender/proto/blender/v1/blender.proto", import.meta.url);
const WIDTH = "factory.token-bytes"; // metadata of the Arrow field `tokens`

const [address, blend, offset, steps] = process.argv.slice(2);
if (!/^[^/\s]+:\d+$/.test(address ?? "") || steps === undefined) {
  console.error("Usage: node fetch.mjs ADDRESS BLEND OFFSET STEPS. Write ADDRESS as host:50051, without http://.");
  process.exit(2);
}
const { BlendData } = grpc.loadPackageDefinition(loadSync(fileURLToPath(PROTO))).blender.v1;
const client = new BlendData(address, grpc.credentials.createInsecure(), {
  "grpc.max_receive_message_length": -1, // a block is about 1 MiB, and more where a row is longer
});

try {
  for await (const { payload } of client.Fetch({ blend, offset, steps })) {
    const rows = tableFromIPC(payload);
    const { metadata } = rows.schema.fields.find(({ name }) => name === "tokens");
    for (const { offset, source, ordinal, tokens } of rows) {
      const ids = tokenIds(tokens, Number(metadata.get(WIDTH)));
      console.log(JSON.stringify({ offset: Number(offset), source, ordinal: Number(ordinal), tokens: ids }));
    }
  }
} catch (error) {
  if (error.details === undefined) throw error; // not the status of a call
  console.error(`Blender at ${address}: ${error.details}`);
  process.exitCode = 1;
}
client.close();

// The token ids of a row: unsigned integers of 2 or 4 bytes, little-endian.
function tokenIds(bytes, width) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const read = width === 2 ? view.getUint16 : view.getUint32;
  return Array.from({ length: bytes.byteLength / width }, (_, at) => read.call(view, at * width, true));
}
