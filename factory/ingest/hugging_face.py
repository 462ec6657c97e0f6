"""What a dataset's card and the names of its files say, in the layout of the Hugging Face Hub.

    README.md                          ---            the card: YAML between two lines of dashes
    data/train-00000-of-00002.parquet  license: mit
    data/train-00001-of-00002.parquet  language: en
    data/test-00000-of-00001.parquet   ---

The card gives defaults: the licence, the language if it is one, and the name of the dataset as the source
of its documents. Which split a file belongs to goes into the metadata of its documents: as the card's
`configs` say, else as the file is named. A folder without a card, or whose README has no YAML, has none of
this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from factory.errors import ConfigurationError
from factory.ingest.listing import matches

_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_MOST_BYTES = 1 << 20
_NUMBERED = re.compile(r"(?:.*/)?([\w.-]+?)-\d{5}-of-\d{5}(?:-[0-9a-f]+)?\.[\w.]+")
_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}


@dataclass(frozen=True)
class Card:
    """What the card of a dataset says, each None or empty where it does not; `splits` are (split, glob)."""

    name: str | None = None
    licence: str | None = None
    language: str | None = None
    splits: tuple[tuple[str, str], ...] = ()

    def split_of(self, path: str) -> str | None:
        """The split a file belongs to, by its path below the card's folder."""
        for split, glob in self.splits:
            if matches(path, glob):
                return split
        return numbered_split(path) or next(
            (split for split, words in _WORDS.items() if set(words) & set(re.split(r"[/_. -]", path))), None
        )


def numbered_split(path: str) -> str | None:
    """The split in a name such as `train-00000-of-00002.parquet`."""
    found = _NUMBERED.fullmatch(path)
    return found[1] if found else None


def card_of(folder: Path) -> Card | None:
    """The card of the dataset in `folder`, None where it has none.

    Raises ConfigurationError for a card that is no YAML.
    """
    path = folder / "README.md"
    if path.is_symlink() or not path.is_file():
        return None
    with path.open("rb") as file:
        found = _FRONT_MATTER.match(file.read(_MOST_BYTES).decode("utf-8", "replace"))
    if found is None:
        return None
    try:
        said = yaml.safe_load(found[1])
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date that does not exist, deep lists
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 2}" if mark else ""  # the first line is dashes
        raise ConfigurationError(
            f"The card {path}{line} is no YAML: {getattr(error, 'problem', None) or error}. "
            "Mend what stands between its lines of dashes, or take the lines away."
        ) from None
    return _card(said) if isinstance(said, Mapping) else None


def _card(said: Mapping[str, Any]) -> Card:
    return Card(
        name=_text(said.get("pretty_name")),
        licence=_text(said.get("license_name"))
        if said.get("license") == "other"
        else _one(said.get("license")),
        language=_one(said.get("language")),
        splits=tuple(_splits(said.get("configs"))),
    )


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _one(value: object) -> str | None:
    """A text, or the only one of a list: a document of several languages has none that can be told."""
    return _text(value[0]) if isinstance(value, list) and len(value) == 1 else _text(value)


def _splits(configs: object) -> list[tuple[str, str]]:
    """The (split, glob) pairs of the card's `configs`; what is not of their shape says nothing."""
    found: list[tuple[str, str]] = []
    for config in configs if isinstance(configs, list) else []:
        files = config.get("data_files") if isinstance(config, Mapping) else None
        for entry in files if isinstance(files, list) else []:
            if isinstance(entry, Mapping) and (split := _text(entry.get("split"))):
                paths = entry.get("path")
                globs = [_text(path) for path in (paths if isinstance(paths, list) else [paths])]
                found += [(split, glob) for glob in globs if glob]
    return found
