"""The `balance` of a round in a datasets file: its tables, who shares them, and mistakes with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.orchestration.table.table_asset import declaration_of
from tests.orchestration.declared import declared, refusal
from tests.orchestration.runs import reads

FIRST_ROUND = """\
datasets:
  - name: notes
    kind: prose
    format: files
    paths: notes
    rounds:
      - rules: [gopher_quality]
"""
BALANCED = (
    FIRST_ROUND
    + """\
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
)


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


CLUSTERED = (
    FIRST_ROUND
    + """\
      - clusters: {cells: 4, verdicts: {2: keep}}
      - balance: {over: [cell, length], size: 0.5}
    variants:
      strict:
        rounds:
          - {rules: [gopher_quality], limits: {word_count: [200, 1000]}}
          - clusters: {cells: 4, noise: 4}
      loose:
        rounds:
          - {rules: [gopher_quality], limits: {word_count: [3, 100000]}}
          - clusters: {cells: 4}
      same:
        rounds:
          - rules: [gopher_quality]
          - clusters: {cells: 4, verdicts: {2: keep}}
          - rules: [c4]
"""
)


def test_a_round_with_clusters_judges_by_the_verdicts_on_documents_that_earlier_rounds_kept(
    folder: Path,
) -> None:
    tables = reads(declared(folder, CLUSTERED).assets)
    before = {"raw.notes", "filtered.notes_r1"}
    assert tables["clusters.notes_embedder"] == before
    assert tables["clusters.notes_vectors"] == before | {"clusters.notes_embedder"}
    assert tables["clusters.notes"] == {f"clusters.notes_{part}" for part in ("vectors", "coarse", "fine")}
    assert tables["clusters.notes_verdicts"] == {"clusters.notes_losses"}
    of_verdicts = {"clusters.notes", "clusters.notes_verdicts"}
    assert tables["signals.notes_r2_by_cluster"] == before | of_verdicts
    assert tables["filtered.notes_r2"] == {"signals.notes_r2_by_cluster", "filtered.notes_r1"}
    assert "clusters.notes" in tables["clusters.notes_categories"]


def test_a_variant_of_fewer_documents_shares_the_clusters_and_has_verdicts_of_its_own(folder: Path) -> None:
    tables = reads(declared(folder, CLUSTERED).assets)
    own = sorted(table for table in tables if table.startswith("clusters.notes__strict"))
    assert own == ["clusters.notes__strict_verdicts"]
    assert tables["clusters.notes__strict_verdicts"] == {"clusters.notes_losses"}
    assert {"clusters.notes", "clusters.notes__strict_verdicts"} <= tables["signals.notes__strict_by_cluster"]
    assert not [table for table in tables if table.startswith("clusters.notes__same")]
    assert "signals.notes_r2_by_cluster" in tables["filtered.notes__same_r2"]


def test_a_variant_of_more_documents_has_clusters_of_its_own(folder: Path) -> None:
    tables = reads(declared(folder, CLUSTERED).assets)
    assert tables["clusters.notes__loose_embedder"] == {"raw.notes", "filtered.notes__loose_r1"}


@pytest.mark.parametrize(
    "clusters, sentence",
    [
        ("{cells: 0}", "line 8, datasets[0].rounds[1].clusters.cells: `0` does not fit."),
        ("{embedder: lsi}", "line 8, datasets[0].rounds[1].clusters: Unknown embedder `lsi`."),
        (
            "{embedder: 'onnx:none.onnx'}",
            "datasets[0].rounds[1].clusters: There is no file `none.onnx`.",
        ),
        ("{verdicts: {2: drop}}", "datasets[0].rounds[1].clusters.verdicts[2]: Unknown value `drop`."),
        (
            "{verdicts: {-5: keep}}",
            "line 8, datasets[0].rounds[1].clusters.verdicts: No cluster has the number -5. Clusters count",
        ),
        (
            "{cells: 30, clusters: 20}",
            "line 8, datasets[0].rounds[1].clusters.clusters: 20 clusters are too few for 30 cells, which",
        ),
        (
            "{embedder: 'column:metadata.embedding', dimensions: 64}",
            "line 8, datasets[0].rounds[1].clusters: `dimensions` is 64, but only `lsa` can choose: the",
        ),
        ("{rate: 2}", "datasets[0].rounds[1].clusters.rate: `2` is out of range."),
        ("{noise: .inf}", "datasets[0].rounds[1].clusters.noise: "),
        ("", "datasets[0].rounds[1].clusters: "),
        ("{proxy: books}", "datasets[0].rounds[1].clusters.proxy: Unknown table `raw.books`."),
        ("{proxy: 'transformers:none'}", "datasets[0].rounds[1].clusters: There is no folder `none`."),
        ("{learning_rate: 0.1}", "datasets[0].rounds[1].clusters: `learning_rate` is for a proxy"),
        ("{learning_rate: 0}", "datasets[0].rounds[1].clusters.learning_rate: `0` does not fit."),
        ("{proxy: tokenized.notes}", "datasets[0].rounds[1].clusters: tokenized.notes holds no texts."),
        (
            "{proxy: deduplicated.notes}",
            "datasets[0].rounds[1].clusters.proxy: The proxy learns from `deduplicated.notes`, which",
        ),
    ],
)
def test_a_mistake_in_clusters_has_file_line_and_field(folder: Path, clusters: str, sentence: str) -> None:
    assert sentence in refusal(folder, CLUSTERED.replace("{cells: 4, verdicts: {2: keep}}", clusters, 1))


