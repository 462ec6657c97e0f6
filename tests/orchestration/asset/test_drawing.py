"""Pictures of whatever numbers a table holds."""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from factory.orchestration.asset.drawing import bars, curves, on_diagonal, over

BLUER = 40  # of 255, than red; the ink of curves and bars is, and nothing else
NUMBERS = st.lists(st.floats() | st.integers(-(2**64), 2**64), max_size=6)


def picture(markdown: str) -> Image.Image:
    encoded = re.fullmatch(r"!\[title\]\(data:image/png;base64,(.*)\)", markdown)
    assert encoded is not None
    return Image.open(io.BytesIO(base64.b64decode(encoded[1]))).convert("RGB")


def has_ink(image: Image.Image) -> bool:
    return any(blue - red > BLUER for _, (red, _, blue) in image.getcolors(maxcolors=2**24) or ())


@settings(max_examples=20)
@given(panels=st.dictionaries(st.text("abc_", min_size=1), NUMBERS, max_size=6))
def test_any_numbers_are_drawn(panels: dict[str, Sequence[float]]) -> None:
    image = picture(curves(panels, "title"))
    assert image.width == 810
    assert image.height == round(90 * (0.6 + 1.1 * max(1, math.ceil(len(panels) / 4))))


@pytest.mark.parametrize(
    "numbers", [[1.0, 2.0], [3, 3], [2**63, 2**63 + 1], [1e-300, 2e-300], [1e308, -1e308, 0.0, 1.0]]
)
def test_a_curve_is_there(numbers: list[float]) -> None:
    assert has_ink(picture(curves({"words": numbers}, "title")))


@pytest.mark.parametrize("numbers", [[], [math.nan], [math.inf, -math.inf], [-1e308, 1e308]])
def test_numbers_without_a_place_leave_the_axes_alone(numbers: list[float]) -> None:
    assert not has_ink(picture(curves({"words": numbers}, "title")))


def test_points_and_bars_are_there() -> None:
    assert has_ink(picture(over([0.8], {"kept": [3]}, "title")))
    assert has_ink(picture(on_diagonal({"words": ([0.1, 0.9], [0.2, 0.8])}, "title")))
    assert has_ink(picture(bars(["a", "b"], [0, 3], "title")))
    assert not has_ink(picture(bars([], [], "title")))
