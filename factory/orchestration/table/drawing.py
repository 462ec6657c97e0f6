"""Charts as Markdown images: a handful of numbers as lines, bars and texts of an SVG picture, and as text.

Every table has a chart, so a chart must cost next to nothing. These take less than a millisecond; a library
that draws pixels took twenty, and a second to import.
"""

from __future__ import annotations

import base64
import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from rich.cells import cell_len, set_cell_size

from factory.orchestration.table.text_chart import text_bars, text_curves

_INK, _KEPT, _AXIS, _PAPER = "#3b5b92", "#2f855a", "#000000", "#ffffff"
_FONT = "DejaVu Sans, Verdana, sans-serif"
_COLUMNS = 4  # panels side by side
_LONGEST = 40  # characters of a label; letters of Chinese and the like are as wide as two
_LARGEST = 1e300  # number of an axis; the distance of larger ones is infinite
_STEPS = (1, 2, 2.5, 5, 10)  # between the numbers of an axis, times a power of ten
_INTERVALS = 4  # between the numbers of an axis, and up to two more
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# All lengths are pixels.
_CHARACTER = 7.6  # width of a character of a bar's label, on average
_BAR, _BAR_TITLE, _BARS_WIDTH = 25, 36, 630
_PANELS_WIDTH, _PANEL_ROW, _PANELS_TITLE = 810, 99, 54
_PANELS_LEFT, _BETWEEN_PANELS = 45, 52
_PANEL_HEIGHT = 62
_RIGHT, _BOTTOM = 18, 36


@dataclass(frozen=True)
class Drawing:
    """A chart as a Markdown image, and as a few lines of text in Markdown, which Dagster shows at once."""

    image: str
    text: str


def bars(labels: Sequence[str], values: Sequence[int], title: str, kept: Collection[str] = ()) -> Drawing:
    """Draw one horizontal bar per label, each with its value; the bars of `kept` have their own color."""
    shown = [
        label if cell_len(label) <= _LONGEST else f"{set_cell_size(label, _LONGEST - 1)}…" for label in labels
    ]
    left = _RIGHT + _CHARACTER * max(map(cell_len, shown), default=0)
    end = _BAR_TITLE + _BAR * len(labels)
    largest = max([*values, 1])
    room = _BARS_WIDTH - left - _RIGHT - _CHARACTER * len(f"{largest:,}")
    longest = max(room, 0) / largest  # pixels of a bar for one row
    picture = _Picture(_BARS_WIDTH, end + _BOTTOM)
    picture.text(left, _BAR_TITLE / 2, title, size=15)
    for number, (label, value) in enumerate(zip(labels, values, strict=True)):
        middle = _BAR_TITLE + _BAR * (number + 0.5)
        picture.text(left - 6, middle, shown[number], size=12.5, anchor="end")
        picture.bar(left, middle, longest * value, 0.8 * _BAR, _KEPT if label in kept else _INK)
        picture.text(left + longest * value + 5, middle, f"{value:,}", size=12.5)
    picture.line([(left, _BAR_TITLE), (left, end)], _AXIS)
    return Drawing(picture.markdown(title), text_bars(labels, values, title))


def curves(panels: Mapping[str, Sequence[float]], title: str) -> Drawing:
    """Draw one small panel per name: ascending values over their quantiles, 0 to 100 %."""
    return _panels(
        {
            name: ([100 * step / max(1, len(values) - 1) for step in range(len(values))], values)
            for name, values in panels.items()
        },
        title,
    )


def over(x: Sequence[float], panels: Mapping[str, Sequence[float]], title: str) -> Drawing:
    """Draw one small panel per name: values over `x`, each point marked, from zero up."""
    return _panels({name: (x, values) for name, values in panels.items()}, title, dots=True, bottom=0)


def on_diagonal(panels: Mapping[str, tuple[Sequence[float], Sequence[float]]], title: str) -> Drawing:
    """Draw one small panel per name: points (x, y) from 0 to 1, with the diagonal where both are equal."""
    return _panels(panels, title, dots=True, bottom=0, diagonal=True)


def _panels(
    panels: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    title: str,
    dots: bool = False,
    bottom: float | None = None,
    diagonal: bool = False,
) -> Drawing:
    rows = max(1, math.ceil(len(panels) / _COLUMNS))
    picture = _Picture(_PANELS_WIDTH, _PANELS_TITLE + _PANEL_ROW * rows)
    picture.text(8, 14, title, size=12.5)
    for number, (name, (x, values)) in enumerate(panels.items()):
        ends = [0.0, 1.0] if diagonal else []
        row, column = divmod(number, _COLUMNS)
        x_axis = _Axis.around([*x, *ends])
        y_axis = _Axis.around([*values, *ends, *([] if bottom is None else [bottom])])
        panel = _Panel(picture, row, column, x_axis, y_axis)
        panel.draw_frame(name)
        if diagonal:
            panel.draw_line(ends, ends, _KEPT)
        panel.draw_line(x, values, _INK, width=1.5, dots=dots)
    return Drawing(
        picture.markdown(title), text_curves({name: values for name, (_, values) in panels.items()}, title)
    )


