"""Queries and measures of a page's tree, for the readers of pages."""

from __future__ import annotations

from collections.abc import Iterator

from resiliparse.parse.html import ElementNode, HTMLTree

BLOCKS = frozenset("p pre h1 h2 h3 h4 h5 h6 ul ol dl table blockquote figure hr".split())  # noqa: SIM905


def root_of(tree: HTMLTree) -> ElementNode:
    """Return the `html` element, which every tree has."""
    root = tree.document.document_element if tree.document is not None else None
    assert root is not None
    return root


def body_of_tree(tree: HTMLTree) -> ElementNode:
    """Return the `body` element; of a page of frames the root."""
    return tree.body if tree.body is not None else root_of(tree)


def select(node: ElementNode, selector: str) -> list[ElementNode]:
    """Return the elements below a node that match, in order."""
    return node.query_selector_all(selector).values()  # to iterate the collection takes quadratic time


def children(element: ElementNode) -> Iterator[ElementNode]:
    """Yield the elements directly below one."""
    child = element.first_element_child
    while child is not None:
        yield child
        child = child.next_element_sibling


def text_of(element: ElementNode) -> str:
    """Return the text of an element and all below."""
    return str(element.text_content or "")


def n_letters(text: str) -> int:
    """Return the length of a text without spaces and line ends."""
    return len(text) - text.count(" ") - text.count("\n")


def size_of(element: ElementNode) -> int:
    """Return the letters of an element and all below."""
    return n_letters(text_of(element))


def has_headline(element: ElementNode) -> bool:
    """Whether an element is a headline, or holds one."""
    return element.tag == "h1" or element.query_selector("h1") is not None


def attribute(element: ElementNode | None, name: str) -> str:
    """Return an attribute without white space around it, empty without one."""
    return str(element.get_attribute(name) or "").strip() if element is not None else ""
