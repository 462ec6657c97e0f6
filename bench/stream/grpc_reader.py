"""One end of the connection that `bench.stream.through_grpc` times; prints JSON lines.

Arguments: one of
    serve                            send constant bytes forever; prints its address
    constant ADDRESS N               read N messages of constant bytes
    blocks ADDRESS BLEND RANKS N     read N batches of rank 0 of RANKS through the client
    direct BLEND RANKS N             the same without a server, in the lake the settings name

A reader prints one line once it is warm, waits for a line, reads the timed batches, and prints their cost and
a hash of every hundredth batch, made after the clock has stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np

MESSAGE_BYTES = 120 * 8_192  # the size of a block of our rows
METHOD = "/bench.Constant/Read"
WARM, HASHED = 64, 100


def constant_server() -> None:
    """Answer every call with constant bytes until standard input ends."""
    message = np.random.default_rng(0).bytes(MESSAGE_BYTES)

    def read(request: bytes, _: grpc.ServicerContext) -> Iterator[bytes]:
        return iter(lambda: message, request)  # forever: no message equals the request

    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", -1)])
    service, method = METHOD.strip("/").split("/")
    handler = grpc.method_handlers_generic_handler(
        service, {method: grpc.unary_stream_rpc_method_handler(read)}
    )
    server.add_generic_rpc_handlers((handler,))
    print(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}", flush=True)
    server.start()
    sys.stdin.read()
    server.stop(0).wait()


def constant(address: str) -> Iterator[np.ndarray]:
    """Messages of the constant server."""
    channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1)])
    for message in channel.unary_stream(METHOD, None, None)(b""):
        yield np.frombuffer(message, np.int32)


def blocks(address: str, blend: str, ranks: str) -> Iterator[np.ndarray]:
    """Tokens of the batches of rank 0, through the client."""
    from blender.trainer.client import BlenderClient

    for batch in BlenderClient(address).fetch(blend, rank=0, ranks=int(ranks)):
        yield batch.tokens


def direct(blend: str, ranks: str) -> Iterator[np.ndarray]:
    """Tokens of the batches of rank 0, read in this process."""
    from blender.catalog.blends import open_blends
    from blender.spec.ranks import RankSlice
    from blender.spec.step_range import StepRange
    from factory.settings import settings

    opened = open_blends(settings()).open(blend)
    for block in opened.fetch(StepRange(), RankSlice(0, int(ranks))):
        column = block.batch.column("tokens")
        rows = np.frombuffer(column.buffers()[2], np.int32, len(column) * 2_048, column.offset * 2_048 * 4)
        per_step = 120 // int(ranks)
        for row in range(0, len(column), per_step):
            yield rows.reshape(-1, 2_048)[row : row + per_step]


def timed(batches: Iterator[np.ndarray], n: int) -> dict[str, object]:
    """CPU and wall seconds of reading `n` batches, and a hash of some of them."""
    for _ in range(WARM):
        next(batches)
    print("warm", flush=True)
    sys.stdin.readline()
    sums = hashlib.blake2b(digest_size=16)
    read, kept = 0, []
    cpu, began = time.process_time(), time.perf_counter()
    for number in range(n):
        batch = next(batches)
        read += batch.nbytes
        if number % HASHED == 0:
            kept.append(batch)
    found = {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - began, "bytes": read}
    for batch in kept:
        sums.update(batch.tobytes())
    return {**found, "hash": sums.hexdigest()}


READERS: dict[str, Callable[..., Iterator[np.ndarray]]] = {
    "constant": constant,
    "blocks": blocks,
    "direct": direct,
}


def main() -> None:
    """Read or serve according to the arguments."""
    what, *rest = sys.argv[1:]
    if what == "serve":
        constant_server()
        return
    *arguments, n = rest
    print(json.dumps(timed(READERS[what](*arguments), int(n))), flush=True)
    os._exit(0)  # some streams never end


if __name__ == "__main__":
    main()
