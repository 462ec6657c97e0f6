"""The links that filter a dataset, one a round, and which signals the rounds can share.

    raw -> signals_r1 -> filtered_r1 -> signals_r2 -> filtered_r2 -> ... -> signals -> filtered

A round measures the documents that passed all earlier rounds, and its verdicts cover all documents: a
document that an earlier round rejected keeps its rejections. So `filtered.<dataset>`, the last round's table,
holds every document with every rule it fails.

Values are measured once. The rules that read documents alone share one table of signals; a rule that reads
another table has one of its own, so that a new model measures only its own column:

    signals_r1, signals_r1_by_quality, models.quality

A round reads the signals of an earlier round, or of its base dataset, if these have every column that its
rules need for every document it measures. Otherwise the round measures, and its signals table has its own
name. The declarations alone tell whether a table covers the documents: every rule that the table's documents
passed must also precede the round, with limits as strict or stricter.

A limit that is a share of the documents, such as the best tenth, becomes a bound once, over all documents of
the round: `signals.<round>_limits`, a lasting table. A retrained model measures on another scale, so it ends
them.

A round may need further tables of its documents, such as clusters with verdicts. Its preparations
(`factory.orchestration.chain.filters_preparation`) make them, and give the round rules that read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg
from pyspark.sql import DataFrame

from factory.errors import ConfigurationError
from factory.filters.implication import imply_all
from factory.filters.metadata import WrittenNumberPredicate
from factory.filters.rounds import Round
from factory.filters.rule import Rule
from factory.filters.shares import by_share, limits_table, with_bounds
from factory.filters.stage import by_part, decide, join_parts, measure, signals_schema
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.filters import FILTERED, LIMITS
from factory.lake_spark.documents import kept_documents
from factory.orchestration.chain.filters_preparation import Passed, Prepared, PreparedRound, prepare
from factory.orchestration.chain.link import Chain, Link
from factory.orchestration.table.checks import Check, alarm, holds
from factory.suggestions import unknown_name

A_VERDICT_HAS_ITS_REASONS = holds(
    "a_verdict_has_its_reasons",
    "kept = (size(rejections) = 0)",
    "kept",
    "rejections",
    description="A document is kept if no rule rejects it, and removed if one does.",
)


@dataclass(frozen=True)
class Measured:
    """A table of signals: its columns, and the rules that its documents passed before they were measured."""

    table: TableName
    signals: Mapping[str, str]
    passed: tuple[Rule, ...]

    def serves(self, rules: Sequence[Rule], passed: Sequence[Rule]) -> bool:
        """Whether the table has every value that `rules` need for every document that passed `passed`."""
        return signals_of(rules).items() <= self.signals.items() and imply_all(passed, self.passed)


@dataclass(frozen=True)
class Filters:
    """Filter in `rounds`, each with the rules of its declaration.

    `measured` are existing signals, and `preparations` existing tables, that the rounds may read; a variant
    reads its dataset's.
    """

    rounds: Sequence[Round | PreparedRound]
    measured: tuple[Measured, ...] = ()
    preparations: tuple[Prepared, ...] = ()
    _steps: dict[str, Sequence[_Round]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def links(self) -> list[Link]:
        """Return a link for each round, so that other links can stand between the rounds."""
        return [FilterRound(self, number) for number in range(max(1, len(self.rounds)))]

    @classmethod
    def for_variant(cls, chain: Chain, rounds: Sequence[Round | PreparedRound]) -> Filters:
        """Return the filters of a variant of `chain`, which may read the tables that its filters made."""
        filters = chain.link(FilterRound).filters
        return cls(rounds, filters.measuring(chain.dataset), filters.making(chain.dataset))

    def extend_by(self, number: int, chain: Chain) -> Chain:
        """Return `chain` with the tables of a round, numbered from 0."""
        if not self.rounds:
            raise ConfigurationError(f"`{chain.dataset}` has no round of filters. Give one, if only Round().")
        step = self.steps_of(chain.dataset)[number]
        for preparation in step.preparations:
            chain = preparation.extend(chain)
        signals = [_signals(chain, part) for part in step.parts if not part.measured_before]
        limits = [_limits(chain, step)] if by_share(step.rules) else []
        verdicts = names.filtered(step.name)
        return chain.adding(*signals, *limits, _filtered(chain, step), verdicts=verdicts)

    def measuring(self, dataset: str) -> tuple[Measured, ...]:
        """Every table of signals after the rounds of `dataset`, for a variant's filters."""
        parts = [part for step in self.steps_of(dataset) for part in step.parts]
        return (*self.measured, *(part.signals for part in parts if not part.measured_before))

    def making(self, dataset: str) -> tuple[Prepared, ...]:
        """Every preparation of the rounds of `dataset`, for a variant's filters."""
        steps = self.steps_of(dataset)
        return (
            *self.preparations,
            *(part for step in steps for part in step.preparations if part.dataset == dataset),
        )

    def table_of(self, dataset: str, rule: str) -> TableName:
        """The signals of `dataset` that hold the number of a rule; raises ConfigurationError without any."""
        parts = [part for step in self.steps_of(dataset) for part in step.parts]
        for part in parts:
            if any(other.name == rule and other.signals.get(rule) == "number" for other in part.rules):
                return part.signals.table
        numbers = {name for part in parts for other in part.rules for name in other.signals}
        raise ConfigurationError(unknown_name(f"rule of `{dataset}` with a number:", rule, sorted(numbers)))

    def steps_of(self, dataset: str) -> Sequence[_Round]:
        """The rounds of `dataset`, read once, because the file of a rule may change under this process."""
        if dataset not in self._steps:
            self._steps[dataset] = tuple(_rounds(dataset, self))
        return self._steps[dataset]


