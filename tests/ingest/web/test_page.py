"""The main text of a page: what stays, what goes, in which order, and within which bounds."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.html.hollow import ThinPage, hollow_pages, thin_pages
from spark_udfs.ingest.rows import BadRecord
from spark_udfs.ingest.web.page import WebPage, page_of, visible_text
from spark_udfs.ingest.web.tree import OptOuts
from tests.ingest.web.archives import SENTENCE

CODE = "def total(rows):\n    for row in rows:\n        yield row.size\n    return None"


def page(body: str, head: str = "", url: str = "") -> WebPage:
    return page_of(f"<html lang='de-AT'><head>{head}</head><body>{body}</body></html>".encode(), url)


def paragraphs(n: int) -> str:
    return "".join(f"<p>{SENTENCE} Number {number}.</p>" for number in range(n))


def test_what_stands_around_the_text_goes() -> None:
    text = page(
        "<header><b>The Site</b><span>A slogan for all</span><ul><li><a href=/>Home</a></li></ul></header>"
        "<div id=cookie-bar><p>We use cookies to improve your experience here.</p></div>"
        f"<div class=x9><h1>Rivers</h1><p><small>Jane Doe, 3 May 2023</small></p>{paragraphs(4)}</div>"
        "<div class=y8><h4>More to read</h4><ul><li><a href=/a>Another page</a></li></ul></div>"
        "<footer>All rights reserved, the Site</footer>"
    ).text
    assert text.startswith("Rivers")
    assert text.count(SENTENCE) == 4
    for other in ("slogan", "Home", "cookies", "Jane Doe", "More to read", "Another page", "reserved"):
        assert other not in text


def test_code_lists_and_tables_keep_their_lines_and_blocks_their_order() -> None:
    text = page(
        f"<h1>Title</h1>{paragraphs(1)}<pre>{CODE}</pre><ul><li>first item<li>second item</ul>"
        "<table><tr><td>a<td>1</tr><tr><td>b<td>2</tr></table><p>The end of it all is here now.</p>"
    ).text
    assert CODE in text
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    assert lines[0] == "Title"
    assert lines[-5:] == [
        "• first item",
        "• second item",
        "a\t\t1",
        "b\t\t2",
        "The end of it all is here now.",
    ]


def test_a_page_states_facts() -> None:
    facts = page(
        f"<h1>T</h1>{paragraphs(2)}",
        "<title> A  title </title><link rel=canonical href=https://b.example/x>"
        "<meta name=ROBOTS content='noindex, noai'>",
        "http://A.Example:80/y",
    ).facts
    assert (
        facts.items()
        >= {
            "title": "A title",
            "canonical": "https://b.example/x",
            "robots": "noindex, noai",
            "noai": "true",
            "language": "de",
            "host": "a.example",
            "url": "http://A.Example:80/y",
            "extractor": "resiliparse",
            "charset": "utf-8",
            "charset_from": "bytes",
            "link_density": "0.000",
        }.items()
    )
    assert float(facts["main_share"]) > 0.99


@pytest.mark.parametrize(
    "headers, head, robots, tdm_reservation",
    [
        (OptOuts("noindex, noai"), "", "noindex, noai", None),
        (OptOuts(), "<meta name=robots content=index><meta name=Robots content=NoAI>", "index, noai", None),
        (OptOuts("all"), "<meta name=robots content=noimageai>", "all, noimageai", None),
        (OptOuts("", "1"), "", None, "1"),
        (OptOuts("", "0"), "<meta name=tdm-reservation content=1>", None, "1"),
        (OptOuts("", "1, 0"), "<meta name=TDM-Reservation content=0>", None, "1"),
        (OptOuts("", "0"), "", None, "0"),
        (OptOuts("", "yes"), "", None, None),
    ],
)
def test_every_opt_out_of_headers_and_page_is_a_fact(
    headers: OptOuts, head: str, robots: str | None, tdm_reservation: str | None
) -> None:
    html = f"<html><head>{head}</head><body>{paragraphs(2)}</body></html>"
    facts = page_of(html.encode(), opt_outs=headers).facts
    assert (facts.get("robots"), facts.get("tdm_reservation")) == (robots, tdm_reservation)
    assert facts.get("noai") == ("true" if robots else None)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<script>var a = 1;</script><div id=app></div>",
        "<ul>" + "".join(f"<li><a href=/{n}>Link number {n}</a>" for n in range(50)) + "</ul>",
        "<form><h1>Log in</h1><label>Name</label><input><button>Go</button></form>",
    ],
)
def test_a_page_without_a_main_text_holds_bad_records(body: str) -> None:
    with pytest.raises(BadRecord) as error:
        page(body)
    assert error.value.reason == "no_main_text"


def test_where_the_first_extractor_finds_nothing_the_second_keeps_code() -> None:
    hidden = f"<div class='sidebar'><h2>Title</h2>{paragraphs(5)}<pre>{CODE}</pre></div>"
    extract = page(f"<div><div>{hidden}</div></div>")
    assert extract.facts["extractor"] == "trafilatura"
    assert extract.text.count(SENTENCE) == 5
    assert CODE in extract.text


def test_depth_is_bounded_and_the_text_below_kept() -> None:
    text = page("<div>" * 100_000 + paragraphs(3) + "</div>" * 100_000).text
    assert text.count(SENTENCE) == 3


def test_a_tag_of_very_many_attributes_keeps_its_text() -> None:
    attributes = " ".join(f"a{number}=1" for number in range(200_000))
    text = page(
        f"{paragraphs(1)}<p {attributes}>{SENTENCE}</p><img src='data:,{'A' * 100_000}'>{paragraphs(1)}"
    ).text
    assert text.count(SENTENCE) == 3


def test_a_page_of_very_many_elements_holds_bad_records() -> None:
    with pytest.raises(BadRecord) as error:
        page("<b></b>" * 1_100_000)
    assert error.value.reason == "too_complex"


def test_a_vast_span_reaches_no_library() -> None:
    table = f"<table><tr><td colspan=9007199254740991 rowspan=99999>{paragraphs(5)}</td></tr></table>"
    assert page(f"<div class=sidebar>{table}</div>").text.count(SENTENCE) == 5


def test_very_many_links_are_read() -> None:
    page(paragraphs(9) + "<p>" + "<a href=/x>link</a> text of a line " * 30_000 + "</p>")


@given(st.text(max_size=300), st.sampled_from(["", "<pre>", "<ul><li>", "<table><tr><td>", "<h1>", "<!--"]))
def test_any_markup_is_a_page_or_rejected(text: str, opening: str) -> None:
    with suppress(BadRecord):
        assert page(f"{opening}{text}").text


LONG = " ".join([SENTENCE] * 3)


@pytest.mark.parametrize(
    "body, texts",
    [
        (
            f"<main><article class='post-1 post'><h2>One</h2>{paragraphs(9)}</article>"
            f"<article class='post-2 post'><h2>Two</h2><p>{SENTENCE} End of two.</p></article></main>",
            ["One", "Two", "End of two."],
        ),
        (
            f"<div class=page><div class='post bg2'>{paragraphs(9)}</div>"
            f"<div class='post bg1'><p>{SENTENCE} A short reply.</p></div></div>",
            ["A short reply."],
        ),
        (
            f"<header><h1>Title</h1></header><main><section class=intro><p>{LONG} Intro.</p></section>"
            f"<section class=body>{paragraphs(12)}</section>"
            f"<section class=end><p>{LONG} End.</p></section></main>",
            ["Title", "Intro.", "End."],
        ),
        (f"<div class=lead><p>{LONG} Lead.</p></div><div class=text>{paragraphs(12)}</div>", ["Lead."]),
        (
            f"<h1>Albert Einstein</h1><p>He was a physicist who died in 1955.</p>{paragraphs(4)}",
            ["died in 1955."],
        ),
        (f"<h1>Diary</h1><p>12 May 2020: it rained all day long.</p>{paragraphs(4)}", ["it rained"]),
        (f"<h1>News</h1><ul><li>Version 2, 2020<li>Version 1, 2019</ul>{paragraphs(4)}", ["Version 1, 2019"]),
        (
            f"<h1>HTTP</h1>{paragraphs(3)}<h2 id=set-cookie>The header Set-Cookie</h2>"
            f"<section id=cookie-objects><h3>Cookies</h3><p>A cookie has a name.</p></section>",
            ["The header Set-Cookie", "A cookie has a name."],
        ),
        (
            f"<main><section><header><h2>First heading</h2></header>{paragraphs(3)}</section></main>",
            ["First heading"],
        ),
    ],
)
def test_what_belongs_to_the_text_stays(body: str, texts: list[str]) -> None:
    main = page(body).text
    assert [text for text in texts if text not in main] == []


@pytest.mark.parametrize(
    "script",
    [
        "<script>for(var i=0;i<n;i++){f(i);} var data=[DATA];</script>",
        "<script type=application/ld+json>{'articleBody': 'a <b DATA'}</script>",
        "<!-- a <b DATA -->",
        "<style>a<b{} DATA</style>",
    ],
)
def test_a_long_script_or_comment_ends_where_it_ends(script: str) -> None:
    text = page(script.replace("DATA", "1234567, " * 5_000) + paragraphs(3)).text
    assert text.count(SENTENCE) == 3


def test_letters_that_stand_for_white_space_may_all_be_taken() -> None:
    cuneiform = "".join(map(chr, [*range(0x12000, 0x12300), *range(0x13000, 0x13300)]))
    extract = page(
        f"<div class=sidebar>{paragraphs(5)}<pre>{CODE}</pre><table><tr><td>{cuneiform}</table></div>"
    )
    assert extract.text.count(SENTENCE) == 5


def test_a_page_without_a_main_text_is_no_document() -> None:
    hollow = list(hollow_pages())
    assert len(hollow) == 30
    for kind, html in hollow:
        with pytest.raises(BadRecord) as error:
            pytest.fail(f"{kind}: {page_of(html.encode()).text}")
        assert error.value.reason == "no_main_text"


@pytest.mark.parametrize("thin", list(thin_pages()), ids=lambda thin: thin.kind)
def test_a_page_of_few_words_or_many_links_keeps_what_people_read(thin: ThinPage) -> None:
    text = page_of(thin.html.encode()).text
    assert [piece for piece in thin.texts if piece not in text] == []
    assert "partners" not in text


@pytest.mark.parametrize(
    "hidden",
    [
        "<div hidden>SECRET</div>",
        "<div HIDDEN><p style='display:none'>SECRET</p></div>",
        "<p style='color:red;display : none'>SECRET</p>",
        "<span style='DISPLAY:NONE!important'>SECRET</span>",
        "<div style='visibility: hidden'>SECRET</div>",
        "<div style='display:block; display:none'>SECRET</div>",
        "<dialog>SECRET</dialog>",
        "<template><p>SECRET</p></template>",
        "<noscript>SECRET</noscript>",
    ],
)
def test_what_the_markup_hides_is_no_text(hidden: str) -> None:
    html = f"<div>{paragraphs(2)}{hidden}<p>The end of it.</p></div>"
    extract = page(html)
    assert "SECRET" not in extract.text
    assert "The end of it." in extract.text
    assert float(extract.facts["main_share"]) > 0.99
    assert "SECRET" not in visible_text(html.encode())


@pytest.mark.parametrize(
    "shown",
    [
        "<div hidden=until-found>{}</div>",
        "<details><summary>More</summary>{}</details>",
        "<dialog open>{}</dialog>",
        "<div style='display:none; display:block'>{}</div>",
        "<div style='visibility:hidden'><p style='visibility:visible'>{}</p></div>",
        "<div style='display:flex' title='display:none'>{}</div>",
    ],
)
def test_what_is_seen_or_one_click_away_is_visible(shown: str) -> None:
    html = f"<div>{paragraphs(2)}{shown.format('Seen here.')}</div>"
    assert "Seen here." in visible_text(html.encode())


LINKED_STEP = "Open the <a href=#f>File</a> menu"


@pytest.mark.parametrize(
    "entries, first",
    [
        ([LINKED_STEP, "Press <a href=#s>Save</a>, and wait", "Close the window"], "Open the File menu"),
        (["<a href=/1>Band</a>: a group of hashes"] * 4, "Band: a group of hashes"),
        (["Fixed a crash (<a href=/1>#101</a>)", "Faster reading (<a href=/2>#98</a>)"], "a crash (#101)"),
        (
            ["<a href=/a>Harbor</a>, a town", "<a href=/b>Valley</a>", "<a href=/c>Hill</a>, two farms"],
            "Valley",
        ),
        (["<a href=/1>大川</a>は町の北を流れる", "<a href=/2>石橋</a>は古い"], "大川は町の北を流れる"),
        ([f"Step<ul><li>{LINKED_STEP}<li>Wait a little</ul>", "Close the window"], "Open the File menu"),
        (["<a href=/x title='a > b'>Harbor</a> is a town by the <abbr>s.</abbr>"], "Harbor is a town"),
    ],
)
@pytest.mark.parametrize("around", ["{}", "<div><div><div><div>{}</div></div></div></div>"])
def test_a_list_with_words_around_its_links_stays(entries: list[str], first: str, around: str) -> None:
    text = page(around.format(f"<h1>T</h1>{paragraphs(3)}<ul><li>{'<li>'.join(entries)}</ul>")).text
    assert first in text


@pytest.mark.parametrize(
    "entries",
    [
        ["<a href=/1>Harbor news</a>", "<a href=/2>Valley news</a>"],
        ["<a href=/1>Shoes</a> (12)", "<a href=/2>Boots and more</a> (7)"],
        ["<a href=/1>How walls are mended in spring</a> 3 May", "<a href=/2>A week by the river</a> 2 May"],
        ["<a href=/1>Harbor</a>"] * 5 + ["Call us on any day of the week if something is not clear"],
    ],
)
def test_a_list_of_links_goes(entries: list[str]) -> None:
    text = page(f"<h1>T</h1>{paragraphs(3)}<ul><li>{'<li>'.join(entries)}</ul>").text
    assert text.count(SENTENCE) == 3
    assert not any(word in text for word in ("Harbor", "Shoes", "spring"))


@pytest.mark.parametrize("menu", ["<nav>{}</nav>", "<div role=navigation>{}</div>", "<footer>{}</footer>"])
def test_a_list_with_words_in_a_menu_goes(menu: str) -> None:
    entries = "<ul><li>Our <a href=/1>shop</a> of shoes<li>All about <a href=/2>us</a></ul>"
    assert "shoes" not in page(f"<div>{paragraphs(3)}</div>{menu.format(entries)}").text


def boxes(texts: list[str], ending: str, tag: str = "div", **attributes: str) -> str:
    opening = " ".join([tag, *(f"{name}='{attribute}'" for name, attribute in attributes.items())])
    return "".join(f"<{opening}>{text}{ending}</{tag}>" for text in texts)


SESSION = "We use a session cookie for 30 days, and you have to sign in again after you delete it."
POSTS = [
    "<p>Since the last update the forum logs me out each time I close the window.</p>",
    "<p>Delete the cookies of this site and log in again, the old session is probably broken.</p>",
    "<p>Which browser do you use? I have seen the same thing with the beta channel.</p>",
    "<p>We use cookies for the login, add an exception for this site under settings.</p>",
]
RECIPE = (
    "<h2>Chocolate chip cookies</h2><ul><li>250 g flour</li><li>150 g butter</li></ul>"
    "<p>Rest the dough for an hour, bake for 12 minutes.</p>"
)
HEADER = "<p>The server sends this header so that the browser stores a cookie and sends it back.</p>"
BASKET = "<p>Twelve oat cookies in a tin, baked this week.</p><span>4.90</span>"


@pytest.mark.parametrize(
    "body, texts",
    [
        (f"<h1>Logged out</h1>{boxes(POSTS, '<button>Reply</button>')}", POSTS),
        (f"<h1>Logged out</h1>{boxes(POSTS, '<button>Agree</button>', **{'class': 'post'})}", POSTS),
        (
            f"<h1>Logins</h1>{boxes(POSTS[3:], '<button>Accept answer</button>')}{paragraphs(2)}",
            POSTS[3:],
        ),
        (
            f"<h1>Best</h1>{paragraphs(1)}<div>{RECIPE}<button>Print</button></div>{paragraphs(1)}",
            ["Chocolate chip cookies", "150 g butter", "bake for 12 minutes"],
        ),
        (
            f"<h1>Best</h1>{paragraphs(1)}<div class=cookie-card>{RECIPE}<button>Print</button></div>",
            ["Chocolate chip cookies", "150 g butter", "bake for 12 minutes"],
        ),
        (
            "<h1>FAQ</h1>"
            + boxes(
                [f"<h2>Why am I logged out?</h2><p>{SESSION}</p>", f"<h2>Where?</h2><p>{SENTENCE}</p>"],
                "<button>Was this helpful?</button>",
                "section",
            ),
            ["Why am I logged out?", SESSION, SENTENCE],
        ),
        (
            f"<h1>FAQ</h1>{paragraphs(2)}<div><p>{SESSION}</p><a href=#>Yes</a> <a href=#>No</a></div>",
            [SESSION],
        ),
        (
            f"<h1>FAQ</h1>{boxes([f'<p>{SESSION}</p>', f'<p>{SENTENCE}</p>'], '<button>Yes</button>')}",
            [SESSION],
        ),
        (
            f"<h1>HTTP</h1>{paragraphs(3)}<div><h2>Set-Cookie</h2>{HEADER}<a href=#>link</a></div>",
            ["Set-Cookie", "stores a cookie"],
        ),
        (
            f"<h1>HTTP</h1>{paragraphs(3)}<div><b>Allow</b> <a href=#>Allow</a>{HEADER}</div>{paragraphs(3)}",
            ["stores a cookie"],
        ),
        (
            f"<h1>Privacy policy</h1>{paragraphs(2)}<div><p>{SESSION}</p><button>Accept all</button></div>",
            [SESSION],
        ),
        (
            f"<h1>Imprint</h1>{paragraphs(2)}<div><p>{SESSION}</p><button>Cookie settings</button></div>",
            [SESSION],
        ),
        (
            f"<h1>Quiz</h1>{paragraphs(2)}<div><p>Do sites use cookies?</p><button>Yes</button></div>",
            ["Do sites use cookies?"],
        ),
        (f"<h1>News</h1>{paragraphs(2)}<div><p>{SESSION}</p><button>3</button></div>", [SESSION]),
        (f"<h1>Bakery</h1>{paragraphs(2)}<div>{BASKET}<button>Add to basket</button></div>", ["oat cookies"]),
        (
            f"<main><h1>Law</h1>{paragraphs(3)}"
            f"<section id=the-cookie-law><h2>Consent</h2><p>{SESSION}</p></section>"
            f"<section id=cookie-banners><h2>Banners</h2><p>A banner asks first.</p></section></main>",
            ["Consent", SESSION, "A banner asks first."],
        ),
        (
            f"<article><h1>Choice</h1>{paragraphs(3)}<div><p>{SESSION}</p><button>OK</button></div></article>",
            [SESSION],
        ),
    ],
)
def test_a_text_on_cookies_stays(body: str, texts: list[str]) -> None:
    main = page(body).text
    assert [text for text in texts if text.removeprefix("<p>").removesuffix("</p>") not in main] == []


@pytest.mark.parametrize(
    "notice",
    [
        "<div class=x1><p>We use cookies here.</p><button>Accept all</button><button>×</button></div>",
        "<div><b>This site uses cookies.</b><div><a href=#>Got it!</a> <a href=#>Learn more</a></div></div>",
        "<div><p>Wir verwenden Cookies für Statistik.</p><button>Alle akzeptieren</button></div>",
        "<div>Nous utilisons des cookies.<button>Tout refuser</button><button>J'accepte</button></div>",
        "<div><p>Utilizamos cookies propias.</p><button>Aceptar todas</button></div>",
        "<div><p>Мы используем файлы cookie.</p><button>Согласен</button></div>",
        "<div><p>当サイトではクッキーを使用しています。</p><button>すべて同意する</button></div>",
        "<div><p>Cookies make this work.</p><input type=submit value=OK></div>",
        "<div id=cookie-banner><h3>Cookies</h3><ul><li>Adverts</ul><button>Weiter</button></div>",
        "<div class=cookies><h3>Cookies</h3><ul><li>Adverts</ul><button>Accept selected</button></div>",
    ],
)
@pytest.mark.parametrize("order", ["{0}{1}", "{1}{0}", "<a href=#t>Skip</a>{0}{1}"])
def test_a_notice_of_cookies_goes(notice: str, order: str) -> None:
    text = page(order.format(notice, f"<h1>Rivers</h1><div>{paragraphs(3)}</div>")).text
    assert text.count(SENTENCE) == 3
    assert not any(word in text.lower() for word in ("cookie", "クッキー", "statistik", "accept", "adverts"))


def test_a_notice_in_the_middle_of_a_page_goes_by_text_and_answer() -> None:
    notice = "<div><p>We use cookies to count visits.</p><button>I agree</button></div>"
    text = page(f"<h1>Rivers</h1><div>{paragraphs(3)}</div><div><i>Ad</i>{notice}</div>{paragraphs(3)}").text
    assert text.count(SENTENCE) == 6
    assert "cookies" not in text


def test_nested_elements_that_hide_and_show_are_read_in_linear_time() -> None:
    inner = "<i style='visibility:visiblex'>x</i>" * 5_000
    hidden = f"{'<div style=visibility:hidden>' * 500}{inner}{'</div>' * 500}"
    begin = time.process_time()
    assert "x" not in visible_text(f"<p>{SENTENCE}</p>{hidden}".encode()).replace(SENTENCE, "")
    assert time.process_time() - begin < 2


@pytest.mark.parametrize(
    "wrapped",
    [
        "<header>Site</header><div style='visibility:hidden'><h1>T</h1>{}</div><script>x = 1; {}</script>",
        "<div style='display:none'><div style='display:none'><h1>T</h1>{}</div></div>",
        "<p>Loading</p><main hidden><h2>T</h2>{}</main>",
    ],
)
def test_a_page_that_hides_its_text_until_a_script_has_run_is_read(wrapped: str) -> None:
    text = page(wrapped.replace("{}", paragraphs(4), 1).replace("{}", "1234567, " * 5_000)).text
    assert text.count(SENTENCE) == 4


def test_nested_boxes_with_many_buttons_are_read_in_linear_time() -> None:
    inner = "<i></i>" * 4_000 + "<button>x</button>" * 100
    begin = time.process_time()
    page(f"<p>cookie</p>{paragraphs(3)}{'<div>' * 400}{inner}{'</div>' * 400}")
    assert time.process_time() - begin < 2


@pytest.mark.parametrize(
    "body, text",
    [
        (
            "<pre>"
            + "\n".join(f"<a href=#x{n}>call_{n}</a>(<a href=#y>rows</a>)" for n in range(30))
            + "</pre>",
            "call_7(rows)",
        ),
        ("".join(f"<p><a name=v{n}>{SENTENCE} Verse {n}.</a></p>" for n in range(9)), f"{SENTENCE} Verse 7."),
        (f"<a name=top>{paragraphs(9)}", f"{SENTENCE} Number 7."),
    ],
)
def test_code_with_links_and_text_in_anchors_is_a_text(body: str, text: str) -> None:
    assert text in page(f"<h1>Main</h1>{body}").text
