"""The names of the objects in a namespace, and their parts.

log(42)                                     # log/00000000000000000042
batch("rollouts-0", 3, 17, "5f0c")          # batches/rollouts-0/3/17-5f0c
number("log/00000000000000000042")          # 42
"""

from __future__ import annotations

import re

from factory.errors import ConfigurationError

NAMESPACE, SOURCE = "namespace.json", "source.json"
LOG, CHECKPOINTS, SEGMENTS, FLOORS = "log/", "checkpoint/", "segment/", "floor/"
MARKS, BATCHES, LANES = "marks/", "batches/", "lanes/"

_DIGITS = 20  # names sort as their numbers do
_NUMBER = re.compile(rf"(?:{LOG}|{CHECKPOINTS}|{FLOORS}|{MARKS})([0-9]{{20}})")
_SEGMENT = re.compile(rf"{SEGMENTS}[0-9]{{20}}-([0-9]{{20}})")
_BATCH = re.compile(rf"{BATCHES}([^/]+)/([0-9]+)/([0-9]+)-[^/]*")
_LANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def log(version: int) -> str:
    """A version of the log: the additions of one commit."""
    return f"{LOG}{version:0{_DIGITS}}"


def checkpoint(version: int) -> str:
    """The state after a version."""
    return f"{CHECKPOINTS}{version:0{_DIGITS}}"


def segment(first: int, last: int) -> str:
    """The descriptors of the steps from `first` to `last`, both included."""
    return f"{SEGMENTS}{first:0{_DIGITS}}-{last:0{_DIGITS}}"


def floor(index: int) -> str:
    """A record of the chain of floors; the first has index 1."""
    return f"{FLOORS}{index:0{_DIGITS}}"


def mark(index: int) -> str:
    """A record of the chain of marks; the first has index 1."""
    return f"{MARKS}{index:0{_DIGITS}}"


def finished_lane(lane: str) -> str:
    """A finished lane that has left the state of the log."""
    return f"{LANES}{lane}"


def batch(lane: str, epoch: int, sequence: int, nonce: str) -> str:
    """A batch of a lane; `nonce` tells the writers of one epoch apart."""
    return f"{BATCHES}{lane}/{epoch}/{sequence}-{nonce}"


def parts_of_batch(name: str) -> tuple[str, int, int]:
    """Lane, epoch and sequence in the name of a batch, which `batch` made."""
    lane, epoch, rest = name.removeprefix(BATCHES).split("/")
    return lane, int(epoch), int(rest.partition("-")[0])


def listed_batch(name: str) -> tuple[str, int, int] | None:
    """`parts_of_batch` of a name that was listed; None for any other name."""
    match = _BATCH.fullmatch(name)
    return (match[1], int(match[2]), int(match[3])) if match else None


def last_of_segment(name: str) -> int | None:
    """The last step of a segment that was listed; None for any other name."""
    match = _SEGMENT.fullmatch(name)
    return int(match[1]) if match else None


def number(name: str) -> int | None:
    """The version or index in a name of the log, checkpoints, floors or marks; None for any other name."""
    match = _NUMBER.fullmatch(name)
    return int(match[1]) if match else None


def checked_lane(lane: str) -> str:
    """The name of a lane; raises ConfigurationError unless it can be part of an object's name."""
    if not isinstance(lane, str) or not _LANE.fullmatch(lane):
        raise ConfigurationError(
            f"`{lane}` cannot name a lane. Use up to 64 letters, digits, dots, dashes and underscores, "
            "beginning with a letter or digit."
        )
    return lane
