"""Files that hold many documents, or one inside markup: mailboxes, dumps of wikis and forums, tables.

Read as plain text each would be one document with headers, tags and columns in it. The name tells most of
them and the beginning tells the rest, such as the mails of a Maildir, which have no ending.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from factory.ingest.left_out import ending_of
from spark_udfs.ingest.files import key_of
from spark_udfs.ingest.place import Place

N_FILES = 200  # looked into
_HEAD_BYTES = 2048
_GUIDE = "docs/conversions.md of the repository"


@dataclass(frozen=True)
class Container:
    """A kind of file: its name in a sentence, its endings, how it begins, and what to do with it."""

    nouns: tuple[str, str]
    endings: tuple[str, ...]
    beginning: re.Pattern[str]
    remedy: str


_NOTHING = re.compile("(?!)")
_HEADERS = "Return-Path|Received|Delivered-To|MIME-Version|Message-ID|Date|From|To|Subject|X-[A-Za-z-]+"
CONTAINERS = (  # the first that fits a file
    Container(
        ("a mailbox", "mailboxes"),
        (".mbox", ".mbx"),
        re.compile(rf"From \S+ .*\d{{4}}.*\n(?:{_HEADERS}):", re.IGNORECASE),
        f"Write each message as a record ({_GUIDE}, Mail).",
    ),
    Container(
        ("a mail", "mails"),
        (".eml",),
        re.compile(rf"(?:(?:{_HEADERS}): .*\n(?:[ \t].*\n)*){{3}}", re.IGNORECASE),
        f"Write each message as a record ({_GUIDE}, Mail).",
    ),
    Container(
        ("a dump of a wiki", "dumps of a wiki"),
        (),
        re.compile(r"(?:<\?xml[^>]*>\s*)?<mediawiki[\s>]"),
        f"Write each page as a record ({_GUIDE}, Wikis).",
    ),
    Container(
        ("a dump of a forum", "dumps of a forum"),
        (),
        re.compile(r"(?:<\?xml[^>]*>\s*)?<(?:posts|comments|posthistory)>", re.IGNORECASE),
        f"Write each post as a record ({_GUIDE}, Forums).",
    ),
    Container(
        ("a file of XML", "files of XML"),
        (".xml", ".rss", ".atom"),
        re.compile(r"<\?xml\s(?![^>]*>\s*(?:<!DOCTYPE html|<html))", re.IGNORECASE),
        f"Write its texts as records ({_GUIDE}, Wikis).",
    ),
    Container(
        ("a table", "tables"),
        (".csv", ".tsv", ".psv"),
        _NOTHING,
        f"Convert it to Parquet ({_GUIDE}, Tables).",
    ),
    Container(
        ("a file of JSON", "files of JSON"),
        (".json",),
        re.compile(r'\s*[\[{]\s*[\[{"\]}]'),
        f"Write each of its records on a line and read them as records ({_GUIDE}, Chats).",
    ),
)


def container_warnings(dataset: str, files: Sequence[tuple[Place, bytes]]) -> Iterator[str]:
    """Yield a sentence for each kind of container among the files of a dataset of single texts.

    At most `N_FILES` are looked into.
    """
    sample = _sample(files)
    example_of: dict[Container, str] = {}
    counts: Counter[Container] = Counter()
    for folder, name in sample:
        container = _container_of(folder, name)
        if container is not None:
            counts[container] += 1
            example_of.setdefault(container, key_of(os.fsdecode(name)))
    number = f"{len(files):,}" if len(sample) == len(files) else f"{len(sample):,} of {len(files):,}"
    for container, n in counts.items():
        singular, plural = container.nouns
        verb = f"is {singular}" if n == 1 else f"are {plural}"
        yield (
            f"{n:,} of the {number} files of `{dataset}` {verb}, such as `{example_of[container]}`, and each "
            f"would be one document. {container.remedy}"
        )


def container_remedies(files: Sequence[tuple[Place, bytes]]) -> dict[str, None]:
    """Return what to do about the containers among some files, each sentence once."""
    containers = (_container_of(folder, name) for folder, name in _sample(files))
    return dict.fromkeys(container.remedy for container in containers if container is not None)


def _sample(files: Sequence[tuple[Place, bytes]]) -> Sequence[tuple[Place, bytes]]:
    """At most `N_FILES` of the files, at even distances."""
    return files[:: max(1, -(-len(files) // N_FILES))]


def _container_of(folder: Place, name: bytes) -> Container | None:
    ending = ending_of(name)
    by_beginning = _by_beginning(folder, name)
    return by_beginning or next((kind for kind in CONTAINERS if ending in kind.endings), None)


def _by_beginning(folder: Place, name: bytes) -> Container | None:
    if folder.is_link(name):
        return None
    try:
        head = folder.head(name, _HEAD_BYTES).decode("utf-8", "replace").removeprefix("\ufeff")
    except OSError:  # its reader says why
        return None
    return next((kind for kind in CONTAINERS if kind.beginning.match(head)), None)
