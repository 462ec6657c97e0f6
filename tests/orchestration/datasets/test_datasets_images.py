"""A dataset with pictures, from files to the rows of a blend: the bytes of the files, each at its token."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from blender.catalog.blends import open_blends
from blender.records import Source
from blender.trainer.local import LocalBlender
from factory.explain.named_state import named_state
from factory.explain.packed_text import pieces_of
from factory.explain.tables import sample
from factory.explain.trace import trace_documents
from factory.lake import names
from factory.lake.packed_tables import delivered_columns
from factory.lake.schemas.images import IMAGE_TOKEN
from factory.lake.schemas.packing import SEQUENCE_LENGTH
from factory.lake.tables import Lake
from factory.models.tokenizer import IMAGE
from factory.settings import Settings
from tests.blender.picture_tables import draw
from tests.orchestration.declared import declared, refusal
from tests.orchestration.runs import run

N = 12
SMALL = 3  # the number of a picture that the limit on sides removes
TEXT = """datasets:
- {name: NAME, kind: prose, format: images, paths: pictures, rules: [image_side],
   limits: {image_side: [8, 100]}, tokenizer: NAMEt}
tokenizers: {NAMEt: {vocabulary: 300}}
"""


def write_files(folder: Path) -> dict[str, bytes]:
    """Twelve pictures with captions, and one caption without a picture; returns the pictures by name."""
    folder.mkdir()
    files = {}
    for number in range(N):
        width = 4 if number == SMALL else 20 + number
        files[f"{number}.png"] = draw(width, 16, seed=number).content
        (folder / f"{number}.png").write_bytes(files[f"{number}.png"])
        (folder / f"{number}.txt").write_text(f"A flower with {number} leaves, which {IMAGE} spells.")
    (folder / "lost.txt").write_text("Nobody drew it.")
    return files


@pytest.mark.spark
def test_files_of_pictures_become_rows_of_a_blend(
    lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    files = write_files(tmp_path / "pictures")
    assert run(lake_settings, *declared(tmp_path, TEXT.replace("NAME", unique)).assets).success
    lake, table = Lake(lake_settings), names.packed(unique)
    assert lake.read(names.rejected(unique), ["reason"])["reason"].to_pylist() == ["no_picture"]
    files.pop(f"{SMALL}.png")
    columns = delivered_columns(lake, table)
    assert columns == ("tokens", "images")
    properties = lake.table(table).properties
    blend = LocalBlender(lake_settings).create([Source(str(table), len(files), columns=columns)], seed=1)
    rows = open_blends(lake_settings).open(blend.id).step(0)
    contents = {}
    for row in rows.to_pylist():
        (image,) = row["images"]
        tokens = np.frombuffer(row["tokens"], "<u2").tolist()
        assert [tokens.index(int(properties[IMAGE_TOKEN]))] == [image["position"]]
        assert tokens.count(int(properties[IMAGE_TOKEN])) == 1  # the spelling in the caption is text
        assert row["segment_lengths"] == [len(tokens)]
        assert len(tokens) <= int(properties[SEQUENCE_LENGTH])
        contents[image["name"]] = image["content"]
    assert contents == files
    state = named_state(lake, str(table))
    (row,) = sample(lake, state, 1, 0)
    ((piece,),) = pieces_of(lake, state, [row]) or []
    assert "image/png" in piece.text
    assert f"which {IMAGE} spells" in piece.text
    (trace,) = trace_documents(
        lake, [row["segments"][0]["doc_id"]], [open_blends(lake_settings).open(blend.id)]
    )
    assert [serving.offset for serving in trace.servings] == [0]
    assert trace.placements[0][0] == row["ordinal"]


@pytest.mark.parametrize(
    "change, sentence",
    [
        ("packing: {samples: false}, tokenizer:", "have pictures, so each is a row of its own"),
        ("packing: {samples: 1}, tokenizer:", "`1` is neither true nor false"),
    ],
)
def test_pictures_are_always_samples(change: str, sentence: str, tmp_path: Path) -> None:
    write_files(tmp_path / "pictures")
    assert sentence in refusal(tmp_path, TEXT.replace("NAME", "x").replace("tokenizer:", change))


def test_samples_need_padding_in_a_blend_of_several_datasets(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    entry = "- {{name: {}, kind: prose, format: files, paths: a.txt, packing: {{samples: {}}}, source: {}}}\n"
    text = "datasets:\n" + entry.format("one", "true", "one") + entry.format("two", "false", "two")
    assert "A row of `one` is one document, of any length" in refusal(tmp_path, text)


def test_a_token_around_documents_cannot_be_the_token_of_pictures(tmp_path: Path) -> None:
    write_files(tmp_path / "pictures")
    text = TEXT.replace("NAME", "x").replace("vocabulary: 300", 'image: "<|endoftext|>"')
    assert "begins or ends documents, so it cannot stand for a picture too" in refusal(tmp_path, text)
