"""A chain is a fold over links: each reads what the links before it left, whichever these are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from factory.filters.rounds import Round
from factory.orchestration.chain.dedup.group import Deduplication, dedup_group
from factory.orchestration.chain.depsort import DependencyOrder
from factory.orchestration.chain.filters import FilterRound, Filters
from factory.orchestration.chain.link import Chain, Link, Links, linked
from factory.orchestration.chain.models.tokenizer import tokenizer
from factory.orchestration.chain.packing import Packing
from factory.orchestration.chain.refine import refine, variant
from tests.brevity import Brevity, registered
from tests.orchestration.runs import reads

ROUNDS = [Round(rules=["word_count"])]


@pytest.fixture(autouse=True)
def stage() -> Iterator[None]:
    with registered():
        yield


def test_the_usual_chain_is_a_fold_of_its_links() -> None:
    group = dedup_group("code", ["web"], kind="code")
    links: list[Link | Links] = [Filters(ROUNDS), Deduplication(group), DependencyOrder(), Packing("small")]
    by_hand = linked(Chain.from_raw("web"), links)
    assert reads(by_hand) == reads(refine("web", dedup_group=group, rounds=ROUNDS, tokenizer="small"))
    kinds = [FilterRound, *(type(link) for link in links[1:])]
    assert [type(extension.link) for extension in by_hand.extensions] == kinds
    assert str(by_hand.documents) == "sorted.web"


def test_a_link_behind_deduplication_hides_what_it_rejects_from_all_that_follow() -> None:
    group = dedup_group("code", ["web"], kind="code")
    links: list[Link | Links] = [
        Filters(ROUNDS),
        Deduplication(group),
        Brevity(least=3),
        DependencyOrder(),
        Packing("small"),
    ]
    tables = reads(linked(Chain.from_raw("web"), links))
    assert tables["brevity.web"] == {"deduplicated.web"}
    for table in ("depsort.web_symbols", "depsort.web_dependencies", "sorted.web"):
        assert {"deduplicated.web", "brevity.web"} <= tables[table]
    assert tables["tokenized.web"] == {
        "sorted.web",
        "models.small",
    }


def test_filters_add_their_verdicts_to_earlier_ones() -> None:
    tables = reads(linked(Chain.from_raw("web"), [Brevity(least=3), Filters(ROUNDS)]))
    assert tables["signals.web"] == {"raw.web", "brevity.web"}
    assert tables["filtered.web"] == {"signals.web", "brevity.web"}


def test_a_variant_has_the_other_links_of_its_dataset() -> None:
    before = linked(Chain.from_raw("web"), [Filters(ROUNDS), Brevity(least=3)])
    group = dedup_group("web", [before], kind="prose")
    chain = linked(before, [Deduplication(group), Packing("small")])
    strict = reads(variant(chain, "strict", rounds=[Round(rules=["stop_words"])]))
    assert strict["brevity.web__strict"] == {"raw.web", "filtered.web__strict"}
    assert {"raw.web", "brevity.web__strict"} <= strict["dedup.web__strict_bags"]
    assert "packed.web__strict" in strict
    nearer = reads(variant(chain, "nearer", threshold=0.9))
    assert not {table for table in nearer if table.startswith(("filtered.", "brevity."))}
    assert {"raw.web", "brevity.web"} <= nearer["dedup.web__nearer_decisions"]


def test_a_link_between_two_rounds_stays_there_in_a_variant() -> None:
    first, second = Filters([*ROUNDS, Round(rules=["stop_words"])]).links()
    before = linked(Chain.from_raw("web"), [first, Brevity(least=3), second])
    tables = reads(before)
    assert tables["brevity.web"] == {"raw.web", "filtered.web_r1"}
    assert tables["signals.web"] == {"raw.web", "brevity.web"}
    chain = linked(before, [Deduplication(dedup_group("web", [before], kind="prose")), Packing("small")])
    strict = reads(variant(chain, "strict", rounds=[*ROUNDS, Round(rules=["mean_word_length"])]))
    assert strict["brevity.web__strict"] == {"raw.web", "filtered.web__strict_r1"}
    assert {"brevity.web__strict"} <= strict["filtered.web__strict"]
    one_round = reads(variant(chain, "loose", rounds=[Round(rules=["word_count"])]))
    assert one_round["brevity.web__loose"] == {"raw.web", "filtered.web__loose"}


def test_a_link_behind_all_rounds_stays_there_in_a_variant_with_more_rounds() -> None:
    before = linked(Chain.from_raw("web"), [Filters(ROUNDS), Brevity(least=3)])
    chain = linked(before, [Deduplication(dedup_group("web", [before], kind="prose")), Packing("small")])
    strict = reads(variant(chain, "strict", rounds=[*ROUNDS, Round(rules=["stop_words"])]))
    assert strict["filtered.web__strict"] == {"signals.web__strict", "filtered.web__strict_r1"}
    assert strict["brevity.web__strict"] == {"raw.web", "filtered.web__strict"}
    assert "brevity.web__strict" in strict["dedup.web__strict_bags"]


def test_a_tokenizer_is_trained_on_the_documents_of_a_chain() -> None:
    group = dedup_group("web", ["web"], kind="prose")
    chain = linked(Chain.from_raw("web"), [Filters(ROUNDS), Deduplication(group), Brevity(least=3)])
    assert reads([tokenizer("small", [chain])])["models.small"] == {"deduplicated.web", "brevity.web"}
    assert reads([tokenizer("small", ["web"])])["models.small"] == {"deduplicated.web"}
