"""Real text with classes and sources: what the installed packages say of themselves, in two ways.

A distribution is a source. Its class `readme` is its long description and its text files, `docstrings` what
its modules say. Both are English about software, so only style tells them apart; a name or a footer tells
the distribution.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pyarrow as pa

from bench.filters.corpus import docstrings_of
from spark_udfs.ingest.installation import long_description

CHUNK = 1_500  # characters
LEAST = 600  # characters of a chunk
MOST_CHUNKS = 40  # of a distribution and class, so that no large one is most of the examples
CLASSES = ("readme", "docstrings")


def examples(names: Collection[str] = ()) -> pa.Table:
    """Return (doc_id, class, source, key, text) of chunks of all installed distributions, or of some."""
    rows = []
    for distribution in sorted(distributions(), key=lambda distribution: distribution.name.lower()):
        if names and distribution.name not in names:
            continue
        for kind, texts in zip(CLASSES, (_readmes(distribution), _docstrings(distribution)), strict=True):
            for number, chunk in enumerate(_chunks(texts)):
                key = f"{distribution.name}/{kind}/{number}"
                row = {"doc_id": key, "class": kind, "source": distribution.name, "key": key}
                rows.append(row | {"text": chunk})
    return pa.Table.from_pylist(rows)


def _readmes(distribution: Distribution) -> Iterator[str]:
    yield long_description(distribution.read_text("METADATA") or "")[0]
    for path in _files(distribution, ".md", ".rst", ".txt"):
        if "license" not in path.name.lower():
            yield _read(path)


def _docstrings(distribution: Distribution) -> Iterator[str]:
    for path in _files(distribution, ".py"):
        yield docstrings_of(_read(path))


def _files(distribution: Distribution, *suffixes: str) -> Iterator[Path]:
    paths = (Path(str(file.locate())) for file in sorted(distribution.files or [], key=str))
    yield from (path for path in paths if path.suffix in suffixes)


def _chunks(texts: Iterable[str]) -> list[str]:
    """The first pieces of texts, no more than are used."""
    pieces: list[str] = []
    for text in texts:
        cut = (text[begin : begin + CHUNK] for begin in range(0, len(text), CHUNK))
        pieces += [piece for piece in cut if len(piece) >= LEAST]
        if len(pieces) >= MOST_CHUNKS:
            break
    return pieces[:MOST_CHUNKS]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError):
        return ""  # not text
