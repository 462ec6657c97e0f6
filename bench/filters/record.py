"""Record the tables of the sets `datatrove_*` and the answers of their tests; run in datatrove's environment.

`tables` prints `factory/filters/rules/datatrove/english.json`: the patterns and exceptions of spaCy's blank
English pipeline (MIT license) and datatrove's sets of characters (Apache 2.0). `answers` prints
`tests/filters/rules/datatrove/answers.json`: datatrove's verdicts on texts from Python's documentation (PSF
license), and its words and numbers of sentences for strings of spaCy's exceptions, marks and spaces.

    FACTORY_CACHE/bench/datatrove/bin/python -m bench.filters.record tables > english.json
"""

from __future__ import annotations

import json
import random
import sys
from importlib.metadata import version
from pydoc_data.topics import topics

import spacy
from datatrove.data import Document
from datatrove.utils.text import PUNCTUATION_SET, TERMINAL_PUNCTUATION, split_into_sentences, split_into_words
from spacy.symbols import ORTH

from bench.filters.peer import STEPS, reason

CHARACTERS = 900  # of a text
LETTERS = 0.96  # letters and spaces, of the characters of a paragraph of prose
SHORT = ("", "\n", " \n\n ", "Hello world", "So it is.\n" * 4, "A line, and no more.\n\n" * 5)
STRINGS = 400
MARKS = [
    *"''\"().,:;!?-–—/*#&_…’“”$%",
    "...",
    "--",
    "8",
    "3",
    "20",
    "km",
    "US$",
    "a@b.org",
    "http://a.b.org/x",
]
SPACES = [" ", " ", " ", "  ", "\n", "\t", "\u00a0"]
WORDS = ["foo", "Bar", "He", "it", "D", "x", "é", "日本", "°", "A.B.", "1,000", "e-mail", "~", "="]


def tables() -> dict[str, object]:
    """Return the tables that determine the words and sentences of an English text."""
    pipeline = spacy.blank("en")
    tokenizer = pipeline.tokenizer
    if tokenizer.token_match is not None:
        raise ValueError("This spaCy has a `token_match` for English. Teach `chunks.py` to use it.")
    return {
        "versions": {name: version(name) for name in ("datatrove", "spacy")},
        "prefix": tokenizer.prefix_search.__self__.pattern,
        "suffix": tokenizer.suffix_search.__self__.pattern,
        "infix": tokenizer.infix_finditer.__self__.pattern,
        "url": tokenizer.url_match.__self__.pattern,
        "exceptions": {
            text: [piece[ORTH] for piece in pieces] for text, pieces in sorted(tokenizer.rules.items())
        },
        "sentence_ends": "".join(sorted(pipeline.add_pipe("sentencizer").punct_chars)),
        "punctuation": "".join(sorted(PUNCTUATION_SET)),
        "end_marks": "".join(sorted(TERMINAL_PUNCTUATION)),
    }


def answers() -> dict[str, object]:
    """Return datatrove's verdicts on texts, and its words and sentences of strings."""
    whole = [text for _, text in sorted(topics.items())]
    texts = list(dict.fromkeys([*SHORT, *(text[:CHARACTERS] for text in whole), *map(_prose, whole)]))
    filters = {name: step() for name, step in STEPS.items()}
    verdicts = [
        {
            "text": text,
            "reasons": {
                name: reason(step.filter(Document(text=text, id=""))) for name, step in filters.items()
            },
        }
        for text in texts
    ]
    strings = [
        {"text": text, "words": split_into_words(text), "sentences": len(split_into_sentences(text))}
        for text in _strings()
    ]
    return {"versions": tables()["versions"], "verdicts": verdicts, "strings": strings}


def _prose(text: str) -> str:
    """The paragraphs of a text that are nearly all letters and spaces."""
    kept = [
        paragraph
        for paragraph in text.split("\n\n")
        if sum(c.isalpha() or c.isspace() for c in paragraph) > LETTERS * len(paragraph)
    ]
    return "\n\n".join(kept)[:CHARACTERS]


def _strings() -> list[str]:
    draw = random.Random(0)
    exceptions = sorted(spacy.blank("en").tokenizer.rules)
    kinds = (exceptions, MARKS, SPACES, WORDS)
    return [
        "".join(draw.choice(draw.choice(kinds)) for _ in range(draw.randint(1, 16))) for _ in range(STRINGS)
    ]


if __name__ == "__main__":
    found = {"tables": tables, "answers": answers}[sys.argv[1]]()
    print(json.dumps(found, indent=1 if sys.argv[1] == "tables" else None))
