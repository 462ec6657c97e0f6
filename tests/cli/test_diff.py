"""`factory diff`: which documents enter and leave between two tables, and what each side has against them."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from factory.cli import main, root
from factory.explain.diff import diff
from factory.lake import names
from factory.lake.schemas.dedup import DECISIONS
from factory.lake.schemas.ingest import RAW
from factory.lake.schemas.models import TOKENIZER
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import document, documents, pack, publish, tokenize, verdicts
from tests.terminal import in_columns

STRICT = names.variant("web", "strict")
SIMILARITY = {"similar": 0.9, "exact_copy": 1.0, "connected": None}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake with the documents a to f, of 1 to 6 bytes."""
    lake = Lake(Settings(home=tmp_path))
    monkeypatch.setattr(root, "lake_settings", lambda: lake.settings)
    documents(lake, "web", "abcdef")
    return lake


def factory(*arguments: str) -> Result:
    return CliRunner().invoke(main.app, list(arguments))


def plain(*arguments: str) -> dict[str, Any]:
    done = factory("diff", *arguments, "--json")
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_variant_loses_documents_by_rule_and_wins_others_back(lake: Lake) -> None:
    verdicts(lake, "web", {"a": {"stop_words": 1.0}})
    verdicts(lake, STRICT, {"b": {"words": 2.0}, "c": {"words": 3.0, "lines": 4.0}})
    found = plain("filtered.web", "filtered.web__strict")
    assert (found["left"]["documents"], found["right"]["documents"], found["stay"]) == (5, 4, 3)
    leave, enter = found["leave"], found["enter"]
    assert (leave["documents"], leave["share"], leave["n_bytes"]) == (2, 2 / 5, 2 + 3)
    assert [
        (cause["cause"], cause["documents"], cause["alone"], cause["share"], cause["n_bytes"])
        for cause in leave["causes"]
    ] == [("words", 2, 1, 2 / 5, 5), ("lines", 1, 0, 1 / 5, 3)]
    assert leave["causes"][0]["examples"][0] == {
        "doc_id": "b",
        "source": "web",
        "key": "page b",
        "n_bytes": 2,
        "value": 2.0,
        "threshold": 9.0,
        "duplicate_of": None,
        "kept_document": None,
        "repository": None,
        "evidence": None,
    }
    assert (enter["documents"], enter["share"]) == (1, 1 / 4)
    assert [cause["cause"] for cause in enter["causes"]] == ["stop_words"]


def test_the_tables_for_people_show_counts_and_examples(lake: Lake) -> None:
    verdicts(lake, "web", {})
    verdicts(lake, STRICT, {"b": {"words": 2.0}})
    shown = " ".join(factory("diff", "filtered.web", "filtered.web__strict").stdout.split())
    assert "5 documents are in both." in shown
    assert "1 leave" in shown
    assert "0 enter" in shown
    assert "words 1 16.7% 1 0.00 web / page b: 2 (limit 9)" in shown
    none = factory("diff", "filtered.web", "filtered.web__strict", "-n", "0").stdout
    assert "page b" not in none


def test_examples_keep_their_width_on_a_narrow_screen(lake: Lake) -> None:
    verdicts(lake, "web", {})
    verdicts(lake, STRICT, {"b": {"a_rule_with_a_long_name": 2.0}})
    done = in_columns(30, "diff", "filtered.web", "filtered.web__strict")
    (line,) = [line for line in done.stdout.splitlines() if "a_rule_with_a_long_name" in line]
    assert " ".join(line.split()) == "a_rule_with_a_long_name 1 16.7% 1 0.00 web / page b: 2 (limit 9)"


def test_a_table_is_compared_with_what_it_was_before(lake: Lake) -> None:
    first = verdicts(lake, "web", {"a": {"words": 1.0}})
    verdicts(lake, "web", {"b": {"words": 2.0}})
    for arguments in (
        ("filtered.web",),
        ("filtered.web@before",),
        (f"filtered.web@{first}",),
        ("filtered.web@before", "filtered.web"),
    ):
        found = plain(*arguments)
        assert found["left"]["snapshot"] == str(first)
        assert [cause["examples"][0]["doc_id"] for cause in found["leave"]["causes"]] == ["b"]
        assert [cause["examples"][0]["doc_id"] for cause in found["enter"]["causes"]] == ["a"]


