"""The bench of deduplication: its exact pairs against brute force, its verdicts on small graphs."""

from __future__ import annotations

import math
import zipfile
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from bench.bags import joined
from bench.dedup.accuracy import Judged, check_decisions, exact_pairs, kept_ids, numbered
from bench.dedup.bandings import candidates, met
from bench.dedup.chain import counted_assets, exponent, fixed_cost
from bench.dedup.corpus import COLUMNS, FOLDS, Corpus, _documents, _write, fold
from bench.dedup.costs import add_costs
from bench.dedup.exact import Alike, alike
from bench.dedup.judge import Verdict, lost_families, shown, verdict
from bench.dedup.measure import _texts, _verdicts
from bench.dedup.minhash.corpus import counted
from bench.dedup.peers import Kept, lay_out
from bench.dedup.releases import RELEASES, requirements
from bench.dedup.truth import code_words, weighted_words
from bench.harness import Report, WrongAnswer
from bench.processes import ByKind, Span
from factory.dedup.banding import Banding
from factory.lake.schemas.ingest import RAW
from factory.orchestration.chain.dedup.group import dedup_group

Bag = dict[int, float]
bags = st.dictionaries(st.integers(0, 30), st.sampled_from([0.5, 1.0, 1.5, 4.0]), max_size=12)


def similarity(one: Bag, other: Bag) -> float:
    both = one.keys() | other.keys()
    least = sum(min(one.get(token, 0), other.get(token, 0)) for token in both)
    most = sum(max(one.get(token, 0), other.get(token, 0)) for token in both)
    return least / most if most else 0.0


def found(documents: list[Bag], least: float) -> Alike:
    arrays = [
        (np.array([*document], np.int64), np.array([*document.values()], float)) for document in documents
    ]
    return alike(joined([*arrays, (np.empty(0, np.int64), np.empty(0))]), least)


@settings(deadline=None)
@given(st.lists(bags, max_size=12), st.sampled_from([0.2, 0.5, 0.8, 1.0]))
def test_alike_pairs_are_those_of_all_pairs(documents: list[Bag], least: float) -> None:
    exact = {
        pair: similarity(*(documents[it] for it in pair)) for pair in combinations(range(len(documents)), 2)
    }
    pairs = found(documents, least)
    assert pairs.pairs() == {pair for pair, of in exact.items() if of >= least - 1e-9}
    for left, right, of in zip(pairs.left, pairs.right, pairs.similarity, strict=True):
        assert of == pytest.approx(exact[left, right])
    assert sorted(pairs.pairs()) == list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))


def test_near_copies_among_many_documents_are_found() -> None:
    generator = np.random.default_rng(3)
    documents = [dict.fromkeys(generator.choice(5_000, 60, replace=False).tolist(), 1.0) for _ in range(200)]
    copies = [
        {token: 1.0 for number, token in enumerate(document) if number >= 3} for document in documents[:40]
    ]
    pairs = found([*documents, *copies], 0.8)
    assert pairs.pairs() == {(number, 200 + number) for number in range(40)}
    assert pairs.similarity.tolist() == pytest.approx([57 / 60] * 40)


def test_the_similarity_of_a_pair_is_asked_in_either_order() -> None:
    pairs = Alike(np.array([0, 0, 2]), np.array([1, 3, 4]), np.array([0.9, 0.8, 0.7]))
    asked = pairs.of(np.array([3, 1, 4, 2, 1]), np.array([0, 0, 2, 2, 4]))
    assert asked.tolist()[:4] == [0.8, 0.9, 0.7, 1.0]
    assert np.isnan(asked[4])
    assert pairs.at(0.8).pairs() == {(0, 1), (0, 3)}
    nothing = Alike(np.empty(0, int), np.empty(0, int), np.empty(0))
    assert np.isnan(nothing.of(np.array([1]), np.array([0]))[0])


def test_a_verdict_counts_what_is_lost() -> None:
    # 0-1-2 a chain, 3-4 a pair, 5-6 alike at .75 only, 7 alone
    similar = Alike(np.array([0, 1, 3, 5]), np.array([1, 2, 4, 6]), np.array([0.9, 0.85, 0.8, 0.75]))
    of = verdict("any", "words", {0, 5, 7}, 8, similar, 0.8)
    assert (of.kept, of.removed, of.pairs, of.alike_kept) == (3, 5, 3, 0)
    assert of.unsupported == 4  # 2, whose like was removed, 3 and 4, and 6, which is not alike enough
    assert of.far == 3
    assert of.lost == 1
    assert of.precision == pytest.approx(1 / 5)
    assert of.recall == 1
    everything = verdict("none", "words", set(range(8)), 8, similar, 0.8)
    assert (everything.alike_kept, everything.recall, everything.precision) == (3, 0.0, 1.0)


def test_lost_families_come_by_size_with_their_paths() -> None:
    similar = Alike(np.array([0, 1, 3]), np.array([1, 2, 4]), np.array([0.9, 0.9, 0.9]))
    families = lost_families({5}, similar, 0.8)
    assert families == [[0, 1, 2], [3, 4]]
    assert shown(families[0], [f"p{number}" for number in range(6)]) == "p0; and 2 more"


