"""A page's version of an output is found wrong by a word or line, and not by a figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import Command, commands, is_shown

SAID = """
made  raw.notes     42 rows   1.9 s
made  signals.notes 42 rows   1.1 s  because raw.notes changed
12 tables made.
"""


@pytest.mark.parametrize(
    "shown, right",
    [
        ("made raw.notes 40 rows 2.9 s\n...\n9 tables made.", True),
        ("made raw.notes 42 rows ...\nmade ... changed\n12 tables made.", True),
        ("made raw.notes 42 rows 1.9 s\n12 tables made.", False),  # a line left out without a sign
        ("made raw.notes 42 rows\n...", False),  # the end of a line
        ("...\nmade signals.code 42 rows 1.1 s because raw.notes changed\n...", False),
        ("...\n12 tables made.\nmade raw.notes 42 rows 1.9 s", False),
    ],
)
def test_figures_may_differ_and_words_may_not(shown: str, right: bool) -> None:
    assert is_shown(shown, SAID) == right


def test_commands_are_found_in_shell_blocks_behind_prompts_and_inline(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\nmake demo  # all of it\n```\nSee `factory blend show ID` and `factory init`.\n"
        "```\n$ factory report\nreport.html: 3 tables.\n$ factory ui\n```\n"
    )
    assert commands(page) == [
        Command("make demo"),
        Command("factory blend show ID"),
        Command("factory report", "report.html: 3 tables.\n"),
        Command("factory ui"),
    ]
