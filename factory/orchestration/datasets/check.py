"""Check a datasets file without running: its fields, its names, and the files of each dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from factory.errors import ConfigurationError
from factory.orchestration.datasets.assets import corpus
from factory.orchestration.datasets.corpus import Corpus
from factory.orchestration.datasets.dataset import Dataset
from factory.orchestration.datasets.file import DatasetsFile
from factory.orchestration.datasets.located_yaml import LocatedYaml
from factory.orchestration.datasets.no_files import files_to_read, no_file_to_read, pages_as_text
from factory.orchestration.datasets.partition_paths import keys_at, path_of


@dataclass(frozen=True)
class CheckedDataset:
    """A dataset with the number of its files, or the dataset that it is made from.

    `pages` of its files are web pages that it takes for text. With a `limit` only its first records are read.
    """

    name: str
    kind: str
    format: str
    variants: tuple[str, ...]
    files: int
    made_from: str | None = None
    pages: int = 0
    limit: int | None = None


@dataclass(frozen=True)
class CheckedFile:
    """A correct file: its corpus, and its datasets."""

    corpus: Corpus
    datasets: tuple[CheckedDataset, ...]


def check(path: Path) -> CheckedFile:
    """Return the corpus of a file and count its datasets' files, without opening one.

    Raises ConfigurationError with a sentence for each mistake, and for each dataset without a file to read.
    """
    declared = corpus(path)
    located = LocatedYaml.read(path)
    datasets: list[CheckedDataset] = []
    wrong: list[str] = []
    for number, entry in enumerate(located.build(DatasetsFile).datasets):
        paths = list(_paths(declared, entry)) if entry.from_ is None else []
        n_files = files_to_read(entry, paths)
        if not n_files and entry.from_ is None:
            said = no_file_to_read(entry, paths or declared.paths[entry.name], path.parent)
            wrong.append(located.sentence(("datasets", number, "paths"), said))
        datasets.append(
            CheckedDataset(
                name=entry.name,
                kind=entry.kind,
                format=entry.format,
                variants=tuple(entry.variants),
                files=n_files,
                made_from=entry.from_,
                pages=pages_as_text(entry, paths),
                limit=entry.limit,
            )
        )
    if wrong:
        raise ConfigurationError("\n".join(wrong))
    return CheckedFile(declared, tuple(datasets))


def _paths(declared: Corpus, entry: Dataset) -> Iterator[Path]:
    """Yield the existing paths of a dataset, of each partition if it has partitions."""
    given: Sequence[Path] = declared.paths[entry.name]
    partitions = declared.partitions.get(entry.name)
    if partitions is not None:
        given = [path_of(path, key) for key in keys_at(given, partitions) for path in given]
    yield from (path for path in given if path.exists())
