"""The license of a source tree, from its manifest, else from the texts of its license files.

A manifest's declaration (`Cargo.toml`, `package.json`, `pyproject.toml`) becomes the form that filters read:
SPDX names in their own case, alternatives joined by `OR`, parts of an alternative by `AND`, no parentheses. A
declaration that is not an SPDX expression stays unchanged. License files count only if each of them is a
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
_LONGEST = 200  # characters of a declaration; a longer one is a text
# Names of an expression with parentheses: (a OR b) AND (c OR d) AND ... of n has 2 ** (n / 2) alternatives.
_MOST_NAMES = 12
_FILES = re.compile(r"(un)?licen[cs]e|copying", re.IGNORECASE)


def license_of(folder: Path) -> str | None:
    """Return the license of the source tree in `folder`, None if it is not certain.

    Several license files are joined by `AND`, because they do not say whether one may choose among them.
    """
    for name, read in _DECLARED.items():
        if declared := _declared(folder / name, read):
            return declared
    try:
        texts = sorted(path for path in folder.iterdir() if _FILES.match(path.name))
    except OSError:  # listing the files records it
        return None
    found = [recognized(text) for path in texts if (text := _read(path)) is not None]
    return None if None in found else " AND ".join(sorted({str(name) for name in found})) or None


def expression(declared: str) -> str | None:
    """Return the SPDX expression `declared` without parentheses, None if it is not an expression.

    `AND` binds closer than `OR`, as in SPDX.
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
    """Return the beginning of a regular file; reading the folder records a file that cannot be read."""
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
        value = read(text) if text else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # not a manifest
        return None
    if not isinstance(value, str):
        return None
    declared = value.strip()
    if len(declared) > _LONGEST or "\n" in declared:
        return recognized(declared)
    return expression(declared) or declared or None


def _project(text: str) -> Any:
    value = tomllib.loads(text)["project"]["license"]
    return value if isinstance(value, str) else value.get("text")


_DECLARED: dict[str, Callable[[str], Any]] = {
    "Cargo.toml": lambda text: tomllib.loads(text)["package"]["license"].replace("/", " OR "),  # before 2019
    "package.json": lambda text: json.loads(text)["license"],
    "pyproject.toml": _project,
}
