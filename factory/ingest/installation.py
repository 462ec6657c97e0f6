"""The Python installation as raw material: its code and its prose, a repository a distribution.

Repositories are the standard library (`cpython`) and every installed distribution except editable ones, which
are somebody's own work, this platform among them. A hash of the name chooses a `share` of them, so that a
larger share contains every smaller one:

    code    if  position(name) < share
    prose   if  position(name) < PROSE_REACH * share

Prose reaches further because there is less of it. A source is `name@version`, a key is the path inside
the standard library's folder or `site-packages`.
"""

from __future__ import annotations

import contextlib
import csv
import json
import platform
import re
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from importlib.metadata import Distribution, PackageMetadata, distributions
from pathlib import Path, PurePosixPath
from typing import Literal

from factory.ingest.licenses import expression
from factory.ingest.listing import NAMES_PER_ITEM, Work, files_below, in_items
from spark_udfs.ingest.place import LocalFiles
from spark_udfs.ingest.rows import Origin

# This salt leaves out `cpython`, the largest repository, at a test's share of 0.02 and includes it at 0.1. At
# a share of 0.2 it includes `pip` and packages that pip vendors (requests, rich, certifi), so that
# deduplication has something to find.
SALT = 7367
PROSE_REACH = 5

_METADATA = ("METADATA", "PKG-INFO")
_NAME = re.compile(r"^Name:[ \t]*(\S+)", re.MULTILINE | re.IGNORECASE)
_KEPT_METADATA = ("Summary", "Author", "Author-email", "Maintainer", "Home-page", "Requires-Python")
_NO_LIBRARY = ("site-packages/**", "dist-packages/**", "**/__pycache__/**")


@dataclass(frozen=True)
class InstalledRepository:
    """An installed repository: its origin, the folder its paths start from, and its files' paths, sorted."""

    origin: Origin
    root: Path
    paths: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.origin.repository or self.origin.source


def position(name: str) -> float:
    """Return a repository's position from 0 to 1 in the order of sampling, a hash of its name."""
    digest = blake2b(f"{SALT}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") / 2**64


def standard_library() -> InstalledRepository:
    """Return the standard library of this interpreter, without packages installed in its folder."""
    version = platform.python_version()
    root = Path(sysconfig.get_path("stdlib"))
    names = files_below(LocalFiles.at(root), ["**/*"], _NO_LIBRARY)
    return InstalledRepository(
        Origin(
            source=f"cpython@{version}",
            repository="cpython",
            revision=version,
            license="PSF-2.0",
            metadata={"name": "cpython", "version": version, "home_page": "https://www.python.org"},
        ),
        root,
        tuple(name.decode("utf-8", "surrogateescape") for name in names),
    )


def normalized(name: str) -> str:
    """Normalize a distribution's name as the packaging specification does: `Foo.Bar_x` -> `foo-bar-x`."""
    return "-".join(part for part in name.lower().replace("_", "-").replace(".", "-").split("-") if part)


def installed(found: Iterable[Distribution], share: float = 1) -> Iterator[InstalledRepository]:
    """Yield the repositories of distributions with a position below `share`, one per name, sorted by name.

    Editable ones are left out, and so are remains of an interrupted installation, without a readable name.
    """
    first: dict[str, Distribution] = {}
    for distribution in found:
        first.setdefault(_name(distribution), distribution)
    for name in sorted(first):
        if name and position(name) < share and not is_editable(first[name]):
            yield repository_of(first[name], name)


def _name(distribution: Distribution) -> str:
    """Return the normalized name in the headers, which are not parsed whole: that takes 50 times as long."""
    try:
        texts = (distribution.read_text(name) for name in _METADATA)
        headers = next((text for text in texts if text), "").partition("\n\n")[0]
    except UnicodeDecodeError:
        return ""
    found = _NAME.search(headers)
    return normalized(found[1]) if found else ""


def is_editable(distribution: Distribution) -> bool:
    """Return whether a distribution only points at somebody's working copy (PEP 660)."""
    try:
        direct_url = json.loads(distribution.read_text("direct_url.json") or "{}")
        return bool(direct_url.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError, RecursionError):  # not JSON, or of another shape
        return False


def repository_of(distribution: Distribution, name: str) -> InstalledRepository:
    """Return the repository of one distribution, without files installed outside its folder (scripts)."""
    metadata = distribution.metadata  # parsed at every access
    version = metadata["Version"]
    paths = sorted(_files_of(distribution))
    return InstalledRepository(
        Origin(
            source=f"{name}@{version}",
            repository=name,
            revision=version,
            license=license_of(metadata),
            metadata={"name": name, "version": version, **_facts(metadata)},
        ),
        Path(str(distribution.locate_file(""))),
        tuple(path for path in paths if not path.startswith("/") and ".." not in path.split("/")),
    )


