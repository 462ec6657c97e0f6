"""LPMH signatures beside exact similarities and datasketch's weighted MinHash."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from datasketch import WeightedMinHashGenerator

from factory import _native

VALUES = 128
UNIVERSE = 150
TOKENS = np.random.default_rng(3).integers(-(2**63), 2**63 - 1, UNIVERSE)


def bag_pairs(n: int, seed: int) -> np.ndarray:
    """(n, 2, UNIVERSE) weights of alike bags, exact similarities spread from about 0.1 to 0.95."""
    generator = np.random.default_rng(seed)
    weights = generator.exponential(4, (n, 1, UNIVERSE)) + 0.5
    present = generator.random((n, 1, UNIVERSE)) < 0.7
    changed = generator.random((n, 2, UNIVERSE)) < 0.04 + 0.8 * generator.random((n, 1, 1))
    other = generator.exponential(4, (n, 2, UNIVERSE)) * (generator.random((n, 2, UNIVERSE)) < 0.5)
    bags = np.where(changed, other, weights * present)
    return np.where(bags < 0.1, 0, bags)


def exact(pairs: np.ndarray) -> np.ndarray:
    return pairs.min(1).sum(1) / pairs.max(1).sum(1)


def signatures(bags: np.ndarray, seed: int, values: int = VALUES) -> np.ndarray:
    tokens = [TOKENS[bag > 0] for bag in bags]
    offsets = np.cumsum([0, *(len(token) for token in tokens)])
    signed = _native.sign_bags(
        pa.array(np.concatenate(tokens)),
        pa.array(np.concatenate([bag[bag > 0] for bag in bags])),
        pa.array(offsets),
        values,
        seed,
    )
    return np.array([np.frombuffer(signature, np.uint8) for signature in signed.to_pylist()])


def estimates(pairs: np.ndarray, seed: int) -> np.ndarray:
    """One estimate a pair, each with a seed of its own: with one seed they would err together."""
    signed = [signatures(pair, seed + number) for number, pair in enumerate(pairs)]
    agreement = np.array([(left == right).mean() for left, right in signed])
    return (agreement - 1 / 256) / (1 - 1 / 256)


def z_scores(pairs: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    truth = exact(pairs)
    return (estimate - truth) / np.sqrt(truth * (1 - truth) / VALUES)


@pytest.mark.parametrize("scale", [0.25, 1.0, 40.0])
def test_the_estimate_has_no_bias_and_the_error_of_theory_at_any_scale(scale: float) -> None:
    pairs = bag_pairs(800, seed=11)
    z = z_scores(pairs, estimates(pairs * scale, seed=5))
    assert abs(z.mean()) < 3 / np.sqrt(len(z))
    assert 0.9 < np.sqrt((z**2).mean()) < 1.1


def test_bags_collide_as_often_as_in_datasketch() -> None:
    pairs = bag_pairs(120, seed=12)
    generator = WeightedMinHashGenerator(UNIVERSE, VALUES, seed=4)
    theirs = np.array([generator.minhash(a).jaccard(generator.minhash(b)) for a, b in pairs])
    ours = estimates(pairs, seed=6)
    assert abs((ours - theirs).mean()) < 4 * np.sqrt(2 * 0.25 / VALUES / len(pairs))
    assert 0.85 < np.sqrt((z_scores(pairs, theirs) ** 2).mean()) < 1.15  # the oracle itself
    assert np.corrcoef(ours, exact(pairs))[0, 1] > 0.97


def test_the_order_of_tokens_does_not_matter() -> None:
    bag = bag_pairs(1, seed=2)[0, 0]
    tokens, weights = TOKENS[bag > 0], bag[bag > 0]
    turned = np.random.default_rng(0).permutation(len(tokens))
    one, other = (
        _native.sign_bags(pa.array(t), pa.array(w), pa.array([0, len(t)]), VALUES, 0).to_pylist()
        for t, w in ((tokens, weights), (tokens[turned], weights[turned]))
    )
    assert one == other


def test_another_seed_is_another_signature() -> None:
    bags = bag_pairs(20, seed=1)[:, 0]
    assert (signatures(bags, seed=0) == signatures(bags, seed=1)).mean() < 0.05


def test_signatures_of_texts_never_change() -> None:
    idf = bytes([16]) * (1 << 20)
    signed = _native.sign_texts(
        pa.array(["the quick brown fox", "", None, "— {}"]), idf, "prose", 16, 7, 1000
    )
    assert [s and s.hex() for s in signed["signature"].to_pylist()] == [
        "3d0d8baec046db2aaba588f0f59e9b30",
        None,
        None,
        None,
    ]
    assert signed["n_tokens"].to_pylist() == [4, 0, 0, 0]
    assert signed["n_distinct"].to_pylist() == [4, 0, 0, 0]


def test_texts_are_signed_as_their_weighted_bags() -> None:
    text = "a b b c c c c"
    idf = np.full(1 << 20, 40, np.uint8)
    bag = _native.bags(pa.array([text]), "code", 100)
    idf[bag["tokens"][0][0].as_py() & ((1 << 20) - 1)] = 90
    weights = [
        (1 + np.log(count)) * idf[token & ((1 << 20) - 1)] / 16
        for token, count in zip(bag["tokens"][0].as_py(), bag["counts"][0].as_py(), strict=True)
    ]
    expected = _native.sign_bags(
        bag["tokens"].flatten(), pa.array(weights), pa.array([0, 3]), 64, 9
    ).to_pylist()
    assert (
        _native.sign_texts(pa.array([text]), idf.tobytes(), "code", 64, 9, 100)["signature"].to_pylist()
        == expected
    )


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf")])
def test_a_weight_that_cannot_be_signed_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="cannot be signed"):
        _native.sign_bags(pa.array([1]), pa.array([weight]), pa.array([0, 1]), VALUES, 0)


def test_a_bad_idf_table_or_number_of_values_is_refused() -> None:
    texts = pa.array(["a"])
    with pytest.raises(ValueError, match="idf table"):
        _native.sign_texts(texts, b"\x00" * (1 << 20), "code", 16, 0, 10)
    with pytest.raises(ValueError, match="100 values"):
        _native.sign_texts(texts, b"\x01" * (1 << 20), "code", 100, 0, 10)
