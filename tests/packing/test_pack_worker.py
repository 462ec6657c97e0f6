"""Plans: the sequence of each piece, visible dependencies, and that a plan depends on its rows alone."""

from __future__ import annotations

import ast
import random
import sysconfig
from collections import defaultdict
from itertools import product
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.packing.next_fit import next_fit_chunk
from factory._native import best_fit_decreasing, fewest_sequences, plan_sequences
from spark_udfs.packing.pack import assemble, plan_chunk
from tests.packing.visible import visible_dependencies

Rows = list[dict[str, object]]


def sequences_of(lengths: list[int], sequence_length: int) -> list[int | None]:
    return best_fit_decreasing(pa.array(lengths, pa.int64()), sequence_length).to_pylist()


def chunk_of(documents: list[tuple[str, str, int, int, list[str]]]) -> pa.Table:
    names = ("doc_id", "repository", "position", "n_tokens", "depends_on")
    kinds = (pa.string(), pa.string(), pa.int64(), pa.int64(), pa.list_(pa.string()))
    columns = list(zip(*documents, strict=True)) if documents else [()] * 5
    chunk = pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})
    return chunk.append_column("revision", pa.nulls(len(chunk), pa.string()))


def contents(plan: pa.Table) -> list[list[tuple[str, int, int]]]:
    """The pieces (doc_id, doc_offset, length) of each sequence."""
    found: dict[int, list[tuple[str, int, int]]] = defaultdict(list)
    for piece in plan.to_pylist():
        assert piece["position"] == len(found[piece["sequence"]])
        found[piece["sequence"]].append((piece["doc_id"], piece["doc_offset"], piece["length"]))
    assert sorted(found) == list(range(len(found)))
    return [found[sequence] for sequence in range(len(found))]


def visible(plan: pa.Table, documents: pa.Table) -> int:
    """Dependencies that stand whole before their dependent in a sequence."""
    columns = [documents[name].to_pylist() for name in ("doc_id", "n_tokens", "depends_on")]
    lengths, depends_on = dict(zip(*columns[:2], strict=True)), dict(zip(*columns[::2], strict=True))
    return visible_dependencies(contents(plan), lengths, depends_on)


# -- best-fit decreasing


@pytest.mark.parametrize(
    "lengths, sequence_length, packed",
    [  # the vectors of TRL's tests, for its mode that keeps every token
        ([5, 2, 4, 1], 4, [[4], [4], [2, 1, 1]]),
        ([5, 1, 4, 3], 5, [[5], [4, 1], [3]]),  # a length that is no power of two
        ([2, 0, 3, 0, 1], 4, [[3, 1], [2]]),  # empties are not placed
    ],
)
def test_pieces_are_placed_best_fit(
    lengths: list[int], sequence_length: int, packed: list[list[int]]
) -> None:
    alone = chunk_of([(f"d{i}", f"d{i}", 0, length, []) for i, length in enumerate(lengths)])
    plan = contents(plan_chunk(alone, sequence_length, 0.0))
    assert sorted(sorted(length for _, _, length in pieces) for pieces in plan) == sorted(map(sorted, packed))


def test_a_piece_of_no_tokens_has_no_sequence() -> None:
    assert sequences_of([2, 0, 3], 4) == [1, None, 0]


@pytest.mark.parametrize("seed", range(20))
def test_sequences_are_at_most_half_more_than_possible(seed: int) -> None:
    chance = random.Random(seed)
    lengths = [chance.randint(1, 10) for _ in range(6)]
    fewest = min(
        len(set(choice))
        for choice in product(range(6), repeat=6)
        if all(sum(n for n, c in zip(lengths, choice, strict=True) if c == s) <= 10 for s in range(6))
    )
    n = max(s for s in sequences_of(lengths, 10) if s is not None) + 1
    assert fewest <= n <= fewest * 3 / 2


