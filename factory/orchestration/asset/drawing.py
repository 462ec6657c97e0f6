"""Charts as Markdown images, drawn by matplotlib from a handful of numbers."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

_INK, _KEPT, _PAPER = "#3b5b92", "#2f855a", "#ffffff"
_COLUMNS = 4  # panels side by side
_CHARACTER = 0.085  # width of a character of a label in inches, on average
_LONGEST = 40  # characters of a label
_RIGHT = 0.2  # inches beside the axes
_WIDTH, _BAR, _TITLE = 7, 0.28, 0.8  # inches of a figure of bars, of a bar's row and of the rest
_LARGEST = 1e300  # number of an axis; the distance of larger ones is infinite
_BOTTOM = 0.3  # height of the labels below an axis, in inches


def bars(labels: Sequence[str], values: Sequence[int], title: str, kept: Collection[str] = ()) -> str:
    """Draw one horizontal bar per label, each with its value; the bars of `kept` have their own color."""
    shown = [label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…" for label in labels]
    left = 0.2 + _CHARACTER * max(map(len, shown), default=0)
    height = _TITLE + _BAR * max(len(labels), 1)
    figure = _figure(_WIDTH, height, left, top=0.4)
    _draw_bars(figure, shown, values, [_KEPT if label in kept else _INK for label in labels], left)
    figure.text(left / _WIDTH, 1 - 0.28 / height, title, fontsize=12)
    return _image(figure, title)


def _draw_bars(
    figure: Figure, labels: Sequence[str], values: Sequence[int], colors: Sequence[str], margin: float
) -> None:
    """Draw bars from `margin` inches on, without axes: ticks that nobody sees take four times as long."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    width, height = figure.get_size_inches()
    longest = (width - margin - _RIGHT) / (1.15 * max([*values, 1]))  # inches of a bar for one row
    for number, (label, value, color) in enumerate(zip(labels, values, colors, strict=True)):
        middle = height - 0.4 - _BAR * (number + 0.5)
        corner = (margin / width, (middle - 0.4 * _BAR) / height)
        figure.add_artist(Rectangle(corner, longest * value / width, 0.8 * _BAR / height, color=color))
        beside = {"y": middle / height, "va": "center", "fontsize": 10}
        figure.text((margin - 0.07) / width, s=label, ha="right", **beside)
        figure.text((margin + longest * value + 0.05) / width, s=f"{value:,}", **beside)
    bottom = height - 0.4 - _BAR * len(labels)
    edge = Line2D([margin / width] * 2, [bottom / height, 1 - 0.4 / height], color="black", linewidth=0.8)
    figure.add_artist(edge)


def curves(panels: Mapping[str, Sequence[float]], title: str) -> str:
    """Draw one small panel per name: ascending values over their quantiles, 0 to 100 %."""
    return _panels(
        {
            name: ([100 * step / max(1, len(values) - 1) for step in range(len(values))], values)
            for name, values in panels.items()
        },
        title,
    )


def over(x: Sequence[float], panels: Mapping[str, Sequence[float]], title: str) -> str:
    """Draw one small panel per name: values over `x`, each point marked, from zero up."""
    return _panels({name: (x, values) for name, values in panels.items()}, title, marker="o", bottom=0)


def on_diagonal(panels: Mapping[str, tuple[Sequence[float], Sequence[float]]], title: str) -> str:
    """Draw one small panel per name: points (x, y) from 0 to 1 beside the diagonal, where both are equal."""
    return _panels(panels, title, marker="o", bottom=0, diagonal=True)


def _panels(
    panels: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    title: str,
    marker: str = "",
    bottom: float | None = None,
    diagonal: bool = False,
) -> str:
    rows = max(1, math.ceil(len(panels) / _COLUMNS))
    figure = _figure(9, 0.6 + 1.1 * rows, left=0.5, top=0.6)
    grid = figure.add_gridspec(rows, _COLUMNS, wspace=0.35, hspace=0.6)
    for number, (name, (x, values)) in enumerate(panels.items()):
        ends = [0.0, 1.0] if diagonal else []
        x_ticks = _round_numbers([*x, *ends])
        y_ticks = _round_numbers([*values, *ends, *([] if bottom is None else [bottom])])
        panel = _Panel(figure, grid[number].get_position(figure), x_ticks, y_ticks)
        panel.draw_frame(name)
        panel.draw_line(ends, ends, color=_KEPT, linewidth=0.8)
        panel.draw_line(x, values, color=_INK, linewidth=1.2, marker=marker, markersize=3)
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    return _image(figure, title)


@dataclass(frozen=True)
class _Panel:
    """A place of a figure with two axes; matplotlib's own take longer than everything else in the picture.

    `box` is in fractions of the figure. The axes end at the first and the last of their numbers.
    """

    figure: Figure
    box: Bbox
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]

    def draw_frame(self, name: str) -> None:
        """Draw both axes with their numbers, and the name above them."""
        box = self.box
        self._add([box.x0, box.x0, box.x1], [box.y1, box.y0, box.y0], color="black", linewidth=0.8)
        width, height = self.figure.get_size_inches()
        self.figure.text(box.x0, box.y1 + 0.05 / height, name, va="bottom", fontsize=7)
        for tick in self.x_ticks:
            x, y = self._x(tick), box.y0 - 0.04 / height
            self.figure.text(x, y, f"{tick:g}", ha="center", va="top", fontsize=6)
        for tick in self.y_ticks:
            x, y = box.x0 - 0.04 / width, self._y(tick)
            self.figure.text(x, y, f"{tick:g}", ha="right", va="center", fontsize=6)

    def draw_line(self, x: Sequence[float], y: Sequence[float], **style: Any) -> None:
        """Draw a line through points, with gaps where a number is not finite."""
        self._add([self._x(number) for number in x], [self._y(number) for number in y], **style)

    def _add(self, x: Sequence[float], y: Sequence[float], **style: Any) -> None:
        from matplotlib.lines import Line2D

        self.figure.add_artist(Line2D(x, y, **style))

    def _x(self, number: float) -> float:
        low, high = self.x_ticks[0], self.x_ticks[-1]
        return self.box.x0 + self.box.width * (number - low) / (high - low)

    def _y(self, number: float) -> float:
        low, high = self.y_ticks[0], self.y_ticks[-1]
        return self.box.y0 + self.box.height * (number - low) / (high - low)


def _round_numbers(numbers: Sequence[float]) -> list[float]:
    """Some round numbers in order, at least two, with all `numbers` between them that can be drawn."""
    from matplotlib.ticker import MaxNLocator

    places = [float(number) for number in numbers if abs(number) <= _LARGEST] or [0.0]
    low, high = min(places), max(places)
    locator = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10])
    return [float(tick) for tick in locator.tick_values(low, high if low < high else low + 1)]


def _figure(width: float, height: float, left: float, top: float) -> Figure:
    """A figure with fixed margins; sizes are in inches.

    A layout that matplotlib computes takes more time than the drawing, and every table has a chart.
    """
    from matplotlib.figure import Figure  # slow to import, and only finished runs draw

    figure = Figure(figsize=(width, height), facecolor=_PAPER)
    figure.subplots_adjust(
        left=left / width, right=1 - _RIGHT / width, bottom=_BOTTOM / height, top=1 - top / height
    )
    return figure


def _image(figure: Figure, title: str) -> str:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=90)
    return f"![{title}](data:image/png;base64,{base64.b64encode(picture.getvalue()).decode()})"
