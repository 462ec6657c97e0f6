"""The comparison of filters: the same rules written out over definitions, causes found by switching them."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from rich.console import Console

from bench.filters import corpus
from bench.filters import measure as bench
from bench.filters.causes import CASE, FILTERS, LINES, NONE, ONCE, REASONS, SENTENCES, WORDS, Theirs
from bench.filters.compatible import COMPATIBLE, rule_of
from bench.filters.ours import SETS, passes, spans_of
from bench.harness import Report, WrongAnswer
from bench.processes import Meter, Span
from factory.filters.sets import RULE_SETS, rules
from factory.filters.text import Text
from factory.settings import Settings

THEIRS = Theirs(
    words=re.compile(r"\w+|[^\w\s]").findall,  # as spaCy does in the main: punctuation marks are words
    n_sentences=lambda line: line.count("."),
    punctuation=frozenset("!#.,…-"),
    end_marks=(".", "!"),
)
PROSE = "The rain went on and on, and nobody in the house had thought to close a window. "
WORDS_AND_MARKS = ["The ", "of ", "word ", "12 ", "# ", "...", "• ", "-", "it is so. ", "{", "é"]
ENDS = [".\n", "!\n", "\n", "\n\n", " \n"]
texts = st.lists(st.sampled_from(WORDS_AND_MARKS + ENDS), max_size=60).map("".join)


def cause(name: str, text: str) -> tuple[str, ...] | None:
    """Why the verdict of a filter with every switch on differs from the one without."""
    it = FILTERS[name]
    return it.causes(text, not it.failing(text, frozenset(it.switches), THEIRS), THEIRS)


@settings(deadline=None)
@given(text=texts)
def test_without_a_switch_a_filter_has_the_values_of_the_rules(text: str) -> None:
    for name, it in FILTERS.items():
        measured = {rule.name: rule.measure(Text(text)) for rule in RULE_SETS[name]}
        assert dict(it.values(text, NONE, THEIRS)) == measured


@settings(deadline=None)
@given(text=texts)
def test_the_cause_turns_our_verdict_into_theirs_and_no_part_of_it_does(text: str) -> None:
    for name, it in FILTERS.items():
        theirs = not it.failing(text, frozenset(it.switches), THEIRS)
        found = cause(name, text)
        assert found is not None
        assert (not it.failing(text, frozenset(found), THEIRS)) == theirs
        for left_out in found:
            fewer = frozenset(found) - {left_out}
            assert (not it.failing(text, fewer, THEIRS)) != theirs


@pytest.mark.parametrize(
    "name,text,expected",
    [
        ("gopher_quality", PROSE * 5, ()),
        ("gopher_quality", "call(of, the, and x), a.b(c) + d[e] " * 20, (WORDS,)),
        (
            "gopher_quality",
            "This And That rain The House Window door closed again " * 6 + "Of it",
            (CASE,),
        ),
        ("gopher_quality", "- item of the shop to have\n\n" * 20 + PROSE, (LINES,)),
        ("gopher_repetition", "Hello world", (ONCE,)),
        ("c4", "\n".join([PROSE] * 5) + "\nMr. Smith?", ()),
        ("c4", "So is it? And why? Not at all! Yes it is! No. Or not?\n", (SENTENCES,)),
        (
            "fineweb",
            "fresh(milk)and(eggs) and(more)like(this)too.\nbrown(rye)or(white) but(not)both(of)them.\n",
            (WORDS,),
        ),
    ],
)
def test_a_definition_is_named_as_the_cause(name: str, text: str, expected: tuple[str, ...]) -> None:
    assert cause(name, text) == expected


def test_every_reason_of_datatrove_is_a_rule_of_ours_or_an_empty_text() -> None:
    assert set(REASONS.values()) == {rule.name for rule in rules(SETS)} | {"empty"}
    assert sorted(FILTERS) == sorted(SETS)
    for name, it in FILTERS.items():
        assert it.rules == RULE_SETS[name]


def test_failing_rules_are_those_of_the_reference() -> None:
    documents = pa.table({"doc_id": ["a", "b"], "text": [PROSE * 9, "# one\n" * 4]})
    for doc_id, text in zip("ab", documents["text"].to_pylist(), strict=True):
        for name, failing in bench.failing_rules(documents)[doc_id].items():
            assert failing == [
                rule.name
                for rule in RULE_SETS[name]
                if rule.limit.violated(rule.measure(Text(text))) is not None
            ]


def test_a_copy_of_the_corpus_has_other_words_and_the_same_values() -> None:
    text = PROSE * 3 + "\n\n" + "Nobody closed that window, with the rain outside.\n" * 3
    words = sorted(set(corpus.RENAMED.findall(text)) - corpus.UNTOUCHED | {"door", "cats"})
    names = corpus._renaming(words, 1)
    assert sorted(names) == sorted(names.values()) == words
    assert corpus._renaming(words, 0) == {}
    copy = corpus._renamed(text, names)
    assert copy != text
    for rule in rules(SETS):
        assert rule.measure(Text(copy)) == rule.measure(Text(text)), rule


def test_docstrings_are_the_prose_of_a_module() -> None:
    source = (
        '"""One."""\n\nclass A:\n    """Two."""\n    x = """no"""\n\n    def f(self):\n        """Three."""\n'
    )
    assert corpus.docstrings_of(source) == "One.\n\nTwo.\n\nThree."
    assert corpus.docstrings_of("def") == ""


def test_disagreements_are_counted_by_cause_and_listed_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "settings", lambda: Settings(cache=tmp_path))
    (tmp_path / "bench").mkdir()
    rejected = {"filter": "c4", "ours": ["c4_sentences"], "datatrove": None, "cause": [SENTENCES]}
    kept: dict[str, object] = {
        "filter": "fineweb",
        "ours": [],
        "datatrove": "newline_to_word_ratio",
        "cause": None,
    }
    found = {
        "documents": 3,
        "wrong": [],
        "disagreements": [rejected | {"doc_id": "a"}, kept | {"doc_id": "b"}],
    }
    report = Report([], "")
    bench.add_disagreements(report, found)
    by_name = {row.name: row for row in report.rows}
    assert by_name["filters.disagreements.c4"].value == by_name["filters.disagreements.fineweb"].value == 1
    assert (by_name["filters.unexplained"].value, by_name["filters.unexplained"].met) == (1, False)
    listed = (tmp_path / "bench" / "filters-disagreements.jsonl").read_text().splitlines()
    assert [json.loads(line)["doc_id"] for line in listed] == ["a", "b"]
    console = Console(record=True, width=200, file=StringIO())
    console.print(*report.tables)
    printed = console.export_text()
    assert re.search(r"c4 +c4_sentences +ours +1 +sentences\s", printed)
    assert SENTENCES.partition(": ")[2] in printed
    with pytest.raises(WrongAnswer, match="gives our failing rules without a switch"):
        bench.add_disagreements(Report([], ""), found | {"wrong": [["a", "c4", "ours"]]})


def test_both_passes_on_both_sizes_are_held_against_the_aim() -> None:
    def spans(first_s: float, cpu_s: float) -> dict[str, Span]:
        printed = {"start": 9.0, "first pass": first_s, "measure": cpu_s * 0.75, "decide": cpu_s * 0.25}
        return spans_of({"spans": {name: [1.0, 0.0, it, 0.0] for name, it in printed.items()}})

    report = Report([], "")
    ours = {"325mb": spans(8.0, 4.0), "1gb": spans(12.0, 10.0)}
    sizes = {"325mb": 400 * 10**6, "1gb": 1_000 * 10**6}
    peers = {"as shipped": {"cpu_s": 1.0}, "run to the end": {"cpu_s": 2.0}}
    bench.add_costs(report, ours, sizes, peers, 10**6)
    found = {row.name: (row.value, row.met) for row in report.rows}
    shipped = "filters.times_datatrove.as_shipped"
    assert found[f"{shipped}.325mb.first_pass"] == (50.0, True)
    assert found[f"{shipped}.325mb.second_pass"] == (100.0, True)
    assert found[f"{shipped}.1gb.first_pass"] == (83.3, True)
    assert found["filters.325mb.second_pass.cpu"][0] == 4.0
    assert {name for name, (_, met) in found.items() if met is not None} == {
        f"{shipped}.{size}.{part}_pass" for size in sizes for part in ("first", "second")
    }


def test_a_size_takes_the_first_copies_that_reach_it(tmp_path: Path) -> None:
    for number in range(4):
        pq.write_table(pa.table({"text": ["é" * 50]}), tmp_path / f"copy-{number:03}.parquet")
    assert [copy.name for copy in corpus.copies(tmp_path, 101)] == ["copy-000.parquet", "copy-001.parquet"]
    assert len(corpus.copies(tmp_path, 10_000)) == 4


@pytest.mark.spark
def test_both_passes_give_each_document_one_verdict(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "copy-000.parquet"
    pq.write_table(pa.table({"doc_id": ["a", "b"], "text": [PROSE * 9, "# one"]}), file)
    with Meter() as meter:
        counts = passes(spark, meter, tmp_path / "scratch", [str(file)])
    assert counts == {"documents": 2, "complete": True}
    assert {"first pass", "measure", "decide"} < {span.name for span in meter.spans}


def test_equal_verdicts_are_counted_for_our_sets_and_for_those_of_datatrove() -> None:
    found = {
        "documents": 200,
        "cpu_s": 30.0,
        "disagreements": [{"filter": "c4"}, {"filter": "c4"}, {"filter": "fineweb"}],
        "compatible": {
            "equal": dict.fromkeys(COMPATIBLE, 200) | {"c4": 198},
            "same_reason": dict.fromkeys(COMPATIBLE, 197),
            "other_words": 1,
            "cpu_s": 10.0,
        },
    }
    report = Report([], "")
    bench.add_equal_verdicts(report, found, sample_bytes=5_000_000)
    rows = {row.name.removeprefix("filters."): (row.value, row.met) for row in report.rows}
    assert rows["equal.c4"] == (99.0, None)
    assert rows["equal.datatrove_c4"] == (99.0, False)
    assert rows["equal.datatrove_fineweb"] == (100.0, True)
    assert rows["datatrove_sets.other_words"] == (1, False)
    assert rows["datatrove_sets.speed"] == (0.5, None)
    assert rows["datatrove_sets.times"] == (3.0, None)


def test_every_reason_of_datatrove_is_a_rule_of_a_compatible_set() -> None:
    names = {rule.name for chosen in COMPATIBLE.values() for rule in chosen}
    stand = {rule_of("c4", reason) for reason in REASONS if reason != "empty"}
    stand |= {rule_of(name, "empty") for name in ("gopher_repetition", "fineweb")}
    assert stand == names
    assert all(RULE_SETS[f"datatrove_{name}"] == chosen for name, chosen in COMPATIBLE.items())
    assert rule_of("c4", None) is None
