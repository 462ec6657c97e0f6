"""The main text of a page: by resiliparse on the mended tree, by trafilatura where that finds too little.

resiliparse reads a page twenty times as fast, and each finds text where the other finds none. Neither is
asked for comments. trafilatura loses the indents of code, which travel through it as letters of their own.

A page that is hardly more than links has no main text: a menu, a cloud of tags, cards of a shop, an archive
by months. The words outside links decide, each counted once, because every card says `12 reviews`. A hub that
describes its links in a sentence is a page.
"""

from __future__ import annotations

import re
from itertools import islice

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from spark_udfs.ingest.bounds import MAX_FALLBACK_BLOCKS, MAX_FALLBACK_BYTES, MAX_SPAN
from spark_udfs.ingest.rows import BadRecord
from spark_udfs.ingest.web.dom import attribute, body_of_tree, n_letters, select, text_of
from spark_udfs.ingest.web.mending import mend, replace_anchors
from spark_udfs.ingest.web.notices import drop_notices
from spark_udfs.ingest.web.tree import parse

LEAST_SHARE = 0.05  # of the visible text
_LEAST_LETTERS = 60  # of a main text, without those of links
_SHORT = 2_000  # letters; of longer texts the links are told apart only if the page has many
_MOST_IN_LINKS = 0.5  # of the letters of a text, or the words beside them must make a sentence
_LEAST_BESIDE = 0.2
_SENTENCE_LETTERS = 40  # of its distinct words
_NO_MAIN_TEXT = f"Less than {LEAST_SHARE:.0%} of the page, a few words, or links alone are its text."
_IDEOGRAPH = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
# In place of the white space of code, which trafilatura does not keep: letters that the page does not have.
_RARE_LETTERS = [chr(code) for code in (*range(0x12000, 0x12300), *range(0x13000, 0x13300))]  # cuneiform
_BLOCK = re.compile(r"<(?:p|div|li|td|tr|h[1-6]|blockquote|pre|section|header|span|br)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
_LEADING = re.compile(r"^[ \t]+", re.MULTILINE)


def main_text(tree: HTMLTree, html: str, visible: str, n_in_links: int) -> tuple[str, str]:
    """Return the main text of a page and the name of its extractor.

    The page has the markup `html` and the text `visible`, with about `n_in_links` letters in links. Changes
    the tree. Raises BadRecord `no_main_text` if neither extractor finds more than a few letters, or more than
    links.
    """
    n_visible = n_letters(visible)
    drop_notices(body_of_tree(tree), visible)
    replace_anchors(tree)
    mend(tree)
    text = _by_resiliparse(tree)
    if _is_enough(text, n_visible):
        has_many_links = n_in_links > _MOST_IN_LINKS * n_letters(text)
        if len(text) >= _SHORT and not has_many_links:
            return text, "resiliparse"
        if _is_enough_beside_links(_by_resiliparse(tree, "a"), n_letters(text)):
            return text, "resiliparse"
    text = _by_fallback(html, visible) if n_visible else ""
    if not _is_enough(text, n_visible):
        raise BadRecord("no_main_text", _NO_MAIN_TEXT)
    return text, "trafilatura"


def _by_fallback(html: str, visible: str) -> str:
    """Return the text that trafilatura finds on a page; empty for a page of links, or beyond the bounds."""
    tree = parse(html)
    drop_notices(body_of_tree(tree), visible)
    replace_anchors(tree)
    html = str(tree)
    if len(html) > MAX_FALLBACK_BYTES or _n_blocks(html) > MAX_FALLBACK_BLOCKS:
        return ""
    without_links = extract_plain_text(tree, alt_texts=False, skip_elements=["a"])
    return _by_trafilatura(html) if _is_enough_beside_links(without_links, n_letters(visible)) else ""


def _is_enough_beside_links(text_outside_links: str, n_with_links: int) -> bool:
    """Whether a text outside links makes a main text of `n_with_links` letters.

    It is half of it, or has a sentence, or its words, each counted once, are a fifth of it.
    """
    if not _is_enough(text_outside_links, 0):
        return False
    if len("".join(_WORD.findall(text_outside_links))) >= (1 - _MOST_IN_LINKS) * n_with_links:
        return True
    lines = [frozenset(_WORD.findall(line)) for line in text_outside_links.lower().splitlines()]
    n_distinct = sum(map(_weight, frozenset().union(*lines)))
    if n_distinct >= max(_LEAST_LETTERS, _LEAST_BESIDE * n_with_links):
        return True
    return any(sum(map(_weight, words)) >= _SENTENCE_LETTERS for words in lines)


def _by_resiliparse(tree: HTMLTree, *selectors: str) -> str:
    text = extract_plain_text(
        tree,
        main_content=True,
        comments=False,
        alt_texts=False,
        skip_elements=list(selectors),
    )
    return str(text).strip("\n")


def _n_blocks(html: str) -> int:
    return len(_BLOCK.findall(html))


def _is_enough(text: str, n_visible: int) -> bool:
    return n_letters(text) >= LEAST_SHARE * n_visible and _weight(text) >= _LEAST_LETTERS


def _weight(text: str) -> int:
    """Return the letters of a text; of its beginning an ideograph counts as three."""
    return n_letters(text) + 2 * len(_IDEOGRAPH.findall(text[:_SHORT]))


def _by_trafilatura(html: str) -> str:
    import trafilatura  # takes half a second, and few pages need it

    tree = HTMLTree.parse(html)
    for cell in select(body_of_tree(tree), "[colspan], [rowspan]"):
        for name in ("colspan", "rowspan"):
            if len(attribute(cell, name)) > len(str(MAX_SPAN)):
                cell.set_attribute(name, str(MAX_SPAN))
    letters = list(islice((letter for letter in _RARE_LETTERS if letter not in html), 2))
    for block in select(body_of_tree(tree), "pre") if len(letters) == 2 else ():
        block.text_content = _marked(text_of(block), *letters)
    text = trafilatura.extract(str(tree), include_comments=False, deduplicate=False) or ""
    for letter, white_space in zip(letters, (" ", "\n"), strict=False):
        text = text.replace(letter, white_space)
    return text


def _marked(code: str, space: str, line_end: str) -> str:
    code_with_letters = _LEADING.sub(lambda indent: space * len(indent[0].expandtabs()), code.strip("\n"))
    return code_with_letters.replace("\n", line_end)
