"""Guess the datasets in a folder, with the format and fields of each, from file names and first records.

Each folder directly below is a dataset. More than a dozen folders that are read alike are one dataset, and so
are a repository and a download of the Hugging Face Hub. A guess reads the first records of one file, so it
can be wrong: the user edits the file that is written.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from pathlib import Path

from factory.counted import conjunction
from factory.errors import ConfigurationError
from factory.ingest.containers import container_remedies
from factory.ingest.hugging_face import CARD_FILE, Card, card_of
from factory.ingest.left_out import count_endings
from factory.ingest.listing import UNWANTED, files_below
from factory.ingest.vendored import HIDDEN_NAMES, INSTALLED, INSTALLED_FOLDERS, Exclusion
from factory.lake import names
from factory.orchestration.chain.dedup.group import Kind
from factory.orchestration.datasets.formats import CLASS_OF_FORMAT, FORMATS, RecordFiles
from factory.orchestration.datasets.guess_texts import MOST_FILES, is_checkout, text_files
from factory.orchestration.datasets.record_guess import (
    FIRST_BYTES,
    FIRST_RECORDS,
    RecordFields,
    guess_fields,
)
from factory.orchestration.datasets.remedies import remedies
from spark_udfs.ingest.files import Input
from spark_udfs.ingest.globs import compiled
from spark_udfs.ingest.image_document import CAPTION_ENDING
from spark_udfs.ingest.images import stem_of
from spark_udfs.ingest.json_document import is_json_document
from spark_udfs.ingest.place import LocalFiles, Place
from spark_udfs.ingest.registry import READERS, RECORD_FILES
from spark_udfs.ingest.rows import Origin

_GIT = b".git"
_FEW_RECORDS = 20  # read of each of many folders
MOST_PATHS = 12  # folders that are read alike with a dataset each, or loose files of one dataset
MOST_LISTED = 100  # paths of one dataset, where the folder above would read the same files


@dataclass(frozen=True)
class Guess:
    """A dataset as a datasets file would declare it; `paths` are relative to the folder.

    `license` comes from the card of the dataset. `note` adds facts that the paths do not show.
    """

    name: str
    kind: Kind
    format: str
    paths: tuple[str, ...]
    files: int
    include: tuple[str, ...] = ()
    fields: RecordFields | None = None
    exclude: tuple[Exclusion, ...] = ()
    license: str | None = None
    note: str = ""

    @property
    def of_pages(self) -> bool:
        """Whether its reader makes texts of web pages, which needs an extra."""
        return self.format in READERS and READERS[self.format].of_pages

    @property
    def of_images(self) -> bool:
        """Whether its documents have pictures."""
        return self.format in READERS and READERS[self.format].of_images


def guess(path: Path | Place) -> list[Guess]:
    """Return a guess for each dataset in a folder.

    Raises ConfigurationError if it is not a folder, or holds no file of a known format.
    """
    folder: Place = LocalFiles.at(path) if isinstance(path, Path) else path
    if folder.kind() != "folder":
        raise ConfigurationError(f"`{folder.display()}` is not a folder. Name the folder of your files.")
    below = [
        folder.below(name)
        for name in folder.children()
        if folder.kind(name) == "folder"
        and not name.startswith((b".", b"__"))
        and os.fsdecode(name) not in INSTALLED_FOLDERS
    ]
    if _is_download(folder):
        guesses = [dataset for dataset in _datasets(folder, ".") if dataset.format in RECORD_FILES]
    elif folder.kind(_GIT) is not None or _are_repositories(below) or _is_copy_of_checkout(folder):
        guesses = list(_datasets(folder, "."))
    else:
        n_records = FIRST_RECORDS if len(below) <= MOST_PATHS else _FEW_RECORDS
        loose = list(_datasets(folder, ".", deep=False))
        of_folders = [dataset for sub in below for dataset in _datasets(sub, sub.name, n_records=n_records)]
        guesses = join_alike(folder, _name(folder), loose, of_folders)
    if not guesses:
        raise ConfigurationError(_no_dataset(folder))
    return list(_named_once(guesses))


def _no_dataset(folder: Place) -> str:
    """Return the error for a folder without a file of a known format: its contents and the remedy."""
    *nouns, last_noun = ("text", "code", *filter(None, (format.noun for format in FORMATS)))
    names = list(islice(files_below(folder, ("**/*",), UNWANTED), MOST_FILES))
    examples = ", ".join(map(os.fsdecode, names[:3]))
    fact = f"No file below `{folder.display()}` looks like {', '.join(nouns)} or {last_noun}: it "
    advice = [*container_remedies([(folder, name) for name in names])] or [
        *filter(None, remedies(count_endings(names)))
    ]
    by_hand = "Write the file by hand (docs/datasets.md of the repository lists the fields)."
    return " ".join([fact + (f"holds {examples}." if names else "is empty."), *(advice or [by_hand])])


def _is_copy_of_checkout(folder: Place) -> bool:
    """Whether a folder is a copy of a checkout without its `.git`: most of its files are code.

    Folders of data have a `.gitignore`, too, which keeps them out of a repository.
    """
    if not is_checkout(folder):
        return False
    datasets = list(_datasets(folder, "."))
    n_code = sum(
        dataset.files for dataset in datasets if dataset.kind == "code" and dataset.format == "files"
    )
    return n_code * 2 > sum(dataset.files for dataset in datasets)


def _are_repositories(folders: Sequence[Place]) -> bool:
    return bool(folders) and all(folder.kind(_GIT) is not None for folder in folders)


def _is_download(folder: Place) -> bool:
    """Whether a folder is a dataset of the Hugging Face Hub: the card of a dataset above files of records."""
    if folder.kind(CARD_FILE) != "file":
        return False
    of_records = [format for format in RECORD_FILES if issubclass(CLASS_OF_FORMAT[format], RecordFiles)]
    patterns = [pattern for format in of_records for pattern in RECORD_FILES[format]]
    names = files_below(folder, patterns, (*UNWANTED, *INSTALLED, *HIDDEN_NAMES))
    if next(names, None) is None:
        return False
    card = card_of(folder)  # the front matter of notes has other fields
    return card is not None and card.is_of_hub


def _datasets(
    folder: Place, path: str, *, deep: bool = True, n_records: int = FIRST_RECORDS
) -> Iterator[Guess]:
    """Yield the datasets of one folder: one for each format of records, and one for its texts."""
    listed = files_below(folder, ("**/*",), (*UNWANTED, *INSTALLED), deep=deep)
    rest = [name for name in islice(listed, MOST_FILES) if not name.startswith(b".")]
    has_records = False
    read_with_others: list[bytes] = []
    for format, patterns in RECORD_FILES.items():
        pattern = compiled(patterns)
        candidates = [name for name in rest if pattern.fullmatch(name)]
        rest = [name for name in rest if not pattern.fullmatch(name)]
        files_of_format = [name for name in candidates if not is_json_document(folder, name)]
        companions = CLASS_OF_FORMAT[format].companions(files_of_format, rest)
        if files_of_format and companions is not None:
            read_with_others += companions
            has_records = True
            yield _records(folder, path, format, files_of_format, deep, n_records)
    for texts in text_files(folder, deep=deep, has_records=has_records, apart=read_with_others):
        yield Guess(
            _name(folder),
            texts.kind,
            texts.format,
            (path,),
            texts.files,
            texts.include,
            exclude=texts.exclude,
        )


def _records(
    folder: Place, path: str, format: str, files: Sequence[bytes], deep: bool, n_records: int
) -> Guess:
    """The dataset of files of records: a folder, or the loose files in it."""
    loose = tuple(os.fsdecode(name) for name in files)
    format_class = CLASS_OF_FORMAT[format]
    fields = None
    if issubclass(format_class, RecordFiles):
        source = Input(Origin(""), folder, files[0], FIRST_BYTES)
        fields = guess_fields(format_class, source, n_records)
    kind: Kind = "code" if fields and {"repository", "path"} <= fields.columns.keys() else "prose"
    card = card_of(folder) if deep and format != "archive" else None
    return Guess(
        _name(folder),
        kind,
        format,
        (path,) if deep else loose,
        len(files),
        fields=fields,
        license=card.license if card else None,
        note=_about(card) if card else "",
    )


def _about(card: Card) -> str:
    """Name the fields that a run takes from the card of a dataset."""
    facts = {"name": card.name, "license": card.license, "language": card.language}
    defaults = conjunction(
        [f"{field} {json.dumps(text, ensure_ascii=False)}" for field, text in facts.items() if text]
    )
    return f"README.md is its card and not a document. It gives {defaults or 'no single license'}."


def _name(folder: Place) -> str:
    """A dataset name made from the name of a folder."""
    plain = re.sub("[^a-z0-9]+", "_", folder.canonical().name.lower()).strip("_")
    plain = plain if plain[:1].isalpha() else f"data_{plain}".strip("_")
    try:
        return names.dataset(plain)
    except ConfigurationError:  # an ending that the platform reserves
        return f"{plain}_data"


def _named_once(found: Iterable[Guess]) -> Iterator[Guess]:
    """Yield the guesses; add the format or a number to a name that is taken."""
    taken: set[str] = set()
    for it in found:
        candidates = chain([it.name, f"{it.name}_{it.format}"], (f"{it.name}_{n}" for n in count(2)))
        name = next(name for name in candidates if name not in taken)
        taken.add(name)
        yield replace(it, name=name)


def join_alike(folder: Place, name: str, loose: Sequence[Guess], of_folders: Sequence[Guess]) -> list[Guess]:
    """Return the guesses of the loose files and of the folders; many folders read alike share one.

    The shared dataset lists the folders as its paths, so each document has the source and key that a dataset
    per folder would give it. Folders that are read in other ways keep a dataset each.
    """
    alike: dict[tuple[object, ...], list[Guess]] = {}
    for dataset in of_folders:
        alike.setdefault(_manner(dataset), []).append(dataset)
    datasets = [
        dataset
        for guesses in alike.values()
        for dataset in ([_joined(folder, name, guesses)] if len(guesses) > MOST_PATHS else guesses)
    ]
    code_is_joined = any(dataset.format == "repositories" and dataset.paths == (".",) for dataset in datasets)
    others = [dataset for dataset in loose if not (code_is_joined and dataset.kind == "code")]
    return [*(_loose(folder, dataset, datasets) for dataset in others), *datasets]


def _manner(dataset: Guess) -> tuple[object, ...]:
    """How a dataset is read, but for its paths: two of one manner may be one dataset."""
    fields = dataset.fields
    of_records = fields and (fields.text, fields.key, tuple(fields.columns.items()), str(fields.messages))
    return dataset.kind, dataset.format, of_records


def _joined(folder: Place, name: str, guesses: Sequence[Guess]) -> Guess:
    """One dataset of folders that are read alike."""
    first, n_files = guesses[0], sum(dataset.files for dataset in guesses)
    paths = tuple(path for dataset in guesses for path in dataset.paths)
    include = tuple(dict.fromkeys(pattern for dataset in guesses for pattern in dataset.include))
    exclude = _sum_exclusions(guesses)
    if len(paths) > MOST_LISTED and _n_files(folder, first, include, exclude) == n_files:
        paths = (".",)
    format = first.format
    if first.kind == "code" and format == "files":  # loose code beside repositories is read with them
        format, paths = "repositories", (".",)
    licenses = {dataset.license for dataset in guesses}
    return replace(
        first,
        name=name,
        format=format,
        paths=paths,
        files=n_files,
        include=include,
        exclude=exclude,
        license=licenses.pop() if len(licenses) == 1 else None,
        note=f"{len(guesses):,} folders are read alike, so they are one dataset. For a dataset each, repeat "
        "the entry with one of the folders as `paths`.",
    )


def _n_files(folder: Place, dataset: Guess, include: Sequence[str], exclude: Sequence[Exclusion]) -> int:
    """The number of files that the dataset would read of the whole folder."""
    patterns = include or RECORD_FILES[dataset.format]
    left_out = (*UNWANTED, *(exclusion.pattern for exclusion in exclude))
    names = files_below(folder, patterns, left_out)
    return sum(1 for name in names if include or not is_json_document(folder, name))


def _sum_exclusions(guesses: Sequence[Guess]) -> tuple[Exclusion, ...]:
    """The exclusions of several datasets, each pattern once, with the sum of their files."""
    by_pattern: dict[str, Exclusion] = {}
    for exclusion in chain.from_iterable(dataset.exclude for dataset in guesses):
        earlier = by_pattern.get(exclusion.pattern)
        n_files = exclusion.files + (earlier.files if earlier else 0)
        by_pattern[exclusion.pattern] = replace(exclusion, files=n_files)
    return tuple(by_pattern.values())


def _loose(folder: Place, dataset: Guess, of_folders: Sequence[Guess]) -> Guess:
    """A dataset of loose files: more than a dozen are their folder, unless folders below have such files.

    Pictures are their folder if nothing else in it looks like a picture or a caption.
    """
    is_whole = len(dataset.paths) > MOST_PATHS or (dataset.of_images and _are_all(folder, dataset.paths))
    if not is_whole or any(other.format == dataset.format for other in of_folders):
        return dataset
    return replace(dataset, paths=(".",))


def _are_all(folder: Place, pictures: Sequence[str]) -> bool:
    """Whether a reader of the whole folder finds these pictures and their captions alone."""
    files = set(map(os.fsencode, pictures))
    captions = {stem_of(name) + CAPTION_ENDING.encode() for name in files}
    patterns = (*RECORD_FILES["images"], f"**/*{CAPTION_ENDING}")
    return files.union(captions).issuperset(files_below(folder, patterns, UNWANTED))
