"""The `balance` of a round in a datasets file: its tables, who shares them, and mistakes with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.orchestration.declared import declared, refusal
from tests.orchestration.runs import reads

BALANCED = """\
datasets:
  - name: notes
    kind: prose
    format: files
    paths: notes
    rounds:
      - rules: [gopher_quality]
      - balance: {over: [language, length], target: uniform, size: 0.5}
    variants:
      strict:
        rounds:
          - rules: [gopher_quality]
            limits: {word_count: [200, 1000]}
          - balance: {over: [language, length], target: uniform, size: 0.5}
      other:
        rounds:
          - rules: [gopher_quality]
          - balance: {over: [language, length], target: uniform, size: 0.5}
          - rules: [c4]
      nearer: {threshold: 0.9}
groups:
  prose: {sweep: [0.7]}
"""


def test_a_balanced_round_has_categories_rates_and_a_rule_that_reads_them(folder: Path) -> None:
    tables = reads(declared(folder, BALANCED).assets)
    assert tables["clusters.notes_categories"] == {"raw.notes", "filtered.notes_r1"}
    assert tables["clusters.notes_balance"] == {"clusters.notes_categories"}
    assert tables["signals.notes_by_balance"] == {
        *("raw.notes", "filtered.notes_r1"),
        *("clusters.notes_categories", "clusters.notes_balance"),
    }
    assert tables["filtered.notes"] == {"signals.notes_by_balance", "filtered.notes_r1"}


def test_the_distribution_is_counted_before_after_and_behind_deduplication(folder: Path) -> None:
    tables = reads(declared(folder, BALANCED).assets)
    before = {"raw.notes", "filtered.notes_r1"}
    assert tables["clusters.notes_distribution"] == before | {"filtered.notes", "deduplicated.notes"}
    nearer = before | {"filtered.notes", "deduplicated.notes__nearer"}
    assert tables["clusters.notes__nearer_distribution"] == nearer


def test_a_variant_of_the_same_documents_shares_the_rates_and_one_of_fewer_has_its_own(folder: Path) -> None:
    tables = reads(declared(folder, BALANCED).assets)
    assert "clusters.notes__other_balance" not in tables
    assert "signals.notes_by_balance" in tables["filtered.notes__other_r2"]
    assert "clusters.notes__strict_balance" in tables["signals.notes__strict_by_balance"]


@pytest.mark.parametrize(
    "balance, sentence",
    [
        (
            "{over: topic, size: 0.5}",
            "my.yaml, line 8, datasets[0].rounds[1].balance: Unknown field of `balance`: `topic`.",
        ),
        (
            "{over: cell, size: 0.5}",
            "datasets[0].rounds[1].balance: `balance` is over `cell`, but no earlier round has `clusters`.",
        ),
        (
            "{over: facts.rank, size: 0.5}",
            "datasets[0].rounds[1].balance: `balance` is over `facts.rank`, but the dataset has no `facts`.",
        ),
        ("{over: language, size: 0}", "datasets[0].rounds[1].balance.size: The size is 0."),
        ("{over: language}", "datasets[0].rounds[1].balance.size: "),
    ],
)
def test_a_mistake_in_balance_has_file_line_and_field(folder: Path, balance: str, sentence: str) -> None:
    file = BALANCED.replace("{over: [language, length], target: uniform, size: 0.5}", balance, 1)
    assert sentence in refusal(folder, file)


def test_a_dataset_is_balanced_once(folder: Path) -> None:
    again = "      - balance: {over: language, size: 0.5}\n    variants:"
    assert (
        "my.yaml, line 9, datasets[0].rounds[2].balance: Round 2 has `balance` already, and a dataset has it"
        in refusal(folder, BALANCED.replace("    variants:", again))
    )
