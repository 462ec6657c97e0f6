"""What each round of rules removed: documents, bytes, and tokens reckoned from them, by rule.

Only what stays is tokenized, so the tokens of a removed document are its bytes times the tokens per byte of
the dataset's documents that stayed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from factory.counted import counted
from factory.explain.stages.stage import Figure, Section, SummaryScope, count_by
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.filters import WITHOUT_VALUE

SECTION = Section(
    "removed", "Removed by round (a document can fail several rules; tokens are reckoned from bytes)"
)

_NAMED = 3  # rules in a line on missing values; those for small files of a repository alone are ten


@dataclass(frozen=True)
class Removed:
    """Documents, their bytes, and the tokens that these would have been; None before any are tokenized."""

    documents: int
    n_bytes: int
    tokens: int | None

    def __str__(self) -> str:
        tokens = "" if self.tokens is None else f", about {self.tokens:,} tokens"
        return f"{self.documents:,} documents, {self.n_bytes / 1e6:,.1f} MB{tokens}"


@dataclass(frozen=True)
class RoundOfRules:
    """The documents that entered a round, and the removed ones in all and by rule, most first."""

    table: str
    n_entered: int
    total: Removed
    by_rule: dict[str, Removed]
    without_value: dict[str, int] = field(default_factory=dict)  # documents that pass a rule, by rule

    def lines(self) -> Iterator[str]:
        """Yield lines for a person: the round, then its rules."""
        share = f" ({self.total.documents / self.n_entered:.1%})" if self.n_entered else ""
        yield f"{self.table}: {self.total}{share}"
        for rule, removal in self.by_rule.items():
            yield f"  {rule}: {removal}"
        if self.without_value:
            counts = [f"{rule} {n:,}" for rule, n in self.without_value.items()]
            n_more = len(counts) - _NAMED
            more = f" and {counted(n_more, 'more rule')}" if n_more > 0 else ""
            yield f"  passed without a value: {', '.join(counts[:_NAMED])}{more}"


def removed_by_round(scope: SummaryScope, dataset: str, verdicts: TableName) -> Figure | None:
    """Return the removals by each round of a dataset, up to `verdicts`; None without such a table."""
    if verdicts not in scope.tables or names.raw(dataset) not in scope.tables:
        return None
    waiting = scope.lake.read(names.raw(dataset), ["doc_id", "n_bytes"]).combine_chunks()
    tokens_per_byte = _tokens_per_byte(scope, dataset, waiting)
    ids_with_verdict = scope.lake.read(verdicts, ["doc_id"])["doc_id"].combine_chunks()
    waiting = waiting.filter(pc.is_in(waiting["doc_id"], ids_with_verdict)).combine_chunks()
    rounds = []
    for table in _tables(scope, verdicts):
        verdicts_against = scope.lake.read(table, ["doc_id", "rejections"], "kept = false").combine_chunks()
        places = pc.index_in(verdicts_against["doc_id"], waiting["doc_id"].combine_chunks())
        is_new = pc.is_valid(places)  # an earlier round rejected the others
        new = verdicts_against.filter(is_new).append_column(
            "n_bytes", waiting["n_bytes"].take(places.filter(is_new))
        )
        round_of_rules = _round(str(table), len(waiting), new, tokens_per_byte)
        rounds.append(replace(round_of_rules, without_value=_without_value(scope, table, waiting)))
        stays = pc.invert(pc.is_in(waiting["doc_id"], verdicts_against["doc_id"].combine_chunks()))
        waiting = waiting.filter(stays).combine_chunks()
    lines = [line for part in rounds for line in part.lines()]
    return Figure(SECTION.name, dataset, [asdict(part) for part in rounds], lines)


def _without_value(scope: SummaryScope, table: TableName, waiting: pa.Table) -> dict[str, int]:
    """How many of the documents that enter a round pass a rule without a value, most first."""
    if WITHOUT_VALUE not in scope.lake.table(table).schema().column_names:  # verdicts of an earlier version
        return {}
    verdicts = scope.lake.read(table, ["doc_id", WITHOUT_VALUE])
    verdicts = verdicts.filter(pc.is_in(verdicts["doc_id"], waiting["doc_id"].combine_chunks()))
    return count_by(pa.table({"rule": pc.list_flatten(verdicts[WITHOUT_VALUE])}), "rule")


def _tables(scope: SummaryScope, verdicts: TableName) -> list[TableName]:
    """The verdicts of the rounds in order: the tables that `verdicts` was made from, then `verdicts`."""
    tables = [verdicts]
    while tables[0] in scope.tables:
        upstream = map(TableName.parse, scope.lake.published(tables[0]).lineage.upstream)
        before = next((table for table in upstream if _is_round_of(verdicts, table)), None)
        if before is None:
            return tables
        tables.insert(0, before)
    return tables[1:]


def _is_round_of(verdicts: TableName, table: TableName) -> bool:
    is_earlier = re.fullmatch(rf"{verdicts.name}_r[1-9][0-9]*", table.name)
    return table.namespace == verdicts.namespace and is_earlier is not None


def _round(
    table: str, n_entered: int, verdicts_against: pa.Table, tokens_per_byte: float | None
) -> RoundOfRules:
    """A round from the rows (doc_id, rejections, n_bytes) of the documents that it removed."""

    def removal(n_documents: int, n_bytes: int) -> Removed:
        tokens = None if tokens_per_byte is None else round(n_bytes * tokens_per_byte)
        return Removed(n_documents, n_bytes, tokens)

    rejections = verdicts_against["rejections"].combine_chunks()
    rules = pc.struct_field(pc.list_flatten(rejections), "rule")
    sizes = verdicts_against["n_bytes"].combine_chunks().take(pc.list_parent_indices(rejections))
    counts = pa.table({"rule": rules, "n_bytes": sizes}).group_by("rule")
    by_rule = counts.aggregate([("n_bytes", "count"), ("n_bytes", "sum")]).sort_by(
        [("n_bytes_count", "descending"), ("rule", "ascending")]
    )
    return RoundOfRules(
        table=table,
        n_entered=n_entered,
        total=removal(len(verdicts_against), pc.sum(verdicts_against["n_bytes"]).as_py() or 0),
        by_rule={
            row["rule"]: removal(row["n_bytes_count"], row["n_bytes_sum"]) for row in by_rule.to_pylist()
        },
    )


def _tokens_per_byte(scope: SummaryScope, dataset: str, sizes: pa.Table) -> float | None:
    """The tokens per byte of the dataset's tokenized documents, None if there are none."""
    table = names.tokenized(dataset)
    if table not in scope.tables:
        return None
    rows = scope.lake.read(table, ["doc_id", "n_tokens"])
    stays = pc.is_in(sizes["doc_id"], rows["doc_id"].combine_chunks())
    n_bytes = pc.sum(sizes["n_bytes"].filter(stays)).as_py()
    return pc.sum(rows["n_tokens"]).as_py() / n_bytes if n_bytes else None
