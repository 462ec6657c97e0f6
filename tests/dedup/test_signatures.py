"""Signatures against exact similarities, datasketch's weighted MinHash and consistent weighted sampling."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from datasketch import WeightedMinHashGenerator
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.dedup.minhash.corpus import counted
from factory import _native
from tests.dedup.bagged import idf_table, packed, sign
from tests.dedup.icws import icws

SCHEMES = ("lpmh", "cell_oph")
VALUES = 128
UNIVERSE = 150
TOKENS = np.random.default_rng(3).integers(-(2**63), 2**63 - 1, UNIVERSE)
IDF = idf_table({}, 1)  # all tokens weigh ln 2

every_scheme = pytest.mark.parametrize("scheme", SCHEMES)


def bag_pairs(n: int, seed: int) -> np.ndarray:
    """(n, 2, UNIVERSE) weights of similar bags, exact similarities spread from about 0.1 to 0.95."""
    generator = np.random.default_rng(seed)
    weights = generator.exponential(4, (n, 1, UNIVERSE)) + 0.5
    present = generator.random((n, 1, UNIVERSE)) < 0.7
    changed = generator.random((n, 2, UNIVERSE)) < 0.04 + 0.8 * generator.random((n, 1, 1))
    other = generator.exponential(4, (n, 2, UNIVERSE)) * (generator.random((n, 2, UNIVERSE)) < 0.5)
    bags = np.where(changed, other, weights * present)
    return np.where(bags < 0.1, 0, bags)


def exact(pairs: np.ndarray) -> np.ndarray:
    return pairs.min(1).sum(1) / pairs.max(1).sum(1)


def signatures(bags: np.ndarray, scheme: str, seed: int) -> np.ndarray:
    tokens = [TOKENS[bag > 0] for bag in bags]
    offsets = np.cumsum([0, *(len(token) for token in tokens)])
    signed = _native.sign_bags(
        pa.array(np.concatenate(tokens)),
        pa.array(np.concatenate([bag[bag > 0] for bag in bags])),
        pa.array(offsets),
        scheme,
        VALUES,
        8,
        seed,
    )
    return np.array([np.frombuffer(signature, np.uint8) for signature in signed.to_pylist()])


def estimates(pairs: np.ndarray, scheme: str, seed: int) -> np.ndarray:
    """One estimate a pair, each with a seed of its own: with one seed they would err together."""
    signed = [signatures(pair, scheme, seed + number) for number, pair in enumerate(pairs)]
    agreement = np.array([(left == right).mean() for left, right in signed])
    return (agreement - 1 / 256) / (1 - 1 / 256)


def z_scores(pairs: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """Errors in units of sqrt(J (1 - J) / k)."""
    truth = exact(pairs)
    return (estimate - truth) / np.sqrt(truth * (1 - truth) / VALUES)


@pytest.mark.parametrize("scheme,scale", [("lpmh", 0.25), ("lpmh", 1), ("lpmh", 40), ("cell_oph", 1)])
def test_the_estimate_has_no_bias_and_the_error_of_theory(scheme: str, scale: float) -> None:
    pairs = bag_pairs(5_000, seed=11)
    z = z_scores(pairs, estimates(pairs * scale, scheme, seed=5))
    rms = np.sqrt((z**2).mean())  # known to one part in a hundred from so many pairs
    assert abs(z.mean()) < 3 / np.sqrt(len(z))
    assert rms < 1.05
    assert rms > (0.95 if scheme == "lpmh" else 0.7)  # cells are drawn without replacement


@every_scheme
def test_bags_collide_as_often_as_by_datasketch_and_by_the_book(scheme: str) -> None:
    pairs = bag_pairs(120, seed=12)
    generator = WeightedMinHashGenerator(UNIVERSE, VALUES, seed=4)
    theirs = np.array([generator.minhash(a).jaccard(generator.minhash(b)) for a, b in pairs])
    ours = estimates(pairs, scheme, seed=6)
    by_the_book = np.array(
        [
            (left == right).all(1).mean()
            for number, pair in enumerate(pairs[:40])
            for left, right in [[icws(TOKENS[bag > 0], bag[bag > 0], VALUES, number) for bag in pair]]
        ]
    )
    for found, oracle in ((ours, theirs), (ours[:40], by_the_book)):
        assert abs((found - oracle).mean()) < 4 * np.sqrt(2 * 0.25 / VALUES / len(oracle))
        z = z_scores(pairs[: len(oracle)], oracle)
        assert 0.8 < np.sqrt((z**2).mean()) < 1.2  # the oracle itself
    assert np.corrcoef(ours, exact(pairs))[0, 1] > 0.97


@every_scheme
def test_another_seed_is_another_signature(scheme: str) -> None:
    bags = bag_pairs(20, seed=1)[:, 0]
    assert (signatures(bags, scheme, seed=0) == signatures(bags, scheme, seed=1)).mean() < 0.05


@pytest.mark.invariant("Published hashes never change.")
@pytest.mark.parametrize(
    "scheme,signature",
    [("lpmh", "3d288b55c031db2aab6d3ef0f59e9b30"), ("cell_oph", "8ff722c1b3e2eb9ed29c74005100a46c")],
)
def test_signatures_of_texts_never_change(scheme: str, signature: str) -> None:
    signed = sign(["the quick brown fox", "", None, "— {}"], IDF, "prose", scheme, 16, 8, 7)
    assert [s and s.hex() for s in signed["signature"].to_pylist()] == [signature, None, None, None]
    assert signed["n_distinct"].to_pylist() == [4, 0, 0, 0]


@every_scheme
def test_texts_are_signed_as_their_weighted_bags(scheme: str) -> None:
    text = "a b b c c c c"
    [(tokens, counts)] = counted(pa.array([text]))
    frequencies = dict.fromkeys(tokens.tolist(), 1) | {int(tokens[0]): 60}
    weights = [
        (1 + np.log(count)) * np.log(1 + 90 / frequencies[token])
        for token, count in zip(tokens.tolist(), counts.tolist(), strict=True)
    ]
    expected = _native.sign_bags(pa.array(tokens), pa.array(weights), pa.array([0, 3]), scheme, 64, 8, 9)
    signed = sign([text], idf_table(frequencies, 90), "code", scheme, 64, 8, 9)
    assert signed["signature"].to_pylist() == expected.to_pylist()


@settings(deadline=None)
@given(
    st.lists(st.text("abcde \n(", max_size=40) | st.none(), max_size=12),
    st.integers(0, 12),
    st.sampled_from(SCHEMES),
    st.sampled_from([1, 2, 4, 8, 16]),
)
def test_signatures_do_not_depend_on_batches(
    texts: list[str | None], cut: int, scheme: str, value_bits: int
) -> None:
    def signed(part: list[str | None]) -> list[dict[str, object]]:
        return list(sign(part, IDF, "code", scheme, 32, value_bits, 0).to_pylist())

    whole = signed(texts)
    assert signed(texts[:cut]) + signed(texts[cut:]) == whole
    assert all(row["signature"] is None or len(row["signature"]) == 4 * value_bits for row in whole)


def test_fewer_bits_are_the_lowest_of_more() -> None:
    texts = ["the quick brown fox jumps", "over the lazy dog"]
    columns = {
        bits: sign(texts, IDF, "code", "lpmh", 64, bits, 0)["signature"].to_pylist() for bits in (1, 4, 8, 16)
    }
    for row in range(len(texts)):
        wide = np.frombuffer(columns[16][row], ">u2")
        assert (np.frombuffer(columns[8][row], np.uint8) == wide % 256).all()
        assert (np.unpackbits(np.frombuffer(columns[1][row], np.uint8)) == wide % 2).all()
        nibbles = np.frombuffer(columns[4][row], np.uint8)
        assert (np.stack([nibbles >> 4, nibbles & 15], 1).ravel() == wide % 16).all()


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf"), 2.0**31])
@every_scheme
def test_a_weight_that_cannot_be_signed_is_refused(scheme: str, weight: float) -> None:
    with pytest.raises(ValueError, match="is out of range"):
        _native.sign_bags(pa.array([1]), pa.array([weight]), pa.array([0, 1]), scheme, VALUES, 8, 0)


def test_a_weight_of_too_many_cells_is_refused_by_cell_oph_alone() -> None:
    bag = pa.array([1]), pa.array([5_000.0]), pa.array([0, 1])
    assert len(_native.sign_bags(*bag, "lpmh", VALUES, 8, 0)) == 1
    with pytest.raises(ValueError, match="Weight 5000 is out of range"):
        _native.sign_bags(*bag, "cell_oph", VALUES, 8, 0)


@pytest.mark.parametrize(
    "wrong,message",
    [
        ({"idf": pa.array(bytes(1 << 20), pa.uint8())}, "idf table"),
        ({"values": 0}, "0 values"),
        ({"values": 8}, "8 values"),
        ({"values": 100}, "100 values"),
        ({"values": 8192}, "8192 values"),
        ({"value_bits": 3}, "3 bits"),
        ({"scheme": "icws"}, "Unknown signature scheme `icws`"),
        ({"bags": pa.array([b"bag"])}, "Invalid packed bag of 3 bytes"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(wrong: dict[str, object], message: str) -> None:
    given = {"bags": packed(["a"]), "idf": IDF, "scheme": "lpmh", "values": 16, "value_bits": 8, "seed": 0}
    with pytest.raises(ValueError, match=message):
        _native.sign_packed(**{**given, **wrong})