def documents(texts: dict[str, str]) -> pa.Table:
    return pa.table(
        {
            "doc_id": list(texts),
            "content_hash": [f"h{text}" for text in texts.values()],
            "repository": ["r"] * len(texts),
            "path": [f"{name}.py" for name in texts],
            "text": pa.array(texts.values(), pa.large_string()),
        }
    )


@pytest.fixture
def judged() -> Judged:
    near = "alpha beta gamma delta epsilon zeta eta theta iota kappa"
    texts = {"a": near, "b": f"{near} other", "c": near, "d": "something else entirely"}
    return numbered(documents(texts))


def test_a_text_stays_if_any_of_its_copies_does(judged: Judged) -> None:
    texts = judged.number_of
    assert _texts(judged, {"b", "c"}) == {texts["a"], texts["b"]}


def decided(**partners: tuple[str | None, float | None]) -> pa.Table:
    names, said = list(partners), list(partners.values())
    return pa.table(
        {
            "doc_id": names,
            "kept": [partner is None for partner, _ in said],
            "duplicate_of": pa.array([partner for partner, _ in said], pa.string()),
            "similarity": pa.array([it for _, it in said], pa.float64()),
            "kept_document": pa.array([partner for partner, _ in said], pa.string()),
        }
    )


def test_a_decision_is_right_only_with_its_exact_similarity(judged: Judged) -> None:
    assert judged.texts == 3
    exact = exact_pairs(weighted_words(judged.documents["text"].to_pylist()), judged.first)
    texts = judged.number_of
    ((left, right),) = exact.pairs()
    assert {left, right} == {texts["a"], texts["b"]}
    of = float(exact.similarity[0])
    right_ones = decided(a=(None, None), b=("a", of), c=("a", 1.0), d=(None, None))
    report = Report([], "")
    check_decisions(report, judged, right_ones, exact, 0.7)
    assert len(report.answers) == 3
    assert kept_ids(right_ones) == {"a", "d"}
    for wrong in (
        decided(a=(None, None), b=("a", of + 1e-6), c=("a", 1.0), d=(None, None)),
        decided(a=(None, None), b=("c", of), c=("a", 1.0), d=(None, None)),
        decided(a=(None, None), b=("a", of), d=(None, None)),
        decided(a=(None, None), b=("d", of), c=("a", 1.0), d=(None, None)),
    ):
        with pytest.raises(WrongAnswer):
            check_decisions(Report([], ""), judged, wrong, exact, 0.7)
    with pytest.raises(WrongAnswer):
        check_decisions(Report([], ""), judged, right_ones, exact, of + 0.001)


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 1), min_size=6, max_size=6), min_size=2, max_size=8))
def test_a_banding_meets_the_pairs_that_agree_in_a_band(rows: list[list[int]]) -> None:
    signatures, banding = np.array(rows, np.uint8), Banding(2, 3)
    pairs = list(combinations(range(len(rows)), 2))
    expected = [
        any(rows[left][at : at + 2] == rows[right][at : at + 2] for at in (0, 2, 4)) for left, right in pairs
    ]
    left, right = np.array(pairs).T
    assert met(signatures, Alike(left, right, np.ones(len(pairs))), banding).tolist() == expected
    assert candidates(signatures, banding, most=8) == sum(expected)


def test_a_bucket_of_too_many_members_makes_no_candidates() -> None:
    signatures = np.array([[1, 1, 7, 7]] * 3 + [[1, 1, 8, 8], [2, 2, 8, 8]], np.uint8)
    assert candidates(signatures, Banding(2, 2), most=4) == 3 + 3 + 1
    assert candidates(signatures, Banding(2, 2), most=3) == 3 + 1


def test_every_release_is_named_once() -> None:
    named = requirements()
    assert len(named) == len(set(named)) > 4 * len(RELEASES) * 0.9
    assert 30 <= len(RELEASES) <= 100
    assert all(len(versions.split()) > 1 for versions in RELEASES.values())


def test_a_file_is_in_one_fold_in_every_release_and_vendored() -> None:
    assert fold("pip/_vendor/requests/api.py") == fold("requests/api.py")
    assert {fold(f"package/module{number}.py") for number in range(1_000)} == set(range(FOLDS))


def test_the_text_files_of_wheels_become_documents(tmp_path: Path) -> None:
    wheel = tmp_path / "some_package-1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("some/module.py", "x = 'é'\n")
        archive.writestr("some/latin.py", "x = 'é'\n".encode("latin-1"))
        archive.writestr("some/empty.py", "")
        archive.writestr("some/picture.png", b"\x89PNG")
        archive.writestr("some_package-1.2.dist-info/top_level.txt", "some\n")
    _write(tmp_path, _documents([wheel]))
    made = Corpus(tmp_path)
    (row,) = made.read(range(FOLDS), COLUMNS).to_pylist()
    assert (row["path"], row["text"], row["n_bytes"]) == ("some/module.py", "x = 'é'\n", 9)
    assert (row["source"], row["repository"], row["revision"]) == ("some_package", "some_package-1.2", "1.2")
    assert made.documents([fold("some/module.py")]) == 1
    required = {field.name for field in RAW.columns if not field.nullable}
    assert required <= set(COLUMNS)


