"""n-gram models of a language: in how many bits per byte would it write a text?

Low bits per byte mean a text that repeats the training texts, or itself; high bits mean another language, a
table, encoded data. `native/src/models/ngram` counts and scores texts; `tests/models/ngram_definition.py` is
the readable definition.

- *Tokens* come from a small byte-level BPE of the model's own (Sennrich et al., 2016), so every text has
  some, and no filter waits for the tokenizer of the corpus, which is trained behind the filters. A text is
  first cut into *pieces*; merges stay inside a piece.
- *Counts* are of n-grams of one to five tokens inside a text. Rare n-grams of three tokens and more are left
  out.
- *Probabilities* are interpolated Witten-Bell: P(w | h) = (c(hw) + T(h) P(w | h')) / (c(h) + T(h)), where h'
  is h without its first token, c(h) the tokens that follow h and T(h) the distinct ones (Witten & Bell, 1991;
  Chen & Goodman, 1998, section 2.4). Below single tokens is the uniform distribution. The first tokens of a
  text have shorter contexts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

ORDER = 5
MOST_TOKENS = 4_096
LONGEST = 64  # characters of a piece beside a space before it
N_BYTE_VALUES = 256

Merge = tuple[int, int]  # tokens that become one; merge number n makes token 256 + n

_WORD, _SPACE = r"A-Za-z0-9\u0080-\U0010ffff", r" \t\n\r\f\v"
PIECE = re.compile(
    f" ?[{_WORD}]{{1,{LONGEST}}}| ?[^{_WORD}{_SPACE}]{{1,{LONGEST}}}|[{_SPACE}]{{1,{LONGEST}}}"
)


def train_merges(texts: Iterator[str], vocabulary: int) -> list[Merge]:
    """The merges of a byte-level BPE of at most `vocabulary` tokens, 256 to MOST_TOKENS."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECE.pattern.encode().decode("unicode_escape")), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    number_of = {character: byte for byte, character in enumerate(_byte_characters())}
    merges = []
    for first, second in json.loads(tokenizer.to_str())["model"]["merges"]:
        merges.append((number_of[first], number_of[second]))
        number_of[first + second] = N_BYTE_VALUES + len(merges) - 1
    return merges


def _byte_characters() -> list[str]:
    """The character of each byte in a byte-level tokenizer (Radford et al., 2019)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]
