"""What to do about files that no dataset reads, by the ending of their names."""

from __future__ import annotations

from collections.abc import Mapping

from factory.counted import counted
from factory.ingest.left_out import endings_phrase
from factory.orchestration.datasets.formats import RECORD_NOUNS
from spark_udfs.ingest.file_types import is_known_text
from spark_udfs.ingest.registry import RECORD_FILES

_RECORDS = " or ".join(RECORD_NOUNS)
_LINES = next(format for format, patterns in RECORD_FILES.items() if "**/*.ndjson" in patterns)
_HOW = " (docs/conversions.md of the repository)"
_KINDS: dict[str, tuple[tuple[str, ...], str]] = {  # what to do, by kind of file
    "tables": (
        ("csv", "tsv", "psv", "tab", "xlsx", "xls", "ods", "arrow", "feather", "orc", "avro", "sqlite", "db"),
        f"Convert tables to {_RECORDS}{_HOW}.",
    ),
    "JSON": (
        ("json",),
        f"If each line of JSON is a record, name the files with `format: {_LINES}`; a list becomes lines by "
        "`jq -c '.[]'`.",
    ),
    "markup": (("xml", "rss", "atom"), f"Extract the texts of XML to {_RECORDS}{_HOW}."),
    "mail": (("mbox", "eml", "mbx"), f"Write each message of a mailbox as a record of {_RECORDS}{_HOW}."),
    "books": (
        ("epub",),
        "Unpack an EPUB (`python -m zipfile -e BOOK.epub BOOK`) and read the folder with `format: html`.",
    ),
    "documents": (
        ("pdf", "doc", "docx", "odt", "rtf", "ppt", "pptx", "odp", "ps", "djvu", "mobi"),
        "Convert books and documents of word processors to Markdown or plain text.",
    ),
    "notebooks": (("ipynb",), "Convert notebooks to scripts, as with `jupyter nbconvert --to script`."),
    "pages": (("html", "htm", "xhtml"), "Read web pages with `format: html`."),
    "web archives": (("warc", "arc", "wet", "wat"), "Read web archives with `format: warc`."),
    "archives": (("zip", "tar", "tgz"), "Read zip and tar archives with `format: archive`."),
    "other archives": (("7z", "rar"), "Unpack 7z and RAR archives and name the folder."),
    "media": (
        (
            *("png", "jpg", "jpeg", "gif", "svg", "webp", "bmp", "ico", "tif", "tiff", "heic"),
            *("mp3", "wav", "flac", "ogg", "mp4", "mkv", "avi", "mov", "webm", "woff", "woff2", "ttf"),
        ),
        "",
    ),
}
_KIND_OF = {extension: kind for kind, (extensions, _) in _KINDS.items() for extension in extensions}
_TEXTS = "Read texts with `format: files`, where `include` names them."


def remedies(n_by_ending: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return numbers by ending for each sentence on what to do about such files, most files first.

    The sentence is empty for files without text, such as pictures.
    """
    by_sentence: dict[str, dict[str, int]] = {}
    for ending, n in n_by_ending.items():
        by_sentence.setdefault(_remedy(ending), {})[ending] = n
    return dict(sorted(by_sentence.items(), key=lambda pair: -sum(pair[1].values())))


def left_out_sentence(n_by_ending: Mapping[str, int], subject: str) -> str:
    """Say how many files `subject` leaves out, by ending, and what to do; empty without any."""
    if not n_by_ending:
        return ""
    files = counted(sum(n_by_ending.values()), "file")
    fact = f"{subject} {files}: {endings_phrase(n_by_ending)}."
    return " ".join([fact, *filter(None, remedies(n_by_ending))])


def is_listed(ending: str) -> bool:
    """Whether files of an ending have a remedy of their own."""
    return not _KIND_OF.keys().isdisjoint(ending.lstrip(".").split("."))


def _remedy(ending: str) -> str:
    """Return what to do about files of an ending, nothing about files without text."""
    extensions = ending.lstrip(".").split(".")
    kind = next((_KIND_OF[extension] for extension in extensions if extension in _KIND_OF), None)
    if kind is not None:
        _, sentence = _KINDS[kind]
        return sentence
    if is_known_text(extensions[0]):
        return _TEXTS
    return "Leave other files out, or read those that are text with `format: files` and `include`."
