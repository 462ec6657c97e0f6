"""The sentence in what Spark says of a job that failed: a Java trace, and within it often a Python one."""

from __future__ import annotations

import re

_OURS = re.compile(r"^(?:Caused by: )?(?:factory|blender)\.errors\.\w+: (.+)$", re.MULTILINE)
_CHECKSUM = re.compile(r"ChecksumException: Checksum error: (?:file:)?(\S+) at (\d+)")
_OF_A_WORKER = re.compile(r"^(?!org\.|java\.|Caused by|py4j\.)[A-Za-z_][\w.]*: .+$", re.MULTILINE)
_CAUSED_BY = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
_TRACE = "Traceback (most recent call last)"


def sentence(said: str) -> str:
    """What to tell a person of `said`: our own sentence in it, or the innermost cause; never a trace.

    A text that is no trace stays as it is.
    """
    found = _OURS.findall(said)
    if found:
        return str(found[-1])
    checksum = _CHECKSUM.search(said)
    if checksum is not None:
        path, at = checksum.groups()
        return (
            f"File {path} is not as it was written: bytes from {int(at):,} on have another checksum. "
            "Restore it, or make its table anew: factory materialize."
        )
    if "\n\tat " not in said and _TRACE not in said:
        return said
    raised = _OF_A_WORKER.findall(said.partition(_TRACE)[2])
    caused = raised or _CAUSED_BY.findall(said)
    return str(caused[-1] if caused else said.strip().splitlines()[0])
