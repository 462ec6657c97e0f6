"""Variants that a file of datasets declares: other filters, another threshold of similarity or keep rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.orchestration.datasets.file import datasets_file
from factory.orchestration.declare.located_yaml import LocatedYaml
from factory.orchestration.host.definitions import definitions
from factory.orchestration.table.table_asset import declaration_of
from factory.settings import Settings
from tests.orchestration.declared import GOOD, declared, refusal, tables


def test_a_variant_takes_what_it_does_not_say_from_its_dataset(folder: Path) -> None:
    (folder / "my.yaml").write_text(GOOD)
    notes = LocatedYaml.read(folder / "my.yaml").build(datasets_file()).datasets[0]
    limits = {
        name: {rule.name: str(rule.limit) for rule in given.in_rounds()[0].build()}
        for name, given in {"notes": notes, **notes.variants}.items()
    }
    assert limits["notes"]["word_count"] == limits["same"]["word_count"] == "20 to 100,000"
    assert limits["long"]["word_count"] == "200 to 100,000"
    assert limits["long"]["stop_words"] == limits["notes"]["stop_words"] == ">= 1"
    assert limits["long"].keys() == limits["notes"].keys() > {"top_2_gram"}
    assert limits["other"] == {"stop_words": ">= 2"}


LOOSE = "      loose: {threshold: 0.6}\n"


def test_a_variant_at_another_threshold_shares_filters_and_comparisons(folder: Path) -> None:
    found = declared(folder, GOOD.replace("      same:\n", "      same:\n" + LOOSE))
    made = tables(found)
    assert {"deduplicated.notes__loose", "packed.notes__loose", "dedup.prose__loose_decisions"} <= made
    assert not {"filtered.notes__loose", "dedup.prose__loose_edges", "deduplicated.pages__loose"} & made
    assert "notes__loose" in found.datasets
    assert "prose__loose" in found.groups
    (edges,) = (
        check.violations
        for asset in found.assets
        for output in declaration_of(asset).outputs
        for check in output.checks
        if str(output.table) == "dedup.prose_edges" and check.name == "every_edge_is_similar"
    )
    assert "similarity >= 0.6" in edges
    definitions(found.assets, Settings(home=folder / "lake"))


def test_a_variant_by_another_keep_rule_shares_filters_and_comparisons(folder: Path) -> None:
    found = declared(folder, GOOD.replace("      same:\n", "      same:\n      cover: {keep: cover}\n"))
    made = tables(found)
    assert {"deduplicated.notes__cover", "packed.notes__cover", "dedup.prose__cover_decisions"} <= made
    assert not {"filtered.notes__cover", "dedup.prose__cover_edges"} & made
    definitions(found.assets, Settings(home=folder / "lake"))


WRONG = [
    (
        "threshold: 0.6",
        "threshold: 1.5",
        "line 12, datasets[0].variants.loose.threshold: Threshold 1.5 is out of range. Use at least 0.3",
    ),
    (
        "threshold: 0.6",
        "threshold: 0.2",
        "line 12, datasets[0].variants.loose.threshold: Threshold 0.2 is out of range. Use at least 0.3",
    ),
    ("threshold: 0.6", "keep: all", "line 12, datasets[0].variants.loose.keep: Unknown value `all`."),
    (
        "threshold: 0.6",
        "keep: cover, rules: [stop_words]",
        "A variant has filters of its own or a `keep`, and this one has `rules` too.",
    ),
    (
        "threshold: 0.6",
        "threshold: 0.6, limits: {word_count: 9}",
        "A variant has filters of its own or a `threshold`, and this one has `limits` too.",
    ),
    (
        "    columns: {created_at: date}\n",
        "    columns: {created_at: date}\n    variants: {loose: {threshold: 0.5}}\n",
        "line 19, datasets[1].variants.loose: `notes__loose` has threshold 0.6 and `pages__loose` has "
        "threshold 0.5, and variants of one name in one group are decided together.",
    ),
    (
        "    columns: {created_at: date}\n",
        "    columns: {created_at: date}\n    variants: {loose: {threshold: 0.6, keep: cover}}\n",
        "`pages__loose` has threshold 0.6 and keep cover, and variants of one name",
    ),
    ("  prose: {t", "  prose__loose: {seed: 1}\n  prose: {t", "groups.prose__loose: `notes__loose` takes"),
]


@pytest.mark.parametrize("good, bad, said", WRONG)
def test_thresholds_of_variants_that_do_not_fit_are_told(
    folder: Path, good: str, bad: str, said: str
) -> None:
    text = GOOD.replace("      same:\n", "      same:\n" + LOOSE)
    assert said in refusal(folder, text.replace(good, bad, 1))
