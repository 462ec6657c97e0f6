"""Charts as lines of text: what Dagster shows of a chart at once, without a click.

Dagster shows Markdown of fewer than 1,000 characters in place, and longer Markdown, such as a picture, behind
a link [Show Markdown]. So a chart of text keeps below that size and counts the lines that it leaves out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size

INLINE = 999  # characters of Markdown that Dagster shows in place
_FENCE = "```"
_WIDEST_LABEL = 28  # cells of a terminal; a letter of Chinese and the like takes two
_LONGEST_TITLE = 200
_BAR = 20  # cells of the longest bar
_EIGHTHS = " ▏▎▍▌▋▊▉█"  # eighths of a cell, from the left
_LEVELS = "▁▂▃▄▅▆▇█"  # eighths of a line, from below
_LARGEST = 1e300  # larger numbers have no place


def text_bars(labels: Sequence[str], values: Sequence[int], title: str) -> str:
    """Draw one line per label: the label, a bar and the value."""
    names = _columns(labels)
    largest = max([*values, 1])
    bars = [_bar(number / largest) for number in values]
    return _block(
        title, [f"{name} {bar} {number:,}" for name, bar, number in zip(names, bars, values, strict=True)]
    )


def text_curves(panels: Mapping[str, Sequence[float]], title: str) -> str:
    """Draw one line per name: its values from left to right as heights, between the least and the largest."""
    names = _columns(list(panels))
    curves = map(_curve, panels.values())
    return _block(title, [f"{name} {curve}" for name, curve in zip(names, curves, strict=True)])


def _columns(labels: Sequence[str]) -> list[str]:
    """The labels, as wide as the widest of them that fits."""
    plain = list(map(_plain, labels))
    width = min(max(map(cell_len, plain), default=0), _WIDEST_LABEL)
    return [
        set_cell_size(label, width) if cell_len(label) <= width else f"{set_cell_size(label, width - 1)}…"
        for label in plain
    ]


def _plain(text: str) -> str:
    """The text in one line that cannot end the code block."""
    return " ".join(text.replace("`", "'").split())


def _bar(share: float) -> str:
    eighths = math.ceil(share * _BAR * 8)
    return f"{_EIGHTHS[-1] * (eighths // 8)}{_EIGHTHS[eighths % 8]}".rstrip()


def _curve(values: Sequence[float]) -> str:
    places = [float(number) for number in values if abs(number) <= _LARGEST]
    if not places:
        return "no values"
    low, high = min(places), max(places)
    top = len(_LEVELS) - 1
    heights = [
        _LEVELS[round((number - low) / (high - low or 1) * top)] if abs(number) <= _LARGEST else " "
        for number in values
    ]
    return f"{low:g} {''.join(heights)} {high:g}"


def _block(title: str, lines: Sequence[str]) -> str:
    """A code block of the title and as many lines as Dagster shows in place."""
    n_lines = min(len(lines), INLINE // 4)
    while True:
        rest = len(lines) - n_lines
        more = [f"… and {rest:,} more in the chart"] if rest else []
        block = "\n".join([_FENCE, _plain(title)[:_LONGEST_TITLE], *lines[:n_lines], *more, _FENCE])
        if n_lines == 0 or len(block.encode("utf-16-le", "surrogatepass")) // 2 <= INLINE:
            return block
        n_lines -= 1
