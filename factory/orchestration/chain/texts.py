"""The documents of several datasets, as arguments of one asset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.dedup.priority import REFERENCE
from factory.lake import names
from factory.lake.names import TableName
from factory.lake_spark.documents import kept_documents, located, of_datasets
from factory.orchestration.chain.link import Chain


@dataclass(frozen=True)
class Member:
    """A dataset among several: its documents, and the verdicts that say which of them count, if any do.

    The documents of a `reference` are compared with, and never decided on.
    """

    dataset: str
    documents: TableName
    verdicts: TableName | None = None
    reference: bool = False

    @classmethod
    def at_end_of(cls, chain: Chain) -> Member:
        """The documents that the next link of a chain would read."""
        return cls(chain.dataset, chain.documents, chain.verdicts)


@dataclass(frozen=True)
class Quality:
    """The values of a rule that say how good documents are: its name, and the signals of each dataset."""

    rule: str
    tables: Mapping[str, TableName]


@dataclass(frozen=True)
class Texts:
    """The documents of members as arguments of an asset; `variant` renames their datasets to its own.

    With `quality` their column of that name holds the values of a rule.
    """

    members: Sequence[Member]
    variant: str | None = None
    quality: Quality | None = None

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the datasets that are decided on, or of their variants."""
        return tuple(self._dataset(member) for member in self.members if not member.reference)

    @property
    def tables(self) -> dict[str, TableName]:
        """The tables by argument: the documents of all members, their verdicts, and values of quality."""
        documents = {_documents(member): member.documents for member in self.members}
        verdicts = {
            _verdicts(member): member.verdicts for member in self.members if member.verdicts is not None
        }
        quality = self.quality.tables if self.quality else {}
        return documents | verdicts | {f"quality_{dataset}": table for dataset, table in quality.items()}

    def documents(self, upstream: Mapping[str, DataFrame]) -> DataFrame:
        """The documents of all members, with the dataset of each, of an asset's arguments."""
        frames = {
            self._dataset(member): self._with_quality(
                member, _staying(member, upstream[_documents(member)], upstream), upstream
            )
            for member in self.members
        }
        if not any(member.reference for member in self.members):
            return of_datasets(frames)
        return of_datasets(
            {
                self._dataset(member): frames[self._dataset(member)].withColumn(
                    REFERENCE, F.lit(member.reference)
                )
                for member in self.members
            }
        )

    def _with_quality(
        self, member: Member, documents: DataFrame, upstream: Mapping[str, DataFrame]
    ) -> DataFrame:
        if self.quality is None or member.reference:
            return documents
        signals = upstream[f"quality_{member.dataset}"]
        values = signals.select("doc_id", F.col(self.quality.rule).alias("quality"))
        return documents.drop("quality").join(values, "doc_id", "left")

    def located(self, upstream: Mapping[str, DataFrame]) -> DataFrame:
        """The documents with text locations in place of the texts."""
        return of_datasets(
            {
                self._dataset(member): _staying(
                    member, located(upstream[_documents(member)], "text"), upstream
                )
                for member in self.members
            }
        )

    def _dataset(self, member: Member) -> str:
        if member.reference:
            return (
                f"{member.dataset} (reference)"  # no dataset's name, so that no view of one counts its rows
            )
        return member.dataset if self.variant is None else names.variant(member.dataset, self.variant)


def _staying(member: Member, documents: DataFrame, upstream: Mapping[str, DataFrame]) -> DataFrame:
    return documents if member.verdicts is None else kept_documents(documents, upstream[_verdicts(member)])


def _documents(member: Member) -> str:
    return f"documents_{member.dataset}"


def _verdicts(member: Member) -> str:
    return f"verdicts_{member.dataset}"
