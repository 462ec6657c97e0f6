"""Pictures of whatever numbers a table holds."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from factory.orchestration.table.drawing import Drawing, bars, curves, on_diagonal, over

INK, KEPT = "#3b5b92", "#2f855a"
PLACES = ("x", "y", "cx", "cy", "width", "height", "r")
NUMBERS = st.lists(st.floats() | st.integers(-(2**1100), 2**1100), max_size=6)


def picture(drawing: Drawing) -> ElementTree.Element:
    encoded = re.fullmatch(r"!\[title\]\(data:image/svg\+xml;base64,(.*)\)", drawing.image)
    assert encoded is not None
    return ElementTree.fromstring(base64.b64decode(encoded[1]))


def shapes(image: ElementTree.Element, color: str) -> list[ElementTree.Element]:
    return [shape for shape in image if color in (shape.get("fill"), shape.get("stroke"))]


def texts(image: ElementTree.Element) -> list[str]:
    return [shape.text or "" for shape in image if shape.tag.endswith("text")]


def places(image: ElementTree.Element) -> list[float]:
    """All lengths in the picture."""
    points = [number for shape in image for number in re.split("[ ,]", shape.get("points", "")) if number]
    return [float(number) for number in points] + [
        float(shape.attrib[name])
        for shape in image
        for name in PLACES
        if not shape.get(name, "%").endswith("%")
    ]


@settings(max_examples=100)
@example(panels={"words": [9e299]})  # the last number of its axis is larger than a point may be
@given(panels=st.dictionaries(st.text(max_size=5), NUMBERS, max_size=6))
def test_any_numbers_have_a_place_in_the_picture(panels: dict[str, Sequence[float]]) -> None:
    for image in (
        picture(curves(panels, "title")),
        picture(on_diagonal({name: (values, values) for name, values in panels.items()}, "title")),
    ):
        assert float(image.attrib["width"]) == 810
        assert float(image.attrib["height"]) == 54 + 99 * max(1, math.ceil(len(panels) / 4))
        assert all(0 <= place <= 810 for place in places(image))


@given(rows=st.dictionaries(st.text(max_size=50), st.integers(0, 2**70), max_size=6))
def test_bars_of_any_label_and_number_are_in_the_picture(rows: dict[str, int]) -> None:
    image = picture(bars(list(rows), list(rows.values()), "title"))
    assert len(shapes(image, INK)) == len(rows)
    assert all(0 <= place <= max(630, float(image.attrib["height"])) for place in places(image))
    assert [f"{number:,}" for number in rows.values()] == texts(image)[2::2]


@pytest.mark.parametrize(
    "numbers", [[1.0, 2.0], [3, 3], [2**63, 2**63 + 1], [1e-300, 2e-300], [1e308, -1e308, 0.0, 1.0]]
)
def test_a_curve_is_there(numbers: list[float]) -> None:
    assert shapes(picture(curves({"words": numbers}, "title")), INK)


@pytest.mark.parametrize("numbers", [[], [math.nan], [math.inf, -math.inf], [-1e308, 1e308]])
def test_numbers_without_a_place_leave_the_axes_alone(numbers: list[float]) -> None:
    assert not shapes(picture(curves({"words": numbers}, "title")), INK)


@pytest.mark.parametrize(
    "numbers, axis",
    [
        ([0, 100], ["0", "25", "50", "75", "100"]),
        ([3, 61], ["0", "20", "40", "60", "80"]),
        ([-0.2, 0.3], ["-0.2", "0", "0.2", "0.4"]),
        ([7, 7], ["6", "8", "10", "12", "14"]),
        ([], ["0", "0.25", "0.5", "0.75", "1"]),
    ],
)
def test_the_numbers_of_an_axis_are_round_and_hold_all(numbers: list[float], axis: list[str]) -> None:
    labels = texts(picture(curves({"words": numbers}, "title")))
    assert labels[-len(axis) :] == axis


def test_counts_have_an_axis_from_zero_up() -> None:
    assert texts(picture(over([1, 2], {"words": [7, 8]}, "title")))[-5:] == ["0", "2", "4", "6", "8"]


def test_points_and_bars_are_there() -> None:
    assert len(shapes(picture(over([0.8], {"kept": [3]}, "title")), INK)) == 2  # a line and its point
    assert shapes(picture(on_diagonal({"words": ([0.1, 0.9], [0.2, 0.8])}, "title")), KEPT)
    image = picture(bars(["a", "b"], [0, 3], "title", kept=["b"]))
    assert len(shapes(image, INK)) == len(shapes(image, KEPT)) == 1
    assert not shapes(picture(bars([], [], "title")), INK)


def test_a_line_has_a_gap_where_a_number_has_no_place() -> None:
    lines = shapes(picture(curves({"words": [1, 2, math.nan, 4, 5]}, "title")), INK)
    assert [len(line.attrib["points"].split()) for line in lines] == [2, 2]


def test_a_long_label_of_wide_letters_and_a_long_number_fit() -> None:
    image = picture(bars(["web: " + "\u6771" * 40], [123_456_789], "title"))
    _, label, number = (shape for shape in image if shape.tag.endswith("text"))
    assert label.text == "web: " + "\u6771" * 17 + "\u2026"
    assert float(label.attrib["x"]) >= 12.5 * 17 + 7 * 6
    assert float(number.attrib["x"]) + 7.6 * 11 <= 630


def test_letters_of_every_language_are_written_and_others_are_marked() -> None:
    image = picture(bars(["\u6587 <b> $x$", "a\x00b\ud800"], [1, 2], "title"))
    assert "\u6587 <b> $x$" in texts(image)
    assert "a?b?" in texts(image)
