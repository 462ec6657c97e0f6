"""A dataset with a validation part, from files to the trace of a document on either side."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest

from factory.explain.summary import stage_rows, summarize
from factory.explain.trace import trace_documents
from factory.lake import names
from factory.lake.identity import doc_id, draw
from factory.lake.schemas.packing import VALIDATION
from factory.lake.tables import Lake
from factory.orchestration.table import progress
from factory.settings import Settings
from tests.orchestration.declared import declared, refusal, tables
from tests.orchestration.runs import run

SHARE = 0.4
KEYS = [f"d{number}" for number in range(30)]
LATER = [f"copy{number}" for number in range(30)]
TEXT = """datasets:
- {name: NAME, kind: prose, format: jsonl, paths: a.jsonl, key: id, source: web, rules: [word_count],
   limits: {word_count: [5, 1000]}, group: NAME, tokenizer: NAMEt, validation: 0.4,
   packing: {sequence_length: 64}}
tokenizers: {NAMEt: {vocabulary: 300}}
"""


def words(number: int) -> str:
    return " ".join(f"word{number}x{position}" for position in range(20))


@pytest.mark.invariant(
    "A document is in the training part or in the validation part of its dataset, by a draw of its "
    "repository or key that nothing else changes, and no copy of it is on the other side."
)
@pytest.mark.spark
def test_no_copy_of_a_validation_document_is_left_in_training(
    lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    documents = {key: words(number) for number, key in enumerate(KEYS)}
    documents |= {key: words(number) + (" more" if number % 2 else "") for number, key in enumerate(LATER)}
    crossing = [
        one
        for one, other in zip(KEYS, LATER, strict=True)
        if (draw(None, one) < SHARE) != (draw(None, other) < SHARE)
    ]
    assert len(crossing) > 5  # copies and near copies on either side
    lines = (json.dumps({"id": key, "text": text}) + "\n" for key, text in documents.items())
    (tmp_path / "a.jsonl").write_text("".join(lines))
    found = declared(tmp_path, TEXT.replace("NAME", unique))
    notes: dict[str, str] = {}

    def listener(event: progress.Progress) -> None:
        if event.phase == "published":
            notes[event.asset] = event.note

    with progress.listening(listener):
        assert run(lake_settings, *found.assets).success
    lake = Lake(lake_settings)
    keys_of = {
        part: set(lake.read(names.placements(part), ["doc_id"])["doc_id"].to_pylist())
        for part in names.packed_parts(lake.names(), unique)
    }
    training, validation = keys_of[unique], keys_of[names.validation(unique)]
    ids = {doc_id("web", key): key for key in documents}
    kept = lake.read(names.deduplicated(unique), ["doc_id"])["doc_id"].to_pylist()
    assert training | validation == set(kept)
    assert not training & validation
    assert all((draw(None, ids[doc_id]) < SHARE) == (doc_id in validation) for doc_id in kept)
    numbers = [{ids[doc_id].lstrip("dcopy") for doc_id in part} for part in (training, validation)]
    assert numbers[0].isdisjoint(
        numbers[1]
    )  # of a document and its copy one is left, on the side that it draws
    assert len(kept) == len(KEYS)

    n_validation = len(validation)
    assert notes[f"packed.{unique}_validation"] == f"{n_validation} of 30 documents"
    assert notes[f"packed.{unique}"] == f"{30 - n_validation} of 30 documents"
    for part in keys_of:
        assert lake.published(names.packed(part)).properties[VALIDATION] == "0.4"
    rows = {stage.table: stage.rows_in for stage in stage_rows(lake, [unique])}
    assert rows[f"packed.{unique}_validation"] == n_validation
    assert rows[f"packed.{unique}"] == 30 - n_validation
    assert summarize(lake, [unique], []).values("packing").keys() == keys_of.keys()

    some = [min(validation), min(training)]
    for trace, part in zip(trace_documents(lake, some), ("validation", "training"), strict=True):
        assert trace.side is not None
        assert (trace.side.part, trace.side.share) == (part, SHARE)
        assert str(trace.side).startswith(f"{part}, because its key `{trace.key}` draws 0.")


def test_the_part_has_a_table_that_no_blend_of_the_file_takes(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "a", "text": "b"}\n')
    text = TEXT.replace("NAME", "web")
    assert {"packed.web_validation", "packed.web_validation_placements"} <= tables(declared(tmp_path, text))
    [blend] = [declared(tmp_path, text).weights]
    assert blend == {"web": 1}
    assert refusal(tmp_path, f"{text}blend: {{weights: {{web: 1, web_validation: 1}}}}\n") == (
        "my.yaml, line 6, blend.weights.web_validation: This is the validation part of `web`, and the demo's "
        "blend is for training. Leave it out."
    )


def test_a_dataset_does_not_have_the_name_of_a_part(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n")
    sentence = refusal(tmp_path, TEXT.replace("name: NAME", "name: web_validation").replace("NAME", "web"))
    assert "`web_validation` is not a dataset name, because names in `_validation` are reserved" in sentence


@pytest.mark.parametrize("share", ["0", "1", "2", "-0.1", "10%"])
def test_a_share_that_is_none_is_told_with_its_line(tmp_path: Path, share: str) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n")
    text = TEXT.replace("NAME", "web").replace("validation: 0.4", f"validation: {share}")
    assert refusal(tmp_path, text).startswith(f"my.yaml, line 3, datasets[0].validation: `{share}`")


def test_a_dataset_without_a_part_is_packed_as_before(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n")
    text = TEXT.replace("NAME", "web").replace(" validation: 0.4,", "")
    assets = {key: asset for asset in declared(tmp_path, text).assets for key in asset.keys}
    packed = assets[dg.AssetKey("packed.web")]
    assert {key.to_user_string() for key in packed.dependency_keys} == {"tokenized.web", "models.webt"}
