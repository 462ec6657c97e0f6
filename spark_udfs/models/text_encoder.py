"""A tokenizer that never encodes text as a control token.

Control tokens are the special tokens of a tokenizer and the tokens around documents. The library leaves
special tokens out when it searches a text for added tokens, but its model still finds their spellings in its
vocabulary: SentencePiece's unigram models, as converted for T5, ALBERT or XLM-R, have `</s>` as a piece of
the highest score, and a model of whole words has it as a word. A copy of the tokenizer closes this gap:

- A unigram model loses the spellings, because SentencePiece never matches its control pieces either. Scores
  and ids stay, so any other text has the same pieces.
- Any other model gets a last pre-tokenizer that cuts each spelling behind its first character.
- So does a model that finds `<0x41>` in a text: its tokens of single bytes are for characters that it lacks,
  and would decode to another text.

A tokenizer without the gap is used as it is. Unknown characters still yield their token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from tokenizers import Tokenizer, models

from factory.errors import ConfigurationError
from spark_udfs.models.tokenizer import load, tokenizer_for_text

_NEIGHBORS = ("", " ", "\n", "a", "0")
_BYTE_PIECE = re.compile("<0x[0-9A-F]{2}>")  # what a model with byte fallback yields for unknown characters
_WORD = re.compile(r"[\u2581\u0120]?\w+")  # with the mark of a blank in front, or without
_BYTE_CUT = "(?<=<)0x[0-9A-F]{2}>"

Trials = list[tuple[str, int, str]]
"""Control tokens with their ids, and texts that may yield them."""


@lru_cache(maxsize=2)
def text_encoder(tokenizer: str, around: tuple[int, ...]) -> Tokenizer:
    """Return a tokenizer that encodes text as `tokenizer` does, but never as a control token.

    `around` are the ids of the tokens around documents. Raises ConfigurationError if texts cannot do
    without a control token, as with a newline after each document.
    """
    encoder = load(tokenizer)
    trials = _trials(encoder, _control_tokens(encoder, around))
    reachable = _reachable(encoder, trials)
    cuts = [_BYTE_CUT] if _finds_bytes(encoder) else []
    if not reachable and not cuts:
        return encoder
    content = json.loads(encoder.to_str())  # with the keys that a file may leave out
    unknown = _unknown_piece(content["model"])
    _close(content, reachable, cuts)
    safe = tokenizer_for_text(json.dumps(content))
    for token in sorted(_yielded(safe, trials) | _losses(encoder, safe, trials)):
        if token != unknown:
            raise ConfigurationError(
                f"The tokenizer has `{token}` as a special token or around documents, but ordinary text "
                "yields it too. Name another token around documents, or null for none, or a tokenizer whose "
                "special tokens no text needs."
            )
    return safe


def _control_tokens(tokenizer: Tokenizer, around: Iterable[int]) -> dict[str, int]:
    """Return the ids of the control tokens by spelling, without the `unk_token` of the model."""
    numbers = _special_numbers(tokenizer).union(around)
    spellings = {number: tokenizer.id_to_token(number) for number in numbers}
    unknown = getattr(tokenizer.model, "unk_token", None)
    return {token: number for number, token in spellings.items() if token and token != unknown}


def _special_numbers(tokenizer: Tokenizer) -> set[int]:
    return {number for number, token in tokenizer.get_added_tokens_decoder().items() if token.special}


def _trials(tokenizer: Tokenizer, control_tokens: Mapping[str, int]) -> Trials:
    """Return each control token as it is spelled and as it is decoded, alone and between neighbors."""
    return [
        (token, number, f"{beside}{text}{beside}")
        for token, number in control_tokens.items()
        for text in (token, tokenizer.decode([number], skip_special_tokens=False))
        for beside in _NEIGHBORS
    ]


def _reachable(tokenizer: Tokenizer, trials: Trials) -> set[str]:
    """Return the control tokens that a text can yield.

    A unigram model weighs a piece against its neighbors, so all control tokens in its vocabulary count.
    """
    reachable = _yielded(tokenizer, trials)
    if isinstance(tokenizer.model, models.Unigram):
        reachable |= {token for token, *_ in trials if tokenizer.model.token_to_id(token) is not None}
    return reachable


def _yielded(tokenizer: Tokenizer, trials: Trials) -> set[str]:
    """Return the control tokens that their trials yield."""
    encodings = tokenizer.encode_batch_fast([text for *_, text in trials], add_special_tokens=False)
    pairs = zip(trials, encodings, strict=True)
    return {token for (token, number, _), encoding in pairs if number in encoding.ids}


def _losses(encoder: Tokenizer, safe: Tokenizer, trials: Trials) -> set[str]:
    """Return the characters and words with a spelling that has become unknown, so that texts would lose them.

    Other spellings, such as `</s>`, belong to control tokens alone.
    """
    unknown = {_unknown_number(encoder), _unknown_number(safe)}
    special = _special_numbers(encoder)
    ordinary = [
        (token, text)
        for token, number, text in trials
        if number not in special and (len(token) == 1 or _WORD.fullmatch(token))
    ]
    return {token for token, text in ordinary if _n_of(unknown, safe, text) > _n_of(unknown, encoder, text)}


def _unknown_number(tokenizer: Tokenizer) -> int | None:
    """Return the id of the token for unknown characters."""
    model = json.loads(tokenizer.to_str())["model"]
    if model.get("unk_id") is not None:
        return int(model["unk_id"])
    return tokenizer.token_to_id(model["unk_token"]) if model.get("unk_token") else None


def _n_of(numbers: Collection[int | None], tokenizer: Tokenizer, text: str) -> int:
    return sum(number in numbers for number in tokenizer.encode(text, add_special_tokens=False).ids)


def _finds_bytes(tokenizer: Tokenizer) -> bool:
    """Whether a text that spells a byte's token yields it."""
    spelling = "<0x41>"
    number = tokenizer.model.token_to_id(spelling)
    return number in tokenizer.encode(f"0{spelling}", add_special_tokens=False).ids


