"""The link of facts: tables of facts on raw documents, which predicates read as `facts.<name>`.

    files -> facts.<dataset>_rows -> facts.<dataset> <- raw.<dataset>

Every run reads the files. If they are unchanged, the run makes nothing else again; if they changed, it joins
facts to the documents and predicates decide anew, without reading a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

import dagster as dg
from pyspark.sql import DataFrame

from factory.ingest.fact_files import By, FactFiles, fact_rows, files_at
from factory.ingest.facts import facts_of, first_of_each, rejected_rows, rows_about_nothing, rows_of_table
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.ingest import FACT_ROWS, FACTS, REJECTED
from factory.orchestration.chain.link import Chain
from factory.orchestration.table.declaration import Tables
from spark_udfs.ingest.place import Place


@dataclass(frozen=True)
class FactTable:
    """Facts from a table of the lake: `facts` are its columns by their names; rows are joined by `column`."""

    table: TableName
    by: By
    column: str
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Facts:
    """Join facts to the raw documents of a dataset; the chain does not change."""

    sources: Sequence[FactFiles | FactTable]

    def extend(self, chain: Chain) -> Chain:
        files = [source for source in self.sources if isinstance(source, FactFiles)]
        return chain.adding(*([_rows(chain, files)] if files else []), self._facts(chain, bool(files)))

    def _facts(self, chain: Chain, from_files: bool) -> dg.AssetsDefinition:
        # A source's number tells its rows apart: files have the first ones, wherever tables stand among them.
        n_files = sum(isinstance(source, FactFiles) for source in self.sources)
        fact_tables = [source for source in self.sources if isinstance(source, FactTable)]
        tables = {f"table_{number}": (number, source) for number, source in enumerate(fact_tables, n_files)}
        name = names.facts(chain.dataset)

        @chain.table_asset(
            namespace=name.namespace,
            name=name.name,
            schema=FACTS,
            side_tables={"rejected": REJECTED},
            upstream={
                "documents": chain.documents,
                **({"rows": name.suffixed("rows")} if from_files else {}),
                **{argument: source.table for argument, (_, source) in tables.items()},
            },
            config={"sources": [repr(source) for _, source in tables.values()]},
            description=f"What others know about the documents of `{chain.documents}`, by name.",
            partitions_def=chain.partitions_def,
        )
        def facts(documents: DataFrame, **upstream: DataFrame) -> Tables:
            parts = [
                rows_of_table(
                    upstream[argument], str(source.table), number, source.by, source.column, source.facts
                )
                for argument, (number, source) in tables.items()
            ]
            first_part, *further = [*([upstream["rows"]] if from_files else []), *parts]
            rows = first_part
            for part in further:
                rows = rows.unionByName(part)
            first, others = first_of_each(rows)
            bad_rows = rejected_rows(others, "key_taken", "An earlier row has the %s `%s`.")
            if chain.partitions_def is not None:  # each partition would tell the same rows, and more
                bad_rows = bad_rows.where("false")
            else:
                alone = rows_about_nothing(documents, first)
                bad_rows = bad_rows.unionByName(
                    rejected_rows(alone, "no_document", "No document has the %s `%s`.")
                )
            return Tables(facts_of(documents, first), {"rejected": bad_rows}, max_rejected=inf)

        return facts


def _written(source: FactFiles) -> dict[str, object]:
    """Everything that decides the rows of fact files, except their content."""
    name = ", ".join(path.name for path in source.paths)
    paths = [path.display() for path in source.paths]
    return {
        "name": name,
        "paths": paths,
        "by": source.by,
        "column": source.column,
        "columns": list(source.columns),
    }


def _places(source: FactFiles) -> Iterator[Place]:
    for path in source.paths:
        yield from (path, *files_at(path))


def _rows(chain: Chain, files: Sequence[FactFiles]) -> dg.AssetsDefinition:
    name = names.facts(chain.dataset).suffixed("rows")

    @chain.table_asset(
        namespace=name.namespace,
        name=name.name,
        schema=FACT_ROWS,
        description=f"The rows of the files of facts about the documents of `{chain.documents}`.",
        config={"files": [_written(source) for source in files]},
        # Facts may lie behind links, which a listing of the folder alone does not follow.
        files=lambda _: [place.canonical() for source in files for place in _places(source)],
    )
    def rows(pyspark) -> DataFrame:  # type: ignore[no-untyped-def]
        return pyspark.spark_session.createDataFrame(fact_rows(files))

    return rows
