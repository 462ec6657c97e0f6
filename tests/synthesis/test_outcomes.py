"""What a kind yields for an item is checked, bounded, and refused where the item is to blame."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from factory.synthesis import outcomes
from factory.synthesis.kind import ItemOutcome, NewRecord, Refusal, WorkItem
from factory.synthesis.outcomes import InvalidRecord, RepositoryTooLarge, outcomes_of

ITEM = WorkItem("1", "web", "page 1", "some text")
SCHEMA = pa.schema(
    [
        pa.field("n", pa.int64(), False),
        pa.field("share", pa.float64()),
        pa.field("word", pa.string()),
        pa.field("whole", pa.bool_()),
    ]
)


class Yielding:
    """A kind that yields what a function says."""

    version, schema = "1", SCHEMA

    def __init__(self, function: Callable[[WorkItem], Iterator[Any]]) -> None:
        self._function = function

    def __call__(self, document: WorkItem) -> Iterator[ItemOutcome]:
        return self._function(document)


def outcomes_by(function: Callable[[WorkItem], Iterator[Any]]) -> list[ItemOutcome]:
    return outcomes_of("mine", Yielding(function), ITEM)


def yields(*values: Any) -> list[ItemOutcome]:
    return outcomes_by(lambda _: iter(values))


def reasons(results: list[ItemOutcome]) -> list[str]:
    return [outcome.reason for outcome in results if isinstance(outcome, Refusal)]


def test_records_and_refusals_keep_their_order() -> None:
    first, second = (
        NewRecord("a", "text", {"n": 1, "share": 0.5, "word": "w", "whole": True}),
        NewRecord("b", "", {"n": 2}),
    )
    refusal = Refusal("c", "dull", "It is dull.", b"some")
    assert yields(first, refusal, second) == [first, refusal, second]
    assert yields() == []


@pytest.mark.parametrize(
    "values, sentence",
    [
        ({}, "without column `n`, which its schema requires"),
        ({"n": "1"}, "whose column `n` is str, and int64 by the schema"),
        ({"n": True}, "whose column `n` is bool, and int64 by the schema"),
        ({"n": 1, "share": 1}, "whose column `share` is int, and double by the schema"),
        ({"n": 1, "share": float("nan")}, "whose column `share` is float"),
        ({"n": 1, "word": b"w"}, "whose column `word` is bytes"),
        ({"n": 1, "whole": 1}, "whose column `whole` is int"),
        ({"n": 1, "other": 1}, "with column `other`, which its schema lacks"),
    ],
)
def test_a_record_of_another_schema_names_kind_item_and_column(
    values: Mapping[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidRecord, match=rf"Kind `mine` yields a record for item page 1 {sentence}"):
        yields(NewRecord("a", "text", values))


@pytest.mark.parametrize(
    "cell, sentence",
    [
        (NewRecord("a", b"bytes", {"n": 1}), "column `text` is bytes"),  # type: ignore[arg-type]
        (NewRecord(1, "text", {"n": 1}), "column `key` is int"),  # type: ignore[arg-type]
        ({"key": "a"}, "yields dict for item page 1"),
    ],
)
def test_what_is_no_record_is_an_error_of_the_kind(cell: object, sentence: str) -> None:
    with pytest.raises(InvalidRecord, match=sentence):
        yields(cell)


def test_two_records_of_one_key_are_an_error_of_the_kind() -> None:
    with pytest.raises(InvalidRecord, match="two records with key `a` for item page 1"):
        yields(NewRecord("a", "x", {"n": 1}), NewRecord("a", "y", {"n": 1}))


def test_a_kind_that_raises_refuses_the_item_and_gives_nothing_of_it() -> None:
    def failing(document: WorkItem) -> Iterator[Any]:
        yield NewRecord("a", "text", {"n": 1})
        raise ValueError("first line\nsecond line")

    assert outcomes_by(failing) == [Refusal("", "raised", "ValueError: first line", b"some text")]


def test_a_kind_that_exits_refuses_the_item() -> None:
    def leaving(document: WorkItem) -> Iterator[Any]:
        sys.exit(3)
        yield

    assert outcomes_by(leaving) == [Refusal("", "raised", "SystemExit: 3", b"some text")]


def test_missing_memory_is_no_fault_of_the_item() -> None:
    def greedy(document: WorkItem) -> Iterator[Any]:
        raise MemoryError
        yield

    with pytest.raises(MemoryError):
        outcomes_by(greedy)


def test_too_large_a_repository_refuses_the_item() -> None:
    def asking(document: WorkItem) -> Iterator[Any]:
        raise RepositoryTooLarge("It has much.")
        yield

    assert outcomes_by(asking) == [Refusal("", "repository_too_large", "It has much.", b"some text")]


def test_outcomes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "MAX_RECORD_BYTES", 10)
    monkeypatch.setattr(outcomes, "MAX_ITEM_BYTES", 100)
    monkeypatch.setattr(outcomes, "MAX_OUTCOMES", 50)
    two = yields(NewRecord("a", "é" * 6, {"n": 1}), NewRecord("b", "short", {"n": 1}))
    assert reasons(two) == ["too_large"]
    assert len(two) == 2
    assert reasons(yields(*(NewRecord(f"{n}", "text", {"n": 1}) for n in range(60)))) == ["too_much"]
    endless = outcomes_by(lambda _: (Refusal("", "dull", "Dull.") for _ in iter(int, 1)))
    assert reasons(endless) == ["too_much"]


def test_half_a_surrogate_pair_is_refused() -> None:
    assert reasons(yields(NewRecord("a", "\ud800", {"n": 1}))) == ["not_unicode"]
    assert reasons(yields(NewRecord("a", "text", {"n": 1, "word": "\udfff"}))) == ["not_unicode"]
    assert yields(Refusal("\ud800", "dull", "\ud800")) == [Refusal("?", "dull", "?")]


def test_details_and_samples_are_cut() -> None:
    (refusal,) = yields(Refusal("a", "dull", "d" * 10_000, b"s" * 10_000))
    assert isinstance(refusal, Refusal)
    assert (len(refusal.detail), len(refusal.sample)) == (500, 1024)
