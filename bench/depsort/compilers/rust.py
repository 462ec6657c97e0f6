"""The true dependency edges of a Rust crate, by rustdoc.

rustdoc prints the sources of a crate as pages on which every path, method call and macro links to the line
that defines it (`--generate-link-to-definition`, which a stable compiler accepts only under RUSTC_BOOTSTRAP).
The edges are these links: the last name of a path, the names of an import, the file of `x` for `mod x;`.
Fields, names that a macro writes, and code that the platform switches off have no edges.

It needs `cargo` with rustdoc; cargo fetches the crates that the repository requires.
"""

from __future__ import annotations

import posixpath
import re
import tempfile
import tomllib
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

from bench.depsort.tools import run, writable_copy

_MODULE = re.compile(r"\bmod\s+(?:r#)?\w+\s*;")
_LINES = re.compile(r"(\d+)(?:-(\d+))?")


def edges(repository: Path) -> set[tuple[str, str]]:
    """(dependent, dependency) paths of Rust files, relative to `repository`, whose root holds `Cargo.toml`.

    Raises CalledProcessError if the crate does not compile.
    """
    with tempfile.TemporaryDirectory(prefix="depsort-truth-") as folder:
        copy = writable_copy(repository, Path(folder) / "crate")  # cargo may write a Cargo.lock
        run(
            "cargo", "rustdoc", "--quiet", "--lib", "--all-features", "--target-dir", f"{folder}/target",
            "--manifest-path", str(copy / "Cargo.toml"), "--", "-Z", "unstable-options",
            "--generate-link-to-definition", "--document-private-items", "--cap-lints", "allow",
            variables={"RUSTC_BOOTSTRAP": "1"},
        )  # fmt: skip
        (pages,) = (Path(folder) / "target" / "doc" / "src").iterdir()
        links = {
            path.relative_to(pages).as_posix().removesuffix(".html"): _Links(path.read_text("utf-8"))
            for path in sorted(pages.rglob("*.rs.html"))
        }
    return _edges(links, repository, _source_folder(repository))


def _source_folder(repository: Path) -> str:
    """The folder of the library's root file, to which rustdoc's pages are relative."""
    manifest = tomllib.loads((repository / "Cargo.toml").read_text("utf-8"))
    return posixpath.dirname(manifest.get("lib", {}).get("path", "src/lib.rs"))


class _Links(HTMLParser):
    """The links of one page, each with its line."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []
        self._line = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag != "a":
            return
        if (number := given.get("id") or "").isdecimal():
            self._line = int(number)
        elif ".rs.html#" in (target := given.get("href") or "") and "://" not in target:
            self.found.append((self._line, target))


def _edges(links: Mapping[str, _Links], repository: Path, folder: str) -> set[tuple[str, str]]:
    texts = {
        page: (repository / folder / page).read_text("utf-8").splitlines()
        for page in links
        if (repository / folder / page).is_file()
    }
    targets = [
        (page, line, posixpath.normpath(posixpath.join(posixpath.dirname(page), name)), int(match[1]))
        for page in texts
        for line, (name, _, lines) in ((line, href.partition(".html#")) for line, href in links[page].found)
        if (match := _LINES.match(lines))
    ]
    modules = {  # where `mod x;` stands -> the file of `x`
        (page, line): target
        for page, line, target, _ in targets
        if target != page and _MODULE.search(texts[page][line - 1])
    }
    found = set()
    for page, _, target, line in targets:
        if target not in texts:
            continue
        # rustdoc links a module with a file of its own to its declaration.
        defined = modules.get((target, line)) if _MODULE.search(texts[target][line - 1]) else target
        if defined is not None and defined != page:
            found.add((posixpath.join(folder, page), posixpath.join(folder, defined)))
    return found
