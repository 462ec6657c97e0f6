"""Pages of the docs as a reader uses them: their files, their commands, and what they say these print."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(factory (?:sample|diff|trace|blend|tables)(?: [^`\s]+)+)`")
LEFT_OUT = "..."  # on a line of its own any lines, in a line any characters

_VARYING = (
    (r"\b[0-9a-f]{9,}\b", "0"),  # hashes; numbers are of one machine and one version of Python
    (r"[\w-]*\d[\w.,-]*(?=\.md\b)", "0"),
    (r"\d[\d.,:-]*", "0"),
    (r"(?<= of )\S+ / \S+(?= \()", "0"),  # the document that a sequence begins with
    (r"├──", "└──"),
    (r" *│$", ""),  # the frame of a sample
    (r"^(['\"]).*\1$", "text"),
    (r"\s+", " "),
)


@dataclass(frozen=True)
class Command:
    """A command of a page, and the output that the page shows below it, if any."""

    text: str
    shown: str = ""


def fenced(page: Path, language: str) -> list[str]:
    """The blocks of a language."""
    return [body for of, body in FENCE.findall(page.read_text()) if of == language]


def commands(page: Path) -> list[Command]:
    """Every command of a page in its order: lines of shell blocks, lines behind `$ `, and inline ones."""
    found: list[Command] = []
    for match in re.finditer(rf"{FENCE.pattern}|{INLINE.pattern}", page.read_text(), FENCE.flags):
        language, body, inline = match.groups()
        if inline:
            found.append(Command(inline))
        elif language == "sh":
            found += [Command(line.split("#")[0].strip()) for line in body.splitlines()]
        else:
            _, *parts = re.split(r"^\$ (.*)\n", body, flags=re.MULTILINE)
            found += map(Command, parts[::2], parts[1::2])
    return [command for command in found if command.text]


def is_shown(shown: str, said: str) -> bool:
    """Whether a page's version of an output is that output but for figures and the places of `...`."""
    pattern = ""
    for line in _lines(shown):
        if line.lstrip("│└─ ") == LEFT_OUT:
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(map(re.escape, line.split(LEFT_OUT))) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(said))) is not None


def _lines(text: str) -> list[str]:
    """Lines that are not blank, without what varies between machines."""
    found = []
    for line in text.splitlines():
        plain = line.strip()
        for varying, instead in _VARYING:
            plain = re.sub(varying, instead, plain)
        if plain:
            found.append(plain)
    return found
