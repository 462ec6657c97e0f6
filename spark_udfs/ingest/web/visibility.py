"""Elements of a page that nobody sees: scripts and media, and elements that its markup hides.

Hidden are elements with `hidden`, closed dialogs, and elements with `display: none` or `visibility: hidden`
in their own style. Elements with `aria-hidden` are seen (icons, a rendered formula), a text that is
`until-found` and closed `details` are one click away, and style sheets are not evaluated. `html` and `body`
stay, and so does an element with the headline and most of the text: pages hide them until a script has run.
"""

from __future__ import annotations

from collections.abc import Iterable

from resiliparse.parse.html import ElementNode

from spark_udfs.ingest.web.dom import attribute, select, size_of

_NEVER_SEEN = (
    "script, style, noscript, template, iframe, svg, object, embed, "
    '[hidden]:not([hidden="until-found" i]), dialog:not([open])'
)
_SCRIPTS_AND_DIALOGS = frozenset("script style noscript template iframe svg object embed dialog".split())  # noqa: SIM905
_OF_THE_PAGE = "h1, main, article"
_MOST_WRAPPERS = 8  # of a page, one inside the other
_MAY_BE_HIDDEN = f'{_NEVER_SEEN}, [style*="display" i], [style*="visibility" i]'
_HIDING = {"display": ("none",), "visibility": ("hidden", "collapse")}


def drop_hidden(body: ElementNode) -> None:
    """Drop the elements below a page's body that nobody sees, in place."""
    candidates = select(body, _MAY_BE_HIDDEN)  # one search of the tree; each takes a while
    around_visible = _elements_around(element for element in candidates if _is_visible(element))
    hidden_elements = [element for element in candidates if _is_hidden(element, around_visible)]
    wrappers = _wrappers_of_the_page(body, hidden_elements)
    for element in hidden_elements:
        if element not in wrappers:
            element.decompose()


def _wrappers_of_the_page(body: ElementNode, hidden_elements: list[ElementNode]) -> set[ElementNode]:
    """Return the hidden elements that have the headline and most of the letters, the outermost first."""
    parts = select(body, _OF_THE_PAGE)
    ancestors = _elements_around(parts) | {part for part in parts if part.tag == "main"}
    wrappers: set[ElementNode] = set()
    candidates = [
        element
        for element in hidden_elements
        if element.tag not in _SCRIPTS_AND_DIALOGS and element in ancestors
    ]
    if not candidates:
        return wrappers
    scripts = [element for element in hidden_elements if element.tag in _SCRIPTS_AND_DIALOGS]
    n_letters = size_of(body) - sum(map(size_of, scripts))
    for element in candidates[:_MOST_WRAPPERS]:
        if 2 * size_of(element) > n_letters:
            wrappers.add(element)
    return wrappers


def _elements_around(elements: Iterable[ElementNode]) -> set[ElementNode]:
    """Return every element above one of these; each is visited once."""
    ancestors: set[ElementNode] = set()
    for element in elements:
        above = element.parent_element
        while above is not None and above not in ancestors:
            ancestors.add(above)
            above = above.parent_element
    return ancestors


def _is_visible(element: ElementNode) -> bool:
    return (
        "visible" in attribute(element, "style").lower()
        and _declarations(element).get("visibility") == "visible"
    )


def _is_hidden(element: ElementNode, around_visible: set[ElementNode]) -> bool:
    """Whether the markup or style of an element hides it, and no element below it shows itself again."""
    if element.matches(_NEVER_SEEN):
        return True
    declarations = _declarations(element)
    properties = [name for name, values in _HIDING.items() if declarations.get(name) in values]
    return bool(properties) and (properties != ["visibility"] or element not in around_visible)


def _declarations(element: ElementNode) -> dict[str, str]:
    """Return the declared values of a style by property; of a repeated property the last one counts."""
    pairs = (declaration.partition(":") for declaration in attribute(element, "style").lower().split(";"))
    return {name.strip(): word.replace("!important", "").strip() for name, _, word in pairs}
