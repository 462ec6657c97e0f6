"""Tables for a round of filters, made from the documents that the rounds before it kept.

    Filters([Round(rules=["gopher_quality"]), PreparedRound(Round(), (Clustering(ClusterOptions()),))])

A preparation makes the tables, and gives the round rules that read them. A variant shares the tables of its
dataset as it shares signals: if its earlier rounds are equal or stricter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from factory.filters.implication import imply_all
from factory.filters.rounds import Round
from factory.filters.rule import Rule
from factory.lake.names import TableName
from factory.orchestration.chain.link import Chain


class Preparation(ABC):
    """Makes tables before a round, for rules of the round."""

    @abstractmethod
    def shares(self, base: Preparation, *, same_documents: bool) -> bool:
        """Whether it can read the tables that `base` makes of the same documents, or of more."""

    @abstractmethod
    def extend(self, chain: Chain, base: Prepared | None) -> Chain:
        """Return `chain` with all tables that it does not share with `base`."""

    @abstractmethod
    def rules(self, dataset: str, base: Prepared | None) -> Sequence[Rule]:
        """Return the rules that read the tables."""

    def tables(self, dataset: str, base: Prepared | None) -> Mapping[str, TableName]:  # noqa: ARG002
        """Return the tables that later rounds may read, by role."""
        return {}


@dataclass(frozen=True)
class PreparedRound:
    """A round of filters with preparations."""

    round: Round
    preparations: tuple[Preparation, ...] = ()

    def build(self) -> tuple[Rule, ...]:
        """Return the rules that need no preparation."""
        return self.round.build()


@dataclass(frozen=True)
class Passed:
    """The documents of `dataset` that passed `rules`."""

    dataset: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Prepared:
    """A preparation of `documents`, which may share the tables of `base`."""

    preparation: Preparation
    documents: Passed
    base: Prepared | None = field(default=None, repr=False)

    @property
    def dataset(self) -> str:
        """The dataset or variant of its documents."""
        return self.documents.dataset

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules that read the tables."""
        return self.preparation.rules(self.dataset, self.base)

    @property
    def tables(self) -> Mapping[str, TableName]:
        """The tables that later rounds may read, by role."""
        return self.preparation.tables(self.dataset, self.base)

    def extend(self, chain: Chain) -> Chain:
        """Return `chain` with the tables that are not shared."""
        return self.preparation.extend(chain, self.base)

    def serves(self, preparation: Preparation, documents: Passed) -> bool:
        """Whether `preparation` of `documents` can share these tables."""
        theirs, ours = self.documents.rules, documents.rules
        same = imply_all(theirs, ours)
        return imply_all(ours, theirs) and preparation.shares(self.preparation, same_documents=same)


def prepare(
    declaration: Round | PreparedRound, documents: Passed, bases: Sequence[Prepared]
) -> tuple[Prepared, ...]:
    """Return the preparations of a round, each with the one of `bases` that it shares tables with."""
    if isinstance(declaration, Round):
        return ()

    def base_of(preparation: Preparation) -> Prepared | None:
        return next((base for base in bases if base.serves(preparation, documents)), None)

    return tuple(
        Prepared(preparation, documents, base_of(preparation)) for preparation in declaration.preparations
    )
