"""The license of a source tree, from its manifest, else from the texts of its license files.

A manifest's declaration becomes the form that filters read: SPDX names in their own case, alternatives joined
by `OR`, parts of an alternative by `AND`, no parentheses. A declaration that is not an SPDX expression stays
unchanged. License files count only if each of them is a known text.
"""

from __future__ import annotations

import codecs
import os
import re
from functools import cache
from pathlib import PurePosixPath

from license_expression import ExpressionError, LicenseExpression, Licensing, get_spdx_licensing

from factory.ingest.license_manifests import LICENSE_NAMES, MALFORMED, MANIFESTS, LicenseDeclaration
from factory.ingest.license_texts import recognized
from spark_udfs.ingest.file_types import MARKDOWN, PLAIN, RST, kind_of
from spark_udfs.ingest.place import Place

_MOST_BYTES = 256 << 10
_LONGEST = 200  # characters of a declaration; a longer one is a text
# Names of an expression with parentheses: (a OR b) AND (c OR d) AND ... of n has 2 ** (n / 2) alternatives.
_MOST_NAMES = 12
# A license file's name is `license` and the like, perhaps with words that say which license or for what.
_LICENSE = re.compile(r"(?:un)?licen[cs]es?|copying(?:v?\d)?")
_TERMS = re.compile(
    r"v?[\d.]+|(?:apache|a?gpl|lgpl|mpl|epl|eupl|cddl)(?:v?[\d.]+)?|mit|[023]?bsd|isc|zlib|boost|bsl|cc0?|by|sa|nc|nd"
    r"|unicode|psf|python|artistic|wtfpl|ofl|openssl|ssl|lesser|lib|clause|alternative|dual|additional|agreement"
    r"|docs?|documentation|code|content|data|assets|fonts?|commercial|enterprise|ee|pro|proprietary|exceptions?"
)
_ABOUT_OTHERS = re.compile(r"third|3rd|dependenc|bundled|vendor|notice|header|template", re.IGNORECASE)
_ENDINGS = re.compile(r"\.(?:txt|text|md|markdown|rst|adoc|asciidoc)$")
_PROSE = frozenset({PLAIN.language, MARKDOWN.language, RST.language, None})
_IDENTIFIER = re.compile(r"[\w.+-]+", re.ASCII)
_TXT = ".txt"
_REUSE = b"LICENSES"  # the folder of https://reuse.software: a text for each license, named by its identifier


def license_of(folder: Place) -> str | None:
    """Return the license of the source tree in `folder`, None if it is not certain.

    Several license files are joined by `AND`, because they do not say whether one may choose among them.
    """
    for name, read in MANIFESTS.items():
        text = _read(folder, name)
        try:
            declaration = read(text) if text else LicenseDeclaration()
        except MALFORMED:
            continue
        if declaration.file is not None:  # terms of its own, even where the file is missing
            text = _read_inside(folder, declaration.file)
            return None if text is None else recognized(text)
        if license := _declared(declaration.license.strip()):
            return license
    return _license_of_files(folder)


def _license_of_files(folder: Place) -> str | None:
    try:
        names = map(os.fsdecode, folder.children())
        texts = {name: text for name in names if (text := _license_text(folder, name)) is not None}
        reuse = _texts_of_reuse(folder)
    except OSError:  # listing the files records it
        return None
    licenses = {name: recognized(text) for name, text in texts.items()}
    # Any other file that the word begins counts if it is a license, such as `LICENSE.eigen`.
    licenses = {name: license for name, license in licenses.items() if license or _is_license_name(name)}
    if licenses.get("COPYING.LESSER") == "LGPL-3.0" and licenses.get("COPYING") == "GPL-3.0":
        del licenses["COPYING"]  # the Lesser license is a supplement to the other's text
    if None in licenses.values():
        return None
    known = {str(license) for license in licenses.values()}
    identifiers = [_identifier(name.removesuffix(_TXT)) for name in reuse]
    if None not in identifiers:
        known.update(name for name in identifiers if name)
    return " AND ".join(sorted(known)) or None


def _texts_of_reuse(folder: Place) -> list[str]:
    if folder.kind(_REUSE) != "folder":
        return []
    texts = folder.below(_REUSE)
    names = [name for name in texts.children() if name.endswith(os.fsencode(_TXT))]
    return [os.fsdecode(name) for name in names if texts.kind(name) == "file"]


def _identifier(name: str) -> str | None:
    """The SPDX identifier that a file of REUSE is named by, empty for an exception, None for another name."""
    if not _IDENTIFIER.fullmatch(name):
        return None
    if name.startswith("LicenseRef-"):
        return name
    try:
        (symbol,) = _licensing().parse(name, validate=True).symbols
    except ExpressionError:
        return None
    return "" if symbol.is_exception else str(symbol.key)


def _is_license_name(name: str) -> bool:
    words = re.split(r"[-_. ]+", _ENDINGS.sub("", name.lower()))
    others = [word for word in words if not _LICENSE.fullmatch(word)]
    return len(others) < len(words) and all(_TERMS.fullmatch(word) for word in others)


def _license_text(folder: Place, name: str) -> str | None:
    """Return the beginning of a file that its name may call a license, None for any other file."""
    language = kind_of(name).language
    is_candidate = _is_license_name(name) or _LICENSE.match(name.lower())
    is_about_others = _ABOUT_OTHERS.search(name) is not None
    return _read(folder, name) if is_candidate and not is_about_others and language in _PROSE else None


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


def _read_inside(folder: Place, name: str) -> str | None:
    """Return the beginning of the file `name` of a tree, None for one outside of it."""
    path = PurePosixPath(name.strip("<>"))
    return None if path.is_absolute() or ".." in path.parts else _read(folder, str(path))


def _read(folder: Place, path: str) -> str | None:
    """Return the beginning of a regular file; reading the folder records a file that cannot be read."""
    try:
        name = os.fsencode(path)
        if folder.is_link(name) or folder.kind(name) != "file":
            return None
        beginning = folder.head(name, _MOST_BYTES)
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return None
    is_utf_16 = beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = beginning.decode("utf-16" if is_utf_16 else "utf-8-sig", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _declared(license: str) -> str | None:
    if len(license) > _LONGEST or "\n" in license:
        return recognized(license)
    return expression(license) or LICENSE_NAMES.get(license) or license or None
