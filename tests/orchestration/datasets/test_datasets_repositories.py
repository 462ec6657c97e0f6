"""Repositories as a file of datasets declares them, of a group of code."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.orchestration.host.definitions import definitions
from factory.settings import Settings
from tests.orchestration.declared import assert_refused, declared, refusal, tables

COMPARED = """\
datasets:
- {name: notes, kind: prose, format: files, paths: notes}
- {name: mine, kind: code, format: repositories, paths: repos, variants: {all: {rules: []}}}
groups:
  prose: {threshold: 0.7}
  code:
    threshold: 0.7
    repositories:
      share: 0.9
      topics: {numpy: numbers, django: web}
      dropped_topics: [web]
      pinned: [numpy]
"""


def test_repositories_are_an_option_of_a_group_of_code_and_of_its_variants(folder: Path) -> None:
    found = declared(folder, COMPARED)
    parts = ("topics", "repository_edges", "repositories")
    assert {f"dedup.{group}_{part}" for group in ("code", "code__all") for part in parts} <= tables(found)
    assert not {f"dedup.prose_{part}" for part in parts} & tables(found)
    definitions(found.assets, Settings(home=folder / "lake"))
    plain = declared(folder, COMPARED.split("    repositories:")[0])
    assert tables(found) - tables(plain) == {
        f"dedup.{group}_{part}" for group in ("code", "code__all") for part in parts
    }


WRONG = [
    ("share: 0.9", "shre: 0.9", "line 9, groups.code.repositories.shre: Unknown field `shre`. Did you"),
    ("share: 0.9", "share: 1.9", "line 9, groups.code.repositories.share: `1.9` does not fit. It should"),
    ("django: web", "django: no", "line 10, groups.code.repositories.topics.django: YAML reads this as"),
    ("[web]", "[wbe]", "line 11, groups.code.repositories.dropped_topics: No repository in `topics` has"),
    ("[numpy]", "numpy", "line 12, groups.code.repositories.pinned: `numpy` does not fit. It should be a"),
    ("[numpy]", "[1]", "line 12, groups.code.repositories.pinned[0]: YAML reads this as 1, which is not"),
    (
        "topics: {numpy: numbers, django: web}",
        "topics_table: clusters.code_topics",
        "line 10, groups.code.repositories.topics_table: No dataset of this file makes `clusters.code_to",
    ),
    ("pinned: ", "topics_table: topics #", "line 12, groups.code.repositories.topics_table: `topics` is"),
    (
        "pinned: ",
        "topics_table: clusters.a #",
        "line 12, groups.code.repositories.topics_table: Topics are given in `topics` and in table",
    ),
    ("{threshold: 0.7}", "{repositories: {}}", "line 5, groups.prose.repositories: `prose` is prose, which"),
    ("    repositories:", "    repositories:\n  mine:", "line 9, groups.mine: Unknown group `mine`"),
]


@pytest.mark.parametrize("good, bad, said", WRONG)
def test_what_is_wrong_with_repositories_is_told_with_file_line_and_field(
    folder: Path, good: str, bad: str, said: str
) -> None:
    assert_refused(folder, COMPARED, good, bad, said)


def test_repositories_of_nothing_are_no_settings(folder: Path) -> None:
    said = refusal(folder, COMPARED.split("      share")[0])
    assert said.startswith(
        "my.yaml, line 8, groups.code.repositories: Expected fields with values, found nothing"
    )