def test_a_document_that_the_other_table_never_had_is_absent(lake: Lake) -> None:
    verdicts(lake, "web", {})
    publish(lake, names.raw("books"), RAW, [])
    verdicts(lake, "books", {}, letters="")
    found = plain("filtered.web", "filtered.books")
    assert found["stay"] == 0
    assert [(cause["cause"], cause["documents"]) for cause in found["leave"]["causes"]] == [("absent", 6)]


def deduplicated(
    lake: Lake, dataset: str, copies: dict[str, str], letters: str, reason: str = "similar"
) -> None:
    """Publish the decisions on the documents that passed, and what they keep of a dataset."""
    decisions = names.dedup(dataset, "decisions")
    rows = [
        {
            "doc_id": letter,
            "dataset": dataset,
            "kept": letter not in copies,
            "reason": reason if letter in copies else "kept",
            "duplicate_of": copies.get(letter),
            "similarity": SIMILARITY[reason] if letter in copies else None,
            "kept_document": copies.get(copies.get(letter, ""), copies.get(letter)),
        }
        for letter in letters
    ]
    publish(lake, decisions, DECISIONS, rows, names.filtered(dataset))
    kept = [document(letter) for letter in letters if letter not in copies]
    publish(lake, names.deduplicated(dataset), RAW, kept, decisions, names.raw(dataset))


def test_what_dedup_removed_names_the_document_that_was_kept(lake: Lake) -> None:
    verdicts(lake, "web", {})
    deduplicated(lake, "web", {}, "abcdef")
    verdicts(lake, STRICT, {"a": {"words": 1.0}})
    deduplicated(lake, STRICT, {"c": "d"}, "bcdef")
    for table in ("deduplicated.{}", "dedup.{}_decisions"):
        found = plain(table.format("web"), table.format(STRICT))
        causes = {cause["cause"]: cause["examples"][0] for cause in found["leave"]["causes"]}
        assert causes["words"]["doc_id"] == "a"
        assert (causes["similar"]["doc_id"], causes["similar"]["duplicate_of"]) == ("c", "d")
        assert causes["similar"]["value"] == 0.9
        assert found["enter"]["documents"] == 0


def test_what_was_removed_through_others_is_not_shown_as_alike(lake: Lake) -> None:
    verdicts(lake, "web", {})
    deduplicated(lake, "web", {}, "abcdef")
    verdicts(lake, STRICT, {})
    deduplicated(lake, STRICT, {"c": "d"}, "abcdef", "connected")
    shown = factory("diff", "deduplicated.web", "deduplicated.web__strict").stdout
    assert "web / page c: joined through others to d" in " ".join(shown.split())


def test_an_exact_copy_of_a_removed_document_is_shown_with_the_kept_one(lake: Lake) -> None:
    verdicts(lake, "web", {})
    deduplicated(lake, "web", {}, "abcdef")
    verdicts(lake, STRICT, {})
    deduplicated(lake, STRICT, {"b": "c", "c": "d"}, "abcdef", "exact_copy")
    shown = " ".join(factory("diff", "deduplicated.web", "deduplicated.web__strict").stdout.split())
    assert "web / page b: exact copy of c (1.0000); kept: d" in shown
    assert "web / page c: exact copy of d (1.0000) " in f"{shown} "


def test_packed_documents_are_those_of_the_segments(lake: Lake) -> None:
    verdicts(lake, "web", {})
    deduplicated(lake, "web", {}, "abcdef")
    pack(lake, "web", "ab", "bc", "def", upstream=(names.deduplicated("web"),))
    verdicts(lake, STRICT, {"a": {"words": 1.0}})
    deduplicated(lake, STRICT, {}, "bcdef")
    pack(lake, STRICT, "bcdef", upstream=(names.deduplicated(STRICT),))
    found = plain("packed.web", "packed.web__strict")
    assert (found["left"]["documents"], found["stay"]) == (6, 5)
    assert [(cause["cause"], cause["documents"]) for cause in found["leave"]["causes"]] == [("words", 1)]


