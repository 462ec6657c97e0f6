"""Elements of a page that nobody sees: those of scripts and media, and those that its markup hides.

Hidden are elements with `hidden`, closed dialogs, and elements whose own style says `display: none` or
`visibility: hidden`. Elements with `aria-hidden` are seen (icons, a formula beside its MathML), a text that
is `until-found` and closed `details` are one click away, and what a style sheet hides is not known here.
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
    for element in [element for element in candidates if _is_hidden(element)]:
        element.decompose()


def _is_hidden(element: ElementNode) -> bool:
    return element.matches(_NEVER_SEEN) or _is_hidden_by_style(element)


def _is_hidden_by_style(element: ElementNode) -> bool:
    """Whether the style of an element hides it, and no element below it shows itself again."""
    declarations = _declarations(element)
    properties = [name for name, values in _HIDING.items() if declarations.get(name) in values]
    if properties != ["visibility"]:
        return bool(properties)
    below = select(element, '[style*="visible" i]')
    return not any(_declarations(other).get("visibility") == "visible" for other in below)


def _declarations(element: ElementNode) -> dict[str, str]:
    """Return the declared values of a style by property; of a repeated property the last one counts."""
    pairs = (declaration.partition(":") for declaration in attribute(element, "style").lower().split(";"))
    return {name.strip(): word.replace("!important", "").strip() for name, _, word in pairs}