@dataclass(frozen=True)
class FilterRound:
    """One round of filters, numbered from 0; it filters the documents that the links before it kept."""

    filters: Filters
    number: int

    def extend(self, chain: Chain) -> Chain:
        return self.filters.extend_by(self.number, chain)

    def preparations(self, dataset: str) -> Sequence[Prepared]:
        """Return the preparations of the round of `dataset`."""
        return self.filters.steps_of(dataset)[self.number].preparations

    def tables(self, dataset: str) -> dict[str, TableName]:
        """Return the tables that the round makes of `dataset` for later rounds, by role.

        A rule that gives documents a word, such as a class, has the role of its name.
        """
        step = self.filters.steps_of(dataset)[self.number]
        tables = {
            rule.name: part.signals.table
            for part in step.parts
            for rule in part.rules
            if rule.reads and rule.signals.get(rule.name) == "word"
        }
        for preparation in step.preparations:
            tables |= preparation.tables
        return tables


@dataclass(frozen=True)
class _Part:
    """Some rules of a round, and the table of signals with their values."""

    rules: Sequence[Rule]
    signals: Measured
    measured_before: bool


@dataclass(frozen=True)
class _Round:
    """A round of a dataset: the name of its tables, its rules, and the signals it reads, in parts.

    `preparations` make tables before the round.
    """

    name: str
    rules: Sequence[Rule]
    parts: Sequence[_Part]
    preparations: Sequence[Prepared]

    @property
    def signals(self) -> dict[str, TableName]:
        """The tables of signals, by the argument of an asset."""
        tables = dict.fromkeys(part.signals.table for part in self.parts)
        return {f"signals_{number}" if number else "signals": table for number, table in enumerate(tables)}


def _rounds(dataset: str, filters: Filters) -> Iterator[_Round]:
    """Yield the rounds of `dataset`; raises ConfigurationError for a rule that does not exist."""
    available = list(filters.measured)
    passed: tuple[Rule, ...] = ()
    for number, declared in enumerate(filters.rounds, start=1):
        name = names.in_round(dataset, number, len(filters.rounds))
        before = Passed(dataset, passed)
        preparations = prepare(declared, before, filters.preparations)
        rules = [rule.of_dataset(names.base(dataset)) for rule in declared.build()]
        rules += [rule for preparation in preparations for rule in preparation.rules]
        parts = []
        for part, rules_of_part in by_part(rules).items():
            signals = next((table for table in available if table.serves(rules_of_part, passed)), None)
            measured_before = signals is not None
            if signals is None:
                signals = Measured(names.signals(name, part), signals_of(rules_of_part), passed)
                available.append(signals)
            parts.append(_Part(rules_of_part, signals, measured_before))
        yield _Round(name, rules, parts, preparations)
        passed = (*passed, *rules)


def signals_of(rules: Sequence[Rule]) -> dict[str, str]:
    """Return the kind of each signal column that `rules` read, and the code and tables that it comes from."""
    return {column: f"{kind}{_origin(rule)}" for rule in rules for column, kind in rule.signals.items()}


def _origin(rule: Rule) -> str:
    code = f" of {rule.source}" if rule.source else ""
    tables = "".join(f" by {table}" for table in rule.reads.values())
    return code + tables