def _files_of(distribution: Distribution) -> Iterator[str]:
    """Yield the paths of the installed files; a wheel's record is read without an object for each path."""
    record = distribution.read_text("RECORD")
    if record:
        return (row[0] for row in csv.reader(record.splitlines()) if row)
    return (str(PurePosixPath(path)) for path in distribution.files or ())


def license_of(metadata: PackageMetadata) -> str | None:
    """Return the license that the metadata name: an expression, a short name, or the classifiers'."""
    declared, name = metadata["License-Expression"], metadata["License"]
    if declared:
        return expression(declared) or declared
    if name and name != "UNKNOWN" and "\n" not in name.strip() and len(name) <= 100:
        return name.strip()
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier") or ()
        if line.startswith("License ::") and line != "License :: OSI Approved"
    ]
    return "; ".join(classifiers) or None


def _facts(metadata: PackageMetadata) -> dict[str, str]:
    facts = {
        header.lower().replace("-", "_"): metadata[header]
        for header in _KEPT_METADATA
        if metadata[header] and metadata[header] != "UNKNOWN"
    }
    for entry in metadata.get_all("Project-URL") or ():
        label, _, url = entry.partition(",")
        facts[f"url_{label.strip().lower().replace(' ', '_')}"] = url.strip()
    return facts


def is_code(path: str) -> bool:
    """Return whether a path is Python source."""
    return path.endswith(".py")


_DOCUMENTATION = (".md", ".rst", ".txt")
_LEGAL = ("licence", "license", "copying", "authors", "notice")
_NOT_PROSE = frozenset({".py", ".pyi", ".pyc", ".so", ".html", ".json", ".h", ".c"})
_TEST_DATA = frozenset({"test", "tests", "testing", "data", "idle_test"})
_INFO = (".dist-info", ".egg-info")


def prose_format(path: str) -> str | None:
    """Return the format of a path of prose (`description`, `topics`, `text`), None for any other path.

    Prose is the long description, legal texts, `pydoc`'s topics, and documentation, but no text file of tests
    or data.
    """
    *folders, name = path.split("/")
    if folders and folders[-1].endswith(_INFO) and name in _METADATA:
        return "description"
    if path == "pydoc_data/topics.py":
        return "topics"
    suffix = PurePosixPath(name).suffix.lower()
    in_info = any(folder.endswith(_INFO) for folder in folders)
    if name.lower().startswith(_LEGAL) or (in_info and folders[-1] in ("licenses", "licences")):
        return None if suffix in _NOT_PROSE else "text"
    if suffix not in _DOCUMENTATION or in_info or _TEST_DATA & set(folders):
        return None
    return "text"


def repositories(share: float) -> list[InstalledRepository]:
    """Return the standard library and the distributions with a position below `share`, sorted by name."""
    chosen = list(installed(distributions(), share))
    if position("cpython") < share:
        chosen.append(standard_library())
    return sorted(chosen, key=lambda it: it.name)


def code_work(found: Iterable[InstalledRepository]) -> Iterator[Work]:
    """Yield items for the Python sources of repositories."""
    for it in found:
        names = (path.encode("utf-8", "surrogateescape") for path in it.paths if is_code(path))
        yield from in_items("text", it.origin, LocalFiles.at(it.root), names, NAMES_PER_ITEM)


def prose_work(found: Iterable[InstalledRepository]) -> Iterator[Work]:
    """Yield items for the prose of repositories, separate ones for each format."""
    for it in found:
        by_format: dict[str, list[bytes]] = {"description": [], "topics": [], "text": []}
        for path in it.paths:
            if kind := prose_format(path):
                by_format[kind].append(path.encode("utf-8", "surrogateescape"))
        for kind, names in by_format.items():
            yield from in_items(kind, it.origin, LocalFiles.at(it.root), names, NAMES_PER_ITEM)


@lru_cache
def installation_work(kind: Literal["code", "prose"], share: float) -> tuple[Work, ...]:
    """List the code, or the prose, of a `share` of the installation, once a process."""
    if kind == "code":
        return tuple(code_work(repositories(share)))
    return tuple(prose_work(repositories(PROSE_REACH * share)))


def installation_bytes(kind: Literal["code", "prose"], share: float) -> int:
    """Return the size of the files of `installation_work`; a file that vanished counts as empty."""
    total = 0
    for files in installation_work(kind, share):
        for name in files.names:
            with contextlib.suppress(OSError):
                total += files.place.state(name).n_bytes
    return total
