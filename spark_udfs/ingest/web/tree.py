"""A page as a tree of bounded depth and size, and the facts that its elements state."""

from __future__ import annotations

import re
from dataclasses import dataclass

from resiliparse.parse.html import HTMLTree

from spark_udfs.ingest.bounds import MAX_ATTRIBUTES, MAX_DEPTH, MAX_ELEMENTS
from spark_udfs.ingest.rows import BadRecord
from spark_udfs.ingest.web.address import host_of
from spark_udfs.ingest.web.dom import attribute, body_of_tree, root_of, select, text_of
from spark_udfs.ingest.web.visibility import drop_hidden

# Elements of exactly that depth below the root; the selector is matched natively, by one walk up an element.
_AT_MAX_DEPTH = "html > " + " > ".join(["*"] * (MAX_DEPTH - 1))
_TAG = re.compile(r"<[a-zA-Z][^\s/<]*")
_LONG_TAG = 20_000  # letters; a shorter tag may have any attributes
_LANGUAGE = re.compile(r"\s*([a-zA-Z]{2,3})(?:[-_]|\s*$)")
MAX_FACT_LETTERS = 500
_ADDRESSES = ("url", "canonical")  # a part of one is another address
_MAX_ADDRESS_LETTERS = 2_000  # of one that a page states


def parse(html: str) -> HTMLTree:
    """Return the tree of a page without elements that nobody sees.

    Elements nested deeper than `MAX_DEPTH` become the text of the element at that depth, and a tag with very
    many attributes loses all of them. Raises BadRecord `too_complex` beyond `MAX_ELEMENTS`.
    """
    tree = HTMLTree.parse(_with_bounded_tags(html))
    root = root_of(tree)
    if len(root.query_selector_all("*")) > MAX_DEPTH:  # else none is so deep, and the search takes a while
        for element in select(root, _AT_MAX_DEPTH):
            element.text_content = text_of(element)
    n_elements = len(root.query_selector_all("*"))
    if n_elements > MAX_ELEMENTS:
        raise BadRecord(
            "too_complex", f"The page has {n_elements:,} elements, at most {MAX_ELEMENTS:,} are read."
        )
    drop_hidden(body_of_tree(tree))
    return tree


def _with_bounded_tags(html: str) -> str:
    """Return the page with tags of more than `MAX_ATTRIBUTES` cut to their names.

    The parser compares every attribute of a tag with all before it, which takes quadratic time.
    """
    pieces = html.split(">")
    if max(map(len, pieces)) <= _LONG_TAG:
        return html
    return ">".join(piece if len(piece) <= _LONG_TAG else _bounded(piece) for piece in pieces)


def _bounded(piece: str) -> str:
    """Cut the tag that a piece ends in; the end of a script or a comment is none, and stays."""
    tag = _TAG.match(piece, max(0, piece.rfind("<")))
    if tag is None or piece.endswith("--") or len(piece[tag.end() :].split()) <= MAX_ATTRIBUTES:
        return piece
    return piece[: tag.end()]


@dataclass(frozen=True)
class OptOuts:
    """The rights that a publisher reserves in HTTP headers."""

    robots: str = ""
    """X-Robots-Tag, of repeated fields all."""
    tdm_reservation: str = ""
    """TDM-Reservation of the W3C's TDMRep: 1 reserves text and data mining."""


NO_OPT_OUTS = OptOuts()


def facts_of(tree: HTMLTree, url: str, opt_outs: OptOuts = NO_OPT_OUTS) -> dict[str, str]:
    """Return the statements of a page, its address and its headers, by key of `metadata`.

    The keys are url, host, title, language, canonical, robots, noai and tdm_reservation, which is 1 if the
    headers or the page say so anywhere; a missing statement has no key.
    """
    directives = _stated(opt_outs.robots, tree, "robots").lower()
    reservation = re.findall(r"\b[01]\b", _stated(opt_outs.tdm_reservation, tree, "tdm-reservation"))
    facts = {
        "url": url,
        "host": host_of(url),
        "title": " ".join((tree.title or "").split()),
        "language": _language(tree),
        "canonical": _canonical(tree),
        "robots": directives,
        "noai": "true" if re.search(r"\bno(?:image)?ai\b", directives) else "",
        "tdm_reservation": max(reservation, default=""),
    }
    return {
        name: fact if name in _ADDRESSES else fact[:MAX_FACT_LETTERS] for name, fact in facts.items() if fact
    }


def _stated(header: str, tree: HTMLTree, name: str) -> str:
    """The contents of a header and of all elements `meta` of a name, joined by commas."""
    elements = select(root_of(tree), f'meta[name="{name}" i]')
    return ", ".join(filter(None, [header, *(attribute(element, "content") for element in elements)]))


def _language(tree: HTMLTree) -> str:
    match = _LANGUAGE.match(attribute(root_of(tree), "lang"))
    return match[1].lower() if match else ""


def _canonical(tree: HTMLTree) -> str:
    address = attribute(root_of(tree).query_selector('link[rel="canonical" i]'), "href")
    is_one = address.startswith(("http://", "https://")) and len(address) <= _MAX_ADDRESS_LETTERS
    return address if is_one else ""
