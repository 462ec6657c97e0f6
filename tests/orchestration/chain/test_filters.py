"""Rounds of filters and variants of a dataset: which tables there are, and what their verdicts are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from pyspark.sql import SparkSession

from factory.errors import ConfigurationError
from factory.filters.implication import implies
from factory.filters.limits import AtLeast, AtMost, Between, Limit
from factory.filters.rounds import Round
from factory.filters.rule import Rule
from factory.filters.text import Text
from factory.lake import names
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.orchestration.chain.dedup.group import DedupGroup, Deduplication, dedup_group, dedup_variant
from factory.orchestration.chain.link import Chain
from factory.orchestration.chain.refine import refine, variant
from factory.orchestration.keys import table_of
from factory.orchestration.table.table_asset import table_asset
from factory.settings import Settings
from tests.orchestration.runs import reads, run

WORDS = Round(rules=["word_count"], limits={"word_count": [3, 100]})
LONGER = Round(rules=["word_count"], limits={"word_count": [5, 100]})
SHORTER = Round(rules=["word_count"], limits={"word_count": [2, 100]})
HASHES = Round(rules=["hash_to_word_ratio"])
STOPS = Round(rules=["stop_words", "mean_word_length"])


def chain(*rounds: Round, name: str = "web", group: DedupGroup | None = None) -> Chain:
    return refine(
        name,
        dedup_group=group or dedup_group(name, [name], kind="prose"),
        rounds=rounds,
        tokenizer="tokenizer",
    )


def filters(chain: Chain) -> dict[str, set[str]]:
    """The tables of signals and verdicts that a chain writes, each with what it reads."""
    return {table: of for table, of in reads(chain).items() if table.startswith(("signals.", "filtered."))}


def test_one_round_has_the_plain_names() -> None:
    assert filters(chain(WORDS)) == {"signals.web": {"raw.web"}, "filtered.web": {"signals.web"}}


def test_a_later_round_reads_what_passed_and_the_last_is_plainly_named() -> None:
    assert filters(chain(WORDS, HASHES, STOPS)) == {
        "signals.web_r1": {"raw.web"},
        "filtered.web_r1": {"signals.web_r1"},
        "signals.web_r2": {"raw.web", "filtered.web_r1"},
        "filtered.web_r2": {"signals.web_r2", "filtered.web_r1"},
        "signals.web": {"raw.web", "filtered.web_r2"},
        "filtered.web": {"signals.web", "filtered.web_r2"},
    }


def test_a_round_of_rules_that_an_earlier_one_measured_measures_nothing() -> None:
    tables = filters(chain(WORDS, HASHES, LONGER))
    assert tables["filtered.web"] == {"signals.web_r1", "filtered.web_r2"}
    assert "signals.web" not in tables


@pytest.mark.invariant("A variant with other limits measures nothing.")
@pytest.mark.parametrize("other", [LONGER, SHORTER, Round()])
def test_a_variant_of_other_limits_measures_nothing(other: Round) -> None:
    strict = variant(chain(WORDS), "strict", rounds=[other])
    assert filters(strict) == {"filtered.web__strict": {"signals.web"}}


def test_a_variant_of_other_rules_measures_them_on_the_same_documents() -> None:
    other = variant(chain(WORDS), "other", rounds=[Round(rules=["word_count", "stop_words"])])
    assert filters(other) == {
        "signals.web__other": {"raw.web"},
        "filtered.web__other": {"signals.web__other"},
    }


def test_a_variant_shares_a_later_round_where_it_lets_through_no_more() -> None:
    of = chain(WORDS, HASHES)
    assert filters(variant(of, "strict", rounds=[LONGER, HASHES])) == {
        "filtered.web__strict_r1": {"signals.web_r1"},
        "filtered.web__strict": {"signals.web", "filtered.web__strict_r1"},
    }
    loose = filters(variant(of, "loose", rounds=[SHORTER, HASHES]))
    assert loose["signals.web__loose"] == {"raw.web", "filtered.web__loose_r1"}


def test_a_variant_has_a_group_of_its_own_and_every_later_table() -> None:
    of = chain(WORDS)
    keys = reads(variant(of, "strict", rounds=[LONGER])).keys()
    assert {"dedup.web__strict_decisions", "deduplicated.web__strict", "packed.web__strict"} <= keys
    assert not {"raw.web", "dedup.web_decisions"} & keys


def test_a_group_given_to_a_variant_is_declared_by_whoever_gives_it() -> None:
    group = dedup_group("strict", ["web__strict", "books__strict"], kind="prose")
    assets = variant(chain(WORDS), "strict", rounds=[LONGER], dedup_group=group)
    assert not any(table_of(key).namespace == "dedup" for asset in assets for key in asset.keys)


def test_a_variant_at_another_threshold_shares_verdicts_and_comparisons() -> None:
    assert reads(variant(chain(WORDS), "loose", threshold=0.9)) == {
        "dedup.web__loose_components": {"dedup.web_edges", "dedup.web_signatures"},
        "dedup.web__loose_decisions": {
            "raw.web",
            "filtered.web",
            "dedup.web_signatures",
            "dedup.web_edges",
            "dedup.web__loose_components",
        },
        "deduplicated.web__loose": {"raw.web", "dedup.web__loose_decisions"},
        "tokenized.web__loose": {"deduplicated.web__loose", "models.tokenizer"},
        "packed.web__loose": {"tokenized.web__loose", "models.tokenizer"},
        "packed.web__loose_placements": {"tokenized.web__loose", "models.tokenizer"},
    }


def test_a_variant_by_another_keep_rule_shares_all_comparisons() -> None:
    made = variant(chain(WORDS), "cover", keep="cover")
    assert (made.link(Deduplication).group.config.keep, made.link(Deduplication).group.config.threshold) == (
        "cover",
        0.8,
    )
    assert dg.AssetKey("dedup.web__cover_decisions") in {key for asset in made for key in asset.keys}
    assert not any(table_of(key).name.endswith("_edges") for asset in made for key in asset.keys)
    filtered = variant(chain(WORDS), "strict", rounds=[WORDS], keep="one_per_component")
    assert filtered.link(Deduplication).group.config.keep == "one_per_component"
    with pytest.raises(ValidationError, match="keep"):
        variant(chain(WORDS), "all", keep="all")  # type: ignore[arg-type]


def test_datasets_of_a_group_take_another_threshold_together() -> None:
    both = dedup_group("both", ["web", "books"], kind="prose")
    loose = dedup_variant(both, "loose", 0.9)
    assert (loose.name, loose.datasets) == ("both__loose", ("web__loose", "books__loose"))
    keys = {min(asset.keys) for asset in variant(chain(WORDS, group=both), "loose", dedup_group=loose)}
    assert dg.AssetKey("deduplicated.web__loose") in keys
    assert not any(table_of(key).namespace == "dedup" for key in keys)


def prose(name: str, *datasets: str) -> DedupGroup:
    return dedup_group(name, datasets, kind="prose")


@pytest.mark.parametrize(
    "declare, words",
    [
        (lambda: chain(WORDS, name="books", group=prose("web", "web")), "does not hold `books`"),
        (lambda: chain(), "no round of filters"),
        (lambda: chain(WORDS, name="web__strict"), "name of a variant"),
        (lambda: prose("web", "web", "web__strict"), "have the same documents"),
        (lambda: prose("web", "web", "web"), "twice"),
        (lambda: prose("web"), "no dataset"),
        (lambda: variant(chain(WORDS), "same"), "does not differ from `web`"),
        (
            lambda: variant(chain(WORDS), "two", threshold=0.9, dedup_group=prose("web__two", "web__two")),
            "both a `threshold` and dedup group `web__two`",
        ),
        (
            lambda: variant(chain(WORDS), "two", keep="cover", dedup_group=prose("web__two", "web__two")),
            "both a `keep` and dedup group `web__two`",
        ),
        (lambda: variant(chain(WORDS), "looser", threshold=0.7), r"has edges for 0.8, 0.85, 0.9, 0.95"),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_declared(declare: Callable[[], object], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        declare()


numbers = st.integers(0, 20).map(float)
limits: st.SearchStrategy[Limit] = st.one_of(
    numbers.map(AtLeast),
    numbers.map(AtMost),
    st.tuples(numbers, numbers).map(lambda pair: Between(min(pair), max(pair))),
)
(RULE,) = WORDS.build()


@given(limits, limits)
@settings(deadline=None)
def test_a_limit_is_implied_where_no_value_tells_two_apart(strict: Limit, loose: Limit) -> None:
    passes = [half / 2 for half in range(-2, 44) if strict.violated(half / 2) is None]
    inside = all(loose.violated(number) is None for number in [*passes, *_far(strict)])
    assert implies(RULE.with_limit(strict), RULE.with_limit(loose)) == inside


def _far(limit: Limit) -> list[float]:
    return [number for number in (-1e9, 1e9) if limit.violated(number) is None]


def test_another_rule_or_another_list_implies_nothing() -> None:
    def rule(**options: object) -> Rule:
        return Round(**options).build()[-1]  # type: ignore[arg-type]

    assert not implies(rule(rules=["word_count"]), rule(rules=["stop_words"]))
    assert not implies(rule(languages=["en"]), rule(languages=["en", "de"]))
    assert not implies(rule(predicates={"license": ["MIT"]}), rule(predicates={"license": ["MIT", "BSD*"]}))
    assert implies(rule(predicates={"stars": {"at_least": 9}}), rule(predicates={"stars": {"at_least": 3}}))


TEXTS = {
    "few": "two words",
    "four": "now the four words",
    "hashes": "# # # # of the six words here now",
    "no_stops": "six plain nouns without function words",
    "good": "this is the text that we want to have",
}


def materialize(settings: Settings, name: str, *chains: Chain, reuse: bool = False) -> None:
    """Write the raw table of TEXTS, and the signals and verdicts of the chains."""

    @table_asset(namespace="raw", name=name, asset_group="test", schema=RAW)
    def raw(context, pyspark):  # type: ignore[no-untyped-def]
        rows = [
            {
                **dict.fromkeys(("source", "key", "content_hash", "media_type"), doc_id),
                "doc_id": doc_id,
                "text": text,
                "n_bytes": 9,
            }
            for doc_id, text in TEXTS.items()
        ]
        return pyspark.spark_session.createDataFrame(rows)

    refined = [
        asset
        for of in chains
        for asset in of
        if table_of(min(asset.keys)).namespace in ("signals", "filtered")
    ]
    assert run(settings, raw, *refined, reuse=reuse).success


@pytest.mark.invariant(
    "The last round's table has every document with the rejections of all rounds; later rounds do not "
    "measure rejected documents."
)
@pytest.mark.spark
def test_the_last_table_has_every_document_with_all_rejections(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    rounds = [WORDS, HASHES, Round(rules=["stop_words"])]
    of = chain(*rounds, name=unique)
    materialize(lake_settings, unique, of, variant(of, "strict", rounds=[LONGER, *rounds[1:]]))
    lake = Lake(lake_settings)
    for dataset, first in ((unique, WORDS), (names.variant(unique, "strict"), LONGER)):
        found = {row["doc_id"]: row for row in lake.read(names.filtered(dataset)).to_pylist()}
        assert {name: _failing(row) for name, row in found.items()} == {
            name: _expected(text, [first, *rounds[1:]]) for name, text in TEXTS.items()
        }
        assert {name for name, row in found.items() if row["kept"]} == {"good"}
    # What a round rejected is not measured again.
    assert _measured(lake, f"{unique}_r1") == set(TEXTS)
    assert _measured(lake, f"{unique}_r2") == set(TEXTS) - {"few"}
    assert _measured(lake, unique) == set(TEXTS) - {"few", "hashes"}


LETTERS = """
from factory.filters.limits import AtMost
from factory.filters.rule import TextRule

