"""A reader is one file and one line; what a file may hold and how it is found follow from the registry."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from factory.ingest.listing import Work, as_table
from factory.ingest.readers import Ingests
from spark_udfs.ingest import registry
from spark_udfs.ingest.files import Input
from spark_udfs.ingest.place import LocalFiles
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.registry import OF_MANY_RECORDS, READERS, RECORD_FILES, FileReader
from spark_udfs.ingest.rows import Row, document
from spark_udfs.ingest.work import read_work
from tests.ingest.inputs import ORIGIN
from tests.product_code import ROOT, files_naming

TELLING = re.compile("jsonl|json.lines", re.IGNORECASE)
OWN_FILE = "spark_udfs/ingest/jsonl.py"
# These write such files, or read facts from them, which are no documents.
EXPORTS = {"factory/cli/export.py", "factory/explain/export_file.py", "factory/ingest/fact_files.py"}
FILES_TO_TOUCH = {  # outside the reader's own file, as CONTRIBUTING counts them
    "spark_udfs/ingest/registry.py",
    "factory/ingest/readers.py",
    "factory/orchestration/datasets/formats.py",
}


@pytest.mark.invariant(
    "A format is one file and one line in each of two registries, of readers and of datasets files; three"
    " files outside its own name it."
)
def test_only_the_counted_files_name_a_format() -> None:
    assert files_naming(TELLING) - EXPORTS - {OWN_FILE} == FILES_TO_TOUCH


def test_every_reader_in_the_folder_is_registered() -> None:
    readers = set()
    for path in (ROOT / "spark_udfs/ingest").glob("*.py"):
        module = importlib.import_module(f"spark_udfs.ingest.{path.stem}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if name.endswith("_file") and function.__module__ == module.__name__ and is_reader(function):
                readers.add(name)
    assert readers == registered_functions()


def is_reader(function: Callable[..., object]) -> bool:
    """Whether a function needs no more than a file and its options."""
    parameters = inspect.signature(function).parameters.values()
    required = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    return required in (["source"], ["source", "fields"], ["source", "options"])


def registered_functions() -> set[str]:
    """The readers that the lines of the registry name."""
    [lines] = (
        node
        for node in ast.parse(inspect.getsource(registry)).body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "READERS"
    )
    names = {node.id for node in ast.walk(lines) if isinstance(node, ast.Name)}
    return {name for name in names if name.endswith("_file")}


def test_a_file_found_by_its_name_holds_many_records() -> None:
    assert set(RECORD_FILES) | {"registered"} == OF_MANY_RECORDS  # `registered` reads files of `parquet`


def test_formats_are_guessed_in_the_order_of_the_registry() -> None:
    assert list(RECORD_FILES) == [
        "parquet",
        "jsonl",
        "warc",
        "archive",
        "images",
    ]  # the first keeps a folder's name


def test_every_format_is_a_method_of_the_readers() -> None:
    assert all(callable(getattr(Ingests, format, None)) for format in RECORD_FILES)


@pytest.mark.parametrize("many_records, file", [(True, "a.toy"), (False, None)])
def test_a_reader_that_a_test_registers_reads_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many_records: bool, file: str | None
) -> None:
    def toy_file(source: Input, fields: Fields) -> Iterator[Row]:
        yield document(source.origin, source.key, fields.text, media_type="text/plain")

    monkeypatch.setitem(READERS, "toy", FileReader(toy_file, many_records))
    work = as_table([Work("toy", ORIGIN, LocalFiles.at(tmp_path), (b"a.toy",))])
    [batch] = read_work(work.to_batches(), Fields(text="body"))
    [row] = batch.to_pylist()
    assert (row["key"], row["text"], row["file"]) == ("a.toy", "body", file)
