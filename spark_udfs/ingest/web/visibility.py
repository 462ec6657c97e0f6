"""Elements of a page that nobody sees: those of scripts and media, and those that its markup hides.

Hidden are elements with `hidden`, closed dialogs, and elements whose own style says `display: none` or
`visibility: hidden`. Elements with `aria-hidden` are seen (icons, a formula beside its MathML), a text that
is `until-found` and closed `details` are one click away, and style sheets are not evaluated.
`html` and `body` stay: pages hide themselves until a script has run.
"""

from __future__ import annotations

from resiliparse.parse.html import ElementNode

from spark_udfs.ingest.web.dom import attribute, select

_NEVER_SEEN = (
    "script, style, noscript, template, iframe, svg, object, embed, "
    '[hidden]:not([hidden="until-found" i]), dialog:not([open])'
)
_MAY_BE_HIDDEN = f'{_NEVER_SEEN}, [style*="display" i], [style*="visibility" i]'
_HIDING = {"display": ("none",), "visibility": ("hidden", "collapse")}


def drop_hidden(body: ElementNode) -> None:
    """Drop the elements below a page's body that nobody sees, in place."""
    candidates = select(body, _MAY_BE_HIDDEN)  # one search of the tree; each takes a while
    around_visible = _elements_around_visible(candidates)
    for element in [element for element in candidates if _is_hidden(element, around_visible)]:
        element.decompose()


def _elements_around_visible(candidates: list[ElementNode]) -> set[ElementNode]:
    """Return every element above one that shows itself again; an element is visited once."""
    around: set[ElementNode] = set()
    for element in candidates:
        if "visible" not in attribute(element, "style").lower():
            continue
        above = element.parent_element
        if _declarations(element).get("visibility") == "visible":
            while above is not None and above not in around:
                around.add(above)
                above = above.parent_element
    return around


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
