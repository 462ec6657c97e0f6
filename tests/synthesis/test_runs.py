"""A job from its declaration to the documents of its dataset: rows, refusals, caps, growth, traces."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from factory.explain.trace import trace_documents
from factory.lake.catalog import open_catalog
from factory.lake.claims import claim
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.table import progress
from factory.settings import Settings
from factory.synthesis.queue import queues
from tests.orchestration.declared import declared
from tests.orchestration.runs import failure, run

KINDS = '''
import pyarrow as pa
from factory.synthesis.kind import NewRecord, Refusal

class Words:
    """A record of each word, and a refusal of a document without one."""

    version = "1"
    schema = pa.schema([("place", pa.int64()), ("language", pa.string())])

    def __init__(self, options): ...

    def __call__(self, item):
        if not item.text.split():
            yield Refusal("", "no_words", "It is blank.", item.text.encode())
        for place, word in enumerate(item.text.split()):
            yield NewRecord(word, f"{word} of {item.key}", {"place": place, "language": "en"})
'''
JOB = """\
datasets:
  - {name: notes, kind: prose, format: jsonl, paths: notes.jsonl, key: id, license: MIT}
  - name: words
    kind: prose
    format: synthesis
    from: notes
    worker: kinds.py:Words
    size: 3
    slice: 2
    replicas: 1
    priority: 0  # runs of other tests claim the cores, too
