"""1 GB of prose from the Python installation, the same on every machine with the same packages.

A document is a long description, a text file (`.rst`, `.md`, `.txt`) or all docstrings of a module. Together
they have some 45 MB. The rest are copies of all documents with renamed words: each copy maps the words of at
least four small letters to others of their length, one to one, so that it keeps the lines, lengths and
repetitions of its original. Filters look at one document at a time, so a copy costs as much as its original.
"""

from __future__ import annotations

import ast
import json
import random
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator
from hashlib import blake2b
from importlib.metadata import distributions
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console

from bench.cache import cached
from bench.installation import installed_files
from spark_udfs.ingest.installation import long_description

LEAST_BYTES = 1_000_000_000
ORIGINALS = "copy-000.parquet"
SUFFIXES = (".rst", ".md", ".txt", ".py")
LEAST_CHARACTERS, MOST_CHARACTERS = 200, 1_000_000  # of a document
RENAMED = re.compile(r"\b[a-z]{4,}\b")
UNTOUCHED = frozenset({"that", "have", "with", "lorem", "ipsum", "javascript", "terms", "privacy", "policy"})
SCHEMA = pa.schema([("doc_id", pa.string()), ("text", pa.string())])
ROWS_A_GROUP = 1_000
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def corpus(console: Console) -> Path:
    """The folder of Parquet files (doc_id, text), one per copy; made if missing."""
    installed = sorted(f"{distribution.name}=={distribution.version}" for distribution in distributions())
    key = blake2b(json.dumps([installed, LEAST_BYTES]).encode(), digest_size=6).hexdigest()

    def make(folder: Path) -> None:
        console.print(f"gathering {LEAST_BYTES / 1e6:.0f} MB of prose in {folder} (once, a few minutes)")
        _make(folder)

    return cached(f"prose-{key}", make)


def originals(folder: Path) -> pa.Table:
    """The original documents."""
    return pq.read_table(folder / ORIGINALS)


def copies(folder: Path, least: int) -> list[Path]:
    """The first files of the corpus that hold at least `least` bytes of text together."""
    found: list[Path] = []
    size = 0
    for file in sorted(folder.glob("copy-*.parquet")):
        if size < least:
            found.append(file)
            size += text_bytes(file)
    return found


def text_bytes(file: Path) -> int:
    """The bytes of the texts of one file."""
    return int(pc.sum(pc.binary_length(pq.read_table(file, columns=["text"])["text"])).as_py())


def _make(folder: Path) -> None:
    texts = {blake2b(text.encode(), digest_size=16).hexdigest(): text for text in prose()}
    in_order = sorted(texts.items())  # by hash, which mixes long and short, prose and lists
    size = sum(len(text.encode()) for _, text in in_order)
    words = sorted({word for _, text in in_order for word in RENAMED.findall(text)} - UNTOUCHED)
    for copy in range(-(-LEAST_BYTES // size)):
        names = _renaming(words, copy)
        rows = [{"doc_id": f"{copy:03}-{doc_id}", "text": _renamed(text, names)} for doc_id, text in in_order]
        table = pa.Table.from_pylist(rows, schema=SCHEMA)
        pq.write_table(
            table, folder / f"copy-{copy:03}.parquet", compression="zstd", row_group_size=ROWS_A_GROUP
        )


def _renamed(text: str, names: dict[str, str]) -> str:
    return RENAMED.sub(lambda word: names.get(word[0], word[0]), text) if names else text


def _renaming(words: list[str], copy: int) -> dict[str, str]:
    """A permutation of the words of every length; none for copy 0, the originals."""
    if copy == 0:
        return {}
    by_length: dict[int, list[str]] = defaultdict(list)
    for word in words:
        by_length[len(word)].append(word)
    names: dict[str, str] = {}
    for length, group in by_length.items():
        shuffled = random.Random(f"{copy} {length}").sample(group, len(group))
        names |= zip(group, shuffled, strict=True)
    return names


def prose() -> Iterator[str]:
    """Yield the prose of installed files."""
    for path in installed_files():
        if path.suffix not in SUFFIXES and path.name != "METADATA":
            continue
        try:
            content = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):
            continue  # not prose
        if path.name == "METADATA":
            content = long_description(content)[0]
        elif path.suffix == ".py":
            content = docstrings_of(content)
        if LEAST_CHARACTERS <= len(content) <= MOST_CHARACTERS:
            yield content


def docstrings_of(source: str) -> str:
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    found = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, _DOCUMENTED))
    return "\n\n".join(doc for doc in found if doc)
