"""The items of work that a reader deals out: files below folders, and files of many records.

Listing reads names, and the first line of files that may be one list. Two paths are refused if their files
share source and key, because two documents would share an id.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from factory.errors import ConfigurationError
from factory.ingest.hugging_face import card_of, numbered_split
from factory.ingest.listing import NAMES_PER_ITEM, Work, files_below, in_items, record_files_below
from factory.ingest.unsupported_paths import why_missing, why_unsupported
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.matching import MatchingFiles, folder_of
from spark_udfs.ingest.place import LocalFiles, Place
from spark_udfs.ingest.registry import RECORD_FILES
from spark_udfs.ingest.rows import Origin

Paths = str | Path | Place | Sequence[str | Path | Place]
Patterns = str | Sequence[str]


@dataclass(frozen=True)
class Tree:
    """A folder of documents of one origin; without `deep`, without its subfolders."""

    folder: Place
    origin: Origin
    deep: bool = True


def folders(paths: Paths) -> list[Place]:
    """Return the given folders, each once; raises ConfigurationError for a path that is not a folder."""
    _refuse_unsupported(paths)
    places = _each_once(paths)
    for place in places:
        if isinstance(place, MatchingFiles) and place.kind() is None:
            raise ConfigurationError(why_missing(place.display(), place))
        if place.kind() != "folder":
            raise ConfigurationError(f"`{place.display()}` is not a folder. Name a folder of files to read.")
    return places


def paths_in(paths: Paths) -> list[str | Path | Place]:
    """Return the paths as a list."""
    return list(paths) if isinstance(paths, Sequence) and not isinstance(paths, str) else [paths]


def _refuse_unsupported(paths: Paths) -> None:
    """Raise ConfigurationError for an address or a pattern among the paths that do not exist."""
    for path in paths_in(paths):
        place = place_of(path)
        is_missing = isinstance(place, LocalFiles) and place.kind() is None
        if is_missing and (sentence := why_unsupported(str(path))):
            raise ConfigurationError(sentence)


def _each_once(paths: Paths) -> list[Place]:
    return list(dict.fromkeys(map(place_of, paths_in(paths))))


def named(origin: Origin, place: Place) -> Origin:
    """Return `origin` with a source, by default the name of the place."""
    return replace(origin, source=origin.source or place.name)


def files_in(
    trees: Iterable[Tree], include: Patterns, exclude: Patterns, format: str = "text"
) -> Iterator[Work]:
    """Yield items for the files of each tree; raises ConfigurationError for two trees of one source."""
    holder: dict[str, Place] = {}
    earlier: dict[Place, set[bytes]] = defaultdict(set)  # of folders with several patterns
    for tree in trees:
        names = files_below(tree.folder, _tuple(include), _tuple(exclude), deep=tree.deep)
        folder = folder_of(tree.folder)
        if folder != tree.folder:
            names = _each_new(names, earlier[folder])
        for item in in_items(format, tree.origin, folder, names, NAMES_PER_ITEM):
            other = holder.setdefault(tree.origin.source, folder)
            if other != folder:
                raise ConfigurationError(
                    f"`{other.display()}` and `{folder.display()}` are both source "
                    f"`{tree.origin.source}`, so two documents could share an id. "
                    "Name the folder above both, or rename one."
                )
            yield item


def _each_new(names: Iterable[bytes], earlier: set[bytes]) -> Iterator[bytes]:
    """Yield the names that are not among the earlier ones, and add them."""
    for name in names:
        if name not in earlier:
            earlier.add(name)
            yield name


def record_names(place: Place, patterns: Sequence[str]) -> Iterator[bytes]:
    """Yield the names of the files of records of a folder, or all that the user's own pattern matches."""
    return record_files_below(place, ("**/*",) if isinstance(place, MatchingFiles) else patterns)


def _tuple(patterns: Patterns) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else tuple(patterns)


def files_of(
    format: str, paths: Paths, origin: Origin, patterns: Sequence[str] | None = None
) -> Iterator[Work]:
    """Yield an item per file of many records; without a source in `origin`, each path's name is its source.

    Folders are searched for files that match the `patterns`, by default the format's. Raises
    ConfigurationError for a missing path, and for two files with the same source and key.
    """
    patterns = RECORD_FILES[format] if patterns is None else patterns
    _refuse_unsupported(paths)
    holder: dict[tuple[str, bytes], Place] = {}
    for place in _each_once(paths):
        kind = place.kind()
        if kind is None:
            raise ConfigurationError(
                why_missing(place.display(), place)
                or f"`{place.display()}` does not exist. Name a file, or a folder of files."
            )
        is_folder = kind == "folder"
        card = card_of(place) if is_folder and format != "archive" else None
        own = named(origin, place)
        if card is not None:
            own = replace(
                own,
                source=origin.source or card.name or own.source,
                license=origin.license or card.license,
                language=card.language,
            )
        names = record_names(place, patterns) if is_folder else [os.fsencode(place.name)]
        folder = folder_of(place) if is_folder else place.parent
        for item in in_items(format, own, folder, names, 1):
            name = os.fsdecode(item.names[0])
            split = card.split_of(name) if card is not None else numbered_split(name)
            if split:
                item = replace(item, origin=replace(own, metadata={**own.metadata, "split": split}))
            other = holder.setdefault((own.source, item.names[0]), place)
            if other != place and folder_of(other) == folder:  # by another pattern
                continue
            if other != place:
                raise ConfigurationError(
                    f"`{other.display()}` and `{place.display()}` both hold `{name}`, so two documents would "
                    "share an id. Name the folder above both, or give each a source of its own."
                )
            yield item
