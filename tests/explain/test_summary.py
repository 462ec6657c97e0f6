"""The summary has the figures of a pipeline, and reads each table of rejected records once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from factory.explain.summary import stage_rows, summarize
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.ingest import REJECTED
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import documents, pack, publish, tokenize, verdicts


class CountingLake(Lake):
    """A lake that counts how often each table is read."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.reads: Counter[TableName] = Counter()

    def read(self, name: TableName, *arguments: Any, **options: Any) -> pa.Table:
        self.reads[name] += 1
        return super().read(name, *arguments, **options)


def test_the_rejected_records_of_a_dataset_and_its_variant_are_read_once(tmp_path: Path) -> None:
    lake = CountingLake(Settings(home=tmp_path))
    documents(lake, "web", "abcdef")
    about = {"source": "s", "key": "k", "location": "line 1", "detail": "It is odd.", "n_bytes": 1}
    rows = [
        {"doc_id": "1", "reason": "empty", "n_records": 7, **about},
        {"doc_id": "2", "reason": "b", **about},
    ]
    publish(lake, names.rejected("web"), REJECTED, rows)
    for dataset in ("web", "web__strict"):
        verdicts(lake, dataset, {"a": {"length": 1.0}})
        tokenize(lake, dataset, "bcdef")
        pack(lake, dataset, "bcd", "ef")
    lake.reads.clear()
    summary = summarize(lake, ["web", "web__strict"], [])
    assert lake.reads[names.rejected("web")] == 1
    assert summary.values("bad_records") == {"web": {"empty": 7, "b": 1}}
    stages = {stage.table: (stage.rows_in, stage.rows_out) for stage in summary.stages}
    assert stages["raw.web"] == (14, 6)
    assert stages["filtered.web__strict"] == (6, 5)
    assert summary.stages == stage_rows(lake, ["web", "web__strict"])


def test_documents_that_pass_a_rule_without_a_value_are_counted_by_rule(tmp_path: Path) -> None:
    lake = Lake(Settings(home=tmp_path))
    documents(lake, "web", "abcdef")
    without = {"a": ["quality"], "b": ["quality", "perplexity", "one", "two"]}
    verdicts(lake, "web", {"c": {"length": None}}, without_value=without)
    tokenize(lake, "web", "abdef")
    pack(lake, "web", "abdef")
    summary = summarize(lake, ["web"], [])
    [judged] = summary.values("removed")["web"]
    assert judged["without_value"] == {"quality": 2, "one": 1, "perplexity": 1, "two": 1}
    [figure] = next(figures for section, figures in summary.sections.items() if section.name == "removed")
    assert figure.lines[-1] == "  passed without a value: quality 2, one 1, perplexity 1 and 1 more rule"