def _unknown_piece(model: Mapping[str, Any]) -> str | None:
    """Return the piece of a unigram model for unknown characters."""
    number = model.get("unk_id")
    return None if number is None else model["vocab"][number][0]


def _close(content: dict[str, Any], spellings: Collection[str], cuts: Sequence[str]) -> None:
    """Change the content of a `tokenizer.json` so that no text yields the tokens of these `spellings`.

    Words are cut before what matches the patterns `cuts`.
    """
    model = content["model"]
    if model["type"] == "Unigram":
        pieces = [piece for piece in model["vocab"] if piece[0] in spellings]
        if model.get("byte_fallback"):
            pieces = [piece for piece in pieces if not _BYTE_PIECE.fullmatch(piece[0])]
        names = {piece[0] for piece in pieces}  # the library gives new numbers to tokens without a piece
        content["added_tokens"] = [
            token for token in content["added_tokens"] if token["content"] not in names
        ]
        for piece in pieces:
            piece[0] = ""  # matches nothing
    else:
        cuts = [*cuts, *(_cut(spelling) for spelling in sorted(spellings) if len(spelling) > 1)]
    if cuts:
        first = [content["pre_tokenizer"]] if content["pre_tokenizer"] else []
        last = [
            {"type": "Split", "pattern": {"Regex": cut}, "behavior": "Isolated", "invert": False}
            for cut in cuts
        ]
        content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [*first, *last]}
    for token in content["added_tokens"]:
        token["special"] |= token["content"] in spellings  # left out of the search in texts


def _cut(spelling: str) -> str:
    """Return the pattern of a spelling behind its first character."""
    return f"(?<={re.escape(spelling[0])}){re.escape(spelling[1:])}"
