"""The bounds of every reader: what no record and no file may exceed, in one place.

They keep time and memory in proportion to the bytes of a file, whoever wrote it. What exceeds one is a
rejected record with its reason and location, and the records beside it are read. None of them is a measure of
time: the same file gives the same rows on every machine. `docs/readers.md` lists them.
"""

from __future__ import annotations

MIB = 1 << 20

# Of one document, line or member. What is longer is data, not text for a person.
MAX_TEXT_BYTES = 32 * MIB
MAX_KEY_BYTES = 16 << 10  # of the key a record gives itself: longer than any URL
MAX_DETAIL_LETTERS = 1_000  # of the sentence of a rejected record, which may quote the record

# Of a JSON value or a Parquet schema. Data for training is a few levels deep; Python's decoder and Parquet's
# C++ reader recurse, the latter until the process dies.
MAX_NESTING = 100
MAX_JSON_VALUES = 1_000_000  # of one line; each costs Python some 60 bytes, however short it is
MAX_SCHEMA_ELEMENTS = 100_000  # columns of a Parquet file and what they consist of
MAX_FOOTER_BYTES = 64 * MIB

# Rejected records of one file after which it is left, if they outnumber its documents. A file sorted by text
# may begin with many empty ones.
MAX_REJECTED_ROWS = 1_000_000

# A file of a few kilobytes can expand to terabytes. Text and logs stay far below this.
MAX_EXPANSION = 200
FREE_BYTES = 256 * MIB  # what any file may expand to
MAX_DECODER_BYTES = 128 * MIB  # the window of a decompressor; `xz -9` needs 65 MiB, `zstd --ultra -22` 128

# A zip's directory is held whole, at about a kilobyte a member; in the file that is 46 bytes and its name. Of
# a tar archive the digests of the names are held.
MAX_ZIP_DIRECTORY_BYTES = 64 * MIB
MAX_MEMBERS = 1_000_000
MAX_TAR_HEADER_BYTES = MIB  # of a long name or the extended header of one member

# Of the card of a dataset; one of 2,000 languages has half a megabyte.
MAX_CARD_BYTES = MIB
MAX_GLOBS = 10_000

MAX_TOPICS_BYTES = 2 * MIB  # of a module that is parsed: its syntax tree takes some 200 times its size


def most_bytes(file_bytes: int) -> int:
    """How many bytes a file may expand to before it is taken for a bomb."""
    return max(FREE_BYTES, MAX_EXPANSION * file_bytes)