def with_checkpoints(folder: Path, variant: str = "") -> str:
    """A file with a checkpoint as proxy; `variant` replaces it in the variant of fewer documents."""
    for name in ("model", "other"):
        (folder / name).mkdir()
        for file in ("config.json", "model.safetensors", "tokenizer.json"):
            (folder / name / file).write_text("{}")
    proxy = "proxy: 'transformers:model'"
    file = CLUSTERED.replace("{cells: 4,", f"{{cells: 4, {proxy},")
    return file.replace(f"{proxy}, noise: 4", f"{variant or proxy}, noise: 4")


def test_a_checkpoint_reads_no_table_and_its_losses_last_as_long_as_its_files(folder: Path) -> None:
    declarations = {
        str(declaration.table): declaration
        for declaration in map(declaration_of, declared(folder, with_checkpoints(folder)).assets)
    }
    proxy, losses = (declarations[f"clusters.notes_{part}"] for part in ("proxy", "losses"))
    assert not proxy.upstream
    assert proxy.files is not None
    names = [path.name for path in proxy.files(None) if isinstance(path, Path)]
    assert names == ["config.json", "model.safetensors", "tokenizer.json"]
    assert dict(proxy.values) == {"source": '"transformers:model"', "learning rate": "0.0003"}
    assert losses.lasting
    assert {str(table) for table in losses.until} == {"clusters.notes_fine", "clusters.notes_proxy"}


@pytest.mark.parametrize(
    "variant, own_tables",
    [
        ("", ["verdicts"]),
        ("proxy: 'transformers:other'", ["losses", "proxy", "verdicts"]),
        ("proxy: 'transformers:model', learning_rate: 0.01", ["losses", "proxy", "verdicts"]),
        ("proxy: raw.notes", ["losses", "proxy", "verdicts"]),
    ],
)
def test_a_variant_shares_losses_by_the_same_proxy_alone(
    folder: Path, variant: str, own_tables: list[str]
) -> None:
    tables = reads(declared(folder, with_checkpoints(folder, variant)).assets)
    own = {table for table in tables if table.startswith("clusters.notes__strict_")}
    assert {f"clusters.notes__strict_{part}" for part in own_tables} <= own
    assert ("clusters.notes__strict_losses" in own) == ("losses" in own_tables)


def test_the_cluster_without_a_known_token_is_overruled_by_its_number(folder: Path) -> None:
    file = CLUSTERED.replace("{cells: 4, verdicts: {2: keep}}", "{cells: 4, verdicts: {-1: discard}}")
    assert "clusters.notes_verdicts" in reads(declared(folder, file).assets)


def test_a_dataset_with_clusters_has_no_name_of_a_table_of_clusters(folder: Path) -> None:
    file = CLUSTERED.replace("name: notes", "name: notes_fine").partition("    variants:")[0]
    assert "The clusters of `notes_fine` would have the name of another table" in refusal(folder, file)


def test_rates_over_clusters_last_as_long_as_their_centers(folder: Path) -> None:
    tables = {
        str(declaration.table): declaration
        for declaration in map(declaration_of, declared(folder, CLUSTERED).assets)
    }
    rates = tables["clusters.notes_balance"]
    assert rates.lasting
    assert {str(table) for table in rates.until} == {"clusters.notes_coarse"}
    assert str(rates.upstream["cell"]) == "clusters.notes_coarse"


def test_clusters_and_balance_need_rounds_of_their_own(folder: Path) -> None:
    together = "{cells: 4}\n        balance: {over: length, size: 0.5}\n      - rules: [c4]"
    file = CLUSTERED.replace("{cells: 4, verdicts: {2: keep}}", together, 1)
    assert "A round has `clusters` or `balance`. Give each a round." in refusal(folder, file)