def test_a_document_without_tokens_is_told_as_such_and_not_as_absent(lake: Lake) -> None:
    verdicts(lake, "web", {})
    deduplicated(lake, "web", {}, "abcdef")
    tokenize(lake, "web", "abcde", names.deduplicated("web"), empty="a")  # of f nothing is known
    pack(lake, "web", "bcde", upstream=(names.tokenized("web"),))
    leave = plain("deduplicated.web", "packed.web")["leave"]
    assert [(cause["cause"], cause["examples"][0]["doc_id"]) for cause in leave["causes"]] == [
        ("absent", "f"),
        ("no_tokens", "a"),
    ]


def test_a_variant_ignores_rules_of_its_tokenizers_documents(lake: Lake) -> None:
    verdicts(lake, "web", {"a": {"lines": 1.0}})
    deduplicated(lake, "web", {}, "bcdef")
    publish(lake, names.model("t"), TOKENIZER, [], names.deduplicated("web"))
    for failing in ({}, {"a": {"words": 1.0}}):
        verdicts(lake, STRICT, failing)
        kept = "".join(it for it in "abcdef" if it not in failing)
        deduplicated(lake, STRICT, {}, kept)
        tokenize(lake, STRICT, kept, names.deduplicated(STRICT), names.model("t"), empty=kept)
    leave = plain(f"tokenized.{STRICT}")["leave"]
    assert [(cause["cause"], cause["alone"]) for cause in leave["causes"]] == [("words", 1)]


def test_causes_are_read_as_they_were_when_the_table_was_made(lake: Lake) -> None:
    verdicts(lake, "web", {})
    deduplicated(lake, "web", {}, "abcdef")
    verdicts(lake, STRICT, {"a": {"words": 1.0}})
    deduplicated(lake, STRICT, {}, "bcdef")
    verdicts(lake, STRICT, {"a": {"lines": 1.0}})  # newer than what the deduplicated table was made of
    found = plain("deduplicated.web", "deduplicated.web__strict")
    assert [cause["cause"] for cause in found["leave"]["causes"]] == ["words"]


@pytest.mark.parametrize("seed", range(4))
def test_the_counts_are_those_of_sets(lake: Lake, seed: int) -> None:
    drawn = random.Random(seed)
    rules = ["words", "lines", "chars"]

    def some() -> dict[str, dict[str, float]]:
        failing = {letter: {rule: 1.0 for rule in rules if drawn.random() < 0.3} for letter in "abcdef"}
        return {letter: failed for letter, failed in failing.items() if failed}

    first, second = some(), some()
    verdicts(lake, "web", first)
    verdicts(lake, STRICT, second)
    found = diff(lake, "filtered.web", "filtered.web__strict", 0)
    gone, new = set(second) - set(first), set(first) - set(second)
    assert (found.leave.documents, found.enter.documents) == (len(gone), len(new))
    assert found.stay == 6 - len(set(first) | set(second))
    for moved, ids, failing in ((found.leave, gone, second), (found.enter, new, first)):
        by_rule = Counter(rule for letter in ids for rule in failing[letter])
        alone = Counter(rule for letter in ids for rule in failing[letter] if len(failing[letter]) == 1)
        assert {cause.cause: cause.documents for cause in moved.causes} == by_rule
        assert {cause.cause: cause.alone for cause in moved.causes if cause.alone} == alone
        assert moved.n_bytes == sum(ord(letter) - ord("a") + 1 for letter in ids)


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (("filtered.web", "filtered.nothing"), 5, "factory materialize '*filtered.nothing' --changed"),
        (("filtered.web", "strict"), 2, "namespace.name"),
        (("filtered.web",), 8, "Nothing was published of filtered.web before"),
        (("filtered.web@yesterday",), 2, "Write filtered.web@before"),
        (("filtered.web@7",), 5, "has no snapshot 7"),
        (("models.t", "models.t"), 2, "has no documents to compare"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(
    lake: Lake, arguments: tuple[str, ...], code: int, words: str
) -> None:
    verdicts(lake, "web", {})
    publish(lake, names.model("t"), TOKENIZER, [])
    done = factory("diff", *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in done.stderr
