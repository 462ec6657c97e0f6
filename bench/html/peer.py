"""Other extractors on the same pages; run in their environment.

Arguments: the extractor, a file of JSON lines with HTML, and a file for their texts. Prints one JSON line:
the CPU seconds, after one page that loads what the extractor needs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path


def _resiliparse() -> Callable[[str], str]:
    from resiliparse.extract.html2text import extract_plain_text

    return lambda html: extract_plain_text(html, main_content=True, comments=False, alt_texts=False)


def _trafilatura() -> Callable[[str], str]:
    import trafilatura

    return lambda html: trafilatura.extract(html, include_comments=False) or ""


def _justext() -> Callable[[str], str]:
    import justext

    words = justext.get_stoplist("English")

    def extract(html: str) -> str:
        paragraphs = justext.justext(html.encode(), words, encoding="utf-8")
        return "\n".join(part.text for part in paragraphs if not part.is_boilerplate)

    return extract


EXTRACTORS = {"resiliparse": _resiliparse, "trafilatura": _trafilatura, "jusText": _justext}


def main(name: str, pages: str, texts: str) -> None:
    extract = EXTRACTORS[name]()
    documents = [json.loads(line) for line in Path(pages).read_text().splitlines()]
    extract(documents[0])
    results, failures = [], 0
    began = time.process_time()
    for html in documents:
        try:
            results.append(extract(html))
        except Exception:  # an extractor may fail on a page; the figures count it as empty
            results.append("")
            failures += 1
    seconds = time.process_time() - began
    Path(texts).write_text("".join(json.dumps(text) + "\n" for text in results))
    print(json.dumps({"seconds": seconds, "failures": failures}))


if __name__ == "__main__":
    main(*sys.argv[1:])
