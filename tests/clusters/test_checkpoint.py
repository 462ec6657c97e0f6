"""A checkpoint as the proxy in a datasets file: its folder, its options, and its package."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from factory.clusters.checkpoint import (
    LEARNING_RATE,
    Checkpoint,
    parse_checkpoint,
    unchanged_checkpoint,
)
from factory.clusters.options import ClusterOptions
from factory.errors import ConfigurationError
from spark_udfs.clusters.checkpoint import open_checkpoint

ROW = {"source": "transformers:model", "parameters": '{"context": 8, "files": "0", "learning_rate": 0.1}'}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files of a checkpoint, which nobody opens, and with incomplete ones."""
    for name, files in {
        "model": ("config.json", "model.safetensors", "tokenizer.json"),
        "weights": ("model.safetensors", "tokenizer.json"),
        "pickle": ("config.json", "pytorch_model.bin", "tokenizer.json"),
        "model_alone": ("config.json", "model.safetensors"),
    }.items():
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).write_text(file)
    return tmp_path


@pytest.mark.parametrize(
    "options, learning_rate",
    [({}, LEARNING_RATE), ({"learning_rate": 0.01}, 0.01)],
)
def test_a_proxy_names_a_folder_and_the_size_of_its_steps(
    folder: Path, options: Mapping[str, Any], learning_rate: float
) -> None:
    checkpoint = parse_checkpoint(ClusterOptions(proxy="transformers:model", **options), folder)
    assert checkpoint == Checkpoint("transformers:model", folder.resolve() / "model", learning_rate)
    assert [path.name for path in checkpoint.files] == ["config.json", "model.safetensors", "tokenizer.json"]


@pytest.mark.parametrize("proxy", [None, "books", "raw.transformers"])
def test_another_proxy_is_a_table(folder: Path, proxy: str | None) -> None:
    assert parse_checkpoint(ClusterOptions(proxy=proxy), folder) is None


@pytest.mark.parametrize(
    "proxy, sentence",
    [
        ("transformers:", "The proxy `transformers:` is not complete. Write `transformers:FOLDER`."),
        ("transformers:none", "There is no folder `none`. Paths are relative to "),
        ("transformers:model/config.json", "There is no folder `model/config.json`."),
        ("transformers:weights", "The folder `weights` has no model."),
        ("transformers:pickle", "The folder `pickle` has no model."),
        ("transformers:model_alone", "The folder `model_alone` has no tokenizer."),
    ],
)
def test_a_folder_without_a_checkpoint_is_refused(folder: Path, proxy: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        parse_checkpoint(ClusterOptions(proxy=proxy), folder)
    assert sentence in str(error.value)


@pytest.mark.parametrize("proxy", [None, "books"])
def test_a_learning_rate_without_a_checkpoint_is_refused(folder: Path, proxy: str | None) -> None:
    with pytest.raises(ConfigurationError, match="`learning_rate` is for a proxy `transformers:FOLDER`"):
        parse_checkpoint(ClusterOptions(proxy=proxy, learning_rate=0.1), folder)


def test_a_checkpoint_that_has_changed_since_its_table_was_made_is_refused(folder: Path) -> None:
    checkpoint = Checkpoint("transformers:model", folder / "model")
    row = {**ROW, "parameters": ROW["parameters"].replace('"0"', f'"{checkpoint.source}"')}
    assert unchanged_checkpoint(checkpoint, row)
    (folder / "model" / "model.safetensors").write_text("other weights")
    with pytest.raises(ConfigurationError, match="The files of the proxy `transformers:model` have changed"):
        unchanged_checkpoint(checkpoint, row)
    with pytest.raises(ConfigurationError, match="its files are not named"):
        unchanged_checkpoint(None, row)


def test_a_checkpoint_without_its_library_names_the_extra(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "transformers" else name)
    with pytest.raises(ConfigurationError, match=r"pip install 'corpus-factory\[transformers\]'"):
        open_checkpoint(str(folder / "model"), "", LEARNING_RATE)
