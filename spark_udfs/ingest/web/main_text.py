"""The main text of a page: by resiliparse on the mended tree, by trafilatura where that finds too little.

resiliparse reads a page twenty times as fast, and each finds text where the other finds none. Neither is
asked for comments. trafilatura loses the indents of code, which travel through it as letters of their own.
"""

from __future__ import annotations

import re
from itertools import islice

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from spark_udfs.ingest.bounds import MAX_FALLBACK_BLOCKS, MAX_FALLBACK_BYTES, MAX_SPAN
from spark_udfs.ingest.rows import BadRecord
from spark_udfs.ingest.web.dom import attribute, body_of_tree, n_letters, select, text_of
from spark_udfs.ingest.web.mending import mend

LEAST_SHARE = 0.05  # of the visible text
_LEAST_LETTERS = 60  # of a main text, without those of links
_SHORT = 2_000  # letters; only of shorter texts the links are told apart
_IDEOGRAPH = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
# In place of the white space of code, which trafilatura does not keep: letters that the page does not have.
_RARE_LETTERS = [chr(code) for code in (*range(0x12000, 0x12300), *range(0x13000, 0x13300))]  # cuneiform
_BLOCK = re.compile(r"<(?:p|div|li|td|tr|h[1-6]|blockquote|pre|section|header|span|br)\b", re.IGNORECASE)
_LEADING = re.compile(r"^[ \t]+", re.MULTILINE)


def main_text(tree: HTMLTree, n_visible: int) -> tuple[str, str]:
    """Return the main text of a page with `n_visible` visible letters, and the name of its extractor.

    Changes the tree. Raises BadRecord `no_main_text` if neither extractor finds more than a few letters.
    """
    html = str(tree) if n_visible else ""
    mend(tree)
    text = _by_resiliparse(tree)
    if _is_enough(text, n_visible) and (len(text) >= _SHORT or _is_enough(_by_resiliparse(tree, "a"), 0)):
        return text, "resiliparse"
    if n_visible and len(html) <= MAX_FALLBACK_BYTES and _n_blocks(html) <= MAX_FALLBACK_BLOCKS:
        without_links = extract_plain_text(HTMLTree.parse(html), alt_texts=False, skip_elements=["a"])
        if _is_enough(without_links, 0):
            text = _by_trafilatura(html)
            if _is_enough(text, n_visible):
                return text, "trafilatura"
    raise BadRecord("no_main_text", f"Less than {LEAST_SHARE:.0%} of the page, or a few words, are its text.")


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
    size = n_letters(text)
    weight = size + 2 * len(_IDEOGRAPH.findall(text[:_SHORT]))
    return size >= LEAST_SHARE * n_visible and weight >= _LEAST_LETTERS


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
