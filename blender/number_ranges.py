"""Numbers as a command line gives them: `0-3,6`, or `0..3,6`."""

from __future__ import annotations

import re

from blender.errors import InvalidRequest

_RANGE = re.compile(r"(\d{1,7})(?:(?:-|\.\.)(\d{1,7}))?")


def numbers_of(text: str, noun: str) -> tuple[int, ...]:
    """The numbers of ranges, each once, ascending; `noun` is the numbered thing, for errors.

    Raises InvalidRequest for any other text.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise InvalidRequest(
                f"`{part.strip()}` is not a range of {noun}. Write numbers and ranges: 0-3,6."
            )
        numbers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(numbers))
