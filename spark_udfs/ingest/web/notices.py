"""Notices on cookies and other boxes that lie over a page, by their names, or by text, buttons and place.

A page may be on cookies, in a forum, a recipe or a manual, and have buttons. So a box without a name is a
notice only by two of three signs: a button answers it (`Accept`), it says that the site uses cookies, and it
is near an end of the page or fixed over it. No other button may be in it, and no headline, list or table; it
is outside of articles, and not one of several boxes alike, such as the posts of a thread. On a page with a
headline on cookies or privacy such boxes stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from resiliparse.parse.html import ElementNode

from spark_udfs.ingest.web.consent import (
    answer_consent,
    is_on_cookies,
    names_cookies,
    say_nothing,
    site_uses_cookies,
)
from spark_udfs.ingest.web.dom import BLOCKS, attribute, has_headline, select, size_of, text_of

_CONSENT, _OFFERS = ("cookie", "consent", "gdpr"), ("promo", "newsletter")
_ABOUT_COOKIES = ", ".join(f'[{name}*="{word}" i]' for word in _CONSENT for name in ("class", "id"))
_BOXES = ", ".join(["[role=dialog]", *(f'[class*="{word}" i]' for word in _OFFERS)])
_NAMED = f"{_ABOUT_COOKIES}, {_BOXES}"
_NAME = re.compile(
    r"notice|banner|bar\b|popup|modal|dialog|overlay|cookie[-_]?consent|cookie[-_]?law[-_]?info",
    re.IGNORECASE,
)
_VAGUE_NAME = re.compile(r"box|message|alert|wall|law", re.IGNORECASE)  # a section on them may have it
_BUTTONS = "button, [role=button], input[type=button], input[type=submit]"
_LINKS_AS_BUTTONS = 'a[href="#"], a:not([href]), a[href^="javascript:" i]'
_OF_A_TEXT = "h1, h2, h3, h4, h5, h6, ul, ol, dl, table, blockquote, figure, pre, code, main, article"
_HEADLINES = "h1:not(h1 *, h2 *), h2:not(h1 *, h2 *)"
_TEXTS = "main, article, [role=main], [itemprop=articleBody]"
_FIXED = re.compile(r"position\s*:\s*(?:fixed|sticky)", re.IGNORECASE)
_MOST_LETTERS = 600  # of a notice; an article on cookies has more
_TITLE_LETTERS = 60  # of a notice, around its text
_MOST_BUTTONS = 50  # at each end of a page, where notices stand
_MOST_PARAGRAPHS = 2
_MOST_LEVELS = 8  # between a button and its notice, or a notice and its wrapper
_FROM_AN_END = 2  # elements of a page, of which a link to its content may be one
_SIBLINGS = 5  # looked at on each side
_BACK = "previous_element_sibling"
_STEPS = (_BACK, "next_element_sibling")
_IN_A_TEXT = BLOCKS | {"li", "td", "dd", "dt", "th", "span"}


def drop_notices(body: ElementNode, visible: str) -> None:
    """Drop the notices of a page with the text `visible`, in place."""
    for box in [box for box in select(body, _NAMED) if _is_notice(box)]:
        box.decompose()
    if not names_cookies(visible) or any(is_on_cookies(text_of(line)) for line in select(body, _HEADLINES)):
        return
    for selector in (_BUTTONS, _LINKS_AS_BUTTONS):
        buttons, earlier_boxes = select(body, selector), set[ElementNode]()
        for button in [*buttons[:_MOST_BUTTONS], *buttons[_MOST_BUTTONS:][-_MOST_BUTTONS:]]:
            notice = _notice_around(button, earlier_boxes, is_link=selector == _LINKS_AS_BUTTONS)
            if notice is not None:
                notice.decompose()


def _is_notice(box: ElementNode) -> bool:
    if box.tag in BLOCKS or size_of(box) >= _MOST_LETTERS or has_headline(box):
        return False
    return box.matches(_BOXES) or _is_on_cookies(box)


def _is_on_cookies(element: ElementNode) -> bool:
    """Whether an element is a notice on cookies by its class, id or buttons, and no text on them."""
    names = f"{element.class_name} {element.id}"
    if _NAME.search(names) and element.closest(_TEXTS) is None:
        return True
    if (_NAME.search(names) or _VAGUE_NAME.search(names)) and element.query_selector(_OF_A_TEXT) is None:
        return True
    return answer_consent(_labels(element))


def _notice_around(
    button: ElementNode, earlier_boxes: set[ElementNode], *, is_link: bool
) -> ElementNode | None:
    """Return the box on cookies that a button belongs to, None if it belongs to something else.

    A link inside a paragraph is a part of its text, and a button next to code copies it. Boxes in
    `earlier_boxes` were judged for another button, and are too large or have another purpose.
    """
    box = button.parent_element
    for _ in range(_MOST_LEVELS):
        if box is None or box.tag in ("body", "html") or box in earlier_boxes:
            return None
        earlier_boxes.add(box)
        text = text_of(box)
        if len(text) >= 2 * _MOST_LETTERS or size_of(box) >= _MOST_LETTERS:
            return None
        if names_cookies(text):
            if (is_link and box.tag in _IN_A_TEXT) or not _may_be_notice(box):
                return None
            box = _whole(box)
            return box if _asks(box, text, is_link=is_link) and not _is_one_of_several(box) else None
        box = box.parent_element
    return None


def _may_be_notice(box: ElementNode) -> bool:
    """Whether a box has the structure of a notice, outside the text of its page."""
    return (
        box.query_selector(_OF_A_TEXT) is None
        and len(select(box, "p")) <= _MOST_PARAGRAPHS
        and box.closest(_TEXTS) is None
    )


def _asks(box: ElementNode, text: str, *, is_link: bool) -> bool:
    """Whether two of three signs tell a notice, and its buttons do nothing else.

    Buttons without words, as under a comment that counts votes, tell it only at the beginning of a page.
    """
    labels = _labels(box)
    if answer_consent(labels):
        return site_uses_cookies(text) or _is_over_the_page(box) or _is_near_an_end(box, *_STEPS)
    is_question = not is_link and say_nothing(labels) and site_uses_cookies(text)
    return is_question and (_is_over_the_page(box) or _is_near_an_end(box, _BACK))


def _labels(box: ElementNode) -> list[str]:
    buttons = select(box, f"{_BUTTONS}, {_LINKS_AS_BUTTONS}")
    return [attribute(button, "value") if button.tag == "input" else text_of(button) for button in buttons]


def _is_over_the_page(box: ElementNode) -> bool:
    return _FIXED.search(attribute(box, "style")) is not None or bool(attribute(box, "aria-modal"))


def _is_near_an_end(box: ElementNode, *steps: str) -> bool:
    """Whether at most one element with text is between a box and an end of the body, in one direction."""
    above = box.parent_element
    return (
        above is not None
        and above.tag == "body"
        and any(
            sum(bool(text_of(other).strip()) for other in _siblings(box, step)) < _FROM_AN_END
            for step in steps
        )
    )


def _siblings(box: ElementNode, step: str) -> Iterator[ElementNode]:
    """Yield the nearest siblings of a box, in one direction."""
    other = getattr(box, step)
    for _ in range(_SIBLINGS):
        if other is None:
            return
        yield other
        other = getattr(other, step)


def _is_one_of_several(box: ElementNode) -> bool:
    """Whether a sibling of the box is alike: small, with the same tag and class, and with buttons."""
    return any(
        other.tag == box.tag
        and other.class_name == box.class_name
        and other.query_selector(_BUTTONS) is not None
        and size_of(other) < _MOST_LETTERS
        for step in _STEPS
        for other in _siblings(box, step)
    )


def _whole(box: ElementNode) -> ElementNode:
    """Return the outermost element around a box that adds no more than a title to it."""
    most, n_paragraphs = size_of(box) + _TITLE_LETTERS, len(select(box, "p"))
    for _ in range(_MOST_LEVELS):
        above = box.parent_element
        if above is None or above.tag in ("body", "html") or not _may_be_notice(above):
            break
        if size_of(above) > most or len(select(above, "p")) > n_paragraphs:
            break
        box = above
    return box
