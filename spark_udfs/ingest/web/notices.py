"""Notices on cookies and other boxes that lie over a page, told by their names, or by text and buttons."""

from __future__ import annotations

import re

from resiliparse.parse.html import ElementNode

from spark_udfs.ingest.web.dom import BLOCKS, has_headline, select, size_of, text_of

_CONSENT, _OFFERS = ("cookie", "consent", "gdpr"), ("promo", "newsletter")
_ABOUT_COOKIES = ", ".join(f'[{name}*="{word}" i]' for word in _CONSENT for name in ("class", "id"))
_BOXES = ", ".join(["[role=dialog]", *(f'[class*="{word}" i]' for word in _OFFERS)])
_NAMED = f"{_ABOUT_COOKIES}, {_BOXES}"
_NAME = re.compile(
    r"notice|banner|bar\b|box|popup|modal|dialog|overlay|message|alert|wall|law", re.IGNORECASE
)
_BUTTONS = "button, [role=button], input[type=button], input[type=submit]"
_LINKS_AS_BUTTONS = 'a[href="#"], a:not([href]), a[href^="javascript:" i]'
_COOKIES = ("cookie", "куки", "クッキー", "쿠키", "çerez")
_COOKIE = re.compile("|".join(_COOKIES), re.IGNORECASE)
_MOST_LETTERS = 600  # of a notice; an article on cookies has more
_TITLE_LETTERS = 60  # of a notice, around its text
_MOST_BUTTONS = 50  # at each end of a page, where notices stand
_IN_A_TEXT = BLOCKS | {"li", "td", "dd", "dt", "th", "span"}


def drop_notices(body: ElementNode, visible: str) -> None:
    """Drop the notices of a page with the text `visible`, in place."""
    for box in [box for box in select(body, _NAMED) if _is_notice(box)]:
        box.decompose()
    text = visible.lower()
    if not any(word in text for word in _COOKIES):
        return
    for selector in (_BUTTONS, _LINKS_AS_BUTTONS):
        buttons = select(body, selector)
        for button in [*buttons[:_MOST_BUTTONS], *buttons[_MOST_BUTTONS:][-_MOST_BUTTONS:]]:
            notice = _notice_around(button, is_link=selector == _LINKS_AS_BUTTONS)
            if notice is not None:
                notice.decompose()


def _is_notice(box: ElementNode) -> bool:
    is_named = box.matches(_BOXES) or _is_on_cookies(box)
    return is_named and box.tag not in BLOCKS and size_of(box) < _MOST_LETTERS and not has_headline(box)


def _is_on_cookies(element: ElementNode) -> bool:
    """Whether an element whose class or id names cookies is a notice, not a part of a text on them."""
    names = f"{element.class_name} {element.id}"
    return bool(_NAME.search(names)) or element.query_selector(_BUTTONS) is not None


def _notice_around(button: ElementNode, *, is_link: bool) -> ElementNode | None:
    """Return the box whose text on cookies a button belongs to, None if it belongs to something else.

    A link inside a paragraph is a part of its text, and a button beside code copies it.
    """
    box = button.parent_element
    while box is not None and box.tag not in ("body", "html"):
        text = text_of(box)
        if len(text) >= 2 * _MOST_LETTERS or size_of(box) >= _MOST_LETTERS or has_headline(box):
            return None
        if _COOKIE.search(text):
            is_text = is_link and box.tag in _IN_A_TEXT
            return None if is_text or box.query_selector("pre, code") is not None else _whole(box)
        box = box.parent_element
    return None


def _whole(box: ElementNode) -> ElementNode:
    """Return the outermost element around a box that adds no more than a title to it."""
    most = size_of(box) + _TITLE_LETTERS
    above = box.parent_element
    while above is not None and above.tag not in ("body", "html") and not has_headline(above):
        if size_of(above) > most:
            break
        box, above = above, above.parent_element
    return box
