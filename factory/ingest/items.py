"""The items of work that a reader deals out: files below folders, and files of many records.

Listing reads names, and the first line of files that may be one list. Two paths are refused if their files
share source and key, because two documents would share an id.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from factory.errors import ConfigurationError
from factory.ingest.hugging_face import card_of, numbered_split
from factory.ingest.listing import NAMES_PER_ITEM, Work, files_below, in_items, record_files_below
from factory.ingest.unsupported_paths import why_unsupported
from spark_udfs.ingest.registry import RECORD_FILES
from spark_udfs.ingest.rows import Origin

Paths = str | Path | Sequence[str | Path]
Patterns = str | Sequence[str]


@dataclass(frozen=True)
class Tree:
    """A folder of documents of one origin; without `deep`, without its subfolders."""

    folder: Path
    origin: Origin
    deep: bool = True


def folders(paths: Paths) -> list[Path]:
    """Return the given folders, each once; raises ConfigurationError for a path that is not a folder."""
    _refuse_unsupported(paths)
    found = _each_once(paths)
    for path in found:
        if not path.is_dir():
            raise ConfigurationError(f"`{path}` is not a folder. Name a folder of files to read.")
    return found


def _refuse_unsupported(paths: Paths, patterns: Sequence[str] = ()) -> None:
    """Raise ConfigurationError for an address or a pattern among the paths that do not exist."""
    for path in [paths] if isinstance(paths, str | Path) else paths:
        if not Path(path).exists() and (sentence := why_unsupported(str(path), patterns)):
            raise ConfigurationError(sentence)


def _each_once(paths: Paths) -> list[Path]:
    given = [paths] if isinstance(paths, str | Path) else paths
    return list(dict.fromkeys(Path(it).resolve() for it in given))


def named(origin: Origin, path: Path) -> Origin:
    """Return `origin` with a source, by default the name of `path`."""
    return replace(origin, source=origin.source or path.name)


def files_in(
    trees: Iterable[Tree], include: Patterns, exclude: Patterns, format: str = "text"
) -> Iterator[Work]:
    """Yield items for the files of each tree; raises ConfigurationError for two trees of one source."""
    holder: dict[str, Path] = {}
    for tree in trees:
        names = files_below(tree.folder, _tuple(include), _tuple(exclude), deep=tree.deep)
        for item in in_items(format, tree.origin, tree.folder, names, NAMES_PER_ITEM):
            other = holder.setdefault(tree.origin.source, tree.folder)
            if other != tree.folder:
                raise ConfigurationError(
                    f"`{other}` and `{tree.folder}` are both source `{tree.origin.source}`, so two documents "
                    "could share an id. Name the folder above both, or rename one."
                )
            yield item


def _tuple(patterns: Patterns) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else tuple(patterns)


def files_of(format: str, paths: Paths, origin: Origin) -> Iterator[Work]:
    """Yield an item per file of many records; without a source in `origin`, each path's name is its source.

    Raises ConfigurationError for a missing path, and for two files with the same source and key.
    """
    patterns = RECORD_FILES[format]
    _refuse_unsupported(paths, patterns)
    holder: dict[tuple[str, bytes], Path] = {}
    for path in _each_once(paths):
        if not path.exists():
            raise ConfigurationError(f"`{path}` does not exist. Name a file, or a folder of files.")
        root = path if path.is_dir() else path.parent
        card = card_of(path) if path.is_dir() and format != "archive" else None
        own = named(origin, path)
        if card is not None:
            own = replace(
                own,
                source=origin.source or card.name or own.source,
                license=origin.license or card.license,
                language=card.language,
            )
        names = record_files_below(root, patterns) if path.is_dir() else [os.fsencode(path.name)]
        for item in in_items(format, own, root, names, 1):
            name = os.fsdecode(item.names[0])
            split = card.split_of(name) if card is not None else numbered_split(name)
            if split:
                item = replace(item, origin=replace(own, metadata={**own.metadata, "split": split}))
            other = holder.setdefault((own.source, item.names[0]), path)
            if other != path:
                raise ConfigurationError(
                    f"`{other}` and `{path}` both hold `{name}`, so two documents would share an id. "
                    "Name the folder above both, or give each a source of its own."
                )
            yield item
