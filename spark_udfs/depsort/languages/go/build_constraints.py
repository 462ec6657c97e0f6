"""Go build constraints: the conditions in file names and `//go:build` lines, and whether two can both hold.

A constraint is a tree of tags. Two constraints are tried on every system and processor that they name and on
every choice of their other tags; with more than MAX_FREE of these they are assumed to hold together.
Lines `// +build`, older than Go 1.17, count where a file has no `//go:build` line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Set
from itertools import product

MAX_FREE = 6
MAX_CHARACTERS = 400

_SYSTEMS = frozenset(
    """
    aix android darwin dragonfly freebsd hurd illumos ios js linux nacl netbsd openbsd plan9 solaris wasip1
    windows zos
    """.split()  # noqa: SIM905
)
_UNIX = _SYSTEMS - {"js", "nacl", "plan9", "wasip1", "windows", "zos"}
_IMPLIED = {"android": "linux", "illumos": "solaris", "ios": "darwin"}
_PROCESSORS = frozenset(
    """
    386 amd64 arm arm64 loong64 mips mips64 mips64le mipsle ppc64 ppc64le riscv64 s390x sparc64 wasm
    """.split()  # noqa: SIM905
)
_TOKEN = re.compile(r"\s*(&&|\|\||[!()]|[\w.]+)")
_LINE = re.compile(rb"^//go:build[ \t]+([^\n]{1,400})", re.MULTILINE)
_OLD_LINE = re.compile(rb"^// *\+build[ \t]+([^\n]{1,400})", re.MULTILINE)
_PACKAGE = re.compile(rb"^package\b", re.MULTILINE)

Holds = Callable[[Set[str]], bool]


class Constraint:
    """The condition under which a file is built, and the tags it names."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tags: frozenset[str] = frozenset()
        self._holds: Holds | None = None
        tokens = _TOKEN.findall(text) if len(text) <= MAX_CHARACTERS else []
        if tokens and "".join(tokens) == "".join(text.split()):
            try:
                holds, rest = _either(tokens)
            except (IndexError, RecursionError):
                return  # malformed: the go tool rejects the file, here it has no condition
            if not rest:
                self._holds = holds
                self.tags = frozenset(token for token in tokens if token[0].isalnum() or token[0] == "_")

    def holds(self, tags: Set[str]) -> bool:
        """Whether a build with these tags includes the file."""
        return self._holds is None or self._holds(tags)


def constraint_text(path: str, line: str | None) -> str:
    """The condition of a file, from its name and its `//go:build` line."""
    parts = path.rpartition("/")[2].removesuffix(".go").removesuffix("_test").split("_")[1:]
    tags = []
    if parts and parts[-1] in _PROCESSORS:
        tags.append(parts.pop())
    if parts and parts[-1] in _SYSTEMS:
        tags.append(parts[-1])
    return " && ".join([*tags, *([f"({line})"] if line else ())])


def build_line(source: bytes) -> str | None:
    """The expression after `//go:build`, above the package clause; None where the file has none."""
    if b"//go:build" not in source and b"+build" not in source:
        return None
    package = _PACKAGE.search(source)
    end = package.start() if package else len(source)
    if match := _LINE.search(source, 0, end):
        return match[1].decode("utf-8", "replace").partition("//")[0].strip()
    lines = [line.decode("utf-8", "replace").split() for line in _OLD_LINE.findall(source, 0, end)]
    every = (" || ".join(f"({option.replace(',', ' && ')})" for option in line) for line in lines if line)
    return " && ".join(f"({line})" for line in every) or None


def together(constraint: Constraint, other: Constraint) -> bool:
    """Whether some build includes both files."""
    tags = constraint.tags | other.tags
    if not tags:
        return True
    free = sorted(tags - _SYSTEMS - _PROCESSORS - {"unix"})
    if len(free) > MAX_FREE:
        return True
    systems = tags & _SYSTEMS | ({"hurd"} if "unix" in tags else set()) | {""}
    for system, processor in product(sorted(systems), sorted(tags & _PROCESSORS | {""})):
        fixed = {system, processor, _IMPLIED.get(system, "")} | ({"unix"} if system in _UNIX else set())
        for chosen in product((False, True), repeat=len(free)):
            on = fixed | {tag for tag, is_on in zip(free, chosen, strict=True) if is_on}
            if constraint.holds(on) and other.holds(on):
                return True
    return False


def _either(tokens: list[str]) -> tuple[Holds, list[str]]:
    return _operands(tokens, "||", _both, any)


def _both(tokens: list[str]) -> tuple[Holds, list[str]]:
    return _operands(tokens, "&&", _one, all)


def _operands(
    tokens: list[str],
    operator: str,
    parse: Callable[[list[str]], tuple[Holds, list[str]]],
    combine: Callable[[Iterable[bool]], bool],
) -> tuple[Holds, list[str]]:
    """The operands of one operator, combined, and the tokens after them."""
    first, rest = parse(tokens)
    operands = [first]
    while rest and rest[0] == operator:
        operand, rest = parse(rest[1:])
        operands.append(operand)
    return (lambda tags: combine(holds(tags) for holds in operands)), rest


def _one(tokens: list[str]) -> tuple[Holds, list[str]]:
    first, rest = tokens[0], tokens[1:]
    if first == "!":
        inner, rest = _one(rest)
        return (lambda tags: not inner(tags)), rest
    if first == "(":
        inner, rest = _either(rest)
        return inner, rest[1:] if rest[0] == ")" else ["?"]
    return (lambda tags: first in tags), rest
