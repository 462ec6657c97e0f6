"""Web pages among files that are read as plain text: their markup would be trained on as prose."""

from __future__ import annotations

import os
from collections.abc import Sequence

from factory.counted import counted
from factory.errors import ConfigurationError
from spark_udfs.ingest.files import key_of
from spark_udfs.ingest.markup import is_page_name

_REMEDY = (
    "Read them with `format: html`, leave them out with `exclude`, or say `markup: keep` to take them as "
    "they are."
)


def pages_among(names: Sequence[bytes]) -> str | None:
    """Return how many of the files are web pages by name, one of them, and the remedies; None without any."""
    pages = [name for name in names if is_page_name(os.fsdecode(name))]
    if not pages:
        return None
    number = f"{len(pages):,} of {counted(len(names), 'file')}" if len(names) > 1 else "The file"
    verb, noun = ("is", "a web page") if len(pages) == 1 else ("are", "web pages")
    example = f"`{key_of(os.fsdecode(pages[0]))}`"
    which = f" ({example})" if len(pages) == 1 else f", such as {example}"
    return f"{number} {verb} {noun}{which}, and a dataset of prose takes no markup. {_REMEDY}"


def refuse_pages(names: Sequence[bytes]) -> None:
    """Raise ConfigurationError, with the sentence of `pages_among`, if a file is a web page by name."""
    if (sentence := pages_among(names)) is not None:
        raise ConfigurationError(sentence)
