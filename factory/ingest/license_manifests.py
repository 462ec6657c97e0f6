"""The license that the manifest of a source tree declares: Cargo, npm, Python, Composer and R.

Each reader takes the text of a manifest and returns its `LicenseDeclaration`. It raises one of MALFORMED for
a text that is not such a manifest, or that declares no license.
"""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MALFORMED = (ValueError, KeyError, TypeError, AttributeError, RecursionError, configparser.Error)

_FILE_OF_NPM = re.compile(r"SEE LICEN[CS]E IN\s+(\S.*)", re.IGNORECASE)
_FIELD_OF_R = re.compile(r"^License:[ \t]*(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
_FILE_OF_R = re.compile(r"file (LICEN[CS]E)", re.IGNORECASE)
# A name of R with its version, such as GPL-2, GPL (>= 2) and Apache License 2.0.
_NAME_OF_R = re.compile(r"(.*?)[ -]?(?:\((>=|==)? ?([\d.]+)\)|([\d.]+))")
_FAMILIES_OF_R = {
    **{name: name for name in ("GPL", "LGPL", "AGPL", "MPL", "EUPL")},
    "Apache License": "Apache",
    "Apache": "Apache",
    "Artistic License": "Artistic",
    "Artistic": "Artistic",
    "Mozilla Public License": "MPL",
    "CC BY": "CC-BY",
    "CC BY-SA": "CC-BY-SA",
}
_VERSIONLESS_OF_R = {"BSD_2_clause": "BSD-2-Clause", "BSD_3_clause": "BSD-3-Clause", "CC0": "CC0-1.0"}
_MAX_DOTS = 1_000  # in a line; tomllib takes memory in the square of a key's parts
_LONGEST_NAME = 200
_PREFIX_OF_CLASSIFIERS = "License :: OSI Approved :: "
# The classifiers of PyPI that name one license and one version of it.
_CLASSIFIERS = {
    "Academic Free License (AFL)": "AFL-3.0",
    "Boost Software License 1.0 (BSL-1.0)": "BSL-1.0",
    "European Union Public Licence 1.1 (EUPL 1.1)": "EUPL-1.1",
    "European Union Public Licence 1.2 (EUPL 1.2)": "EUPL-1.2",
    "GNU Affero General Public License v3": "AGPL-3.0-only",
    "GNU Affero General Public License v3 or later (AGPLv3+)": "AGPL-3.0-or-later",
    "GNU General Public License v2 (GPLv2)": "GPL-2.0-only",
    "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0-only",
    "GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.0-or-later",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0-or-later",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Mozilla Public License 1.1 (MPL 1.1)": "MPL-1.1",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
    "Universal Permissive License (UPL)": "UPL-1.0",
    "zlib/libpng License": "Zlib",
}


# The words in which manifests name a license beside its identifier.
LICENSE_NAMES = _CLASSIFIERS | {
    "The MIT License": "MIT",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
}


@dataclass(frozen=True)
class LicenseDeclaration:
    """A license as its manifest spells it, or the file that holds its text."""

    license: str = ""
    file: str | None = None


def _cargo(text: str) -> LicenseDeclaration:
    table = _toml(text)
    package = table.get("package", {})
    inherits = "license" not in package or isinstance(package["license"], dict)  # license.workspace = true
    if inherits and "license-file" in package:
        return LicenseDeclaration(file=_text(package["license-file"]))
    license = table["workspace"]["package"]["license"] if inherits else package["license"]
    return LicenseDeclaration(_text(license).replace("/", " OR "))  # the form of before 2019


def _npm(text: str) -> LicenseDeclaration:
    package = json.loads(text)
    license = package.get("license") or package["licenses"]
    choices = [_text(choice["type"] if isinstance(choice, dict) else choice) for choice in _listed(license)]
    if len(choices) == 1 and (in_file := _FILE_OF_NPM.fullmatch(choices[0].strip())):
        return LicenseDeclaration(file=in_file[1])
    return LicenseDeclaration(_alternatives(choices))


def _python(text: str) -> LicenseDeclaration:
    table = _toml(text)
    project = table.get("project", {})
    license = project.get("license")
    if isinstance(license, dict):
        file = license.get("file")
        return (
            LicenseDeclaration(_text(license["text"]))
            if file is None
            else LicenseDeclaration(file=_text(file))
        )
    if license is None:
        license = _of_classifiers(project.get("classifiers", ()))
    return LicenseDeclaration(_text(license or table["tool"]["poetry"]["license"]))


def _setuptools(text: str) -> LicenseDeclaration:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    metadata = parser["metadata"]
    license = metadata.get("license") or _of_classifiers(metadata.get("classifiers", "").splitlines())
    if license is None:
        raise KeyError("license")
    in_file = re.fullmatch(r"file:\s*(\S+)", license)  # the directive of setuptools
    return LicenseDeclaration(file=in_file[1]) if in_file else LicenseDeclaration(license)


def _composer(text: str) -> LicenseDeclaration:
    return LicenseDeclaration(
        _alternatives([_text(choice) for choice in _listed(json.loads(text)["license"])])
    )


def _r(text: str) -> LicenseDeclaration:
    field = _FIELD_OF_R.search(text)
    if field is None or not re.search(r"^Package:", text, re.MULTILINE):
        raise KeyError("License")
    # `MIT + file LICENSE`: the file holds the year and the holder.
    choices = [" ".join(choice.partition("+")[0].split()) for choice in field[1].split("|")]
    if len(choices) == 1 and (in_file := _FILE_OF_R.fullmatch(choices[0])):
        return LicenseDeclaration(file=in_file[1])
    return LicenseDeclaration(_alternatives([_identifier_of_r(choice) for choice in choices]))


def _identifier_of_r(name: str) -> str:
    """The SPDX identifier of a license as R spells it, any other name unchanged."""
    parts = _NAME_OF_R.fullmatch(name) if len(name) <= _LONGEST_NAME else None
    family = _FAMILIES_OF_R.get(parts[1]) if parts else None
    if parts is None or family is None:
        return _VERSIONLESS_OF_R.get(name, name)
    number = parts[3] or parts[4]
    identifier = f"{family}-{number if '.' in number else f'{number}.0'}"
    if not family.endswith("GPL"):
        return identifier
    return f"{identifier}-or-later" if parts[2] == ">=" else f"{identifier}-only"


def _of_classifiers(classifiers: Any) -> str | None:
    """The license of PyPI's classifiers; None if they name none, several, or one of no certain version."""
    lines = [_text(classifier).strip() for classifier in classifiers]
    names = {
        line.removeprefix(_PREFIX_OF_CLASSIFIERS) for line in lines if line.startswith(_PREFIX_OF_CLASSIFIERS)
    }
    return _CLASSIFIERS.get(names.pop()) if len(names) == 1 else None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _alternatives(choices: list[str]) -> str:
    """A list in a manifest is a choice between licenses."""
    return choices[0] if len(choices) == 1 else " OR ".join(f"({c})" if " " in c else c for c in choices)


def _toml(text: str) -> dict[str, Any]:
    if any(line.count(".") > _MAX_DOTS for line in text.splitlines()):
        raise ValueError("a key of too many parts")
    return tomllib.loads(text)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    value.encode()  # JSON can spell half a character, which no table holds
    return value


MANIFESTS: dict[str, Callable[[str], LicenseDeclaration]] = {
    "Cargo.toml": _cargo,
    "package.json": _npm,
    "pyproject.toml": _python,
    "setup.cfg": _setuptools,
    "composer.json": _composer,
    "DESCRIPTION": _r,
}
