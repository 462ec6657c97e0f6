"""Datasets of pictures in a datasets file: their tables, default rules, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.orchestration.datasets.assets import corpus
from factory.orchestration.datasets.guess import guess
from factory.orchestration.datasets.template import template
from tests.ingest.inputs import picture
from tests.orchestration.declared import refusal, tables

FILE = """\
datasets:
  - name: pics
    kind: prose
    format: images
    paths: pics
  - {name: notes, kind: prose, format: files, paths: notes}
blend: {pad: true}
"""


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for name, content in {"pics/a.png": picture(), "pics/a.txt": b"A.", "notes/b.txt": b"B."}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_pictures_have_facts_rules_and_decisions_of_their_own(pictures: Path) -> None:
    (pictures / "my.yaml").write_text(FILE)
    names = tables(corpus(pictures / "my.yaml"))
    assert {"images.pics", "signals.pics_by_images", "dedup.pics_decisions", "deduplicated.pics"} <= names
    assert not {"images.notes", "signals.notes_by_images", "dedup.pics_bags"} & names


@pytest.mark.parametrize(
    "line, after, sentence",
    [
        ("    group: prose\n", "paths: pics\n", "`pics` has pictures, and a group compares captions alone"),
        ("    variants: {x: {threshold: 0.9}}\n", "paths: pics\n", "`pics__x` has pictures"),
        ("    layout: tiles\n", "paths: pics\n", "tiles"),
    ],
)
def test_options_that_pictures_lack_are_refused(pictures: Path, line: str, after: str, sentence: str) -> None:
    assert sentence in refusal(pictures, FILE.replace(after, after + line))


def test_rules_on_pictures_and_the_name_of_their_decisions_are_refused_elsewhere(pictures: Path) -> None:
    rule = FILE.replace("paths: notes", "paths: notes, rules: [image_ratio]")
    assert "`image_ratio` judges pictures, and `notes` has none." in refusal(pictures, rule)
    group = FILE.replace("paths: notes", "paths: notes, group: pics")
    assert "`pics` is the name of a dataset with pictures." in refusal(pictures, group)


def test_a_file_for_a_guess_of_pictures_is_correct(pictures: Path) -> None:
    (pictures / "my.yaml").write_text(template(guess(pictures), "my.yaml"))
    assert "raw.pics" in tables(corpus(pictures / "my.yaml"))


def test_a_guess_takes_pictures_with_captions_and_leaves_illustrations(pictures: Path) -> None:
    (pictures / "notes" / "c.png").write_bytes(picture())
    assert [(dataset.name, dataset.format) for dataset in guess(pictures)] == [
        ("notes", "files"),
        ("pics", "images"),
    ]
