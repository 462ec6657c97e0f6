"""The license of a source tree, from what it declares, else from the texts of its license files.

A declaration (`Cargo.toml`, `package.json`, `pyproject.toml`) is brought into the form that a gate reads:
SPDX names in their own case, alternatives joined by `OR`, parts of an alternative by `AND`, no parentheses.
A declaration that is no SPDX expression stays as it stands. License files count only where each of them is a
known text.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from license_expression import ExpressionError, LicenseExpression, Licensing, get_spdx_licensing

from factory.ingest.license_texts import recognized

_MOST_BYTES = 256 << 10
_LONGEST = 200  # characters of a declaration; what is longer is a text
# With parentheses: (a OR b) AND (c OR d) AND ... has as many alternatives as 2 to half of its names.
_MOST_NAMES = 12
_FILES = re.compile(r"(un)?licen[cs]e|copying", re.IGNORECASE)


def license_of(folder: Path) -> str | None:
    """The license of the source tree in `folder`, None where it is not certain.

    License files that are each a known text are joined by `AND`: which of them may be chosen they do not say.
    """
    for name, read in _DECLARED.items():
        if declared := _declared(folder / name, read):
            return declared
    try:
        texts = sorted(path for path in folder.iterdir() if _FILES.match(path.name))
    except OSError:  # recorded when its files are listed
        return None
    found = [recognized(text) for path in texts if (text := _read(path)) is not None]
    return None if None in found else " AND ".join(sorted({str(name) for name in found})) or None


def expression(declared: str) -> str | None:
    """The SPDX expression `declared` without parentheses; None where it is none.

    In the result `AND` binds closer than `OR`, as in SPDX.
    """
    try:
        parsed = _licensing().parse(declared)
    except (ExpressionError, IndexError):  # `()` alone runs out of its stack
        return None
    if parsed is None or any(" " in str(name) for name in _licensing().unknown_license_keys(parsed)):
        return None
    if "(" not in declared:
        return str(parsed.render())
    return _alternatives(parsed) if len(list(parsed.get_symbols())) <= _MOST_NAMES else None


def _alternatives(parsed: LicenseExpression) -> str:
    return str(_licensing().dnf(parsed).render()).replace("(", "").replace(")", "")


@cache
def _licensing() -> Licensing:
    return get_spdx_licensing()


def _read(path: Path) -> str | None:
    """The beginning of a regular file; what cannot be read is recorded when its folder is."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _declared(path: Path, read: Callable[[str], Any]) -> str | None:
    text = _read(path)
    try:
        said = read(text) if text else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # no manifest after all
        return None
    if not isinstance(said, str):
        return None
    said = said.strip()
    if len(said) > _LONGEST or "\n" in said:
        return recognized(said)
    return expression(said) or said or None


def _project(text: str) -> Any:
    said = tomllib.loads(text)["project"]["license"]
    return said if isinstance(said, str) else said.get("text")


_DECLARED: dict[str, Callable[[str], Any]] = {
    "Cargo.toml": lambda text: tomllib.loads(text)["package"]["license"].replace("/", " OR "),  # before 2019
    "package.json": lambda text: json.loads(text)["license"],
    "pyproject.toml": _project,
}
