"""Charts of text: short enough for Dagster to show them in place, whatever they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from factory.orchestration.table.text_chart import INLINE, text_bars, text_curves

NUMBERS = st.lists(st.floats() | st.integers(-(2**1100), 2**1100), max_size=30)


def test_a_bar_is_as_long_as_its_share_of_the_largest() -> None:
    assert text_bars(["256", "1K", "2K"], [3, 12, 0], "documents by bytes").splitlines() == [
        "```",
        "documents by bytes",
        "256 █████ 3",
        "1K  ████████████████████ 12",
        "2K   0",
        "```",
    ]


def test_a_curve_is_between_its_least_and_its_largest_value() -> None:
    panels = {"words": [2, 4, 9], "none": [float("nan")], "gap": [1, float("inf"), 1]}
    assert text_curves(panels, "by quantile").splitlines()[2:-1] == [
        "words 2 ▁▃█ 9",
        "none  no values",
        "gap   1 ▁ ▁ 1",
    ]


def test_lines_that_do_not_fit_are_counted() -> None:
    text = text_bars([f"rule {n}" for n in range(400)], list(range(400)), "rules")
    *lines, more, _ = text.splitlines()
    assert more == f"… and {400 - len(lines) + 2} more in the chart"
    assert len(lines) > 25


def test_no_label_ends_the_block() -> None:
    assert text_bars(["```\n# no"], [1], "`a`\nb").splitlines() == [
        "```",
        "'a' b",
        "''' # no ████████████████████ 1",
        "```",
    ]


@given(
    rows=st.dictionaries(st.text(max_size=60), st.integers(0, 2**70), max_size=60),
    panels=st.dictionaries(st.text(max_size=60), NUMBERS, max_size=40),
    title=st.text(max_size=400),
)
def test_dagster_shows_any_chart_in_place(
    rows: Mapping[str, int], panels: Mapping[str, Sequence[float]], title: str
) -> None:
    for text in (text_bars(list(rows), list(rows.values()), title), text_curves(panels, title)):
        assert sum(2 if ord(letter) > 0xFFFF else 1 for letter in text) <= INLINE
        assert text.count("```") == 2