@dataclass(frozen=True)
class _Axis:
    """The numbers along an axis in order, at least two; the axis ends at the first and the last."""

    numbers: Sequence[float]

    @classmethod
    def around(cls, numbers: Iterable[float]) -> _Axis:
        """An axis of round numbers, with all `numbers` between them that have a place."""
        places = [float(number) for number in numbers if abs(number) <= _LARGEST] or [0.0]
        low, high = min(places), max(places)
        if high - low <= max(1e-9 * max(abs(low), abs(high)), 1e-290):  # no step tells them apart
            high = low + max(1.0, abs(low))
        width = (high - low) / _INTERVALS
        power = 10.0 ** math.floor(math.log10(width))
        step = next((step * power for step in _STEPS if step * power >= width), 10 * power)
        return cls([step * count for count in range(math.floor(low / step), math.ceil(high / step) + 1)])

    def marks(self) -> Iterator[tuple[float, float]]:
        """Yield the place of each number along the axis, from 0 to 1, and the number."""
        for count, number in enumerate(self.numbers):
            yield count / (len(self.numbers) - 1), number

    def place(self, number: float) -> float:
        """The place of a number on the axis, from 0 to 1; not a number if it has none."""
        if not abs(number) <= _LARGEST:
            return math.nan
        low, high = self.numbers[0], self.numbers[-1]
        return (number - low) / (high - low)


@dataclass(frozen=True)
class _Panel:
    """A place of a picture with two axes."""

    picture: _Picture
    row: int
    column: int
    x_axis: _Axis
    y_axis: _Axis

    def draw_frame(self, name: str) -> None:
        """Draw both axes with their numbers, and the name above them."""
        left, top, bottom = self._x(0), self._y(1), self._y(0)
        self.picture.line([(left, top), (left, bottom), (self._x(1), bottom)], _AXIS)
        self.picture.text(left, top - 9, name, size=10)
        for place, number in self.x_axis.marks():
            self.picture.text(self._x(place), bottom + 8, f"{number:g}", size=8, anchor="middle")
        for place, number in self.y_axis.marks():
            self.picture.text(left - 4, self._y(place), f"{number:g}", size=8, anchor="end")

    def draw_line(
        self, x: Sequence[float], y: Sequence[float], color: str, width: float = 1, dots: bool = False
    ) -> None:
        """Draw a line through points, with gaps where a number has no place."""
        points = [
            (self._x(self.x_axis.place(a)), self._y(self.y_axis.place(b))) for a, b in zip(x, y, strict=True)
        ]
        for visible, run in itertools.groupby(points, lambda point: not any(map(math.isnan, point))):
            if visible:
                line = list(run)
                self.picture.line(line, color, width)
                for point in line if dots else ():
                    self.picture.dot(point, color)

    def _x(self, place: float) -> float:
        inner = _PANELS_WIDTH - _PANELS_LEFT - _RIGHT - (_COLUMNS - 1) * _BETWEEN_PANELS
        width = inner / _COLUMNS
        return _PANELS_LEFT + self.column * (width + _BETWEEN_PANELS) + width * place

    def _y(self, place: float) -> float:
        return _PANELS_TITLE + self.row * _PANEL_ROW + _PANEL_HEIGHT * (1 - place)


@dataclass(frozen=True)
class _Picture:
    """A picture of `width` x `height` pixels; x goes to the right, y down."""

    width: float
    height: float
    _elements: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, size: float, anchor: str = "start") -> None:
        """Write a text centered on height `y`; characters that no picture can hold become '?'."""
        letters = escape(_NO_XML.sub("?", text), quote=False)
        self._elements.append(
            f'<text x="{x:.1f}" y="{y + size / 3:.1f}" font-size="{size}" text-anchor="{anchor}">'
            f"{letters}</text>"
        )

    def bar(self, x: float, middle: float, width: float, height: float, color: str) -> None:
        """Draw a horizontal bar."""
        top = middle - height / 2
        self._elements.append(
            f'<rect x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>'
        )

    def line(self, points: Iterable[tuple[float, float]], color: str, width: float = 1) -> None:
        """Draw a line through points."""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._elements.append(
            f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="{width}"/>'
        )

    def dot(self, point: tuple[float, float], color: str) -> None:
        """Mark a point."""
        self._elements.append(f'<circle cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="2" fill="{color}"/>')

    def markdown(self, title: str) -> str:
        """The picture as a Markdown image that holds all of it."""
        content = "".join(self._lines()).encode()
        return f"![{title}](data:image/svg+xml;base64,{base64.b64encode(content).decode()})"

    def _lines(self) -> Iterator[str]:
        size = f'width="{self.width:g}" height="{self.height:g}"'
        yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_FONT}">'
        yield f'<rect width="100%" height="100%" fill="{_PAPER}"/>'
        yield from self._elements
        yield "</svg>"
