"""A causal language model as the proxy of clusters, in Spark's Python workers.

The model comes from a folder as `save_pretrained` of transformers writes it, and runs on the CPU, in float32,
in one thread and without dropout. A text is cut into windows of `context` tokens; each further window begins
with the last token of the window before. The first one begins with the token that begins texts, else with the
token that ends them; of a model without either, the first token of a text costs log2 of the vocabulary.

The model continues by steps of Adam, one for each window, and then gets its weights back. So the losses of a
cluster depend on its texts alone, not on the clusters before.
"""

from __future__ import annotations

import importlib.util
import string
from dataclasses import dataclass
from functools import lru_cache
from math import log, log2
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from factory.errors import ConfigurationError

if TYPE_CHECKING:
    import torch

MOST_CONTEXT = 1_024  # tokens of a window; their logits and gradients are in memory at once
_PROBE = string.ascii_letters + string.digits + string.punctuation


@dataclass(frozen=True)
class CheckpointProxy:
    """A model with its tokenizer; `prefix` is the token before a text, `vocabulary` the number of tokens."""

    model: Any
    tokenizer: Any
    context: int
    vocabulary: int
    prefix: int | None
    learning_rate: float

    def losses(self, texts_a: pa.Array, texts_b: pa.Array, weight: float) -> pa.Table:
        """Return the bits of each text of B, `before` and `after` the model has read A `weight` times."""
        import torch

        parameters = list(self.model.parameters())
        weights = [parameter.detach().clone() for parameter in parameters]
        before = self._bits(texts_b)
        try:
            self._continue(texts_a, weight)
            after = self._bits(texts_b)
        finally:
            with torch.no_grad():
                for parameter, values in zip(parameters, weights, strict=True):
                    parameter.copy_(values)
        return pa.table({"before": before, "after": after})

    def _continue(self, texts: pa.Array, weight: float) -> None:
        """Take a step for each window of the texts, in order, `weight` times."""
        import torch

        windows = [window for text in texts.to_pylist() for window in self.windows(text)]
        optimizer = torch.optim.Adam(self.model.parameters(), lr=self.learning_rate)
        for step in range(max(1, round(weight * len(windows))) if windows else 0):
            window = windows[step % len(windows)]
            (self._nats(window) / (len(window) - 1)).backward()
            optimizer.step()
            optimizer.zero_grad()

    def _bits(self, texts: pa.Array) -> list[float]:
        import torch

        with torch.inference_mode():
            return [self._bits_of_text(text) for text in texts.to_pylist()]

    def _bits_of_text(self, text: str) -> float:
        nats = sum(float(self._nats(window)) for window in self.windows(text))
        return nats / log(2) + (log2(self.vocabulary) if self.prefix is None else 0)

    def _nats(self, window: torch.Tensor) -> torch.Tensor:
        """Return the loss of all tokens of a window but the first."""
        import torch

        logits = self.model(input_ids=window[None, :-1], use_cache=False).logits[0]
        return torch.nn.functional.cross_entropy(logits.float(), window[1:], reduction="sum")

    def windows(self, text: str) -> list[torch.Tensor]:
        """Return the tokens of a text in windows of `context` tokens, and one token before each."""
        import torch

        tokens = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        if self.prefix is not None:
            tokens = [self.prefix, *tokens]
        starts = range(0, len(tokens) - 1, self.context)
        return [torch.tensor(tokens[start : start + self.context + 1]) for start in starts]


@lru_cache(maxsize=1)
def open_checkpoint(folder: str, files: str, learning_rate: float) -> CheckpointProxy:
    """Return the model in a folder; `files` is the hash of its files, since a worker may outlive them.

    Raises ConfigurationError without the library, and for a folder without a causal language model or
    without its tokenizer.
    """
    del files
    _require_transformers()
    import torch
    from transformers.utils import logging

    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    name = Path(folder).name
    model, tokenizer = _model(folder, name), _tokenizer(folder, name)
    vocabulary = len(model.get_input_embeddings().weight)
    _require_same_vocabulary(tokenizer, vocabulary, name)
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    context = min(MOST_CONTEXT, longest or MOST_CONTEXT)
    prefix = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    proxy = CheckpointProxy(model, tokenizer, context, vocabulary, prefix, learning_rate)
    _require_causal(model, proxy.windows(_PROBE)[0][:-1], name)
    return proxy


def _require_transformers() -> None:
    if any(importlib.util.find_spec(library) is None for library in ("torch", "transformers")):
        raise ConfigurationError(
            "A checkpoint as the proxy of clusters needs the library transformers. Install it: "
            "pip install 'corpus-factory[transformers]'."
        )


def _model(folder: str, name: str) -> Any:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # the library has no exception of its own
        raise _unreadable(name, "model", error) from error
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING or config.is_encoder_decoder:
        raise _not_causal(name, config.model_type)
    try:
        model, report = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, local_files_only=True, use_safetensors=True, output_loading_info=True
        )
    except Exception as error:
        raise _unreadable(name, "model", error) from error
    if missing_weights := sorted(report["missing_keys"]):
        raise ConfigurationError(
            f"The checkpoint `{name}` has no weights `{missing_weights[0]}`. Save all of a causal language "
            "model, with its head."
        )
    return model.eval()


def _tokenizer(folder: str, name: str) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:
        raise _unreadable(name, "tokenizer", error) from error


def _require_same_vocabulary(tokenizer: Any, vocabulary: int, name: str) -> None:
    """Raise ConfigurationError for tokens without an embedding, and for characters without a token."""
    last_token = max(tokenizer.get_vocab().values(), default=-1)
    if last_token >= vocabulary:
        raise ConfigurationError(
            f"The tokenizer of the checkpoint `{name}` has {last_token + 1:,} tokens, and its model "
            f"{vocabulary:,}: they are of different vocabularies. Save the model with its own tokenizer."
        )
    tokens = tokenizer(_PROBE, add_special_tokens=False)["input_ids"]
    if not tokens or tokenizer.unk_token_id in tokens:
        raise ConfigurationError(
            f"The tokenizer of the checkpoint `{name}` does not know all characters of ASCII, so it would "
            "hide noise from the model. Take a checkpoint with a token for every byte."
        )


def _require_causal(model: Any, tokens: torch.Tensor, name: str) -> None:
    """Raise ConfigurationError if a model sees the tokens that it predicts, or gives no finite numbers."""
    import torch

    other = tokens.clone()
    other[-1] = tokens[-2]
    with torch.inference_mode():
        logits, logits_of_other = (
            model(input_ids=window[None], use_cache=False).logits[0, :-1] for window in (tokens, other)
        )
    if not torch.isfinite(logits).all():
        raise ConfigurationError(
            f"The checkpoint `{name}` gives no finite losses. Its weights are damaged: save it again."
        )
    if not torch.allclose(logits, logits_of_other, rtol=1e-4, atol=1e-5):
        raise _not_causal(name, model.config.model_type)


def _not_causal(name: str, model_type: str) -> ConfigurationError:
    return ConfigurationError(
        f"The checkpoint `{name}` is not a causal language model, but `{model_type}`. Name one that predicts "
        "the next token."
    )


def _unreadable(name: str, noun: str, error: Exception) -> ConfigurationError:
    reason = str(error).strip().partition("\n")[0].rstrip(".")
    return ConfigurationError(
        f"The {noun} of the checkpoint `{name}` cannot be read ({reason}). Save it with `save_pretrained`."
    )
