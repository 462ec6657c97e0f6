"""Costs are the FLOPs of the paper's models, in whole numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blender.errors import InvalidRequest
from blender.loading.costs import Backbone, Encoder, tokens
from tests.blender.loading.steps import step_of

LLAMA_12B, TMOE_25B, MIXTRAL = Backbone(4608, 45), Backbone(2048, 42, topk=2), Backbone(4096, 32, topk=2)
LLAMA_8B = Backbone(4096, 32, vocabulary=128_256, ffn=14_336, kv=1_024, gated=True)
FINE_GRAINED = Backbone(2048, 27, topk=8, ffn=1_408, gated=True)
BERT = Backbone(768, 12, causal=False)


def test_documents_of_30_and_70_tokens_attend_16_percent_more_than_two_of_50() -> None:
    uneven, even = step_of([[30, 70], [50, 50]]).facts["squared_lengths"].tolist()
    assert uneven / even == 1.16
    attention = Backbone(hidden=1, layers=1)
    costs = attention(step_of([[30, 70], [50, 50]]).facts)
    assert int(costs[0] - costs[1]) * attention.flops == 2 * (uneven - even)


@pytest.mark.parametrize(
    "model",
    [LLAMA_12B, TMOE_25B, MIXTRAL, FINE_GRAINED, LLAMA_8B, BERT, Backbone(2048, 32, vocabulary=128_256)],
)
@given(lengths=st.lists(st.integers(1, 1 << 20), min_size=1, max_size=8))
def test_a_cost_is_the_flops_of_the_formula(model: Backbone, lengths: list[int]) -> None:
    h, n, squares = model.hidden, sum(lengths), sum(length**2 for length in lengths)
    block = 2 * h * (model.ffn or 4 * h) * (3 if model.gated else 2) * model.topk
    projections = 4 * h * (h + (model.kv or h))
    pairs = 2 * h * squares if model.causal else 4 * h * squares
    flops = model.layers * ((projections + block) * n + pairs) + 2 * h * model.vocabulary * n
    assert int(model(step_of([lengths]).facts)[0]) * model.flops == flops


def test_a_causal_decoder_attends_to_half_of_the_pairs() -> None:
    decoder, encoder = Backbone(64, 2), Backbone(64, 2, causal=False)
    long, short = ([[1000]], [[10] * 100])
    spread = [
        int(model(step_of(long).facts)[0] - model(step_of(short).facts)[0]) for model in (decoder, encoder)
    ]
    assert spread == [2 * (1000**2 - 100 * 10**2), 4 * (1000**2 - 100 * 10**2)]


def test_experts_of_an_eighth_of_the_width_cost_an_eighth() -> None:
    row = step_of([[1]]).facts
    attention = 4 * 2048 * 42 + 42  # in units of 2 h FLOPs: the projections, and the one pair
    wide, fine = (Backbone(2048, 42, topk=8, ffn=ffn) for ffn in (None, 1024))
    assert int(wide(row)[0]) - attention == 8 * (int(fine(row)[0]) - attention)


@pytest.mark.parametrize("value", [2, -1, "yes", None, 1.0, 1])
@pytest.mark.parametrize("field", ["gated", "causal"])
def test_a_switch_is_a_truth_value(field: str, value: object) -> None:
    with pytest.raises(InvalidRequest, match=rf"`{field}` of the model is {value}. Give True or False"):
        Backbone(8, 2, **{field: value})  # type: ignore[arg-type]


def test_a_model_is_read_from_the_words_of_a_command_line() -> None:
    parsed = Backbone.parse("hidden=64,layers=3,ffn=96,kv=16,topk=2,gated=1,causal=0", vocabulary=9)
    assert parsed == Backbone(64, 3, topk=2, vocabulary=9, ffn=96, kv=16, gated=True, causal=False)
    for text in ("gated=2", "causal=true", "causal=", "ffn=0x10", "experts=8", "ffn=8,ffn=8"):
        with pytest.raises(
            InvalidRequest, match=r"is not a size. Give hidden, layers, ffn, kv, topk, .* 0 or 1"
        ):
            Backbone.parse(f"hidden=64,layers=3,{text}")


@given(st.integers(1, 1 << 16))
def test_an_image_costs_the_flops_of_an_encoder(patches: int) -> None:
    vit = Encoder(1664, 48)
    cost = vit({"n_patches": np.array([patches], dtype=np.uint64)})
    assert int(cost[0]) * vit.flops == 48 * (24 * 1664**2 * patches + 4 * 1664 * patches**2)


def test_memory_is_the_tokens_of_a_row() -> None:
    assert tokens(step_of([[3, 4], [5]]).facts).tolist() == [7, 5]


@pytest.mark.parametrize("value", [0, -1, 1.5, "8", None, True, 2**63, float("nan")])
@pytest.mark.parametrize("field", ["hidden", "layers", "topk", "ffn", "kv"])
def test_a_size_is_a_whole_number_from_1_on(field: str, value: object) -> None:
    if field in ("ffn", "kv") and value is None:
        return  # of the width that follows from `hidden`
    with pytest.raises(InvalidRequest, match=rf"`{field}` is .*\. Give a whole number, 1 or more"):
        Backbone(**{"hidden": 8, "layers": 2, field: value})  # type: ignore[arg-type]
    if field in ("hidden", "layers"):
        with pytest.raises(InvalidRequest, match=f"`{field}` is"):
            Encoder(**{"hidden": 8, "layers": 2, field: value})  # type: ignore[arg-type]


def test_sizes_of_numpy_are_those_of_python_and_a_vocabulary_may_be_0() -> None:
    model = Backbone(np.int64(8), np.uint32(2), vocabulary=np.int8(0))  # type: ignore[arg-type]
    assert model == Backbone(8, 2)
    assert type(model.hidden) is int
    with pytest.raises(InvalidRequest, match="`vocabulary` is -1"):
        Backbone(8, 2, vocabulary=-1)


@pytest.mark.parametrize(
    "model",
    [
        Backbone(5 * 10**15, 32),
        Backbone(1, 2**62),
        Backbone(2**62, 2**62, topk=2**62),
        Backbone(8, 2, vocabulary=2**63 - 1),
    ],
)
def test_costs_that_would_wrap_around_are_refused(model: Backbone) -> None:
    with pytest.raises(InvalidRequest, match=r"cost .* units in a model of hidden=\d+,.*Give smaller sizes"):
        model(step_of([[100], [200]]).facts)


def test_an_encoder_refuses_images_whose_costs_would_wrap_around() -> None:
    with pytest.raises(InvalidRequest, match="exact below"):
        Encoder(64, 2)({"n_patches": np.array([2**32], dtype=np.uint64)})


def test_the_costs_of_no_rows_are_none() -> None:
    assert Backbone(8, 2)(step_of([]).facts).tolist() == []


@pytest.mark.parametrize("size", ["1" * 19, "0x10", "1.5", "-1", "\u0663"])
def test_a_model_of_other_words_is_refused(size: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a size"):
        Backbone.parse(f"hidden={size},layers=2")
