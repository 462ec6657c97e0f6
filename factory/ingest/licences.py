"""The licence of a source tree, from what it declares, else from the text of its licence files.

A declaration (`Cargo.toml`, `package.json`, `pyproject.toml`) is taken as it stands. Of a licence file only
what is certain is told: a text is recognised by its title and the sentence that sets it apart, and one
that is not recognised gives no licence. Names are SPDX identifiers; the texts of the GNU licences do not
say whether later versions are allowed, so theirs are `GPL-3.0` and the like.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

_MOST_BYTES = 256 << 10
_FILES = re.compile(r"(un)?licen[cs]e|copying", re.IGNORECASE)
_SPDX = re.compile(r"^\W*SPDX-License-Identifier:\s*([\w.+() -]+?)\s*$", re.MULTILINE)

# In this order: a text that holds the words of an earlier entry is not looked at further.
_BY_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("AGPL-3.0", ("gnu affero general public license", "version 3, 19 november 2007")),
    ("LGPL-3.0", ("gnu lesser general public license", "version 3, 29 june 2007")),
    ("LGPL-2.1", ("gnu lesser general public license", "version 2.1, february 1999")),
    ("GPL-3.0", ("gnu general public license", "version 3, 29 june 2007")),
    ("GPL-2.0", ("gnu general public license", "version 2, june 1991")),
    ("Apache-2.0", ("apache license", "version 2.0, january 2004")),
    ("MPL-2.0", ("mozilla public license version 2.0",)),
    ("EPL-2.0", ("eclipse public license - v 2.0",)),
    ("Unlicense", ("this is free and unencumbered software released into the public domain",)),
    ("CC0-1.0", ("cc0 1.0 universal",)),
    ("BSL-1.0", ("boost software license - version 1.0",)),
    ("MIT", ("permission is hereby granted, free of charge, to any person obtaining a copy of this software",
             "the above copyright notice and this permission notice")),
    ("ISC", ("permission to use, copy, modify, and/or distribute this software for any purpose",
             "provided that the above copyright notice and this permission notice appear in all copies")),
    ("0BSD", ("permission to use, copy, modify, and/or distribute this software for any purpose",)),
    ("BSD-3-Clause", ("redistribution and use in source and binary forms", "neither the name")),
    ("BSD-2-Clause", ("redistribution and use in source and binary forms",)),
)  # fmt: skip


def licence_of(folder: Path) -> str | None:
    """The licence of the source tree in `folder`; several, of several files, stand behind each other."""
    for name, read in _DECLARED.items():
        if declared := _declared(folder / name, read):
            return declared
    try:
        texts = sorted(path for path in folder.iterdir() if _FILES.match(path.name))
    except OSError:  # recorded when its files are listed
        return None
    found = [recognised(text) for path in texts if (text := _read(path)) is not None]
    return "; ".join(sorted({name for name in found if name})) or None


def recognised(text: str) -> str | None:
    """The SPDX identifier of a licence's text, None where it is not certain."""
    if identifier := _SPDX.search(text):
        return identifier[1]
    plain = " ".join(text.lower().split())
    return next((name for name, words in _BY_WORDS if all(it in plain for it in words)), None)


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
    return said.strip() or None if isinstance(said, str) else None


def _project(text: str) -> Any:
    said = tomllib.loads(text)["project"]["license"]
    return said if isinstance(said, str) else said.get("text")


_DECLARED: dict[str, Callable[[str], Any]] = {
    "Cargo.toml": lambda text: tomllib.loads(text)["package"]["license"],
    "package.json": lambda text: json.loads(text)["license"],
    "pyproject.toml": _project,
}
