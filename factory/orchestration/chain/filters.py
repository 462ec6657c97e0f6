"""The link that filters a dataset in rounds, and which signals the rounds can share.

    raw -> signals_r1 -> filtered_r1 -> signals_r2 -> filtered_r2 -> ... -> signals -> filtered

A round measures the documents that passed all earlier rounds, and its verdicts cover all documents: a
document that an earlier round rejected keeps its rejections. So `filtered.<dataset>`, the last round's table,
holds every document with every rule it fails.

Values are measured once. A round reads the signals of an earlier round, or of its base dataset, if these have
every column that its rules need for every document it measures. Otherwise the round measures, and its signals
table has its own name. The declarations alone tell whether a table covers the documents: every rule that the
table's documents passed must also precede the round, with limits as strict or stricter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg
from pyspark.sql import DataFrame

from factory.errors import ConfigurationError
from factory.filters.rounds import Round
from factory.filters.rule import Rule, TextRule, bounds
from factory.filters.stage import decide, measure, signals_schema
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.filters import FILTERED
from factory.lake_spark.documents import kept_documents
from factory.orchestration.asset.checks import holds
from factory.orchestration.chain.link import Chain

A_VERDICT_HAS_ITS_REASONS = holds(
    "a_verdict_has_its_reasons", "kept = (size(rejections) = 0)", "kept", "rejections"
)


@dataclass(frozen=True)
class Measured:
    """A table of signals: its columns, and the rules that its documents passed before they were measured."""

    table: TableName
    signals: Mapping[str, str]
    passed: tuple[Rule, ...]

    def serves(self, rules: Sequence[Rule], passed: Sequence[Rule]) -> bool:
        """Whether the table has every value that `rules` need for every document that passed `passed`."""
        return signals_of(rules).items() <= self.signals.items() and all(
            any(implies(ours, theirs) for ours in passed) for theirs in self.passed
        )


@dataclass(frozen=True)
class Filters:
    """Filter in `rounds`, each with the rules of its declaration.

    `measured` are existing signals that the rounds may read, those of the base dataset of a variant.
    """

    rounds: Sequence[Round]
    measured: tuple[Measured, ...] = ()
    _steps: dict[str, Sequence[_Round]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def extend(self, chain: Chain) -> Chain:
        if not self.rounds:
            raise ConfigurationError(f"`{chain.dataset}` has no round of filters. Give one, if only Round().")
        for step in self._steps_of(chain.dataset):
            signals = [] if step.measured_before else [_signals(chain, step)]
            chain = chain.adding(*signals, _filtered(chain, step), verdicts=names.filtered(step.name))
        return chain

    def measuring(self, dataset: str) -> tuple[Measured, ...]:
        """Every table of signals after the rounds of `dataset`, for a variant's filters."""
        steps = self._steps_of(dataset)
        return (*self.measured, *(step.signals for step in steps if not step.measured_before))

    def _steps_of(self, dataset: str) -> Sequence[_Round]:
        """The rounds of `dataset`, read once, because the file of a rule may change under this process."""
        if dataset not in self._steps:
            self._steps[dataset] = tuple(_rounds(dataset, self.rounds, self.measured))
        return self._steps[dataset]


@dataclass(frozen=True)
class _Round:
    """A round of a dataset: the name of its tables, its rules, and the signals it reads."""

    name: str
    rules: Sequence[Rule]
    signals: Measured
    measured_before: bool


def _rounds(dataset: str, rounds: Sequence[Round], measured: Sequence[Measured]) -> Iterator[_Round]:
    """Yield the rounds of `dataset`; raises ConfigurationError for a rule that does not exist."""
    available = list(measured)
    passed: tuple[Rule, ...] = ()
    for number, declared in enumerate(rounds, start=1):
        name = names.in_round(dataset, number, len(rounds))
        rules = declared.build()
        signals = next((table for table in available if table.serves(rules, passed)), None)
        if signals is not None:
            yield _Round(name, rules, signals, measured_before=True)
        else:
            signals = Measured(names.signals(name), signals_of(rules), passed)
            available.append(signals)
            yield _Round(name, rules, signals, measured_before=False)
        passed = (*passed, *rules)


def signals_of(rules: Sequence[Rule]) -> dict[str, str]:
    """Return the kind of each signal column that `rules` read, and the code that measures it."""
    return {
        column: f"{kind} of {rule.source}" if isinstance(rule, TextRule) and rule.source else kind
        for rule in rules
        for column, kind in rule.signals.items()
    }


def implies(strict: Rule, loose: Rule) -> bool:
    """Whether every document that passes `strict` passes `loose`: equal rules, one limit inside the other."""
    if strict.signals != loose.signals or repr(strict.with_limit(loose.limit)) != repr(loose):
        return False
    (low, high), (least, most) = bounds(strict.limit), bounds(loose.limit)
    return low >= least and high <= most


def _signals(chain: Chain, step: _Round) -> dg.AssetsDefinition:
    """The values that a round measures; a row describes one document, so it has the document's partition."""
    rest = f" that `{chain.verdicts}` kept" if chain.verdicts else ""
    rules = step.rules

    @chain.table_asset(
        namespace="signals",
        name=step.name,
        schema=signals_schema(rules),
        upstream={"documents": chain.documents, **_before(chain)},
        config={"signals": signals_of(rules)},
        description=f"Every measured value of every document of `{chain.documents}`{rest}.",
        partitions_def=chain.partitions_def,
    )
    def signals(documents: DataFrame, **upstream: DataFrame) -> DataFrame:
        waiting = kept_documents(documents, upstream["before"]) if upstream else documents
        return measure(waiting, rules)

    return signals


def _filtered(chain: Chain, step: _Round) -> dg.AssetsDefinition:
    rules = step.rules

    @chain.table_asset(
        namespace="filtered",
        name=step.name,
        schema=FILTERED,
        upstream={"signals": step.signals.table, **_before(chain)},
        config={"rules": [repr(rule) for rule in rules]},
        description=f"The verdict of `{step.name}` on every document of `{chain.documents}`, with failed "
        "rules.",
        checks=[A_VERDICT_HAS_ITS_REASONS],
        partitions_def=chain.partitions_def,
    )
    def filtered(signals: DataFrame, **upstream: DataFrame) -> DataFrame:
        if not upstream:
            return decide(signals, rules)
        before = upstream["before"]
        return decide(kept_documents(signals, before), rules).unionByName(before.where("NOT kept"))

    return filtered


def _before(chain: Chain) -> dict[str, TableName]:
    """The verdicts before a round, which it adds to."""
    return {"before": chain.verdicts} if chain.verdicts else {}
