"""A kind by name or from a user's file; what is wrong with it is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.synthesis.kinds.docstrings import Docstrings
from factory.synthesis.kinds.registry import load_kind

KIND = """
import pyarrow as pa

class Mine:
    version = "1"
    schema = pa.schema([("n", pa.int64())])
    def __init__(self, options):
        self.least = int(options.get("least", 1))
    def __call__(self, item):
        yield from ()

class NoVersion(Mine):
    version = None

class NoSchema(Mine):
    schema = {}

class Lists(Mine):
    schema = pa.schema([("n", pa.list_(pa.int64()))])

class Uncallable:
    version, schema = "1", Mine.schema
    def __init__(self, options): pass
"""


def test_a_registered_kind_is_made_by_its_name() -> None:
    assert isinstance(load_kind("docstrings", Path(), {"least_words": 3}), Docstrings)


def test_a_kind_of_a_file_is_made_with_its_options(tmp_path: Path) -> None:
    (tmp_path / "kinds.py").write_text(KIND)
    assert vars(load_kind("kinds.py:Mine", tmp_path, {"least": 3})) == {"least": 3}


@pytest.mark.parametrize(
    "reference, sentence",
    [
        ("docstring", "Unknown kind `docstring`. Did you mean `docstrings`?"),
        ("none.py:Mine", "Kind `none.py:Mine` names a file that does not exist."),
        ("kinds.py:Mime", "Unknown kind of kinds.py: `Mime`. Did you mean `Mine`?"),
        ("kinds.py:NoVersion", "Kind `kinds.py:NoVersion` has no `version`."),
        ("kinds.py:NoSchema", "Kind `kinds.py:NoSchema` has no `schema`."),
        ("kinds.py:Lists", "Column `n` of kind `kinds.py:Lists` is list<item: int64>."),
        ("kinds.py:Uncallable", "Kind `kinds.py:Uncallable` has no `__call__`."),
        (
            "broken.py:Mine",
            "broken.py fails with ModuleNotFoundError: No module named 'nothing_of_this_name'.",
        ),
    ],
)
def test_what_is_no_kind_is_named(tmp_path: Path, reference: str, sentence: str) -> None:
    (tmp_path / "kinds.py").write_text(KIND)
    (tmp_path / "broken.py").write_text("import nothing_of_this_name")
    with pytest.raises(ConfigurationError) as error:
        load_kind(reference, tmp_path, {})
    assert str(error.value).startswith(sentence)


def test_options_that_a_kind_cannot_use_are_named(tmp_path: Path) -> None:
    (tmp_path / "kinds.py").write_text(KIND)
    with pytest.raises(
        ConfigurationError, match=r"cannot be made of its options .ValueError: invalid literal"
    ):
        load_kind("kinds.py:Mine", tmp_path, {"least": "many"})
