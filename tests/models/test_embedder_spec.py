"""An embedder in a datasets file: its kinds, the files that it reads, and sentences about wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.models.embedder_spec import parse_embedder

OWN = "class Own:\n    dimensions = 2\n    def embed(self, texts):\n        return [[1, 0] for _ in texts]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "m.onnx").write_bytes(b"model")
    (tmp_path / "sentences" / "1_Pooling").mkdir(parents=True)
    (tmp_path / "sentences" / "modules.json").write_text("[]")
    (tmp_path / "sentences" / "1_Pooling" / "config.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize(
    "reference, kind, name, files",
    [
        ("lsa", "lsa", "", []),
        ("onnx:m.onnx", "onnx", "", ["m.onnx"]),
        ("column:metadata.e5", "column", "e5", []),
        ("own.py:Own", "python", "Own", ["own.py"]),
        (
            "sentence_transformers:sentences",
            "sentence_transformers",
            "",
            ["sentences/1_Pooling/config.json", "sentences/modules.json"],
        ),
    ],
)
def test_a_word_names_an_embedder_with_its_files(
    folder: Path, reference: str, kind: str, name: str, files: list[str]
) -> None:
    spec = parse_embedder(reference, folder)
    assert (spec.kind, spec.name) == (kind, name)
    assert [path.relative_to(folder.resolve()).as_posix() for path in spec.files] == files


@pytest.mark.parametrize(
    "reference, sentence",
    [
        ("lsi", "Unknown embedder `lsi`. Did you mean `lsa`?"),
        ("word2vec", "Unknown embedder `word2vec`. Use one of `lsa`, `onnx:FILE`"),
        ("lsa:128", "The embedder `lsa:128` is not complete. Write `lsa`."),
        ("onnx", "The embedder `onnx` is not complete. Write `onnx:FILE`."),
        ("column:text", "Write `column:metadata.KEY`"),
        ("onnx:missing.onnx", "There is no file `missing.onnx`"),
        ("sentence_transformers:m.onnx", "There is no folder `m.onnx`"),
        ("missing.py:Own", "There is no file `missing.py`"),
        ("own.py:Owm", "Unknown embedder of own.py: `Owm`. Did you mean `Own`?"),
        ("empty.py:Own", "empty.py has no class with a method `embed`"),
        ("broken.py:Own", "broken.py fails with ZeroDivisionError"),
    ],
)
def test_another_word_is_refused_in_a_sentence(folder: Path, reference: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        parse_embedder(reference, folder)
    assert sentence in str(error.value)


def test_the_source_follows_the_content_of_the_files_and_not_their_place(folder: Path) -> None:
    before = parse_embedder("sentence_transformers:sentences", folder).source
    elsewhere = folder / "elsewhere"
    (folder / "sentences").rename(elsewhere)
    assert parse_embedder("sentence_transformers:elsewhere", folder).source == before
    (elsewhere / "modules.json").write_text("[1]")
    assert parse_embedder("sentence_transformers:elsewhere", folder).source != before