class Letters(TextRule):
    name, unit, limit = "letters", "letters", AtMost(25)

    def measure(self, text):
        return sum(map(str.isalpha, text.text))
"""


def own(folder: Path, source: str = LETTERS, **limits: float) -> Round:
    (folder / "letters.py").write_text(source)
    given = {"rules": ["word_count", "letters.py:Letters"], "limits": {"word_count": [0, 100], **limits}}
    return Round.model_validate(given, context={"folder": folder})


def test_variants_share_the_signals_of_a_python_rule_while_its_file_is_the_same(tmp_path: Path) -> None:
    of = chain(own(tmp_path))
    lenient = filters(variant(of, "lenient", rounds=[own(tmp_path, letters=99)]))
    assert lenient == {"filtered.web__lenient": {"signals.web"}}
    changed = filters(variant(of, "changed", rounds=[own(tmp_path, LETTERS.replace("alpha", "digit"))]))
    assert "signals.web__changed" in changed


@pytest.mark.spark
def test_a_change_to_the_file_of_a_python_rule_makes_its_tables_stale(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    lake = Lake(lake_settings)

    def made(source: str) -> tuple[int, dict[str, float]]:
        materialize(lake_settings, unique, chain(own(tmp_path, source), name=unique), reuse=True)
        rows = lake.read(names.signals(unique), ["doc_id", "letters"]).to_pylist()
        snapshot = lake.published(names.signals(unique)).snapshot_id
        return snapshot, {row["doc_id"]: row["letters"] for row in rows}

    first = made(LETTERS)
    assert first[1] == {name: sum(map(str.isalpha, text)) for name, text in TEXTS.items()}
    assert made(LETTERS) == first
    changed, values = made(LETTERS.replace("sum(", "2 * sum("))
    assert changed != first[0]
    assert values == {name: 2 * value for name, value in first[1].items()}
    verdicts = {row["doc_id"]: row for row in lake.read(names.filtered(unique)).to_pylist()}
    assert _failing(verdicts["four"]) == [("letters", 30.0, 25.0)]


def _measured(lake: Lake, table: str) -> set[str]:
    return set(lake.read(names.signals(table), ["doc_id"])["doc_id"].to_pylist())


def _failing(row: dict) -> list[tuple[str, float, float]]:
    return [
        (rejection["rule"], rejection["value"], rejection["threshold"]) for rejection in row["rejections"]
    ]


def _expected(text: str, rounds: list[Round]) -> list[tuple[str, float, float]]:
    """What the first round that a text fails has against it, by the readable rules."""
    for declared in rounds:
        measured = [(rule, rule.measure(Text(text))) for rule in declared.build()]  # type: ignore[attr-defined]
        failing = [
            (rule.name, value, bound)
            for rule, value in measured
            if (bound := rule.limit.violated(value)) is not None
        ]
        if failing:
            return failing
    return []