@pytest.mark.parametrize("sequence_length", [2_048, 8_192, 32_768])
def test_mixed_lengths_need_at_most_one_sequence_more(sequence_length: int) -> None:
    lengths = np.random.default_rng(7).lognormal(6.3, 1.2, 100_000).astype(np.int64) % sequence_length + 1
    placed = fewest_sequences(pa.array(lengths), sequence_length).to_numpy()
    used = np.bincount(placed, weights=lengths)
    assert used.min() > 0
    assert used.max() <= sequence_length
    assert len(used) <= -(-lengths.sum() // sequence_length) + 1


def test_halves_that_do_not_divide_the_length_share_sequences() -> None:
    # TRL packed these one by one when the length was no power of two (huggingface/trl#3887).
    lengths = np.random.default_rng(0).normal(4_096, 512, 3_000).astype(np.int64)
    assert max(sequences_of(lengths.tolist(), 8_193)) < 1_550


@pytest.mark.parametrize(
    "lengths, sequence_length, sentence",
    [
        ([3, 9], 8, "9 tokens does not fit"),
        ([-1], 8, "A length is -1"),
        ([None], 8, "A length is null"),
        ([1], 0, "sequence length is 0 tokens"),
    ],
)
def test_a_wrong_length_is_a_sentence(lengths: list[int], sequence_length: int, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        sequences_of(lengths, sequence_length)


def test_a_wrong_dependency_is_a_sentence() -> None:
    two, one, none = pa.array([1, 1]), pa.array([1]), pa.array([], pa.int64())
    with pytest.raises(ValueError, match="names document 2 of 2"):
        plan_sequences(two, two, pa.array([2]), pa.array([0]), 8, 0)
    with pytest.raises(ValueError, match="2 documents and 1 repositories"):
        plan_sequences(two, one, none, none, 8, 0)
    with pytest.raises(ValueError, match="Pass an array of int64"):
        plan_sequences(two, pa.array(["a", "b"]), none, none, 8, 0)
    with pytest.raises(OverflowError):
        plan_sequences(two, two, one, one, 8, -1)


# -- the plan of a chunk


@st.composite
def chunks(draw: st.DrawFn) -> tuple[pa.Table, int]:
    n = draw(st.integers(0, 25))
    documents = [
        (
            f"d{i:02}",
            f"r{draw(st.integers(0, 3))}",
            i,
            draw(st.integers(0, 40)),
            [f"d{j:02}" for j in draw(st.sets(st.integers(0, 26), max_size=4))],
        )
        for i in range(n)
    ]
    return chunk_of(documents), draw(st.integers(1, 30))


@given(chunks(), st.floats(0, 0.1), st.integers(0, 1000))
def test_every_token_is_in_one_place_and_no_sequence_is_too_long(
    case: tuple[pa.Table, int], slack: float, tokens_before: int
) -> None:
    documents, sequence_length = case
    plans = (
        plan_chunk(documents, sequence_length, slack, tokens_before),
        next_fit_chunk(documents, sequence_length),
    )
    for plan in plans:
        reached: dict[str, int] = defaultdict(int)
        for pieces in contents(plan):
            assert 0 < sum(length for _, _, length in pieces) <= sequence_length
        for doc_id, offset, length in sorted(piece for pieces in contents(plan) for piece in pieces):
            assert offset == reached[doc_id]
            reached[doc_id] += length
        assert {d["doc_id"]: d["n_tokens"] for d in documents.to_pylist() if d["n_tokens"]} == reached


@given(chunks())
def test_documents_that_fit_stay_whole_in_order_and_visible(case: tuple[pa.Table, int]) -> None:
    documents, sequence_length = case
    plan = plan_chunk(documents, sequence_length, 0.01)
    positions = {d["doc_id"]: (d["repository"], d["position"]) for d in documents.to_pylist()}
    for pieces in contents(plan):
        held = [positions[doc_id] for doc_id, _, _ in pieces]
        assert held == sorted(held)
    in_pieces = [doc_id for pieces in contents(plan) for doc_id, _, _ in pieces]
    for document in documents.to_pylist():
        if 0 < document["n_tokens"] <= sequence_length:
            assert in_pieces.count(document["doc_id"]) == 1
    assert visible(plan, documents) >= visible(next_fit_chunk(documents, sequence_length), documents)


@given(chunks(), st.randoms())
def test_the_order_of_the_rows_does_not_matter(case: tuple[pa.Table, int], chance: random.Random) -> None:
    documents, sequence_length = case
    order = list(range(documents.num_rows))
    chance.shuffle(order)
    shuffled = documents.take(pa.array(order, pa.int64()))
    assert plan_chunk(shuffled, sequence_length, 0.01) == plan_chunk(documents, sequence_length, 0.01)


@pytest.mark.invariant("Every revision of a repository is sorted and packed separately.")
def test_revisions_of_a_repository_are_planned_as_two_repositories() -> None:
    numbered = chunk_of([(f"{r}{i}", r, i, 3, [f"{r}{i - 1}"] * (i > 0)) for r in "ab" for i in range(5)])
    revised = numbered.set_column(
        numbered.schema.get_field_index("revision"), "revision", numbered.column("repository")
    ).set_column(1, "repository", pa.array(["r"] * len(numbered)))
    for plan in (lambda chunk: plan_chunk(chunk, 10, 0.1), lambda chunk: next_fit_chunk(chunk, 10)):
        assert plan(revised) == plan(numbered)


def test_lengths_at_the_edge() -> None:
    documents = chunk_of(
        [("a", "a", 0, 8, []), ("b", "b", 0, 9, []), ("c", "c", 0, 0, []), ("d", "d", 0, 16, [])]
    )
    assert sorted(contents(plan_chunk(documents, 8, 0.0))) == [
        [("a", 0, 8)], [("b", 0, 8)], [("b", 8, 1)], [("d", 0, 8)], [("d", 8, 8)],
    ]  # fmt: skip


def test_a_chunk_of_nothing_has_no_sequences() -> None:
    assert plan_chunk(chunk_of([]), 8, 0.0).num_rows == 0
    assert plan_chunk(chunk_of([("a", "a", 0, 0, [])]), 8, 0.0).num_rows == 0


@pytest.mark.invariant("Plans and orders never change once published.")
def test_the_plan_is_the_one_first_published() -> None:
    # A change here changes every packed table that is remade from the same documents.
    chance = random.Random(3)
    documents = chunk_of(
        [
            (f"d{i}", f"r{i // 5}", i % 5, chance.randint(1, 21), [f"d{i - 1}"] if i % 3 else [])
            for i in range(20)
        ]
    )
    sequences = contents(plan_chunk(documents, 20, 0.1))
    golden = "d2, d19, d11 d12, d5, d8, d18, d0 d9 d13, d7, d10, d15 d16, d6 d7+20, d1, d3 d4, d17, d14"
    assert (
        ", ".join(" ".join(f"{d}+{o}" if o else d for d, o, _ in sequence) for sequence in sequences)
        == golden
    )


# -- against next-fit on real repositories


def standard_library() -> pa.Table:
    """The standard library's packages in order of imports, a repository each; four bytes are a token."""
    root = Path(sysconfig.get_path("stdlib"))
    documents = []
    packages = sorted(path.parent for path in root.glob("*/__init__.py"))
    for package in (package for package in packages if package.name not in ("test", "idlelib")):
        files = {
            ".".join(p.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): p
            for p in sorted(package.rglob("*.py"))
            if not {"test", "tests"} & set(p.parts)
        }
        imports = {
            module: sorted(imported(module, path) & files.keys() - {module}) for module, path in files.items()
        }
        order = nx.dfs_postorder_nodes(nx.DiGraph(imports))
        for position, module in enumerate(order):
            n_tokens = files[module].stat().st_size // 4 + 1
            documents.append((module, package.name, position, n_tokens, imports[module]))
    return chunk_of(documents)


def imported(module: str, path: Path) -> set[str]:
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            found |= {origin, *(f"{origin}.{alias.name}" for alias in node.names)}
    return found


def test_standard_library_sequences_are_fuller_than_with_next_fit() -> None:
    documents = standard_library()
    assert documents.num_rows > 300
    plan, plain = plan_chunk(documents, 8_192, 0.0025), next_fit_chunk(documents, 8_192)
    least = -(-sum(documents["n_tokens"].to_pylist()) // 8_192)
    assert least / len(contents(plan)) >= 0.99
    assert least / len(contents(plain)) < 0.95
    assert visible(plan, documents) > 1.3 * visible(plain, documents) > 0


# -- assembling


@pytest.mark.parametrize("rows_a_batch", [1, 2, 3, 100])
def test_sequences_are_whole_however_pieces_are_batched(rows_a_batch: int) -> None:
    pieces = [  # ordinal, shard, chunk, doc_id, doc_offset, length, tokens, partition
        (0, 0, 0, "a", 0, 2, b"aabb", "p"),
        (0, 0, 0, "b", 0, 1, b"cc", "p"),
        (1, 0, 0, "c", 4, 1, b"dd", "p"),
        (2, 0, 1, "d", 0, 1, b"ee", None),
        (2, 0, 1, "e", 0, 1, b"ff", "q"),
    ]
    names = ("ordinal", "shard", "chunk", "doc_id", "doc_offset", "length", "tokens", "partition")
    kinds = (pa.int64(),) * 3 + (pa.string(), pa.int64(), pa.int64(), pa.binary(), pa.string())
    table = pa.table(
        {n: pa.array(c, k) for n, c, k in zip(names, zip(*pieces, strict=True), kinds, strict=True)}
    )
    batches = table.to_batches(max_chunksize=rows_a_batch)
    rows: Rows = pa.Table.from_batches(list(assemble(iter(batches), append=7))).to_pylist()
    assert [
        (r["ordinal"], r["tokens"], r["n_tokens"], r["chunk"], r["append"], r["partition"]) for r in rows
    ] == [
        (0, b"aabbcc", 3, 0, 7, "p"),
        (1, b"dd", 1, 0, 7, "p"),
        (2, b"eeff", 2, 1, 7, None),
    ]
    assert [[(s["doc_id"], s["doc_offset"], s["length"]) for s in r["segments"]] for r in rows] == [
        [("a", 0, 2), ("b", 0, 1)],
        [("c", 4, 1)],
        [("d", 0, 1), ("e", 0, 1)],
    ]