def _signals(chain: Chain, part: _Part) -> dg.AssetsDefinition:
    """The values that a round measures; a row describes one document, so it has the document's partition."""
    rest = f" that `{chain.verdicts}` kept" if chain.verdicts else ""
    rules, table = part.rules, part.signals.table
    own = {"documents": chain.documents, **_before(chain)}
    read = {table for rule in rules for table in rule.reads.values()} - set(own.values())
    argument_of = {table: f"{table.namespace}_{table.name}" for table in sorted(read)}
    argument_of |= {table: argument for argument, table in own.items()}

    @chain.table_asset(
        namespace=table.namespace,
        name=table.name,
        schema=signals_schema(rules),
        upstream={argument: table for table, argument in argument_of.items()},
        config={"signals": signals_of(rules)},
        description=f"Every measured value of every document of `{chain.documents}`{rest}.",
        checks=list(_spelled_numbers(rules)),
        partitions_def=chain.partitions_def,
    )
    def signals(**upstream: DataFrame) -> DataFrame:
        waiting = upstream["documents"]
        if "before" in upstream:
            waiting = kept_documents(waiting, upstream["before"])
        return measure(waiting, rules, {table: upstream[argument] for table, argument in argument_of.items()})

    return signals


def _spelled_numbers(rules: Sequence[Rule]) -> Iterator[Check]:
    """Yield the checks that count values of `metadata` that should be numbers or dates, and are not."""
    for rule in rules:
        if isinstance(rule, WrittenNumberPredicate):
            [column] = rule.signals
            yield alarm(
                f"{column}_is_a_{rule.noun}",
                rule.not_comparable,
                f"Every value of `{rule.name}` is a {rule.noun}; any other value counts as missing.",
                column,
            )


def _limits(chain: Chain, step: _Round) -> dg.AssetsDefinition:
    """The bounds of a round's limits that are shares of its documents, found over all its partitions."""
    shares = by_share(step.rules)
    of_shares = [rule for rule, _ in shares]
    models = {read for rule in of_shares for read in rule.reads.values() if read.namespace == "models"}
    table = names.limits(step.name)

    @chain.table_asset(
        namespace=table.namespace,
        name=table.name,
        schema=LIMITS,
        upstream={**step.signals, **_before(chain), **{model.name: model for model in sorted(models)}},
        config={
            "shares": {rule.name: str(share) for rule, share in shares},
            "signals": signals_of(of_shares),
        },
        description=f"The limits of `{step.name}` that are shares of its documents. They stand until a "
        "share, the code of its rule or its model changes, or a run selects this table without its signals.",
        lasting=True,
        until=sorted(models),
    )
    def limits(**upstream: DataFrame) -> DataFrame:
        return limits_table(_values(step, upstream), of_shares)

    return limits


def _filtered(chain: Chain, step: _Round) -> dg.AssetsDefinition:
    rules = step.rules
    limits = {"limits": names.limits(step.name)} if by_share(rules) else {}

    @chain.table_asset(
        namespace="filtered",
        name=step.name,
        schema=FILTERED,
        upstream={**step.signals, **_before(chain), **limits},
        config={"rules": [rule.as_values() for rule in rules]},
        description=f"The verdict of `{step.name}` on every document of `{chain.documents}`, with failed "
        "rules.",
        checks=[A_VERDICT_HAS_ITS_REASONS],
        partitions_def=chain.partitions_def,
    )
    def filtered(**upstream: DataFrame) -> DataFrame:
        bound_by_rule = {row.rule: row.limit for row in upstream["limits"].collect()} if limits else {}
        verdicts = decide(_values(step, upstream), with_bounds(rules, bound_by_rule))
        return (
            verdicts.unionByName(upstream["before"].where("NOT kept"), allowMissingColumns=True)
            if "before" in upstream
            else verdicts
        )

    return filtered


def _values(step: _Round, upstream: Mapping[str, DataFrame]) -> DataFrame:
    """The signals of a round, for the documents that no earlier round rejected."""
    parts = {str(table): upstream[argument] for argument, table in step.signals.items()}
    if "before" in upstream:
        first = next(iter(parts))
        parts[first] = kept_documents(parts[first], upstream["before"])
    return join_parts(parts)


def _before(chain: Chain) -> dict[str, TableName]:
    """The verdicts before a round, which it adds to."""
    return {"before": chain.verdicts} if chain.verdicts else {}
