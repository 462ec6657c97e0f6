"""A page as a document: its bytes decoded, its main text, and its statements about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from spark_udfs.ingest.file_types import PLAIN
from spark_udfs.ingest.rows import Origin, Row, document
from spark_udfs.ingest.web.charset import decode_page
from spark_udfs.ingest.web.dom import body_of_tree, n_letters, select, text_of
from spark_udfs.ingest.web.main_text import main_text
from spark_udfs.ingest.web.tree import NO_OPT_OUTS, OptOuts, facts_of, parse

_SAMPLED_LINKS = 200  # of a page, for its density of links


@dataclass(frozen=True)
class WebPage:
    """The main text of a page, and its facts by key of `metadata`."""

    text: str
    facts: dict[str, str]


def page_of(
    body: bytes, url: str = "", charset: str | None = None, opt_outs: OptOuts = NO_OPT_OUTS
) -> WebPage:
    """Return the page of an HTML body; `charset` and `opt_outs` come from its HTTP headers.

    Its facts are its own statements and charset, charset_from, replacement_chars, extractor, and, as shares
    of its letters, main_share and link_density. Raises BadRecord as its parts do.
    """
    text_of_page = decode_page(body, charset)
    tree = parse(text_of_page.text)
    facts = facts_of(tree, url, opt_outs)
    visible = text_of(body_of_tree(tree))
    n_visible = n_letters(visible)
    n_in_links = _n_letters_in_links(tree)
    text, extractor = main_text(tree, text_of_page.text, visible, n_in_links)
    facts |= {
        "charset": text_of_page.charset,
        "charset_from": text_of_page.charset_from,
        "extractor": extractor,
        "main_share": f"{min(1.0, n_letters(text) / max(1, n_visible)):.3f}",
        "link_density": f"{min(1.0, n_in_links / max(1, n_visible)):.3f}",
    }
    if text_of_page.n_replaced:
        facts["replacement_chars"] = str(text_of_page.n_replaced)
    return WebPage(text, facts)


def page_document(origin: Origin, key: str, page: WebPage, **columns: Any) -> Row:
    """Return the document of a page; raises BadRecord as `document` does."""
    metadata = {**page.facts, **columns.pop("metadata", {})}
    language = metadata.pop("language", None) or origin.language
    return document(
        origin, key, page.text, media_type=PLAIN.media_type, language=language, metadata=metadata, **columns
    )


def _n_letters_in_links(tree: HTMLTree) -> int:
    """Return the letters of all links, from the mean of the first ones."""
    links = select(body_of_tree(tree), "a")
    sample = links[:_SAMPLED_LINKS]
    return round(n_letters("".join(map(text_of, sample))) / len(sample) * len(links)) if links else 0


def visible_text(body: bytes, charset: str | None = None) -> str:
    """Return all text of a page that a reader sees: the main text and the rest."""
    return str(extract_plain_text(parse(decode_page(body, charset).text), alt_texts=False))
