"""Repairs on the tree of a page before resiliparse reads its main text.

By itself resiliparse keeps the text around a headline (the name and slogan of a site, author and date) and
boxes of unknown classes, and drops lists near the root. The rules here read the structure: the headline, the
element with most of the text, and elements of HTML. They name no generator of pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from resiliparse.parse.html import ElementNode, HTMLTree

from spark_udfs.ingest.web.dom import (
    BLOCKS,
    body_of_tree,
    children,
    has_headline,
    n_letters,
    select,
    size_of,
    text_of,
)

_PARTS = frozenset(("article", "section"))
_RUNNING_LETTERS = 250  # of paragraphs; a notice or a slogan has fewer
_MOST_OF_THE_TEXT = 0.6  # of an element, which its largest child has
_LITTLE = 0.35  # of the core's text, which a box beside it has at most
_LITTLE_BEFORE = 0.2
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_BYLINE_LETTERS = 120
_SENTENCE_ENDS = (".", "!", "?", ":", "。", "！", "？")
_OF_AN_AUTHOR = "[rel=author], [itemprop=author], time"
_BYLINES = frozenset(("p", "div", "span", "ul", "time", "address", "small"))
_NEAR_THE_HEADLINE = 3  # elements
_DEPTH_OF_LISTS = 3  # below the body; resiliparse takes lists above for menus
_LETTERS_A_LINK = 60  # in a list of texts with links; a list of links has fewer
_MOST_IN_LINKS = 0.6  # of the letters of a list of texts
_WORD_LETTERS = 3  # of an entry, outside its links
_NO_LETTERS = re.compile(r"[\W\d_]+")
_LINK = re.compile(r'<a(?=[\s>])(?:[^">]|"[^"]*")*>')  # as a tree writes it, with double quotes alone
_NO_LINKS = "a[name]:not([href]), pre a"
_AROUND_MENUS = "nav, header, footer, aside, [role=navigation], [role=menu], [role=menubar], [role=tablist]"


def mend(tree: HTMLTree) -> None:
    """Drop the boxes around the main text, and keep lists of texts, in place."""
    body = body_of_tree(tree)
    _drop_beside_the_core(body)
    headline = body.query_selector("h1")
    if headline is not None:
        _drop_before(headline, _LITTLE_BEFORE * size_of(body))
        _drop_bylines(headline)
    for header in select(body, "header"):
        if not has_headline(header) and header.closest("article, section, main") is None:
            header.decompose()
    _keep_lists_of_texts(tree)


def replace_anchors(tree: HTMLTree) -> None:
    """Replace anchors that only name a place, and the links of code, by spans."""
    for anchor in select(body_of_tree(tree), _NO_LINKS):
        span = tree.create_element("span")
        assert span is not None
        while (node := anchor.first_child) is not None:
            span.append_child(node)
        anchor.replace_with(span)


@dataclass(frozen=True)
class _Level:
    """The children of an element, their letters, and the number of the largest."""

    elements: list[ElementNode]
    sizes: list[int]
    largest: int

    @property
    def has_a_core(self) -> bool:
        """Whether the largest child is the text, not one part of it among others."""
        core = self.elements[self.largest]
        if self.sizes[self.largest] < _MOST_OF_THE_TEXT * sum(self.sizes):
            return False
        if core.tag in BLOCKS and core.tag != "table":
            return False
        return not any(
            (size > 0 and other.tag in BLOCKS) or _are_of_one_kind(core, other)
            for number, (other, size) in enumerate(zip(self.elements, self.sizes, strict=True))
            if number != self.largest
        )


def _drop_beside_the_core(body: ElementNode) -> None:
    """Drop the small siblings of the element with most of the text, and of its ancestors."""
    core, levels = body, []
    while elements := list(children(core)):
        sizes = [size_of(element) for element in elements]
        level = _Level(elements, sizes, max(range(len(sizes)), key=sizes.__getitem__))
        if not level.has_a_core:
            break
        levels.append(level)
        core = elements[level.largest]
    most = _LITTLE * size_of(core)
    for level in levels:
        first = level.largest  # between the headline and the core stands what leads to it
        for number in range(level.largest):
            if has_headline(level.elements[number]):
                first = number
                break
        for number, (element, size) in enumerate(zip(level.elements, level.sizes, strict=True)):
            is_beside = not first <= number <= level.largest and size < most
            if is_beside and not _is_running_text(element):
                element.decompose()


def _are_of_one_kind(core: ElementNode, other: ElementNode) -> bool:
    """Whether two elements are parts of one kind: articles, sections, or boxes with a class in common."""
    if core.tag != other.tag:
        return False
    classes = {*(core.class_name or "").split()} & {*(other.class_name or "").split()}
    return core.tag in _PARTS or bool(classes)


def _is_running_text(element: ElementNode) -> bool:
    """Whether paragraphs of an element have several sentences outside links."""
    texts = [text_of(paragraph) for paragraph in select(element, "p") if not len(select(paragraph, "a"))]
    return sum(map(n_letters, texts)) > _RUNNING_LETTERS


def _drop_before(headline: ElementNode, most: float) -> None:
    """Drop small boxes without paragraphs before the headline and before the elements around it."""
    element: ElementNode | None = headline
    while element is not None and element.tag != "body":
        before = element.previous_element_sibling
        while before is not None:
            box, before = before, before.previous_element_sibling
            if box.tag in ("header", "nav") or (box.query_selector("p, pre") is None and size_of(box) < most):
                box.decompose()
        element = element.parent_element


def _drop_bylines(headline: ElementNode) -> None:
    """Drop short lines with a date or an author behind the headline, and behind its header."""
    above = headline.parent_element
    for element in (headline, above if above is not None and above.tag in ("header", "hgroup") else None):
        if element is None:
            return
        for line in _siblings_behind(element):
            text = text_of(line).strip()
            if len(text) > _BYLINE_LETTERS:
                break
            names_an_author = line.matches(_OF_AN_AUTHOR) or line.query_selector(_OF_AN_AUTHOR) is not None
            is_line = line.tag != "ul" and not text.endswith(_SENTENCE_ENDS)
            if line.tag in _BYLINES and (names_an_author or (is_line and _YEAR.search(text))):
                line.decompose()


def _siblings_behind(element: ElementNode) -> list[ElementNode]:
    siblings: list[ElementNode] = []
    following = element.next_element_sibling
    while following is not None and len(siblings) < _NEAR_THE_HEADLINE:
        siblings.append(following)
        following = following.next_element_sibling
    return siblings


def _keep_lists_of_texts(tree: HTMLTree) -> None:
    """Make outer lists of texts such as resiliparse drops nowhere: deep in the tree, and without links."""
    for element in select(body_of_tree(tree), "ul:not(ul ul)"):
        if element.closest(_AROUND_MENUS) is not None:
            continue
        links = select(element, "a")
        if _is_list_of_texts(element, links):
            if links:
                element.inner_html = _LINK.sub("<span>", element.inner_html).replace("</a>", "</span>")
            for _ in range(_DEPTH_OF_LISTS - _depth(element, _DEPTH_OF_LISTS)):
                _wrap(tree, element)


def _is_list_of_texts(element: ElementNode, links: list[ElementNode]) -> bool:
    """Whether a list holds texts rather than a menu: by the length of its entries, or by words outside links.

    An entry of a menu is a link, perhaps with a number behind it. A step, a change or a book has at least a
    few words around its links.
    """
    if not links or size_of(element) > _LETTERS_A_LINK * len(links):
        return True
    if _n_in_words(links) > _MOST_IN_LINKS * _n_in_words([element]):
        return False
    entries = list(children(element))
    n_texts = sum(
        _n_in_words([entry]) - _n_in_words(select(entry, "a")) >= _WORD_LETTERS for entry in entries
    )
    return 2 * n_texts >= len(entries)


def _n_in_words(elements: Iterable[ElementNode]) -> int:
    """Return the number of letters of words in elements, without digits and signs."""
    return len(_NO_LETTERS.sub("", "".join(map(text_of, elements))))


def _wrap(tree: HTMLTree, element: ElementNode) -> None:
    box = tree.create_element("div")
    assert box is not None
    element.before(box)
    box.append_child(element)


def _depth(element: ElementNode, most: int) -> int:
    """Return how many elements are between an element and the body, up to `most`."""
    depth, above = 0, element.parent_element
    while above is not None and above.tag != "body" and depth < most:
        depth, above = depth + 1, above.parent_element
    return depth
