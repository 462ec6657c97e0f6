"""Datasets of pictures in a datasets file: their tables, default rules, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.orchestration.datasets.assets import corpus
from factory.orchestration.datasets.check import check
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


def fill(folder: Path, n_pictures: int, **texts: str) -> Path:
    """A folder of captioned pictures and of further texts."""
    for number in range(n_pictures):
        (folder / f"c{number}.png").write_bytes(picture())
        (folder / f"c{number}.txt").write_text("A caption.")
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def test_loose_pictures_are_their_folder_if_they_and_their_captions_are_all(tmp_path: Path) -> None:
    [pictures_alone] = guess(fill(tmp_path, 5))
    assert (pictures_alone.format, pictures_alone.paths, pictures_alone.files) == ("images", (".",), 5)
    [beside_a_text] = guess(fill(tmp_path, 5, about="About these pictures."))
    assert beside_a_text.paths == tuple(f"c{number}.png" for number in range(5))


def test_captions_of_pictures_count_as_read_and_other_texts_do_not(tmp_path: Path) -> None:
    fill(tmp_path, 5, about="About these pictures.")
    (tmp_path / "my.yaml").write_text(template(guess(tmp_path), "my.yaml"))
    assert check(tmp_path / "my.yaml").left_out([tmp_path]) == {".txt": 1}


def test_a_few_captioned_pictures_do_not_hide_a_folder_of_texts(tmp_path: Path) -> None:
    novels = {f"novel{number}": "It was a dark night." for number in range(5)}
    for folder in (tmp_path / "books", tmp_path):
        folder.mkdir(exist_ok=True)
        fill(folder, 2, **novels)
    assert [(dataset.format, dataset.files) for dataset in guess(tmp_path)] == [("files", 7), ("files", 7)]


def test_a_guess_takes_pictures_with_captions_and_leaves_illustrations(pictures: Path) -> None:
    (pictures / "notes" / "c.png").write_bytes(picture())
    assert [(dataset.name, dataset.format) for dataset in guess(pictures)] == [
        ("notes", "files"),
        ("pics", "images"),
    ]
