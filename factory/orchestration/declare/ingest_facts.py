"""The facts that a datasets file joins to the documents of a dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, model_validator

from factory.errors import ConfigurationError
from factory.filters.metadata import FACTS, METADATA
from factory.filters.rounds import Round
from factory.frozen_model import FrozenModel, WordList
from factory.ingest.fact_files import By, FactFiles, columns_of, files_at
from factory.ingest.unsupported_paths import why_missing
from factory.lake.names import TableName
from factory.orchestration.declare.filters import rounds_of
from factory.orchestration.declare.ingest_dataset import PartFields
from factory.orchestration.declare.located_yaml import InvalidValue
from factory.orchestration.declare.part import Declared, Entry, Part
from factory.suggestions import unknown_name
from spark_udfs.ingest.address import place_of

if TYPE_CHECKING:
    from factory.orchestration.chain.ingest_facts import FactTable
    from factory.orchestration.chain.link import Link


class FactsEntry(FrozenModel):
    """Files, or a table, with a row for each key, host or repository that something is known of."""

    paths: WordList = Field(default=(), description="files of facts, or folders of them")
    table: str | None = Field(default=None, description="a table of the lake, in place of files")
    by: By = Field(description="the field of documents that rows are joined by")
    column: str | None = Field(
        default=None, description="the column with its value; default: the one of its name"
    )
    columns: WordList = Field(
        default=(), description="the facts to take; default: every other column of a file"
    )

    @model_validator(mode="after")
    def _files_or_a_table(self) -> FactsEntry:
        if bool(self.paths) == bool(self.table):
            raise ValueError("Facts come from `paths` or from a `table`. Give one of the two.")
        if self.table and not self.columns:
            raise ValueError("Of a table the facts are named. List its `columns`, such as `metadata.score`.")
        return self

    def source(self, folder: Path) -> FactFiles | FactTable:
        """The files or the table to join; paths are relative to `folder`."""
        from factory.orchestration.chain.ingest_facts import FactTable

        column = self.column or self.by
        if self.table is not None:
            facts = {name.removeprefix(METADATA): name for name in self.columns}
            return FactTable(TableName.parse(self.table), self.by, column, facts)
        paths = tuple(place_of(path, folder) for path in self.paths)
        return FactFiles(paths, self.by, column, self.columns)

    def names(self, folder: Path) -> list[str]:
        """The names of its facts.

        Raises ConfigurationError for files that do not exist or cannot be read, and for a column they lack.
        """
        source = self.source(folder)
        if not isinstance(source, FactFiles):
            return list(source.facts)
        names: dict[str, None] = {}
        for name_of_path, path in zip(self.paths, source.paths, strict=True):
            files = files_at(path)
            if not files:
                if path.kind() is None and (sentence := why_missing(name_of_path, path)):
                    raise ConfigurationError(sentence)
                raise ConfigurationError(
                    f"`{name_of_path}` holds no file of facts. Paths are relative to the folder "
                    f"of this file, {folder}."
                )
            for file in files:
                columns = columns_of(file)
                for name in (source.column, *source.columns):
                    if name not in columns:
                        raise ConfigurationError(unknown_name(f"column of `{file.name}`:", name, columns))
                names |= dict.fromkeys(self.columns or [name for name in columns if name != source.column])
        return list(names)


FactsEntries = Annotated[
    tuple[FactsEntry, ...],
    BeforeValidator(lambda facts: [facts] if isinstance(facts, Mapping) else facts),
]


class FactsFields(PartFields):
    """The facts of a dataset."""

    facts: FactsEntries = Field(
        default=(), description="what others know about its keys, hosts or repositories"
    )


class FactsPart(Part):
    """External facts, joined to the raw documents."""

    dataset = FactsFields

    def links(self, entry: Entry, file: Declared) -> Sequence[Link]:
        """Return the link of the facts; raises InvalidValue for facts that do not exist."""
        from factory.orchestration.chain.ingest_facts import Facts

        if entry.variant is not None:
            return ()
        facts = entry.fields(FactsFields).facts
        variants = [other for other in file.variants if other.base == entry.name]
        rounds = [*rounds_of(entry), *chain(*map(rounds_of, variants))]
        try:
            _check_facts(facts, rounds, file.folder)
        except ConfigurationError as error:
            raise InvalidValue((*entry.place, "facts"), str(error)) from error
        return [Facts([source.source(file.folder) for source in facts])] if facts else ()


def _check_facts(facts: Sequence[FactsEntry], rounds: Sequence[Round], folder: Path) -> None:
    """Raise ConfigurationError for two entries with a fact of one name, and for a predicate on none."""
    every = [name for entry in facts for name in entry.names(folder)]
    twice = [name for name, n in Counter(every).items() if n > 1]
    if twice:
        raise ConfigurationError(
            f"Two entries of `facts` have a column `{twice[0]}`. List the `columns` to take of each."
        )
    for field in _fields(rounds):
        if not facts:
            raise ConfigurationError(
                f"A predicate reads the fact `{field}`, and the dataset has no `facts`. Declare them."
            )
        if field not in every:
            raise ConfigurationError(unknown_name("fact", field, every))


def _fields(rounds: Sequence[Round]) -> Iterator[str]:
    for round_of_rules in rounds:
        yield from (
            field.removeprefix(FACTS) for field in round_of_rules.predicates if field.startswith(FACTS)
        )
