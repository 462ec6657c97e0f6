"""The Python installation as raw material: its code and its prose, a repository a distribution.

Repositories are the standard library (`cpython`) and every installed distribution except editable ones,
which are somebody's own work, this platform among them. A `share` of them is taken by a hash of the
name, so that a larger share holds everything a smaller one does:

    code   in   where  place(name) < share
    prose  in   where  place(name) < PROSE_REACH * share

Prose reaches further because there is less of it. A source is `name@version`, a key is the path inside
the standard library's folder or `site-packages`.
"""

from __future__ import annotations

import json
import platform
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath

from factory.ingest.licenses import expression
from factory.ingest.listing import NAMES_AN_ITEM, Work, files_below, in_items
from spark_udfs.ingest.rows import Origin

# Chosen so that `cpython`, the largest, is out at a share of 0.02, a test's, and in at 0.1, and so that at
# 0.2 there are `pip` and packages it carries copies of (requests, rich, certifi) for deduplication to find.
SALT = 7367
PROSE_REACH = 5

_METADATA = ("METADATA", "PKG-INFO")
_KEPT_METADATA = ("Summary", "Author", "Author-email", "Maintainer", "Home-page", "Requires-Python")
_NO_LIBRARY = ("site-packages/**", "dist-packages/**", "**/__pycache__/**")


@dataclass(frozen=True)
class Repository:
    """An installed repository: its origin, the folder its paths start from, and its files' paths, sorted."""

    origin: Origin
    root: Path
    paths: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.origin.repository or self.origin.source


def place(name: str) -> float:
    """Where a repository stands between 0 and 1, by its name alone."""
    digest = blake2b(f"{SALT}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") / 2**64


def standard_library() -> Repository:
    """The standard library of this interpreter, without what is installed into its folder."""
    version = platform.python_version()
    root = Path(sysconfig.get_path("stdlib"))
    names = files_below(root, ["**/*"], _NO_LIBRARY)
    return Repository(
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
    """A distribution's name as the packaging specification compares it: `Foo.Bar_x` -> `foo-bar-x`."""
    return "-".join(part for part in name.lower().replace("_", "-").replace(".", "-").split("-") if part)


def installed(found: Iterable[Distribution]) -> Iterator[Repository]:
    """The repositories of distributions, one a name, sorted by name.

    Left out are editable ones, and remains without a readable name (an interrupted installation's).
    """
    first: dict[str, Distribution] = {}
    for distribution in found:
        first.setdefault(_name(distribution), distribution)
    for name in sorted(first):
        if name and not is_editable(first[name]):
            yield repository_of(first[name], name)


def _name(distribution: Distribution) -> str:
    try:
        return normalized(distribution.metadata["Name"] or "")
    except (UnicodeDecodeError, RecursionError):  # parts in parts, to the parser of messages
        return ""


def is_editable(distribution: Distribution) -> bool:
    """Whether a distribution only points at somebody's working copy (PEP 660)."""
    try:
        direct_url = json.loads(distribution.read_text("direct_url.json") or "{}")
        return bool(direct_url.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError, RecursionError):  # no JSON, or not of the declared shape
        return False


def repository_of(distribution: Distribution, name: str) -> Repository:
    """The repository of one distribution; files installed outside its folder (scripts) are left out."""
    version = distribution.version
    paths = sorted(str(PurePosixPath(path)) for path in distribution.files or ())
    return Repository(
        Origin(
            source=f"{name}@{version}",
            repository=name,
            revision=version,
            license=license_of(distribution),
            metadata={"name": name, "version": version, **_facts(distribution)},
        ),
        Path(str(distribution.locate_file(""))),
        tuple(path for path in paths if not path.startswith("/") and ".." not in path.split("/")),
    )


def license_of(distribution: Distribution) -> str | None:
    """The license as the metadata names it: an expression, else a short name, else the classifiers'."""
    metadata = distribution.metadata
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


def _facts(distribution: Distribution) -> dict[str, str]:
    metadata = distribution.metadata
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
    """Whether a path is Python source."""
    return path.endswith(".py")


_DOCUMENTATION = (".md", ".rst", ".txt")
_LEGAL = ("licence", "license", "copying", "authors", "notice")
_NOT_PROSE = frozenset({".py", ".pyi", ".pyc", ".so", ".html", ".json", ".h", ".c"})
_TEST_DATA = frozenset({"test", "tests", "testing", "data", "idle_test"})
_INFO = (".dist-info", ".egg-info")


def prose_format(path: str) -> str | None:
    """How a path is read as prose (`description`, `topics`, `text`), None where it is none.

    Prose is the long description, licenses and their like, `pydoc`'s topics, and documentation; text
    files of tests and data are neither.
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


def repositories(share: float) -> list[Repository]:
    """The standard library and the installed distributions whose place is below `share`, sorted by name."""
    chosen = [it for it in installed(distributions()) if place(it.name) < share]
    if place("cpython") < share:
        chosen.append(standard_library())
    return sorted(chosen, key=lambda it: it.name)


def code_work(found: Iterable[Repository]) -> Iterator[Work]:
    """The Python sources of repositories."""
    for it in found:
        names = (path.encode("utf-8", "surrogateescape") for path in it.paths if is_code(path))
        yield from in_items("text", it.origin, it.root, names, NAMES_AN_ITEM)


def prose_work(found: Iterable[Repository]) -> Iterator[Work]:
    """The prose of repositories, each kind an item of its own."""
    for it in found:
        by_format: dict[str, list[bytes]] = {"description": [], "topics": [], "text": []}
        for path in it.paths:
            if kind := prose_format(path):
                by_format[kind].append(path.encode("utf-8", "surrogateescape"))
        for kind, names in by_format.items():
            yield from in_items(kind, it.origin, it.root, names, NAMES_AN_ITEM)
