"""Documents from HTML pages with figures: the main text, with a placeholder in the place of each figure.

A figure is an element `img` with an address relative to its page; its file is read from the same folder tree.
A mark travels through the extractor of main texts in place of each figure, so icons of menus leave with the
menus. Figures elsewhere, on other servers or within the page, are counted.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
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
_MARK = re.compile(f"{PLACEHOLDER}([0-9]+){PLACEHOLDER}")
_FIGURE_TAG = re.compile(r"<(/?)fig(ure|caption)\b", re.IGNORECASE)
_REPLACEMENT = "\ufffd"  # for placeholders that a page has of its own, which stand for nothing


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
        tree = parse(decoded_page.text.replace(PLACEHOLDER, _REPLACEMENT))
        addresses, n_elsewhere = _mark_figures(tree)
        html = _FIGURE_TAG.sub(_as_block, str(tree))
        page = page_of(html.encode("utf-8", "replace"), charset="utf-8")
        numbers = [int(mark) for mark in _MARK.findall(page.text)]
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
            _MARK.sub(PLACEHOLDER, page.text),
            list(_figures(source, [addresses[number] for number in numbers])),
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


def _mark_figures(tree: HTMLTree) -> tuple[list[str], int]:
    """Put a mark in the place of each figure; return their addresses, and the number of figures elsewhere."""
    addresses: list[str] = []
    n_elsewhere = 0
    for image in select(root_of(tree), "img"):
        address = attribute(image, "src")
        parent = image.parent
        if parent is None or not address:
            continue
        if not _is_local(address):
            n_elsewhere += 1
            continue
        mark = tree.create_text_node(f" {PLACEHOLDER}{len(addresses)}{PLACEHOLDER} ")
        assert mark is not None
        addresses.append(address)
        parent.replace_child(mark, image)
    return addresses, n_elsewhere


def _is_local(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return not parts.scheme and not parts.netloc and bool(parts.path) and not parts.path.startswith("/")


def _figures(source: Input, addresses: list[str]) -> Iterator[SourcePicture]:
    """Yield the figures at the addresses, each file read once; beyond the bounds their bytes are not read."""
    contents: dict[str, SourcePicture] = {}
    n_left = MAX_BYTES_OF_PICTURES
    if len(addresses) > MAX_PICTURES:
        yield from (SourcePicture(address) for address in addresses)
        return
    for address in addresses:
        path = posixpath.normpath(
            posixpath.join(posixpath.dirname(source.shown), unquote(urlsplit(address).path))
        )
        if path not in contents:
            contents[path] = _figure(source, path)
        figure = contents[path]
        n_left -= len(figure.content)
        if n_left < 0:
            detail = f"The figures of the page have more than {MAX_BYTES_OF_PICTURES:,} bytes."
            raise BadRecord("too_large", detail)
        yield figure


def _figure(source: Input, path: str) -> SourcePicture:
    if path.startswith("../"):
        return SourcePicture(path, trouble=BadRecord("outside", "Its address leads out of the folder."))
    name = path.encode("utf-8", "surrogateescape")
    try:
        with opened(replace(source, name=name)) as file:
            return SourcePicture(key_of(path), file.read(MAX_PICTURE_BYTES + 1))
    except BadRecord as bad:
        if bad.reason == "vanished":
            bad = BadRecord("missing_picture", "The page shows it, and there is no such file.")
        return SourcePicture(key_of(path), trouble=bad)
