"""A format of a datasets file is one class and one line; the file, guesses and counts follow from them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from factory.errors import ConfigurationError
from factory.ingest.readers import Ingested, Ingests
from factory.orchestration.datasets import check as checks
from factory.orchestration.datasets import formats, guess
from factory.orchestration.datasets.formats import CLASS_OF_FORMAT, FORMATS, Jsonl, RecordFiles
from factory.orchestration.datasets.template import template
from factory.orchestration.declare.ingest_dataset import Dataset
from factory.orchestration.declare.synthesis import Synthesis
from spark_udfs.ingest.files import Input
from spark_udfs.ingest.records import FirstRecords
from spark_udfs.ingest.registry import READERS, RECORD_FILES
from tests.orchestration.declared import refusal, tables


class Toy(RecordFiles):
    """Lines of `.toy`."""

    noun = "a toy"
    format: Literal["toy"]

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        return ingests.jsonl(paths, self.fields)

    @staticmethod
    def first_records(source: Input, n_records: int) -> FirstRecords:
        return Jsonl.first_records(source, n_records)


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of toys, where `toy` is a format."""
    for module in (formats, guess):
        monkeypatch.setattr(module, "FORMATS", (*FORMATS, Toy))
    monkeypatch.setitem(CLASS_OF_FORMAT, "toy", Toy)
    monkeypatch.setitem(RECORD_FILES, "toy", ("**/*.toy",))
    monkeypatch.setitem(READERS, "toy", READERS["jsonl"])
    (tmp_path / "toys").mkdir()
    return tmp_path


@pytest.mark.invariant(
    "A format is one file and one line in each of two registries, of readers and of datasets files; three"
    " files outside its own name it."
)
def test_a_file_declares_datasets_of_a_format_that_a_test_registers(toys: Path) -> None:
    (toys / "toys" / "a.toy").write_text('{"body": "a text"}\n')
    text = template(guess.guess(toys), "datasets.yaml")
    assert "format: toy # 1 file\n    paths: toys\n    text: body\n" in text
    (toys / "datasets.yaml").write_text(text)
    file = checks.check(toys / "datasets.yaml")
    assert [(dataset.format, dataset.files) for dataset in file.datasets] == [("toy", 1)]
    assert "raw.toys" in tables(file.corpus)


def test_errors_name_a_format_that_a_test_registers(toys: Path) -> None:
    with pytest.raises(
        ConfigurationError, match="JSON lines, Parquet, an archive, a web archive, pictures or a toy: it is"
    ):
        guess.guess(toys)
    text = "datasets: [{name: a, kind: prose, format: toy, paths: toys}]\n"
    (toys / "my.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match="No file exists under `toys`"):
        checks.check(toys / "my.yaml")
    assert "`images`, `synthesis`, `toy`." in refusal(toys, text.replace("toy,", "zzzzzz,"))


def test_every_class_of_a_format_is_registered() -> None:
    leaves, waiting = {Synthesis}, [Dataset]  # a job is a format of no files, in a module of its own
    while waiting:
        format_class = waiting.pop()
        further = [kind for kind in format_class.__subclasses__() if kind.__module__ == formats.__name__]
        waiting += further
        if not further:
            leaves.add(format_class)
    assert leaves == set(FORMATS)


def test_every_registered_format_can_be_named(folder: Path) -> None:
    names = refusal(folder, "datasets: [{name: a, kind: prose, format: zzzzzz, paths: notes}]\n")
    assert names.endswith(f"Use one of {', '.join(f'`{name}`' for name in CLASS_OF_FORMAT)}.")
    assert CLASS_OF_FORMAT.keys() >= RECORD_FILES.keys()
    assert list(CLASS_OF_FORMAT.values()) == list(FORMATS)
    readers = CLASS_OF_FORMAT.keys() - {"synthesis"}
    assert all(callable(getattr(Ingests, name)) for name in readers)