"""
NAMES = ("raw.notes", "raw.notes_rejected", "synthesis.words", "raw.words", "raw.words_rejected")
SELECTION = [dg.AssetKey([name]) for name in NAMES]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kinds.py").write_text(KINDS)
    texts = ["one two three", "four", "five six", "seven eight nine ten", "eleven", "\u3000"]
    lines = [json.dumps({"id": f"n{number}", "text": text}) + "\n" for number, text in enumerate(texts)]
    (tmp_path / "notes.jsonl").write_text("".join(lines))
    return tmp_path


def make(settings: Settings, folder: Path, text: str = JOB, *, reuse: bool = False) -> None:
    corpus = declared(folder, text)
    outcome = run(settings, *corpus.assets, selection=SELECTION, reuse=reuse)
    assert outcome.success, failure(outcome)


def rows(settings: Settings, table: str) -> list[dict[str, Any]]:
    namespace, name = table.split(".")
    return Lake(settings).read(TableName(namespace, name)).to_pylist()


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession, lake_settings: Settings) -> Iterator[Settings]:
    """The lake of this process without a queue or table of an earlier test of this file."""
    yield lake_settings
    for queue in queues(lake_settings, "words"):
        queue.clean()
    catalog = open_catalog(lake_settings)
    for name in NAMES:
        if catalog.table_exists(name):
            catalog.drop_table(name)


@pytest.mark.spark
def test_a_record_is_a_document_that_names_its_source(folder: Path, lake: Settings) -> None:
    make(lake, folder)
    notes = {row["doc_id"]: row for row in rows(lake, "raw.notes")}
    items = rows(lake, "synthesis.words")
    assert len(items) == 3
    documents = rows(lake, "raw.words")
    assert Counter(dict(row["metadata"])["derived_from"] for row in documents) == {
        row["doc_id"]: row["n_records"] for row in items if row["n_records"]
    }
    [queue] = queues(lake, "words")
    for row in documents:
        metadata = dict(row["metadata"])
        note = notes[metadata.pop("derived_from")]
        word = note["text"].split()[int(metadata.pop("place"))]
        assert (row["text"], row["key"]) == (f"{word} of {note['key']}", f"{note['key']}#{word}")
        assert (row["source"], row["license"], row["language"]) == (f"{note['source']}/words", "MIT", "en")
        assert metadata == {
            "worker": "kinds.py:Words",
            "worker_version": "1",
            "job": queue.job.id,
            "job_seed": "0",
            "derived_from_key": note["key"],
        }
    [record] = [row for row in documents if row["key"].endswith("#one")] or documents[:1]
    note_id = dict(record["metadata"])["derived_from"]
    [of_record], [of_note] = (trace_documents(Lake(lake), [doc_id]) for doc_id in (record["doc_id"], note_id))
    assert note_id in str(of_record)
    assert of_note.about["made into words"].endswith(
        "records" if notes[note_id]["text"].count(" ") else "record"
    )


@pytest.mark.spark
def test_a_job_that_grows_works_on_new_slices_alone(folder: Path, lake: Settings) -> None:
    make(lake, folder)
    few = {row["doc_id"]: row for row in rows(lake, "raw.words")}
    times = {row["doc_id"]: row["seconds"] for row in rows(lake, "synthesis.words")}
    make(lake, folder, JOB.replace("size: 3", "size: 6"), reuse=True)
    all_items, all_records = rows(lake, "synthesis.words"), rows(lake, "raw.words")
    assert (len(all_items), len(all_records)) == (6, 11)
    assert {row["doc_id"]: row for row in all_records}.items() >= few.items()
    seconds_now = {row["doc_id"]: row["seconds"] for row in all_items if row["doc_id"] in times}
    assert sum(seconds_now[doc_id] == seconds for doc_id, seconds in times.items()) >= 2  # of a whole slice


@pytest.mark.spark
def test_refusals_and_records_above_a_cap_are_rejected_with_their_reason(
    folder: Path, lake: Settings
) -> None:
    make(lake, folder, JOB.replace("size: 3", "caps: {document: 2}"))
    reasons = Counter(row["reason"] for row in rows(lake, "raw.words_rejected"))
    assert reasons == {"no_words": 1, "above_cap": 1 + 2}
    assert len(rows(lake, "raw.words")) == 11 - 3
    [blank] = [row for row in rows(lake, "raw.words_rejected") if row["reason"] == "no_words"]
    assert (blank["detail"], blank["sample"]) == ("It is blank.", "\u3000".encode())


@pytest.mark.spark
def test_another_seed_replaces_the_queue(folder: Path, lake: Settings) -> None:
    make(lake, folder)
    [before] = queues(lake, "words")
    make(lake, folder, JOB + "    seed: 7\n", reuse=True)
    [after] = queues(lake, "words")
    assert (before.job.seed, after.job.seed) == (0, 7)
    assert before.job.id != after.job.id


@pytest.mark.spark
def test_a_job_of_more_documents_than_its_source_has_is_refused(folder: Path, lake: Settings) -> None:
    corpus = declared(folder, JOB.replace("size: 3", "size: 7"))
    assert "6" in failure(run(lake, *corpus.assets, selection=SELECTION))


@pytest.mark.spark
def test_a_job_of_more_replicas_than_cores_is_refused(folder: Path, lake: Settings) -> None:
    corpus = declared(folder, JOB.replace("replicas: 1", "replicas: {least: 1, most: 10000}"))
    sentence = failure(run(lake, *corpus.assets, selection=SELECTION))
    assert "10,000 replicas are more than the" in sentence


@pytest.mark.spark
def test_a_job_gives_way_to_a_more_pressing_run_and_says_so(
    folder: Path, lake: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    notes: list[str] = []
    with ExitStack() as pressing, dg.DagsterInstance.ephemeral() as instance:

        def listener(event: progress.Progress) -> None:
            notes.append(event.note)
            if "giving way" in event.note:
                pressing.close()

        pressing.enter_context(claim(5, "run 7"))
        with progress.listening(listener):
            outcome = run(lake, *declared(folder, JOB).assets, selection=SELECTION, instance=instance)
        assert outcome.success, failure(outcome)
        record = [entry.user_message for entry in instance.all_logs(outcome.run_id)]
    assert "0 of 3 documents, 0 slices in work, giving way to run 7" in notes
    begin = record.index("The workers give way to run 7, of priority 5.")
    assert "The workers go on." in record[begin:]
    assert len(rows(lake, "synthesis.words")) == 3
