"""Damage files of a lake, drawn by a seed, and read the lake in every way.

A damage flips a bit, cuts a file or zeroes a range of it. Every reader must then answer as before, or raise
a FactoryError that names the file. `Readers` turns each answer into text.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyiceberg.manifest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from blender.trainer.local import open_blend
from factory.cli import main
from factory.cli.doctor import _lake
from factory.errors import FactoryError
from factory.lake.files.fetch import LocatedTexts
from factory.lake.files.scan import stored
from factory.lake.fingerprint import fingerprint
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.lake_spark.read import read_at
from factory.orchestration.host.instance import open_instance, reading_runs
from factory.settings import Settings

Read = Callable[[], str]

# Files that readers build again when they are damaged, so that no answer fails.
REMADE = "page index"


@dataclass(frozen=True)
class Damage:
    """One damage of one file; `begin` and `end` are shares of its length."""

    kind: str
    file: Path
    how: str
    begin: float
    n_bytes: int
    bit: int

    def of(self, content: bytes) -> bytes:
        """The damaged bytes."""
        at = min(int(self.begin * len(content)), len(content) - 1)
        if self.how == "cut":
            return content[:at]
        damaged = bytearray(content)
        if self.how == "flip":
            damaged[at] ^= 1 << self.bit
        else:
            damaged[at : at + self.n_bytes] = bytes(len(damaged[at : at + self.n_bytes]))
        return bytes(damaged)

    @contextmanager
    def done(self) -> Iterator[bool]:
        """Damage the file and restore it at the end; yields whether any byte changed."""
        whole = self.file.read_bytes()
        damaged = self.of(whole)
        self.file.write_bytes(damaged)
        try:
            yield damaged != whole
        finally:
            self.file.write_bytes(whole)


def kinds(home: Path) -> dict[str, list[Path]]:
    """All files of a lake, by kind."""
    found: dict[str, list[Path]] = {}
    for path in sorted(home.rglob("*")):
        kind = _kind(path.relative_to(home))
        if kind is not None and path.is_file() and path.stat().st_size:
            found.setdefault(kind, []).append(path)
    newest: dict[Path, Path] = {path.parent: path for path in found["metadata"]}  # nobody reads older ones
    return found | {"metadata": list(newest.values())}


def _kind(path: Path) -> str | None:
    name, folders = path.name, path.parts
    if folders[0] == "page-index":
        return REMADE
    if "blends" in folders:
        return "pins" if name.endswith(".pins.json") else "blend"
    if folders[0] == "dagster":
        return "run records" if name.endswith((".db", ".yaml")) else None
    endings = {
        ".crc": "checksums",
        ".parquet": "data",
        ".metadata.json": "metadata",
        ".avro": "list of manifests" if name.startswith("snap-") else "manifest",
        ".db": "catalog",
    }
    return next((kind for ending, kind in endings.items() if name.endswith(ending)), None)


def damages(home: Path, n: int, seed: int) -> list[Damage]:
    """`n` damages, as many for each kind of file; the same seed and files give the same damages."""
    chance, files = random.Random(seed), kinds(home)
    return [
        Damage(
            kind := sorted(files)[number % len(files)],
            chance.choice(files[kind]),
            chance.choice(["flip", "flip", "cut", "zeroes"]),
            chance.random(),
            chance.randint(1, 256),
            chance.randrange(8),
        )
        for number in range(n)
    ]


class Readers:
    """All ways to read a lake, each answered as text."""

    def __init__(self, settings: Settings, document: str, blend: str, spark: SparkSession | None) -> None:
        """`document` is the id of the document to trace."""
        self._settings, self._document, self._blend, self._spark = settings, document, blend, spark

    def of(self, damage: Damage) -> dict[str, Read]:
        """The readers that open a damaged file, or may open it."""
        everywhere = {
            "tables": self._command("tables", "--json"),
            "trace document": self._command("trace", "document", self._document, "--json"),
            "fetch": self._fetch,
        }
        table = table_of(damage.file)
        if damage.kind == "run records":
            return {"tables": everywhere["tables"], "run records": self._run_records}
        if damage.kind in (REMADE, "blend", "pins"):
            return everywhere | {
                "trace batch": self._command("trace", "batch", self._blend, "1", "--json"),
                "blends": self._command("blend", "list"),
                "plan": self._command("blend", "plan", self._blend, "--json"),
            }
        if table is None:
            return everywhere | {
                "doctor": self._doctor,
                "clean": self._command("clean"),
                "blends": self._command("blend", "list"),
            }
        found = everywhere | {
            "sample": self._command("sample", str(table), "-n", "3"),
            "rows": lambda: self._rows(table),
        }
        if damage.kind == "data" and self._spark is not None:
            found["Spark"] = lambda: self._by_spark(table)
        if damage.kind == "metadata":
            found |= {"doctor": self._doctor, "clean": self._command("clean")}
        if table.namespace in ("deduplicated", "filtered"):
            found["diff"] = self._command("diff", str(table), f"raw.{table.name}", "--json")
        if table.namespace == "packed":
            found["trace batch"] = self._command("trace", "batch", self._blend, "1", "--json")
        return found

    def everything(self) -> dict[str, Read]:
        """The readers that a damaged file of a blend may break."""
        return self.of(Damage("blend", Path(), "cut", 0, 0, 0))

    def _command(self, *arguments: str) -> Read:
        def read() -> str:
            pyiceberg.manifest.clear_manifest_cache()
            ended = CliRunner().invoke(main.app, list(arguments))
            if ended.exception is not None and not isinstance(ended.exception, SystemExit):
                raise ended.exception
            if ended.exit_code:
                raise FactoryError(ended.stderr)
            sys.stderr.write(ended.stderr)
            return ended.stdout

        return read

    def _doctor(self) -> str:
        found = _lake(self._settings)
        if found.remedy:
            raise FactoryError(found.remedy)
        return found.found

    def _fetch(self) -> str:
        pyiceberg.manifest.clear_manifest_cache()
        summed = hashlib.blake2b()
        for batch in open_blend(self._blend, self._settings).fetch(offset=0, steps=5):
            summed.update(str(batch.arrow.to_pydict()).encode())
        return summed.hexdigest()

    def _rows(self, name: TableName) -> str:
        """The rows as every reader based on pyarrow returns them."""
        pyiceberg.manifest.clear_manifest_cache()
        lake = Lake(self._settings)
        rows, table = lake.read(name), lake.table(name)
        fingerprints = [fingerprint(rows.to_batches(), rows.column_names)]
        at = lake.published(name).snapshot_id
        batches = stored(table, at, table.schema().as_arrow())
        fingerprints.append(fingerprint(batches or [], rows.column_names))
        if "text" in rows.column_names:
            for task in table.scan(snapshot_id=at).plan_files():
                numbers = list(range(task.file.record_count))
                texts = LocatedTexts({}).read(task.file.file_path, numbers)
                fingerprints.append(fingerprint(texts, ["text"]))
        return str(fingerprints)

    def _by_spark(self, name: TableName) -> str:
        assert self._spark is not None
        lake = Lake(self._settings)
        at = lake.published(name).snapshot_id
        try:
            return str(sorted(map(str, read_at(self._spark, name, at).collect())))
        except (Py4JError, PySparkException) as error:  # a run turns it into one sentence
            raise FactoryError(str(error)) from error

    def _run_records(self) -> str:
        with reading_runs(self._settings), open_instance(self._settings) as instance:
            return str([(run.run_id, run.status) for run in instance.get_runs()])


def table_of(file: Path) -> TableName | None:
    """The table that a file belongs to."""
    parts = file.parts
    if "warehouse" not in parts or "blends" in parts:
        return None
    at = parts.index("warehouse")
    return TableName(parts[at + 1], parts[at + 2])


def named(damage: Damage, sentence: str) -> bool:
    """Whether a sentence names the damaged file; for a file of checksums, it or the file they cover."""
    return damage.file.name.removeprefix(".").removesuffix(".crc") in sentence


def answer_of(read: Read) -> str:
    """The answer of a reader, or the sentence of its refusal; any other exception fails the test."""
    try:
        return read()
    except FactoryError as error:
        return f"refused: {error}"
