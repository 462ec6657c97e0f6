"""The calls that the docstrings of packages show print what they show."""

from __future__ import annotations

import doctest
import importlib

import pytest

from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import documents, pack, tokenize, verdicts


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake whose dataset `web` keeps five of six documents, each in a sequence of its own."""
    lake = Lake(Settings(home=tmp_path_factory.mktemp("lake")))
    documents(lake, "web", "abcdef")
    verdicts(lake, "web", {"a": {"word_count": 1.0}})
    tokenize(lake, "web", "bcdef")
    pack(lake, "web", *"bcdef")
    return lake


@pytest.mark.parametrize("package", ["blender", "factory.api", "factory.explain"])
def test_a_package_shows_three_calls_with_their_results(lake: Lake, package: str) -> None:
    module = importlib.import_module(package)
    names_of_caller = {**vars(module), "lake": lake, "settings": lake.settings}
    if package == "factory.api":
        names_of_caller["settings"] = lambda: lake.settings
    parser = doctest.DocTestParser()
    test = parser.get_doctest(module.__doc__ or "", names_of_caller, package, module.__file__, 0)
    assert sum(bool(example.want) for example in test.examples) >= 3
    reported: list[str] = []
    outcome = doctest.DocTestRunner().run(test, out=reported.append)
    assert outcome.failed == 0, "".join(reported)
