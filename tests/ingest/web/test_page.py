"""The main text of a page: what stays, what goes, in which order, and within which bounds."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.ingest.rows import BadRecord
from spark_udfs.ingest.web.page import WebPage, page_of
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
