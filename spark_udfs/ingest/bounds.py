"""The bounds of every reader, for single records and for whole files.

They keep time and memory in proportion to the bytes of any file, also of a hostile one. A record beyond a
bound is rejected with reason and location, and its neighbors are read. No bound is a time, so that the same
file gives the same rows on every machine. `docs/readers.md` lists the bounds.
"""

from __future__ import annotations

MIB = 1 << 20

# Most bytes of a document, line or member. Anything longer is data, not text for a person.
MAX_TEXT_BYTES = 32 * MIB
MAX_KEY_BYTES = 16 << 10  # bytes of a record's own key; longer than any URL
MAX_DETAIL_LETTERS = 1_000  # of a rejected record's sentence, which may quote the record

# Depth of a JSON value or a Parquet schema. Training data is a few levels deep. Python's decoder and
# Parquet's C++ reader recurse, the reader until the process dies.
MAX_NESTING = 100
MAX_JSON_VALUES = 1_000_000  # values of one line; each costs Python about 60 bytes, however short
MAX_SCHEMA_ELEMENTS = 100_000  # columns of a Parquet file and their parts
MAX_FOOTER_BYTES = 64 * MIB

# Rejected records after which the rest of a file is not read, if they outnumber its documents; adjacent blank
# lines are one. A file sorted by text may begin with many empty records.
MAX_REJECTED_ROWS = 1_000_000

# Rejected records of a file that get a row each, if it holds fewer documents. The others share one row for
# each reason, with their number: a few kilobytes compress millions of lines of one letter.
MAX_OWN_ROWS = 1_000

# A file of a few kilobytes can expand to terabytes. Text and logs stay far below this ratio.
MAX_EXPANSION = 200
FREE_BYTES = 256 * MIB  # any file may expand this far
MAX_DECODER_BYTES = 128 * MIB  # the window of a decompressor; `xz -9` needs 65 MiB, `zstd --ultra -22` 128

# A zip's directory is held whole, at about a kilobyte per member, which takes 46 bytes and its name in the
# file. For a tar archive, only digests of the names are held.
MAX_ZIP_DIRECTORY_BYTES = 64 * MIB
MAX_MEMBERS = 1_000_000
MAX_TAR_HEADER_BYTES = MIB  # bytes of one member's long name or extended header

# Bytes of a dataset's card; a card of 2,000 languages has half a megabyte.
MAX_CARD_BYTES = MIB
MAX_GLOBS = 10_000

MAX_TOPICS_BYTES = 2 * MIB  # of a parsed module; its syntax tree takes about 200 times its size

# Of a page. Extraction takes time quadratic in the depth, and browsers stop at this one.
MAX_DEPTH = 512
MAX_ELEMENTS = 1_000_000
MAX_ATTRIBUTES = 1_000  # of a tag; the parser takes time quadratic in their number
MAX_SPAN = 999  # columns or rows of a cell; HTML allows a thousand
MAX_FALLBACK_BYTES = 2 * MIB  # of a page that the slow extractor may read
MAX_FALLBACK_BLOCKS = 5_000  # of such a page; it compares each with its neighbors

# Of pictures. A worker holds those of one document several times: as bytes, in a batch, on their way to
# Spark. `spark_udfs.pictures` bounds their pixels.
MAX_PICTURE_BYTES = 32 * MIB
MAX_PICTURES = 1_000  # of a document
MAX_BYTES_OF_PICTURES = 128 * MIB  # of a document
MAX_SAMPLE_MEMBERS = 1_000  # of a tar archive that share a name

# How often the bytes of a plain web archive may be read, where places look like beginnings of records.
MAX_REREADS = 16


def most_bytes(file_bytes: int) -> int:
    """Return how many bytes a file may expand to before it counts as a bomb."""
    return max(FREE_BYTES, MAX_EXPANSION * file_bytes)
