"""Debian's documentation packages: pages of several generators, whose main element is the truth.

The marks by which the truth is known (role, id and class of the main element and of those around it) are
taken out of a page before it is extracted. Rules of extraction were made on `KNOWN`; the figures are of
`UNSEEN`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import ElementNode, HTMLTree

from bench.debian import folder_of
from spark_udfs.ingest.web.dom import root_of, select

_DOC = "usr/share/doc"


@dataclass(frozen=True)
class Package:
    """A Debian package: where its pages are, and the selector of their main element.

    Of the main element, `beside` is not the text. Pages whose name has one of `lists` are lists of links.
    """

    name: str
    pages: str
    main: str
    beside: str = ""
    lists: tuple[str, ...] = ("genindex", "index", "search", "modindex", "toc")


KNOWN = (
    Package("python3.11-doc", f"{_DOC}/python3.11/html/**/*.html", "[role=main]"),
    Package("git-doc", f"{_DOC}/git-doc/**/*.html", "body", "#footer"),
    Package("debian-policy", f"{_DOC}/debian-policy/policy.html/*.html", "[role=main]"),
    Package("nodejs-doc", f"{_DOC}/nodejs/api/*.html", "#apicontent", lists=("all", "index")),
)
UNSEEN = (
    Package("apache2-doc", f"{_DOC}/apache2-doc/manual/*/**/*.html", "#page-content", "#comments_section"),
    Package("postgresql-doc-15", f"{_DOC}/postgresql-doc-15/html/*.html", "body", ".navheader, .navfooter"),
    Package("openjdk-17-doc", f"{_DOC}/openjdk-17-jre-headless/api/java.base/java/*/[A-Z]*.html", "main"),
    Package("python-django-doc", f"{_DOC}/python-django-doc/html/**/*.html", "#bd .yui-b, [role=main]"),
)
TEXTS = tuple(f"manpages-{language}" for language in "cs de es fr it ja nl pl pt-br ro ru uk zh".split())  # noqa: SIM905


@dataclass(frozen=True)
class DocumentedPage:
    """A page without its marks, and its main text as words."""

    package: str
    path: str
    html: str
    truth: str


def pages(package: Package, most: int) -> list[DocumentedPage]:
    """Return up to `most` pages of a package, drawn by a fixed seed."""
    folder = folder_of(package.name)
    files = [
        file
        for file in sorted(folder.glob(package.pages))
        if not file.is_symlink() and not any(name in file.name.lower() for name in package.lists)
    ]
    random.Random(1).shuffle(files)
    return [page for file in files[: 2 * most] for page in _page(package, file)][:most]


def _page(package: Package, file: Path) -> Iterator[DocumentedPage]:
    tree = HTMLTree.parse(file.read_text("utf-8", "replace"))
    main = root_of(tree).query_selector(package.main)
    if main is None:
        return
    alone = HTMLTree.parse(f"<html><body>{main.outer_html}</body></html>")
    for box in select(root_of(alone), package.beside) if package.beside else ():
        box.decompose()
    truth = extract_plain_text(alone, alt_texts=False)
    element: ElementNode | None = main
    while element is not None and element.tag != "html":
        for mark in ("role", "id", "class"):
            element.remove_attribute(mark)
        element = element.parent_element
    yield DocumentedPage(package.name, file.name, str(tree), truth)
