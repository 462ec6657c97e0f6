"""Prose inside other files of a Python installation: long descriptions and pydoc's topics."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from email.parser import HeaderParser

from spark_udfs.ingest.bounds import MAX_TEXT_BYTES, MAX_TOPICS_BYTES
from spark_udfs.ingest.file_types import MARKDOWN, PLAIN, RST, FileKind
from spark_udfs.ingest.files import Input, decode_utf8, file_document, whole_file
from spark_udfs.ingest.rows import BadRecord, Row, rejection

_DESCRIPTION_KINDS = {"text/markdown": MARKDOWN, "text/x-rst": RST, "text/plain": PLAIN}


def long_description(metadata: str) -> tuple[str, FileKind]:
    """Return the long description in a distribution's core metadata (the body or an old header), and its
    kind.

    The default content type is reStructuredText, as in the packaging specification.
    """
    message = HeaderParser().parsestr(metadata)  # read the body as text, whatever the headers say
    text = str(message.get_payload())
    if not text.strip() and (header := message["Description"]):
        first, _, rest = header.partition("\n")
        text = f"{first}\n{textwrap.dedent(rest)}"
    content_type = (message["Description-Content-Type"] or "text/x-rst").partition(";")[0].strip().lower()
    return text, _DESCRIPTION_KINDS.get(content_type, PLAIN)


def topics(source_code: str) -> dict[str, str]:
    """Return the texts of `pydoc_data/topics.py` by topic, parsed, not run; raises BadRecord `no_topics`."""
    try:
        tree = ast.parse(source_code)
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and [*map(ast.unparse, statement.targets)] == ["topics"]:
                return {str(name): str(text) for name, text in ast.literal_eval(statement.value).items()}
    except (SyntaxError, ValueError, AttributeError, RecursionError, MemoryError) as error:
        raise BadRecord(
            "no_topics", f"The file is not a Python module of topics: {type(error).__name__}."
        ) from None
    raise BadRecord("no_topics", "The file defines no `topics`.")


def description_file(source: Input) -> Iterator[Row]:
    """Yield one row: the long description in a METADATA file, or a rejected record."""

    def documents(content: bytes) -> Iterator[Row]:
        text, kind = long_description(decode_utf8(content))
        yield file_document(source.origin, source.key, text if text.strip() else "", kind, source.shown)

    return whole_file(source, MAX_TEXT_BYTES, documents)


def topics_file(source: Input) -> Iterator[Row]:
    """Yield one row per topic with the key `path#topic`, or one rejected record."""

    def documents(content: bytes) -> Iterator[Row]:
        for name, text in topics(decode_utf8(content)).items():
            key = f"{source.key}#{name}"
            try:
                yield file_document(source.origin, key, text, PLAIN, source.shown)
            except BadRecord as bad:
                yield rejection(source.origin, key, bad, len(text), text.encode("utf-8", "replace"))

    return whole_file(source, MAX_TOPICS_BYTES, documents)
