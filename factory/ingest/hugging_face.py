"""The card of a dataset and the splits of its files, in the layout of the Hugging Face Hub.

    README.md                          ---            the card: YAML between two lines of dashes
    data/train-00000-of-00002.parquet  license: mit
    data/train-00001-of-00002.parquet  language: en
    data/test-00000-of-00001.parquet   ---

The card gives defaults: the license, a single language, and the name of the dataset as the source of its
documents. The metadata of a document names the split of its file, from the card's `configs`, else from the
file's name. A folder without a card, or with a README without YAML, has no defaults.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import yaml

from factory.errors import ConfigurationError
from spark_udfs.ingest.bounds import MAX_CARD_BYTES, MAX_GLOBS, MAX_NESTING
from spark_udfs.ingest.globs import compiled
from spark_udfs.ingest.place import Place

CARD_FILE = b"README.md"
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
# Values as text: `no` is Norwegian, not false, and a number of a million digits costs nothing. The loader in
# C is ten times as fast; a wheel for another machine may lack it.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_NOTHING = ("", "~", "null", "Null", "NULL")
_HUB_FIELDS = frozenset(
    (
        *("annotations_creators", "configs", "dataset_info", "language", "language_creators", "license"),
        *("license_link", "license_name", "multilinguality", "pretty_name", "size_categories"),
        *("source_datasets", "task_categories", "task_ids"),
    )
)
_NUMBERED = re.compile(r"(?:.*/)?([\w.-]+?)-\d{5}-of-\d{5}(?:-[0-9a-f]+)?\.[\w.]+")
_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}


@dataclass(frozen=True)
class Card:
    """The fields of a dataset's card, None or empty where the card lacks them; `splits` are (split, glob).

    `is_of_hub` says whether it has any field that the Hub defines, which the front matter of notes lacks.
    """

    name: str | None = None
    license: str | None = None
    language: str | None = None
    splits: tuple[tuple[str, str], ...] = ()
    is_of_hub: bool = field(default=False, compare=False)

    def split_of(self, path: str) -> str | None:
        """Return the split of a file, by its path below the card's folder."""
        name = os.fsencode(path)
        for split, pattern in self._patterns:
            if pattern.fullmatch(name):
                return split
        return numbered_split(path) or next(
            (split for split, words in _WORDS.items() if set(words) & set(re.split(r"[/_. -]", path))), None
        )

    @cached_property
    def _patterns(self) -> list[tuple[str, re.Pattern[bytes]]]:
        return [(split, compiled([glob])) for split, glob in self.splits]


def numbered_split(path: str) -> str | None:
    """Return the split in a name such as `train-00000-of-00002.parquet`."""
    found = _NUMBERED.fullmatch(path)
    return found[1] if found else None


def card_of(folder: Place) -> Card | None:
    """Return the card of the dataset in `folder`, None if there is none.

    Raises ConfigurationError for a card with invalid YAML or beyond the bounds of `spark_udfs.ingest.bounds`:
    license and ids come from the card, so the dataset must not be read without it.
    """
    if folder.is_link(CARD_FILE) or folder.kind(CARD_FILE) != "file":
        return None
    path, data = folder.display(CARD_FILE), folder.head(CARD_FILE, MAX_CARD_BYTES + 1)
    found = _FRONT_MATTER.match(data.decode("utf-8", "replace"))
    if found is None:
        if len(data) > MAX_CARD_BYTES and _BEGINNING.match(data):
            raise _refused(path, f"has more than {MAX_CARD_BYTES:,} bytes between its lines of dashes")
        return None
    try:
        if excess := _excess(found[1]):
            raise _refused(path, excess)
        fields = yaml.load(found[1], _LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 2}" if mark else ""  # the first line is dashes
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        raise ConfigurationError(f"The card {path}{line} is not YAML: {problem}. {_REMEDY}") from None
    card = _card(fields) if isinstance(fields, Mapping) else None
    if card and len(card.splits) > MAX_GLOBS:
        raise _refused(path, f"names {len(card.splits):,} patterns of files, the limit is {MAX_GLOBS:,}")
    return card


_BEGINNING = re.compile(rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n")
_REMEDY = "Correct the text between its lines of dashes, or remove these lines."


def _refused(path: str, excess: str) -> ConfigurationError:
    return ConfigurationError(f"The card {path} {excess}. {_REMEDY}")


def _excess(text: str) -> str | None:
    """Say why the YAML is refused: an alias, which lets few lines mean billions, or deep nesting."""
    depth = 0
    for event in yaml.parse(text, _LOADER):
        if isinstance(event, yaml.AliasEvent):
            return f"has an alias, `*{event.anchor}`, in line {_line(event)}"
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_NESTING:
            return f"nests lists and mappings deeper than {MAX_NESTING} in line {_line(event)}"
    return None


def _line(event: yaml.Event) -> int:
    """Return the line of the card; its first line is dashes."""
    return event.start_mark.line + 2 if event.start_mark else 2


def _card(fields: Mapping[str, Any]) -> Card:
    return Card(
        name=_text(fields.get("pretty_name")),
        license=_text(fields.get("license_name"))
        if fields.get("license") == "other"
        else _one(fields.get("license")),
        language=_one(fields.get("language")),
        splits=tuple(_splits(fields.get("configs"))),
        is_of_hub=not _HUB_FIELDS.isdisjoint(fields),
    )


def _text(value: object) -> str | None:
    text = value.strip() if isinstance(value, str) else ""
    return None if text in _NOTHING else text


def _one(value: object) -> str | None:
    """Return a text, or the only one of a list: with several languages no document's language is known."""
    return _text(value[0]) if isinstance(value, list) and len(value) == 1 else _text(value)


def _splits(configs: object) -> list[tuple[str, str]]:
    """Return the (split, glob) pairs of the card's `configs`, ignoring entries of another shape."""
    found: list[tuple[str, str]] = []
    for config in configs if isinstance(configs, list) else []:
        files = config.get("data_files") if isinstance(config, Mapping) else None
        for entry in files if isinstance(files, list) else []:
            if isinstance(entry, Mapping) and (split := _text(entry.get("split"))):
                paths = entry.get("path")
                globs = [_text(path) for path in (paths if isinstance(paths, list) else [paths])]
                found += [(split, glob) for glob in globs if glob]
    return found
