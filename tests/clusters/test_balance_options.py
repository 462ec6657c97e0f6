"""The options of `balance`: what they mean, and one sentence for each mistake."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from factory.clusters.balance_options import (
    BalanceOptions,
    NamedShares,
    Temperature,
    require_fields,
    table_of,
)
from factory.errors import ConfigurationError


def options(**fields: Any) -> BalanceOptions:
    return BalanceOptions.model_validate({"over": "source", "size": 0.5} | fields)


def test_a_field_may_stand_without_its_list_and_the_target_is_uniform() -> None:
    balance = options()
    assert (balance.over, balance.target, balance.size) == (("source",), "uniform", 0.5)


def test_a_size_up_to_one_is_a_share_and_above_a_number_of_documents() -> None:
    assert [type(options(size=size).size) for size in (1, 0.2, 2, 200_000.0)] == [float, float, int, int]


def test_the_options_are_read_again_as_they_are_written() -> None:
    for target in ("uniform", {"temperature": 0.5}, {"shares": {"web": 0.3, "books": 0.7}}):
        balance = options(target=target)
        plain = balance.model_dump(mode="json")
        assert plain["target"] == target
        assert BalanceOptions.model_validate(plain) == balance


def test_targets_are_told_apart() -> None:
    assert options(target={"temperature": 1}).target == Temperature(1)
    assert options(target={"shares": {"web": 0.1}}).target == NamedShares({"web": 0.1})


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"target": "unifrom"}, "The target is 'unifrom'. Write `uniform`,"),
        ({"target": {"temperature": 0.5, "shares": {}}}, "The target is {'temperature': 0.5"),
        ({"target": {"temperature": 1.5}}, "A temperature of 1.5 is out of range. Give one from 0"),
        ({"target": {"temperature": True}}, "A temperature of True is out of range."),
        ({"target": {"temperature": float("nan")}}, "A temperature of nan is out of range."),
        ({"target": {"shares": {}}}, "`shares` names no category."),
        ({"target": {"shares": [0.5]}}, "`shares` names no category."),
        ({"target": {"shares": {"web": 0.7, "books": 0.5}}}, "The shares add up to 1.2. Lower them"),
        ({"target": {"shares": {"web": -0.1}}}, "The share of `web` is -0.1. Give a number from 0 to 1"),
        ({"target": {"shares": {"web": "much"}}}, "The share of `web` is 'much'."),
        ({"target": {"shares": {4096: 0.1}}}, "YAML reads the category 4096 as int, which is not text."),
        ({"size": 0}, "The size is 0. Give a share"),
        ({"size": -3}, "The size is -3."),
        ({"size": "half"}, "The size is 'half'."),
        ({"size": True}, "The size is True."),
        ({"size": 2.5}, "The size is 2.5, but documents are whole."),
        ({"size": float("inf")}, "The size is inf, but documents are whole."),
        ({"over": []}, "`over` names no field."),
        ({"over": ["cell", "cell"]}, "`over` names `cell` twice."),
        ({"over": ["metadata."]}, "`metadata.` lacks a name."),
    ],
)
def test_a_mistake_gets_one_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        options(**fields)
    [error] = refusal.value.errors()
    assert str(error["ctx"]["error"]).startswith(sentence)


def test_shares_that_add_up_to_one_only_before_rounding_are_valid() -> None:
    shares = {str(number): 0.1 for number in range(10)} | {"more": 1e-10}
    assert options(target={"shares": shares})


def test_every_field_has_its_table() -> None:
    fields = ("cell", "cluster", "length", "license", "metadata.topic", "facts.rank", "advert")
    assert [table_of(field) for field in fields] == [
        *("clusters", "clusters", None, None, None, "facts", "advert")
    ]


def test_a_field_without_its_table_is_refused_with_the_remedy() -> None:
    require_fields(
        ["cell", "length", "metadata.topic", "facts.rank", "advert"], ["clusters", "facts", "advert"]
    )
    for field, sentence in {
        "cell": "`balance` is over `cell`, but no earlier round has `clusters`. Add such a round.",
        "facts.rank": "`balance` is over `facts.rank`, but the dataset has no `facts`. Declare them.",
        "lenght": "Unknown field of `balance`: `lenght`. Did you mean `length`? `metadata.<key>` and",
        "advrt": "Unknown field of `balance`: `advrt`. Did you mean `advert`?",
    }.items():
        with pytest.raises(ConfigurationError) as refusal:
            require_fields([field], ["advert"])
        assert str(refusal.value).startswith(sentence)
