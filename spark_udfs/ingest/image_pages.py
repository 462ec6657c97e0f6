"""Documents from HTML pages with figures: the main text, with a placeholder in the place of each figure.

A figure is an element `img` with an address relative to its page; its file is read from the same folder tree.
A mark travels through the extractor of main texts in place of each figure, so icons of menus leave with the
menus. It holds a hash of the page, which no page can hold, not even as references such as `&#65532;`. Figures
elsewhere, on other servers or within the page, are counted.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from urllib.parse import unquote, urlsplit

from resiliparse.parse.html import HTMLTree

from factory.lake.schemas.images import PLACEHOLDER
from spark_udfs.ingest.bounds import MAX_BYTES_OF_PICTURES, MAX_PICTURE_BYTES, MAX_PICTURES
from spark_udfs.ingest.files import Input, key_of, opened
from spark_udfs.ingest.image_document import ImageOptions, SourcePicture, image_documents
from spark_udfs.ingest.place import size_of
from spark_udfs.ingest.rows import BadRecord, Row, rejection
from spark_udfs.ingest.web.charset import decode_page
from spark_udfs.ingest.web.dom import attribute, root_of, select
from spark_udfs.ingest.web.page import page_of
from spark_udfs.ingest.web.tree import parse

ELSEWHERE = "figures_elsewhere"  # the fact that counts figures that are not files of the folder
_FIRST_SIGN = 0x2800  # of 256 patterns of Braille: extractors keep them, and count them as no words
_FIGURE_TAG = re.compile(r"<(/?)fig(ure|caption)\b", re.IGNORECASE)
_REPLACEMENT = "\ufffd"  # for placeholders that a page has of its own, which stand for nothing


@dataclass(frozen=True)
class _Seal:
    """The signs before and behind the number of a figure in its mark."""

    before: str
    behind: str

    @classmethod
    def of_page(cls, body: bytes) -> _Seal:
        signs = "".join(chr(_FIRST_SIGN + byte) for byte in blake2b(body, digest_size=8).digest())
        return cls(signs[:4], signs[4:])

    def mark(self, number: int) -> str:
        return f"{self.before}{number}{self.behind}"

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(f"{self.before}([0-9]+){self.behind}")


def page_rows(source: Input, options: ImageOptions) -> Iterator[Row]:
    """Yield the document of a page, or why it is rejected, and a row per figure that is left out."""
    n_bytes, body = 0, b""
    try:
        with opened(source) as file:
            n_bytes = size_of(file)
            body = file.read(options.max_bytes + 1)
        if len(body) > options.max_bytes:
            raise BadRecord("too_large", f"The page is longer than {options.max_bytes:,} bytes.")
        decoded_page = decode_page(body, None)
        tree = parse(decoded_page.text)
        seal = _Seal.of_page(body)
        paths, n_elsewhere = _mark_figures(tree, seal)
        html = _FIGURE_TAG.sub(_as_block, str(tree))
        page = page_of(html.encode("utf-8", "replace"), charset="utf-8")
        numbers = [int(number) for number in seal.pattern.findall(page.text)]
        facts = {
            **page.facts,
            "charset": decoded_page.charset,
            "charset_from": decoded_page.charset_from,
            **({"replacement_chars": str(decoded_page.n_replaced)} if decoded_page.n_replaced else {}),
            **({ELSEWHERE: str(n_elsewhere)} if n_elsewhere else {}),
        }
        language = facts.pop("language", None) or options.language or source.origin.language
        yield from image_documents(
            source.origin,
            source.key,
            seal.pattern.sub(PLACEHOLDER, page.text.replace(PLACEHOLDER, _REPLACEMENT)),
            list(_figures(source, [paths[number] for number in numbers])),
            options,
            metadata=facts,
            language=language,
            path=source.shown,
        )
    except BadRecord as bad:
        yield rejection(source.origin, source.key, bad, n_bytes, body)


def _as_block(match: re.Match[str]) -> str:
    """Return the tag of a plain block in place of one of a figure: the extractor drops figures whole."""
    return f"<{match[1]}{'div' if match[2].lower() == 'ure' else 'p'}"


def _mark_figures(tree: HTMLTree, seal: _Seal) -> tuple[list[str], int]:
    """Put a mark in the place of each figure; return their paths, and the number of figures elsewhere.

    Paths are relative to the folder of the page.
    """
    paths: list[str] = []
    n_elsewhere = 0
    base = _base_of(tree)
    for image in select(root_of(tree), "img"):
        address = attribute(image, "src")
        parent = image.parent
        if parent is None or not address:
            continue
        path = _local_path(address)
        if path is None or base is None:
            n_elsewhere += 1
            continue
        mark = tree.create_text_node(f" {seal.mark(len(paths))} ")
        assert mark is not None
        paths.append(posixpath.join(base, path))
        parent.replace_child(mark, image)
    return paths, n_elsewhere


def _base_of(tree: HTMLTree) -> str | None:
    """Return the folder of relative addresses, seen from the folder of the page; None if it is elsewhere."""
    href = attribute(root_of(tree).query_selector("base[href]"), "href")
    if not href.partition("?")[0].partition("#")[0]:
        return ""
    path = _local_path(href)
    if path is None:
        return None
    return path if posixpath.basename(path) == ".." else posixpath.dirname(path)


def _local_path(address: str) -> str | None:
    """Return the path of a relative address, None of any other."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    path = unquote(parts.path)
    return None if parts.scheme or parts.netloc or not path or path.startswith("/") else path


def _figures(source: Input, paths: list[str]) -> Iterator[SourcePicture]:
    """Yield the figures at the paths, each file read once; beyond the bounds their bytes are not read."""
    contents: dict[str, SourcePicture] = {}
    n_left = MAX_BYTES_OF_PICTURES
    if len(paths) > MAX_PICTURES:
        yield from (SourcePicture(path) for path in paths)
        return
    for path_of_page in paths:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source.shown), path_of_page))
        if path not in contents:
            contents[path] = _figure(source, path)
        figure = contents[path]
        n_left -= len(figure.content)
        if n_left < 0:
            detail = f"The figures of the page have more than {MAX_BYTES_OF_PICTURES:,} bytes."
            raise BadRecord("too_large", detail)
        yield figure


def _figure(source: Input, path: str) -> SourcePicture:
    key = key_of(path)
    if f"{path}/".startswith("../"):
        return SourcePicture(key, trouble=BadRecord("outside", "Its address leads out of the folder."))
    missing = BadRecord("missing_picture", "The page shows it, and there is no such file.")
    if "\0" in path:  # which no name of a file holds
        return SourcePicture(key, trouble=missing)
    name = path.encode("utf-8", "surrogateescape")
    try:
        with opened(replace(source, name=name)) as file:
            _refuse_linked_folders(source, name)
            return SourcePicture(key, file.read(MAX_PICTURE_BYTES + 1))
    except BadRecord as bad:
        return SourcePicture(key, trouble=missing if bad.reason == "vanished" else bad)


def _refuse_linked_folders(source: Input, name: bytes) -> None:
    for slash in re.finditer(b"/", name):
        if source.place.is_link(name[: slash.start()]):
            detail = "A folder of its address is a symbolic link, and links are not followed."
            raise BadRecord("link", detail)
