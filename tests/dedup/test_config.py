"""The settings of a dedup group and the banding they lead to."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from factory.dedup.banding import Banding, best_bands, candidate_probability
from factory.dedup.config import DedupConfig
from factory.dedup.signatures import SignatureConfig


@pytest.mark.parametrize(
    "threshold,values,miss_cost,expected",
    [
        (0.8, 128, 0.5, (13, 9)),  # the grid that was measured with both costs equal
        (0.5, 128, 0.5, (5, 25)),
        (0.8, 256, 0.5, (15, 17)),
        (0.8, 128, 0.9, (9, 14)),
        (0.7, 256, 0.9, (8, 32)),
        (0.8, 256, 0.9, (11, 23)),
        (0.9, 256, 0.9, (19, 13)),
        (0.8, 256, 0.98, (9, 28)),
        (0.8, 256, 0.995, (8, 30)),  # the default
    ],
)
def test_bands_are_those_of_the_measured_grid(
    threshold: float, values: int, miss_cost: float, expected: tuple[int, int]
) -> None:
    assert best_bands(threshold, values, miss_cost) == expected


def test_the_curve_is_the_rate_of_a_simulation() -> None:
    banding, generator = Banding(5, 6), np.random.default_rng(1)
    agree = generator.random((20_000, 6, 5)) < 0.7 + 0.3 / 256
    assert candidate_probability(0.7, banding) == pytest.approx(agree.all(2).any(1).mean(), abs=0.015)


def test_bands_of_a_given_number_of_bits_are_as_many_as_fit() -> None:
    config = DedupConfig(kind="code", values=1024, value_bits=1, band_bits=37)
    assert config.size.bits == 1024
    assert config.banding == (37, 27)
    assert DedupConfig(kind="code").banding == (8, 30)
    assert DedupConfig(kind="code", band_bits=88).banding == (11, 23)


@pytest.mark.parametrize(
    "value_bits,values,expected", [(1, 1024, (37, 27)), (2, 512, (23, 22)), (4, 256, (16, 16))]
)
def test_fewer_bits_a_value_take_more_rows(value_bits: int, values: int, expected: tuple[int, int]) -> None:
    """The measured grid at .8 of 1,024 bits a signature, both costs equal."""
    assert best_bands(0.8, values, 0.5, value_bits) == expected


def test_the_curve_counts_chance_agreement_of_narrow_values() -> None:
    assert candidate_probability(0.0, Banding(4, 1), 1) == pytest.approx(2**-4)
    assert candidate_probability(0.5, Banding(2, 3), 2) == pytest.approx(1 - (1 - 0.625**2) ** 3)


def test_a_dearer_miss_finds_more_pairs_at_the_threshold() -> None:
    found = [candidate_probability(0.8, best_bands(0.8, 256, cost)) for cost in (0.5, 0.9, 0.99)]
    assert found == sorted(found)
    assert found[0] < 0.6 < 0.85 < found[1]


def test_estimates_four_errors_below_the_threshold_are_dropped() -> None:
    assert DedupConfig(kind="code").size.least_estimate(0.8) == pytest.approx(0.7, abs=0.001)
    assert DedupConfig(kind="code", values=16).size.least_estimate(0.05) == 0


def test_edges_are_made_for_the_lowest_threshold_of_the_sweep() -> None:
    config = DedupConfig(kind="code", threshold=0.8, sweep=(0.9, 0.7, 0.8))
    assert config.thresholds == (0.7, 0.8, 0.9)
    assert config.banding == best_bands(0.7, 256) != best_bands(0.8, 256)


def test_bits_are_values_times_value_bits() -> None:
    assert DedupConfig(kind="prose", values=128).size.bits == 1024


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "verse"},
        {"values": 100},
        {"threshold": 1.0},
        {"seed": -1},
        {"bands": 7},
        {"sweep": [0.5, 1]},
        {"value_bits": 3},
        {"keep": "all"},
        {"sweep": [1e-9]},
        {"threshold": 0.29},
        {"sweep": [0.9] * 33},
        {"tokens": "o200k_base"},
    ],
)
def test_a_wrong_setting_is_refused_by_name(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        DedupConfig(**{"kind": "code", **wrong})


@pytest.mark.parametrize("band_bits", [12, 4096])
def test_a_band_holds_whole_values_and_no_more_than_a_signature(band_bits: int) -> None:
    with pytest.raises(ValidationError, match=f"`band_bits` is {band_bits}"):
        DedupConfig(kind="code", band_bits=band_bits)


def test_signatures_of_other_settings_have_another_version() -> None:
    versions = {
        DedupConfig(**settings).part(SignatureConfig).version(digest)
        for settings in (
            {"kind": "code"},
            {"kind": "prose"},
            {"kind": "code", "seed": 1},
            {"kind": "code", "values": 128},
            {"kind": "code", "value_bits": 4},
            {"kind": "code", "scheme": "cell_oph"},
            {"kind": "code", "shingle": 3},
            {"kind": "prose", "tokens": "cl100k_base"},
            {"kind": "prose", "tokens": "cl100k_base", "shingle": 3},
        )
        for digest in ("a", "b")
    }
    assert len(versions) == 18


def test_a_tokenizer_of_prose_is_refused_for_code() -> None:
    assert DedupConfig(kind="prose", tokens="cl100k_base", shingle=2).lexer == "cl100k_base-2grams"
    with pytest.raises(ValidationError, match="`tokens` is cl100k_base, and code has a lexer of its own"):
        DedupConfig(kind="code", tokens="cl100k_base")
