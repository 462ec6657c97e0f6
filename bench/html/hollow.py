"""Pages without a main text, thirty of ten kinds, and pages that look as thin and have one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

EACH = 3
_WORDS = (
    *("river", "stone", "harbor", "market", "winter", "garden", "bridge", "copper", "forest", "meadow"),
    *("signal", "window", "paper", "engine", "candle", "mirror", "ladder", "basket", "anchor", "valley"),
)
_CONSENT = (
    "We and our partners use cookies and similar means to store and read information on your device, to "
    "measure how the site is used, and to show advertising that fits. You can change your choice at any time."
)
_CONSENTS = (
    _CONSENT,
    "Wir verwenden Cookies, um Inhalte zu gestalten und die Zugriffe auf unsere Seite zu zählen. Sie können "
    "Ihre Auswahl jederzeit in den Einstellungen ändern.",
    "Мы используем файлы cookie, чтобы сайт работал лучше и чтобы считать посещения. Вы можете изменить свой "
    "выбор в настройках в любое время.",
)
_PROSE = (
    "The river rose because rain fell on the hills, and farmers carried stones to the walls of their fields. "
    "By noon the lower road was closed, and the school sent the children home in two boats."
)


@dataclass(frozen=True)
class ThinPage:
    """A page that looks thin, and the pieces of its text that must stay."""

    kind: str
    html: str
    texts: tuple[str, ...]


def hollow_pages() -> Iterator[tuple[str, str]]:
    """Yield kind and HTML of every page without a main text, `EACH` of a kind."""
    for kind, body_of in _HOLLOW.items():
        for number in range(EACH):
            yield kind, _page(f"<body>{body_of(number, random.Random(f'{kind} {number}'))}</body>")


def thin_pages() -> Iterator[ThinPage]:
    """Yield pages of few words, or of many links, that people come to read."""
    for kind, (body, texts) in _THIN.items():
        opening = "<body style='visibility: hidden'>" if kind == _SHOWN_BY_A_SCRIPT else "<body>"
        yield ThinPage(kind, _page(f"{opening}{body}</body>"), texts)


def _page(body: str) -> str:
    return f"<!DOCTYPE html><html><head><title>A page</title></head>{body}</html>"


def _link(chance: random.Random, n_words: int = 2) -> str:
    return f"<a href=/{chance.randrange(10**6)}>{' '.join(chance.sample(_WORDS, n_words))}</a>"


def _links(chance: random.Random, n: int, template: str = "{}") -> str:
    return "".join(template.format(_link(chance), chance.randrange(500)) for _ in range(n))


def _named_consent(number: int, _chance: random.Random) -> str:
    name = ("id=cookie-banner", "class='cc-window consent-box'", "class=gdpr-popup role=dialog")[number]
    return f"<div {name}><p>{_CONSENTS[number]}</p><button>Yes</button></div><div id=app></div>"


def _consent_with_buttons(number: int, _chance: random.Random) -> str:
    buttons = "<button>1</button><button>2</button>"
    return f"<div class=x{number}9f><div><p>{_CONSENTS[number]}</p></div><div>{buttons}</div></div>"


def _consent_with_links(number: int, _chance: random.Random) -> str:
    links = "<a href=# class=b1>Accept all</a> <a href=# class=b2>Only what is needed</a>"
    return f"<section><span>{_CONSENTS[number]}</span> {links}</section><footer>The Site</footer>"


def _hidden_by_style(number: int, _chance: random.Random) -> str:
    style = ("display:none", "color: red; DISPLAY : none !important;", "visibility: hidden; top: 0")[number]
    return f"<div style='{style}'><p>{_PROSE}</p><p>{_PROSE}</p></div><p>Please wait</p>"


def _hidden_by_markup(number: int, _chance: random.Random) -> str:
    tag, end = (("div hidden", "div"), ("dialog", "dialog"), ("section hidden=hidden", "section"))[number]
    return f"<{tag}><h2>Title</h2><p>{_PROSE}</p></{end}><div id=root></div>"


def _sixty_links(number: int, chance: random.Random) -> str:
    template = ("{} | ", "<tr><td>{}</td><td>{}</td></tr>", "<li>{} ({})</li>")[number]
    around = ("p", "table", "ol")[number]
    return f"<{around}>{_links(chance, 60, template)}</{around}>"


def _tag_cloud(number: int, chance: random.Random) -> str:
    template = ("{} ", "<span>{} <small>({})</small></span> ", "<div class=t>{}<i>{}</i></div>")[number]
    return f"<h1>All topics</h1><div class=k{number}>{_links(chance, 300, template)}</div>"


def _cards(number: int, chance: random.Random) -> str:
    template = (
        "<div class=c><h3>{}</h3><span>{}.99</span></div>",
        "<article><h2>{}</h2><p>{} views</p></article>",
        "<div><img src=a.png alt=picture>{}<em>{} reviews</em></div>",
    )[number]
    return f"<div>{_links(chance, 40, template)}</div>"


def _archive_of_months(number: int, chance: random.Random) -> str:
    months = "January February March April May June July August September October".split()  # noqa: SIM905
    entries = [
        f"<a href=/{year}/{month}>{month} {year}</a> ({chance.randrange(90)})"
        for year in range(2009 + number, 2020)
        for month in months
    ]
    if number == 0:
        return "<h2>Archive</h2><ul><li>" + "<li>".join(entries) + "</ul>"
    return "<h2>Archive</h2><p>" + (" " if number == 1 else "<br>").join(entries) + "</p>"


def _forms(number: int, chance: random.Random) -> str:
    options = "".join(f"<option>{' '.join(chance.sample(_WORDS, 2))}" for _ in range(80))
    return (
        f"<form><h1>Choose</h1><select>{options}</select><button>Go</button></form>",
        "<form><h1>Log in</h1><label>Name</label><input><label>Word</label><input type=password></form>",
        f"<nav>{_links(chance, 30)}</nav><form><input type=search></form><footer>© The Site</footer>",
    )[number]


_HOLLOW: dict[str, Callable[[int, random.Random], str]] = {
    "a named notice of cookies": _named_consent,
    "a notice of cookies with buttons": _consent_with_buttons,
    "a notice of cookies with links": _consent_with_links,
    "text hidden by style": _hidden_by_style,
    "text hidden by markup": _hidden_by_markup,
    "sixty links": _sixty_links,
    "a tag cloud of 300": _tag_cloud,
    "cards of a shop": _cards,
    "an archive of months": _archive_of_months,
    "forms": _forms,
}

_VERSE = [
    "Slow water under the willow,",
    "a heron folds the light,",
    "and someone on the far bank",
    "counts boats into the night.",
]
_STEPS = (
    "Open the <a href=#f>File</a> menu",
    "Choose <a href=#n>New</a> and then a folder",
    "Give the project a name",
    "Press <a href=#s>Save</a>, and wait",
    "Close the window",
)
_TERMS = {
    "Band": "a group of hashes that two texts must share",
    "Bucket": "the place where texts meet",
    "Shard": "one file of a table",
    "Token": "a piece of text with a number",
}
_CHANGES = (
    "Fixed a crash on empty files (<a href=/1>#101</a>)",
    "Faster reading of long lines (<a href=/2>#98</a>, <a href=/3>#99</a>)",
    "New option <a href=/o>--limit</a> for a first try",
)
_BOOKS = (
    "Ada Stone, <a href=/b1>The Walls of the Valley</a>, Harbor Press, 1998",
    "Juan Field, <a href=/b2>Rain on Copper</a>, 2nd edition, 2004",
    "M. Lake and O. Hill, <a href=/b3>Boats</a>, in: Rivers and Roads, 2011, pages 3 to 19",
)


def _items(entries: tuple[str, ...], tag: str = "ul") -> str:
    return f"<{tag}>" + "".join(f"<li>{entry}</li>" for entry in entries) + f"</{tag}>"


_PLACES = "".join(
    f"<tr><td>{place}</td><td><a href=/c{place}>{club}</a></td><td>{points}</td></tr>"
    for place, club, points in ((1, "Harbor", 31), (2, "Valley", 28), (3, "Bridge", 22), (4, "Meadow", 9))
)
_SHOWN_BY_A_SCRIPT = "a page that a script shows"
_THIN: dict[str, tuple[str, tuple[str, ...]]] = {
    "a short news item": (
        "<nav><a href=/>Home</a></nav><h1>Bridge closed</h1><p>The bridge over the river is closed until "
        "Friday because of high water, the town said.</p>",
        ("closed until Friday",),
    ),
    "a news item beside a notice of cookies": (
        f"<div class=x1><p>{_CONSENT}</p><button>Yes</button></div><h1>Bridge closed</h1><p>The bridge over "
        "the river is closed until Friday because of high water, the town said.</p>",
        ("Bridge closed", "closed until Friday"),
    ),
    "a poem": (f"<h1>Evening</h1><p>{'<br>'.join(_VERSE)}</p>", tuple(_VERSE)),
    "a recipe": (
        "<h1>Flat bread</h1><ul><li>300 g flour</li><li>180 ml water</li><li>1 tsp salt</li></ul>"
        "<ol><li>Knead for ten minutes.</li><li>Bake on a hot stone.</li></ol>",
        ("300 g flour", "1 tsp salt", "Bake on a hot stone."),
    ),
    "steps with links": (
        f"<h1>A new project</h1>{_items(_STEPS)}",
        ("Open the File menu", "Give the project a name", "Press Save, and wait"),
    ),
    "numbered steps with links": (
        f"<h1>A new project</h1>{_items(_STEPS, 'ol')}",
        ("Open the File menu", "Close the window"),
    ),
    "a glossary": (
        "<h1>Words</h1><ul>"
        + "".join(f"<li><a href=#{term}>{term}</a>: {meaning}</li>" for term, meaning in _TERMS.items())
        + "</ul>",
        ("Band: a group of hashes", "Shard: one file of a table"),
    ),
    "definitions": (
        "<h1>Words</h1><dl>"
        + "".join(f"<dt><a href=#{term}>{term}</a><dd>{meaning}" for term, meaning in _TERMS.items())
        + "</dl>",
        ("Bucket", "the place where texts meet"),
    ),
    "a table of results": (
        "<h1>Final standing</h1><p>After ten days the clubs stand as below; the first two play on.</p>"
        f"<table><tr><th>Place<th>Club<th>Points</tr>{_PLACES}</table>",
        ("the first two play on", "Harbor", "31", "Meadow"),
    ),
    "a table without a sentence": (
        "<h1>Melting points</h1><table>"
        + "".join(f"<tr><td>{word}</td><td>{17 * n + 300} K</td></tr>" for n, word in enumerate(_WORDS))
        + "</table>",
        ("copper", "419 K"),
    ),
    "a post of a forum": (
        "<div class=post><b>anna</b><div>Does anyone know why the pump stops when the tank is half full? "
        "I changed the filter and it still happens.</div></div><div class=post><b>ben</b><div>Check the "
        "float, mine was stuck.</div></div>",
        ("half full", "mine was stuck"),
    ),
    "a list of changes": (
        f"<h1>Version 2.1</h1>{_items(_CHANGES)}",
        ("Fixed a crash on empty files (#101)", "New option --limit for a first try"),
    ),
    "a list of books": (f"<h1>Sources</h1>{_items(_BOOKS)}", ("Rain on Copper, 2nd edition", "Juan Field")),
    "an index with a sentence": (
        "<h1>Cities of the valley</h1><p>These are the forty cities along the river, from its source to the "
        "sea, as the survey of 1904 has them.</p><p>" + _links(random.Random(1), 40, "{}, ") + "</p>",
        ("the survey of 1904",),
    ),
    "a text on cookies": (
        "<h1>How a cookie works</h1><div class=text><p>A server sends a cookie in a header, and the browser "
        "returns the cookie with every request.</p><pre>Set-Cookie: id=1</pre><button>Copy</button></div>",
        ("the browser returns the cookie", "Set-Cookie: id=1"),
    ),
    _SHOWN_BY_A_SCRIPT: (f"<h1>Flood</h1><p>{_PROSE}</p>", (_PROSE,)),
    "a note in Japanese": (
        "<h1>お知らせ</h1><p>大雨のため、川沿いの道は金曜日まで通行止めです。学校は休みになります。</p>",
        ("川沿いの道",),
    ),
}
