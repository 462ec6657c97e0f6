"""The cost of a row to the model: integers of a unit, from the lengths of its documents.

    backbone = Backbone(hidden=2048, layers=32)
    backbone({"n_tokens": n_tokens, "squared_lengths": squared_lengths})     # array of uint64

FLOPs of a forward pass, from the inputs that MegaScale-Data names (section 4.2). In each layer an encoder of
L patches takes 24 h^2 L + 4 h L^2. A layer of a backbone takes 4 h (h + k) per token for the projections of
attention with keys of width k, 2 h f per token for each matrix of a feed-forward block of width f (two, or
three of a gated one) and for each expert that the token passes, and 4 h per pair of tokens of one document.
Causal attention computes half of the pairs, as kernels with a causal mask skip the others. The logits take
2 h V per token.
Floats would differ in their last digits from machine to machine and break ties differently, so a cost is the
FLOPs over `flops`, a whole number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from blender.errors import InvalidRequest
from blender.spec.whole_number import whole_number

Costs = npt.NDArray[np.uint64]
Columns = Mapping[str, Costs]
CostFunction = Callable[[Columns], Costs]
MOST_TOTAL = 2.0**63
"""Costs of a step sum to less, so that no sum of them wraps around."""
_SIZES = ("hidden", "layers", "ffn", "kv", "topk", "vocabulary")
_SWITCHES = ("gated", "causal")
_SIZE = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True)
class Backbone:
    """The costs of rows in a language model, in units of `flops` FLOPs. Raises InvalidRequest."""

    hidden: int
    layers: int
    topk: int = 1
    """Experts that a token passes in a layer, shared ones included; 1 for a dense model."""
    vocabulary: int = 0
    ffn: int | None = None
    """The width of the feed-forward block, or of one expert; None for four times `hidden`."""
    kv: int | None = None
    """The width of the keys, and of the values, of all their heads; None for `hidden`."""
    gated: bool = False
    """Whether the feed-forward block has three matrices, as SwiGLU has, and not two."""
    causal: bool = True
    """Whether a token attends only to those before it, which halves the cost of attention."""

    def __post_init__(self) -> None:
        _require_sizes(self, "hidden", "layers", "topk")
        _require_sizes(self, "vocabulary", least=0)
        _require_sizes(self, *(name for name in ("ffn", "kv") if getattr(self, name) is not None))
        for name in _SWITCHES:
            switch = getattr(self, name)
            if not isinstance(switch, bool | np.bool_):
                raise InvalidRequest(f"`{name}` of the model is {str(switch)[:40]}. Give True or False.")
            object.__setattr__(self, name, bool(switch))

    @classmethod
    def parse(cls, text: str, vocabulary: int = 0) -> Backbone:
        """The model that `text` describes, such as `hidden=2048,layers=24,ffn=8192,gated=1`.

        Raises InvalidRequest for any other text.
        """
        values: dict[str, Any] = {}
        for part in text.split(","):
            name, _, value = (word.strip() for word in part.partition("="))
            if name in values or not _is_value(name, value):
                raise InvalidRequest(
                    f"`{part.strip()}` in the model `{text}` is not a size. Give {', '.join(_SIZES)} as "
                    f"whole numbers, and {' and '.join(_SWITCHES)} as 0 or 1, each at most once: "
                    "hidden=2048,layers=24."
                )
            values[name] = int(value) if name in _SIZES else value == "1"
        missing = [name for name in ("hidden", "layers") if not values.get(name)]
        if missing:
            raise InvalidRequest(
                f"The model `{text}` has no `{missing[0]}`. Give both sizes: hidden=2048,layers=24."
            )
        return cls(**{"vocabulary": vocabulary, **values})

    @property
    def flops(self) -> int:
        """FLOPs of a unit."""
        return 2 * self.hidden

    def __call__(self, columns: Columns) -> Costs:
        """The cost of each row, from `n_tokens` and `squared_lengths`; raises InvalidRequest above 2^63."""
        n_tokens, squared_lengths = columns["n_tokens"], columns["squared_lengths"]
        ffn = 4 * self.hidden if self.ffn is None else self.ffn
        kv = self.hidden if self.kv is None else self.kv
        matrices = 3 if self.gated else 2
        in_layer = 2 * (self.hidden + kv) + matrices * ffn * self.topk
        per_token = self.layers * in_layer + self.vocabulary
        per_pair = self.layers if self.causal else 2 * self.layers
        _require_summable(self, (per_token, n_tokens), (per_pair, squared_lengths))
        return np.uint64(per_token) * n_tokens + np.uint64(per_pair) * squared_lengths


@dataclass(frozen=True)
class Encoder:
    """The costs of images in an encoder, in units of `flops` FLOPs. Raises InvalidRequest."""

    hidden: int
    layers: int

    def __post_init__(self) -> None:
        _require_sizes(self, "hidden", "layers")

    @property
    def flops(self) -> int:
        """FLOPs of a unit."""
        return 4 * self.hidden * self.layers

    def __call__(self, columns: Columns) -> Costs:
        """The cost of each image, from `n_patches`; raises InvalidRequest above 2^63."""
        n_patches = columns["n_patches"]
        _require_summable(self, (6 * self.hidden, n_patches), (int(n_patches.max(initial=0)), n_patches))
        return np.uint64(6 * self.hidden) * n_patches + n_patches * n_patches


def total_cost(costs: Costs) -> float:
    """The sum of costs as a float, which does not wrap around."""
    return float(costs.sum(dtype=np.float64))


def sums(values: Costs, places: npt.NDArray[np.int64], n: int) -> Costs:
    """The sum of the values at each of `n` places, exact where floats would not be."""
    summed = np.zeros(n, dtype=np.uint64)
    np.add.at(summed, places, values)
    return summed


def tokens(columns: Columns) -> Costs:
    """The memory of a row: its tokens, to which the activations that a model keeps are proportional."""
    return columns["n_tokens"]


def _is_value(name: str, text: str) -> bool:
    """Whether `text` may be the value of a field of `Backbone`."""
    return bool(_SIZE.fullmatch(text)) if name in _SIZES else name in _SWITCHES and text in ("0", "1")


def _require_sizes(model: Backbone | Encoder, *names: str, least: int = 1) -> None:
    """Make sizes of a model ints; raises InvalidRequest for one below `least`."""
    for name in names:
        object.__setattr__(model, name, whole_number(getattr(model, name), name, least))


def _require_summable(model: Backbone | Encoder, *terms: tuple[int, Costs]) -> None:
    """Raise InvalidRequest if the costs of all rows, factors times columns, do not sum to less than 2^63."""
    total = sum(float(factor) * total_cost(column) for factor, column in terms)
    if total >= MOST_TOTAL or any(factor >= MOST_TOTAL for factor, _ in terms):
        sizes = ",".join(f"{name}={value}" for name, value in vars(model).items())
        raise InvalidRequest(
            f"The rows of a step cost {total:.2g} units in a model of {sizes}, and costs are exact below "
            "2^63 = 9.2e18. Give smaller sizes, or fewer rows a step."
        )