def test_however_little_is_held_the_folds_have_the_same_rows_by_doc_id(tmp_path: Path) -> None:
    wheels = [tmp_path / f"some-{version}-py3-none-any.whl" for version in range(3)]
    for wheel in wheels:
        with zipfile.ZipFile(wheel, "w") as archive:
            for number in range(100):
                archive.writestr(f"some/module{number}.py", f"x = {number}\n")
    little, much = tmp_path / "little", tmp_path / "much"
    for folder, most in ((little, 10), (much, 1_000_000)):
        folder.mkdir()
        _write(folder, _documents(wheels), most)
    made = Corpus(little).read(range(FOLDS), COLUMNS)
    assert made.num_rows == 300
    assert made.equals(Corpus(much).read(range(FOLDS), COLUMNS))
    for number in range(FOLDS):
        ids = Corpus(little).read([number], ["doc_id"])["doc_id"].to_pylist()
        assert ids == sorted(ids)
    assert sorted(map(str, little.iterdir())) == Corpus(little).files(range(FOLDS))


def test_peers_get_all_documents_in_two_files(tmp_path: Path) -> None:
    lay_out(pa.table({"doc_id": [f"{number}" for number in range(101)], "text": ["t"] * 101}), tmp_path)
    parts = [pq.read_table(file).num_rows for file in sorted((tmp_path / "documents").iterdir())]
    assert parts == [51, 50]
    assert len(list((tmp_path / "first").iterdir())) == 2


@pytest.mark.parametrize("power", [0.9, 1.0, 2.0])
def test_the_exponent_is_that_of_the_costs(power: float) -> None:
    sizes = [1_000, 3_000, 10_000]
    assert exponent(sizes, [5 * size**power for size in sizes]) == pytest.approx(power)


def test_the_fixed_cost_is_that_of_no_documents() -> None:
    assert fixed_cost([1_000, 3_000, 10_000], [50 + 2, 50 + 6, 90]) == pytest.approx(50)


def test_every_table_of_a_group_and_the_kept_documents_are_counted() -> None:
    group = dedup_group("some", ["one", "other"], kind="code")
    counted = [asset.key.to_user_string() for asset in counted_assets(group)]
    assert {asset.key.to_user_string() for asset in group.assets} < set(counted)
    assert {"dedup.some_recall", "dedup.some_largest_buckets", "dedup.some_sweep"} < set(counted)
    assert sorted(set(counted) - {asset.key.to_user_string() for asset in group.assets}) == [
        "deduplicated.one",
        "deduplicated.other",
    ]


def test_growth_is_between_the_largest_parts_and_speed_on_the_same() -> None:
    seconds = {"tenth": 60.0, "third": 80.0, "whole": 160.0}
    spans = {name: {"bags": Span("bags", cpu_s=ByKind(jvm=cpu_s))} for name, cpu_s in seconds.items()}
    sizes = {
        name: pa.chunked_array([[1_000_000] * n]) for name, n in (("tenth", 1), ("third", 3), ("whole", 6))
    }
    report = Report([], "")
    add_costs(report, spans, sizes, {"rensa": Kept(set(), 30.0, 0.0)}, "tenth")
    found = {row.name: row.value for row in report.rows}
    assert found["dedup.marginal_exponent"] == 1.0
    assert found["dedup.fixed_cost"] == 50.0
    assert found["dedup.times_rensa"] == 0.5
    assert found["dedup.rensa.speed"] == round(1 / 30, 3)


@settings(deadline=None)
@given(st.text(st.sampled_from("ab_19.eE+-xX0\\nrt é東½’'\"("), max_size=40))
def test_the_words_of_the_truth_are_counted_as_the_lexer_counts_them(text: str) -> None:
    [(_, counts)] = counted(pa.array([text]))
    assert sorted(Counter(code_words(text)).values()) == sorted(counts)


def test_a_word_of_the_truth_weighs_its_damped_count_times_its_idf() -> None:
    made = weighted_words(["a b a", "b c", None, "()"])
    assert made.offsets.tolist() == [0, 2, 4, 4, 4]
    expected = [(1 + math.log(2)) * math.log(5), math.log(3), math.log(3), math.log(5)]
    assert made.weights.tolist() == pytest.approx(expected, rel=1e-14)


def test_the_verdicts_on_a_large_corpus_fit_a_terminal() -> None:
    found = Verdict(
        "one per component", "its 5-grams", 123_456, 123_456, 12_345, 12_345, 123_456, 1_234_567, 999
    )
    assert Console(width=500).measure(_verdicts("Peers", [found])).maximum <= 120
