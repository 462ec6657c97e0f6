"""A small real corpus with every kind of duplicate, and its exact similarities by another way."""

from __future__ import annotations

import hashlib
import math
import random
import re
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.dedup.minhash.corpus import counted
from factory.lake.schemas.ingest import RAW

_FILES = tempfile.TemporaryDirectory(prefix="dedup-corpus-")


def document(key: str, text: str | None, **fields: object) -> dict[str, object]:
    """A RAW row whose ids follow from its key and text."""
    digest = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
    content = hashlib.blake2b((text or "").encode(), digest_size=16).hexdigest()
    row = {"doc_id": digest, "source": "test", "key": key, "text": text, "content_hash": content}
    return row | {"n_bytes": len(text or ""), "media_type": "text/x-python", "language": "python"} | fields


def corpus(n: int, seed: int) -> list[dict[str, object]]:
    """About 2.5 n documents: files of the standard library, near copies, chains, exact copies, empty ones."""
    chosen = random.Random(seed)
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    files = [file for file in files if 2_000 < file.stat().st_size < 15_000]
    rows = []
    for number, file in enumerate(chosen.sample(files, n)):
        text = file.read_text(encoding="utf-8")
        rows.append(document(file.name, text, stars=chosen.randrange(40)))
        if number % 3 == 0:  # near copies, from nearly the same to about the threshold
            for copy in range(3):
                mutated = mutate(text, 0.01 + 0.05 * copy, chosen)
                rows.append(document(f"{file.name}/near{copy}", mutated, stars=chosen.randrange(40)))
        if number % 7 == 1:  # a chain: neighbours are similar, the ends are not
            for link in range(5):
                text = mutate(text, 0.06, chosen)
                rows.append(document(f"{file.name}/link{link}", text, fork_of="x" if link % 2 else None))
        if number % 5 == 2:
            for copy in range(3):
                rows.append(document(f"{file.name}/same{copy}", text, stars=copy))
    for number, nothing in enumerate(["", "", "{}()\n", "\n\n", "{}()\n", None]):
        rows.append(document(f"nothing{number}", nothing))
    return rows


def mutate(text: str, share: float, chosen: random.Random) -> str:
    """`text` with a share of its words replaced by words of its own."""
    return re.sub(
        r"\w+",
        lambda word: f"{word[0]}_{chosen.randrange(9)}" if chosen.random() < share else word[0],
        text,
    )


def arrow(rows: list[dict[str, object]]) -> pa.Table:
    """The rows as RAW with `dataset`, all nullable as Spark has them; `file` and `row` locate texts.

    The file is a new one, which lives as long as this process.
    """
    fields = [pa.field(field.name, field.type) for field in RAW.columns]
    table = pa.Table.from_pylist(rows, schema=pa.schema(fields))
    datasets = ["even" if int(str(row["doc_id"]), 16) % 2 == 0 else "odd" for row in rows]
    with tempfile.NamedTemporaryFile(suffix=".parquet", dir=_FILES.name, delete=False) as file:
        pq.write_table(table, file, row_group_size=50)
    places = {
        "file": pa.array([f"file:{file.name}"] * len(rows)),
        "row": pa.array(range(len(rows)), pa.int64()),
    }
    for name, column in {"dataset": pa.array(datasets, pa.string()), **places}.items():
        table = table.append_column(name, column)
    return table


def document_frequencies(rows: list[dict[str, object]]) -> tuple[Counter[int], Counter[int]]:
    """How many documents hold each token, and how often it stands in all of them."""
    in_documents: Counter[int] = Counter()
    occurrences: Counter[int] = Counter()
    for bag in _bags(rows):
        in_documents.update(bag.keys())
        occurrences.update(bag)
    return in_documents, occurrences


def similarities(rows: list[dict[str, object]]) -> dict[tuple[str, str], float]:
    """Exact J_W of each pair of different texts with tokens, ids ascending, by dense matrices."""
    in_documents, _ = document_frequencies(rows)
    column = {token: number for number, token in enumerate(in_documents)}
    weights = np.zeros((len(rows), len(column)))
    for row, bag in enumerate(_bags(rows)):
        for token, count in bag.items():
            idf = math.log(1 + len(rows) / in_documents[token])
            weights[row, column[token]] = (1 + math.log(count)) * idf
    total = weights.sum(1)
    found = {}
    for i, row in enumerate(rows):
        least = np.minimum(weights[i + 1 :], weights[i]).sum(1)
        for j, similarity in enumerate(least / np.maximum(total[i] + total[i + 1 :] - least, 1e-9), i + 1):
            pair = sorted((str(row["doc_id"]), str(rows[j]["doc_id"])))
            if total[i] and total[j] and row["content_hash"] != rows[j]["content_hash"]:
                found[pair[0], pair[1]] = float(similarity)
    return found


def _bags(rows: list[dict[str, object]]) -> list[Counter[int]]:
    bags = counted(pa.array([row["text"] or "" for row in rows]))
    return [Counter(dict(zip(*map(np.ndarray.tolist, bag), strict=True))) for bag in bags]
