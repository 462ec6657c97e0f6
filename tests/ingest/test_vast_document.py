"""A document of a million different tokens is read, measured, counted, signed and kept like others."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from factory import _native
from factory.dedup.bags import MAX_DISTINCT, TEXT_BYTES
from factory.dedup.config import DedupConfig
from spark_udfs.dedup.bags import count_tokens, make_bags, merge_counts
from spark_udfs.depsort.extract import extract
from spark_udfs.depsort.model import MAX_SOURCE_BYTES, FileSymbols
from spark_udfs.ingest.jsonl import jsonl_file
from spark_udfs.ingest.records import Fields
from tests.ingest.inputs import source

N = 1_000_000


def test_a_document_of_a_million_tokens_passes_every_stage(tmp_path: Path) -> None:
    text = "\n".join(f"w{number:x} = v{number:x}" for number in range(N // 2))
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text}) + "\n")
    [document] = jsonl_file(source(tmp_path, "a.jsonl"), Fields())
    assert document["text"] == text
    texts = pa.RecordBatch.from_pydict({"copies": [1], "text": [document["text"]]})

    measured = _native.text_signals(texts.column("text"), ["code_lines", "word_count"])
    assert [measured.column(name)[0].as_py() for name in ("code_lines", "word_count")] == [N // 2, N]

    [bags] = make_bags([texts], "code", MAX_DISTINCT, TEXT_BYTES)
    assert bags["n_tokens"].to_pylist() == [N]
    parts = pa.Table.from_batches(count_tokens([bags])).sort_by("part")
    counted = pa.Table.from_batches(merge_counts(parts.to_batches(), 1))
    assert counted.num_rows == N
    tokens, frequencies = (counted[name].combine_chunks() for name in ("token", "document_frequency"))
    builder = _native.IdfBuilder()
    builder.add(tokens, frequencies)
    idf = builder.finish(1)
    config = DedupConfig(kind="code")
    signed = _native.sign_packed(bags["bag"], idf, config.scheme, config.values, config.value_bits, 0)
    assert signed["n_distinct"].to_pylist() == [N]

    # As source code it is longer than what symbols are read from; it keeps its place and gives none.
    assert len(text) > MAX_SOURCE_BYTES
    row = {"doc_id": "d", "repository": "r", "revision": "1", "path": "a.py", "language": "python"}
    row["text"] = text
    fields = [(name, pa.string()) for name in (*row, "partition")]
    [facts] = extract(iter([pa.RecordBatch.from_pylist([row], schema=pa.schema(fields))]))
    assert [FileSymbols.from_json(fact) for fact in facts["facts"].to_pylist()] == [FileSymbols()]
