"""Guess the datasets in a folder, with the format and fields of each, from file names and first records.

Each folder directly below is a dataset; many folders, or the folders of one repository, are one dataset. A
guess reads the first records of one file, so it can be wrong: the user edits the file that is written.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from pathlib import Path

from factory.errors import ConfigurationError
from factory.ingest.globs import compiled
from factory.ingest.listing import UNWANTED, files_below
from factory.lake import names
from factory.orchestration.chain.dedup import Kind
from factory.orchestration.datasets.formats import CLASS_OF_FORMAT, FORMATS, MessageFields, RecordFiles
from factory.orchestration.datasets.record_fields import key_field, messages_field, text_field
from spark_udfs.ingest.file_types import CODE, kind_of
from spark_udfs.ingest.files import Input
from spark_udfs.ingest.json_document import is_json_document
from spark_udfs.ingest.registry import READERS, RECORD_FILES
from spark_udfs.ingest.rows import Origin

FIRST_RECORDS, FIRST_BYTES = 1_000, 16 << 20  # read of a file of records
MOST_FILES = 100_000  # listed of a folder; a larger one is guessed from its first files
MOST_PATHS = 12  # folders with a dataset each, or loose files of one dataset; more are read as one folder
_PROSE = {"md", "markdown", "rst", "txt", "tex"}
_HTML = {"htm", "html", "xhtml"}

_COLUMN_FIELDS = {
    "repository": ("repository", "repo_name", "repo", "max_stars_repo_name"),
    "path": ("path", "file_path", "max_stars_repo_path"),
    "language": ("language", "lang"),
}


@dataclass(frozen=True)
class RecordFields:
    """The fields of records that seem to fill the columns of raw documents.

    Records of conversations have `messages` in place of a `text`.
    """

    text: str | None = None
    key: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    others: Sequence[str] = ()
    messages: MessageFields | None = None


@dataclass(frozen=True)
class Guess:
    """A dataset as a datasets file would declare it; `paths` are relative to the folder."""

    name: str
    kind: Kind
    format: str
    paths: tuple[str, ...]
    files: int
    include: tuple[str, ...] = ()
    fields: RecordFields | None = None

    @property
    def of_pages(self) -> bool:
        """Whether its reader makes texts of web pages, which needs an extra."""
        return self.format in READERS and READERS[self.format].of_pages


def guess(folder: Path) -> list[Guess]:
    """Return a guess for each dataset in `folder`.

    Raises ConfigurationError if `folder` is not a folder, or holds no file of a known format.
    """
    if not folder.is_dir():
        raise ConfigurationError(f"`{folder}` is not a folder. Name the folder of your files.")
    below = [
        entry
        for entry in sorted(folder.iterdir())
        if entry.is_dir() and not entry.name.startswith((".", "__"))
    ]
    loose = list(_datasets(folder, ".", deep=False))
    if (
        max(len(below), *(len(dataset.paths) for dataset in loose), 0) > MOST_PATHS
        or (folder / ".git").exists()
        or _are_repositories(below)
    ):
        found = list(_datasets(folder, "."))
    else:
        found = [*loose, *(dataset for sub in below for dataset in _datasets(sub, sub.name))]
    if not found:
        *nouns, last_noun = ("text", "code", *filter(None, (format.noun for format in FORMATS)))
        examples = [os.fsdecode(name) for name in islice(files_below(folder, ("**/*",), UNWANTED), 3)]
        contents = f"holds {', '.join(examples)}" if examples else "is empty"
        raise ConfigurationError(
            f"No file below `{folder}` looks like {', '.join(nouns)} or {last_noun}: it {contents}. "
            "Write the file by hand (docs/datasets.md of the repository lists the fields)."
        )
    return list(_named_once(found))


def _are_repositories(folders: Sequence[Path]) -> bool:
    return bool(folders) and all((folder / ".git").exists() for folder in folders)


def _datasets(folder: Path, path: str, *, deep: bool = True) -> Iterator[Guess]:
    """Yield the datasets of one folder: one for each format of records, and one for its texts."""
    listed = files_below(folder, ("**/*",), UNWANTED, deep=deep)
    files = [name for name in islice(listed, MOST_FILES) if not name.startswith(b".")]
    rest = files
    for format, patterns in RECORD_FILES.items():
        pattern = compiled(patterns)
        candidates = [name for name in rest if pattern.fullmatch(name)]
        rest = [name for name in rest if not pattern.fullmatch(name)]
        files_of_format = [name for name in candidates if not is_json_document(os.fsencode(folder), name)]
        if files_of_format:
            yield _records(folder, path, format, files_of_format, deep)
    extensions = Counter(_extension(name) for name in rest)
    code = {extension: n for extension, n in extensions.items() if kind_of(f"a.{extension}").language in CODE}
    prose = {extension: n for extension, n in extensions.items() if extension in _PROSE}
    html = {extension: n for extension, n in extensions.items() if extension in _HTML}
    if code and sum(code.values()) >= sum(prose.values()) + sum(html.values()):
        whole = (folder / ".git").exists() or any(
            b"/" not in name for name in rest if _extension(name) in code
        )
        yield _texts(folder, path, "code", "files" if whole else "repositories", code, deep)
        return
    if prose:
        yield _texts(folder, path, "prose", "files", prose, deep)
    if html:
        yield _texts(folder, path, "prose", "html", html, deep)


def _texts(
    folder: Path, path: str, kind: Kind, format: str, extensions: Mapping[str, int], deep: bool
) -> Guess:
    most_first = sorted(extensions, key=lambda extension: (-extensions[extension], extension))
    include = tuple(f"{'**/' if deep else ''}*.{extension}" for extension in most_first)
    return Guess(_name(folder), kind, format, (path,), sum(extensions.values()), include)


def _records(folder: Path, path: str, format: str, files: Sequence[bytes], deep: bool) -> Guess:
    """The dataset of files of records: a folder, or the loose files in it."""
    loose = tuple(os.fsdecode(name) for name in files)
    format_class = CLASS_OF_FORMAT[format]
    fields = _fields(folder, files[0], format_class) if issubclass(format_class, RecordFiles) else None
    kind: Kind = "code" if fields and {"repository", "path"} <= fields.columns.keys() else "prose"
    return Guess(_name(folder), kind, format, (path,) if deep else loose, len(files), fields=fields)


def _fields(folder: Path, file: bytes, format_class: type[RecordFiles]) -> RecordFields:
    """The fields of the first records; none if they cannot be read, which a check will report."""
    first = format_class.first_records(
        Input(Origin(""), os.fsencode(folder), file, FIRST_BYTES), FIRST_RECORDS
    )
    texts, messages = first.texts, messages_field(first)
    text = text_field(first) if messages is None else None
    columns = {
        column: name
        for column, candidates in _COLUMN_FIELDS.items()
        if (
            name := next(
                (candidate for candidate in candidates if candidate in texts and candidate != text), None
            )
        )
    }
    key = key_field([first], [text, *columns.values()])
    taken = {text, key, messages and messages.field, *columns.values()}
    others = tuple(name for name in texts if name not in taken)
    return RecordFields(text, key, columns, others, messages)


def _extension(name: bytes) -> str:
    return os.fsdecode(name).rpartition("/")[2].rpartition(".")[2].lower()


def _name(folder: Path) -> str:
    """A dataset name made from the name of a folder."""
    plain = re.sub("[^a-z0-9]+", "_", folder.resolve().name.lower()).strip("_")
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
