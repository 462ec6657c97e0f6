"""Check a datasets file without a run: its fields and names, its datasets' files, their first records."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from factory.counted import counted
from factory.errors import ConfigurationError
from factory.ingest.containers import container_warnings
from factory.ingest.left_out import count_endings, files_excluded, files_left_out
from factory.ingest.listing import UNWANTED, files_below
from factory.ingest.overlapping_paths import refuse_overlap
from factory.ingest.unsupported_paths import why_unreadable
from factory.ingest.vendored import INSTALLED, installed_folder
from factory.orchestration.datasets.assets import corpus
from factory.orchestration.datasets.corpus import Corpus
from factory.orchestration.datasets.file import datasets_file
from factory.orchestration.datasets.formats import Chosen
from factory.orchestration.datasets.limits_trial import LimitsTrial, limits_trial
from factory.orchestration.datasets.metadata_names import MetadataNames, unknown_names
from factory.orchestration.datasets.no_files import files_to_read, no_file_to_read, pages_among_files
from factory.orchestration.datasets.preview import Mistake, Preview
from factory.orchestration.datasets.preview import preview as preview_of
from factory.orchestration.datasets.shared_files import shared_file_warnings, whole_address
from factory.orchestration.declare.ingest_dataset import Dataset
from factory.orchestration.declare.ingest_partition_paths import keys_at, path_of
from factory.orchestration.declare.located_yaml import LocatedYaml
from factory.orchestration.declare.synthesis import Synthesis
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.files import NOTEBOOK_REMEDY, is_notebook
from spark_udfs.ingest.matching import folder_of
from spark_udfs.ingest.place import Place

_EVERY = ("**/*",)


@dataclass(frozen=True)
class CheckedDataset:
    """A dataset with the number of its files, or the dataset that it is made from.

    `advice` says what its first records suggest. With a `limit` only its first records are read. `left_out`
    has the number of files in its folders, by ending, that no dataset of the file reads; `n_by_exclude` has
    the number of files that only `exclude` keeps from its reader, by pattern.
    """

    name: str
    kind: str
    format: str
    variants: tuple[str, ...]
    files: int
    made_from: str | None = None
    advice: tuple[str, ...] = ()
    limit: int | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    n_by_exclude: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckedFile:
    """A correct file: its corpus, its datasets, and the absolute paths of it and of the files they read.

    Among the paths are the files that a dataset leaves out by `exclude`. `warnings` are
    about files that two datasets read, limits that remove most documents, and files of many documents.
    """

    corpus: Corpus
    datasets: tuple[CheckedDataset, ...]
    paths: frozenset[bytes] = field(default=frozenset(), repr=False)
    warnings: tuple[str, ...] = ()

    def left_out(
        self, folders: Iterable[Path | Place], exclude: Sequence[str] = UNWANTED
    ) -> Mapping[str, int]:
        """Return how many files of the folders no dataset reads or excludes, by ending."""
        tops = dict.fromkeys(place_of(folder).canonical() for folder in folders)
        return count_endings(name for top in tops for name in self._left_out(top, exclude))

    def installed_files(self, folder: Path) -> dict[str, int]:
        """Return how many files of installed packages no dataset reads or excludes, by outermost folder."""
        place = place_of(folder)
        names = (
            name
            for name in files_below(place, INSTALLED, UNWANTED)
            if whole_address(place, name) not in self.paths
        )
        return Counter(map(installed_folder, names))

    def _left_out(self, place: Place, exclude: Sequence[str]) -> Iterator[bytes]:
        return files_left_out(place, lambda name: whole_address(place, name) in self.paths, exclude)


def check(path: Path, progress: Callable[[str], None] | None = None) -> CheckedFile:
    """Return the corpus of a file, the number of files of each dataset, and advice from their first records.

    `progress` is called with the name of each dataset before its files are read. Raises ConfigurationError
    with a sentence for each mistake, for each dataset without a file to read, and for each declaration that
    does not fit the first records.
    """
    whole_corpus = corpus(path)
    located = LocatedYaml.read(path)
    datasets: list[CheckedDataset] = []
    wrong: list[str] = []
    files_of: list[list[tuple[Place, bytes]]] = []
    excluded_paths: set[bytes] = set()
    warnings: list[str] = []
    names_of: dict[str, MetadataNames] = {}
    entries = located.build(datasets_file()).datasets
    sources = {entry.from_ for entry in entries}
    for number, entry in enumerate(entries):
        if progress is not None:
            progress(entry.name)
        files, preview = _look(whole_corpus, entry, path.parent)
        files_of.append(files)
        names_of[entry.name] = preview.names
        trial = LimitsTrial()
        exclusions: dict[bytes, str] = {}
        if not preview.mistakes:  # which may be a folder that cannot be listed
            if entry.name not in sources:  # whose texts are read again, whatever its own limits keep
                trial = limits_trial(entry, files, preview.rows)
            exclusions = dict(_excluded(whole_corpus, entry))
        warnings += [trial.sentence] if trial.is_majority else []
        if entry.kind == "prose" and isinstance(entry, Chosen) and not entry.reader.of_pages:
            warnings += container_warnings(entry.name, files)
        excluded_paths |= exclusions.keys()
        wrong += [
            located.sentence(("datasets", number, *mistake.place), mistake.sentence)
            for mistake in preview.mistakes
        ]
        datasets.append(
            CheckedDataset(
                name=entry.name,
                kind=entry.kind,
                format=entry.format,
                variants=tuple(entry.variants),
                files=len(files),
                made_from=entry.from_,
                advice=(
                    *preview.advice,
                    *_notebooks(entry, files),
                    *([trial.sentence] if trial.sentence and not trial.is_majority else []),
                ),
                limit=entry.limit,
                n_by_exclude=_in_order(Counter(exclusions.values()), entry),
            )
        )
    for number, entry in enumerate(entries):
        if entry.from_ in names_of:
            names = names_of[entry.from_]
            if isinstance(entry, Synthesis):
                names = MetadataNames.of_records(entry, path.parent)
            wrong += [
                located.sentence(("datasets", number, *unknown.place), unknown.sentence)
                for unknown in unknown_names(entry, names, path.parent)
            ]
    if wrong:
        raise ConfigurationError("\n".join(wrong))
    canonical = {place: place.canonical() for files in files_of for place, _ in files}
    canonical_files = {
        dataset.name: [(canonical[place], name) for place, name in files]
        for dataset, files in zip(datasets, files_of, strict=True)
    }
    paths = {
        whole_address(place, read_name)
        for entry, files in zip(entries, canonical_files.values(), strict=True)
        for place, name in files
        for read_name in (name, *entry.beside(name))
    }
    whole_file = CheckedFile(
        whole_corpus,
        tuple(datasets),
        frozenset({*paths, *excluded_paths, os.fsencode(path.resolve())}),
        (*warnings, *shared_file_warnings(canonical_files, os.fsencode(path.parent.resolve()))),
    )
    with_left_out = [
        replace(dataset, left_out=whole_file.left_out(_searched_folders(whole_corpus, entry), entry.unwanted))
        for dataset, entry in zip(datasets, entries, strict=True)
    ]
    return replace(whole_file, datasets=tuple(with_left_out))


def _searched_folders(file_corpus: Corpus, entry: Dataset) -> list[Place]:
    """The folders that a dataset searches for all files of its format; `include` and `limit` choose some.

    There are none for a format that reads every file.
    """
    if entry.from_ is not None or entry.limit is not None or "include" in entry.model_fields_set:
        return []
    if entry.patterns == _EVERY:
        return []
    return [path for path in _paths(file_corpus, entry) if path.kind() == "folder"]


def _in_order(n_by_pattern: Mapping[str, int], entry: Dataset) -> dict[str, int]:
    """The counts in the order of the patterns of `exclude`."""
    return {pattern: n_by_pattern[pattern] for pattern in entry.unwanted if pattern in n_by_pattern}


def _excluded(file_corpus: Corpus, entry: Dataset) -> Iterator[tuple[bytes, str]]:
    """Yield the absolute path of each file that only `exclude` keeps from a reader, with the pattern."""
    if entry.from_ is not None or not isinstance(entry, Chosen):
        return
    for folder in entry.folders(list(_paths(file_corpus, entry))):
        top = folder.canonical()
        for pattern, name in files_excluded(folder, entry.include, entry.exclude):
            yield whole_address(top, name), pattern


def _notebooks(entry: Dataset, files: Sequence[tuple[Place, bytes]]) -> Iterator[str]:
    """Yield what becomes of the notebooks among the files of a dataset of texts."""
    if entry.reader.many_records:
        return
    notebooks = [os.fsdecode(name) for _, name in files if is_notebook(os.fsdecode(name))]
    if notebooks:
        verb = "is a notebook" if len(notebooks) == 1 else "are notebooks"
        yield (
            f"{len(notebooks):,} of the {counted(len(files), 'file')} of `{entry.name}` {verb}, such as "
            f"`{notebooks[0]}`. {NOTEBOOK_REMEDY}"
        )


def _look(file_corpus: Corpus, entry: Dataset, folder: Path) -> tuple[list[tuple[Place, bytes]], Preview]:
    """Return the files of a dataset, as folders and names, and what their first records show."""
    if entry.from_ is not None:
        return [], preview_of(entry, [], folder)
    files: list[tuple[Place, bytes]] = []
    try:
        by_address = {path.canonical(): path for path in _paths(file_corpus, entry)}
        paths = list(by_address.values())
        files += files_to_read(entry, paths)
        addresses = _addresses(files)
        refuse_overlap(map(folder_of, by_address), ((addresses[place], name) for place, name in files))
        if not files:
            sentence = no_file_to_read(entry, paths or file_corpus.paths[entry.name], folder)
        elif (pages := pages_among_files(entry, files)) is not None:
            sentence = pages
        else:
            return files, preview_of(entry, files, folder)
    except (ConfigurationError, OSError) as error:
        sentence = str(error) if isinstance(error, ConfigurationError) else why_unreadable(error)
    return files, Preview((Mistake(("paths",), sentence),))


def _addresses(files: Iterable[tuple[Place, bytes]]) -> dict[Place, bytes]:
    """The address without links of each place."""
    return {place: place.canonical().address for place in {place for place, _ in files}}


def _paths(whole_corpus: Corpus, entry: Dataset) -> Iterator[Place]:
    """Yield the existing paths of a dataset, of each partition if it has partitions."""
    given: Sequence[Place] = whole_corpus.paths[entry.name]
    partitions = whole_corpus.partitions.get(entry.name)
    if partitions is not None:
        given = [path_of(path, key) for key in keys_at(given, partitions) for path in given]
    yield from (path for path in given if path.kind() is not None)
