"""The data files in a language's folder: tree-sitter queries, and lists with one name a line.

Lines of a list that start with `#` are comments. Files are read once, when the module of a language loads.
"""

from __future__ import annotations

from importlib import resources


def read_query(package: str, *files: str) -> str:
    """The tree-sitter query in `query.scm` of a language's folder, or in `files` joined in their order."""
    return "\n".join(_read(package, file) for file in files or ("query.scm",))


def read_names(package: str, file: str) -> frozenset[str]:
    """The names listed in a file."""
    lines = (line.strip() for line in _read(package, file).splitlines())
    return frozenset(line for line in lines if line and not line.startswith("#"))


def read_builtins(package: str) -> tuple[frozenset[str], frozenset[str]]:
    """The plain names in `builtins.txt`, and the members, listed as `.append`, without their dot."""
    names = read_names(package, "builtins.txt")
    members = frozenset(name for name in names if name.startswith("."))
    return names - members, frozenset(member.removeprefix(".") for member in members)


def _read(package: str, file: str) -> str:
    return (resources.files(package) / file).read_text("utf-8")
