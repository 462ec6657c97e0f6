"""The text files of several releases each of 100 packages, as Parquet files that keep families together.

The releases (`bench/dedup/releases.py`) are pure Python wheels, fetched once with `pip download` from its
configured index, and reduced to their source code, documentation and data in UTF-8. A document goes to one of
`FOLDS` files by a hash of the last two parts of its path. So all releases of a file and its vendored copies
are in one fold, and a share of the folds has families as large as the whole.
"""

from __future__ import annotations

import json
import mimetypes
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from bench.cache import cached
from bench.dedup.releases import RELEASES, requirements
from factory.errors import CheckFailed
from factory.lake.identity import content_hash, doc_id
from factory.lake.schemas.ingest import RAW

FOLDS = 40
MOST_BYTES = 1_000_000
MOST_HELD = 64_000_000  # bytes of text held as Python rows at a time; the whole corpus would not fit
ROWS_A_GROUP = 1_000
SUFFIXES = (
    "bash", "bat", "bzl", "c", "cc", "cfg", "cmake", "cpp", "cs", "css", "csv", "cu", "cxx", "f",
    "f90", "go", "graphql", "h", "hpp", "htm", "html", "ini", "ipynb", "j2", "java", "jinja", "js",
    "json", "jsx", "kt", "less", "lua", "m", "md", "mjs", "php", "pl", "po", "proto", "ps1", "pxd",
    "py", "pyi", "pyx", "r", "rb", "rs", "rst", "sass", "scss", "sh", "sql", "svg", "tex", "toml",
    "ts", "tsx", "txt", "vue", "xml", "xsd", "yaml", "yml",
)  # fmt: skip
COLUMNS = (
    "doc_id", "source", "key", "text", "content_hash", "n_bytes", "media_type", "repository", "path",
    "revision",
)  # fmt: skip
_FOR = ("--platform", "any", "--python-version", "3.12", "--implementation", "py", "--abi", "none")


class ReleasesNotFetched(CheckFailed):
    """The releases of the corpus could not be fetched."""


@dataclass(frozen=True)
class Corpus:
    """A folder of Parquet files, one a fold, with `COLUMNS` of a raw table."""

    folder: Path

    def files(self, folds: Iterable[int]) -> list[str]:
        """The files of `folds`."""
        return [str(self.folder / f"fold-{fold:02}.parquet") for fold in folds]

    def documents(self, folds: Iterable[int]) -> int:
        """The number of documents in `folds`."""
        return sum(pq.read_metadata(file).num_rows for file in self.files(folds))

    def read(self, folds: Iterable[int], columns: Sequence[str]) -> pa.Table:
        """`columns` of the documents of `folds`, in the order of the files."""
        return pa.concat_tables(pq.read_table(file, columns=list(columns)) for file in self.files(folds))


def corpus(console: Console) -> Corpus:
    """The corpus, gathered if missing. Raises ReleasesNotFetched."""
    key = blake2b(json.dumps([requirements(), sorted(SUFFIXES), MOST_BYTES, FOLDS]).encode(), digest_size=6)

    def make(folder: Path) -> None:
        with TemporaryDirectory(dir=folder) as wheels:
            _download(Path(wheels), console)
            _write(folder, _documents(sorted(Path(wheels).glob("*.whl"))))

    return Corpus(cached(f"releases-{key.hexdigest()}", make))


def fold(path: str) -> int:
    """The fold of a file, by the last two parts of its path."""
    name = "/".join(PurePosixPath(path).parts[-2:])
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little") % FOLDS


def _download(wheels: Path, console: Console) -> None:
    """Fetch the first release of every package together, then the second ones, so that pip starts rarely."""
    rounds = list(zip_longest(*(said.split() for said in RELEASES.values())))
    for number, versions in enumerate(rounds, 1):
        wanted = [f"{name}=={it}" for name, it in zip(RELEASES, versions, strict=True) if it]
        console.print(f"fetching releases, {number} of {len(rounds)}: {len(wanted)} packages")
        done = subprocess.run(
            [
                sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                "--only-binary", ":all:", *_FOR, "--dest", str(wheels), *wanted,
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise ReleasesNotFetched(
                f"The releases were not fetched by `pip download`: {done.stderr.strip()[-300:]} "
                "Check that the package index answers."
            )


def _documents(wheels: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for wheel in wheels:
        package, version = wheel.name.lower().split("-")[:2]
        release = f"{package}-{version}"
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                path = PurePosixPath(entry.filename)
                described = path.parts[0].endswith(".dist-info")  # written by pip, not by the package
                if described or path.suffix[1:].lower() not in SUFFIXES:
                    continue
                if not 0 < entry.file_size <= MOST_BYTES:
                    continue
                try:
                    text = archive.read(entry).decode()
                except UnicodeDecodeError:
                    continue  # the tools accept only UTF-8
                yield {
                    "doc_id": doc_id(release, entry.filename),
                    "source": package,
                    "key": f"{version}/{entry.filename}",
                    "text": text,
                    "content_hash": content_hash(text),
                    "n_bytes": entry.file_size,
                    "media_type": mimetypes.guess_type(entry.filename)[0] or "text/plain",
                    "repository": release,
                    "path": entry.filename,
                    "revision": version,
                }


def _write(folder: Path, documents: Iterable[dict[str, Any]], most: int = MOST_HELD) -> None:
    """Write one file per fold, its rows by `doc_id`; hold `most` bytes of text, then one fold at a time."""
    with TemporaryDirectory(dir=folder) as spool:
        spooled = Corpus(Path(spool)).files(range(FOLDS))
        _spool(spooled, documents, most)
        for file, target in zip(spooled, Corpus(folder).files(range(FOLDS)), strict=True):
            rows = pq.read_table(file).sort_by("doc_id")  # a hash, so releases are mixed
            pq.write_table(rows, target, compression="zstd", row_group_size=ROWS_A_GROUP)


def _spool(files: Sequence[str], documents: Iterable[dict[str, Any]], most: int) -> None:
    """Append each document to the file of its fold."""
    schema = pa.schema([RAW.columns.field(name) for name in COLUMNS])
    with ExitStack() as opened:
        writers = [opened.enter_context(pq.ParquetWriter(file, schema)) for file in files]
        for batch in _batches(documents, most):
            folds: dict[int, list[dict[str, Any]]] = defaultdict(list)
            for document in batch:
                folds[fold(document["path"])].append(document)
            for number, rows in folds.items():
                writers[number].write_table(pa.Table.from_pylist(rows, schema=schema))


def _batches(documents: Iterable[dict[str, Any]], most: int) -> Iterator[list[dict[str, Any]]]:
    """The documents in batches that end once their texts reach `most` bytes."""
    batch: list[dict[str, Any]] = []
    held = 0
    for document in documents:
        batch.append(document)
        held += document["n_bytes"]
        if held >= most:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
