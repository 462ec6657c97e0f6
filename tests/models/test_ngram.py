"""n-gram models: tokens, counts and bits equal their readable definition; parts of a corpus add up."""

from __future__ import annotations

import math
import random
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from factory import _native
from factory.models import ngram
from factory.models.ngram import PIECE, train_merges
from tests.models.ngram_definition import WittenBell, counts, tokens

SENTENCES = [
    "the river rose because the rain fell on the hills",
    "the farmers repaired the walls of stone",
    "Der Fluss stieg, weil es regnete; das Wasser fiel.",
    "def walk(tree):\n    return [leaf for leaf in tree]\n",
    "\u00e9t\u00e9 \u65e5\u672c\u8a9e  \t\n\n",
]
MERGES = train_merges(iter(SENTENCES * 3), 300)
texts = st.one_of(
    st.lists(st.sampled_from([*SENTENCES, " ", "x", "\u00e9", "\n"]), max_size=4).map("".join),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30),
    st.text(alphabet="the riv\u00e9,\n", max_size=30),
    st.just("ab" * 90),
)


def count(corpus: list[str], merges: list[ngram.Merge] = MERGES) -> pa.RecordBatch:
    counter = _native.NgramCounter(merges)
    counter.add(pa.array(corpus, pa.string()))
    return counter.counts()


def unpacked(batch: pa.RecordBatch) -> dict[tuple[int, ...], int]:
    def parts(key: int) -> tuple[int, ...]:
        return tuple(key >> 12 * place & 0xFFF for place in reversed(range(key >> 60)))

    return {parts(key): n for key, n in zip(*(column.to_pylist() for column in batch.columns), strict=True)}


@settings(max_examples=300, deadline=None)
@given(text=texts)
@example("It's  so, \u00e9t\u00e9\n\n x")
def test_native_tokens_are_those_of_the_definition(text: str) -> None:
    assert _native.ngram_tokens(text, MERGES) == tokens(text, MERGES)
    assert "".join(PIECE.findall(text)) == text


def byte_level(merges: list[ngram.Merge]) -> Tokenizer:
    """The same BPE in the library of Hugging Face."""
    spelling = ngram._byte_characters()
    for left, right in merges:
        spelling.append(spelling[left] + spelling[right])
    vocabulary = {word: number for number, word in enumerate(spelling)}
    pairs = [(spelling[left], spelling[right]) for left, right in merges]
    tokenizer = Tokenizer(models.BPE(vocabulary, pairs))
    pattern = Regex(PIECE.pattern.encode().decode("unicode_escape"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(pattern, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


@settings(max_examples=100, deadline=None)
@given(text=texts)
def test_tokens_are_those_of_hugging_face(text: str) -> None:
    assert _native.ngram_tokens(text, MERGES) == byte_level(MERGES).encode(text).ids


@settings(max_examples=100, deadline=None)
@given(corpus=st.lists(texts, max_size=4), least=st.integers(1, 3))
def test_native_counts_are_those_of_the_definition(corpus: list[str], least: int) -> None:
    table = _native.ngram_table(*count(corpus).columns, least)
    assert unpacked(table) == counts((tokens(text, MERGES) for text in corpus), least)
    assert table["ngram"].to_pylist() == sorted(table["ngram"].to_pylist())


@settings(max_examples=60, deadline=None)
@given(corpus=st.lists(texts.filter(bool), min_size=1, max_size=5), seed=st.integers(0, 9))
def test_counts_of_parts_add_up_to_those_of_the_whole(corpus: list[str], seed: int) -> None:
    chance = random.Random(seed)
    parts: list[list[str]] = [[] for _ in range(3)]
    for text in corpus:
        chance.choice(parts).append(text)
    batches = [count(part) for part in parts]
    keys, numbers = (pa.concat_arrays([batch.column(place) for batch in batches]) for place in (0, 1))
    assert _native.ngram_table(keys, numbers, 2).equals(_native.ngram_table(*count(corpus).columns, 2))


@settings(max_examples=100, deadline=None)
@given(corpus=st.lists(texts.filter(bool), min_size=1, max_size=3), text=texts, least=st.integers(1, 2))
def test_native_bits_are_those_of_the_definition(corpus: list[str], text: str, least: int) -> None:
    table = _native.ngram_table(*count(corpus).columns, least)
    model = _native.NgramModel(MERGES, *table.columns)
    expected = WittenBell(unpacked(table), 256 + len(MERGES)).bits(tokens(text, MERGES))
    [total] = model.bits(pa.array([text])).to_pylist()
    assert total == pytest.approx(sum(expected), rel=1e-5, abs=1e-4)
    places = model.token_bits(text)
    assert [bits for _, _, bits in places] == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert [begin for begin, _, _ in places] == [0, *(end for _, end, _ in places)][: len(places)]
    assert sum(end - begin for begin, end, _ in places) == len(text.encode())


@settings(max_examples=40, deadline=None)
@given(
    corpus=st.lists(texts.filter(bool), min_size=1, max_size=3),
    context=st.lists(st.integers(0, 299), max_size=4),
)
def test_the_probabilities_of_all_tokens_after_a_context_add_up_to_one(
    corpus: list[str], context: list[int]
) -> None:
    vocabulary = 256 + len(MERGES)
    model = WittenBell(counts(tokens(text, MERGES) for text in corpus), vocabulary)
    contexts = [tuple(context), tuple(tokens(corpus[0], MERGES)[:4])]
    for before in contexts:
        total = math.fsum(model.probability(token, before) for token in range(vocabulary))
        assert total == pytest.approx(1)


def test_a_text_of_the_same_language_has_fewer_bits_and_a_missing_text_none() -> None:
    model = _native.NgramModel(MERGES, *_native.ngram_table(*count(SENTENCES[:2] * 9).columns, 2).columns)
    same, other, empty, missing = model.bits(
        pa.array(["the rain fell on the farmers", "Xq9 zzKv! 88~~ q_wLm %%%% {}", "", None])
    ).to_pylist()
    assert same < other / 3
    assert (empty, missing) == (0.0, None)


@pytest.mark.parametrize(
    "merges, ngrams, numbers, message",
    [
        ([(256, 1)], [1 << 60], [1], "one is not made before it"),
        ([(1, 2), (1, 2)], [1 << 60], [1], "a second time"),
        ([], [5], [1], "5 is no n-gram of 1 to 5 tokens"),
        ([], [-1], [1], "-1 is no n-gram"),
        ([], [1 << 60], [0], "Counts are 1 and more"),
        ([], [1 << 60 | 300], [1], "Token 300 is none of 256"),
        ([], [2 << 60 | 1 << 12 | 2, 1 << 60], [1, 1], "is counted, and its part"),
        ([], [], [], "Count some text"),
        ([], [1 << 60], [1, 2], "1 n-grams and 2 counts"),
    ],
)
def test_damaged_models_are_refused(
    merges: list[ngram.Merge], ngrams: list[int], numbers: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        _native.NgramModel(merges, pa.array(ngrams, pa.int64()), pa.array(numbers, pa.int64()))


@settings(max_examples=100, deadline=None)
@given(
    corpus=st.lists(texts.filter(bool), min_size=1, max_size=3),
    a=st.lists(texts, max_size=3),
    b=texts,
    least=st.integers(1, 2),
    weight=st.sampled_from([1, 3]),
)
@example(corpus=[SENTENCES[0]], a=[SENTENCES[0] * 2, SENTENCES[2]], b=SENTENCES[2], least=2, weight=3)
def test_bits_after_continuing_are_those_of_the_merged_counts(
    corpus: list[str], a: list[str], b: str, least: int, weight: int
) -> None:
    table = _native.ngram_table(*count(corpus).columns, least)
    sums = Counter(unpacked(table))
    for tokens_of_a, number in counts(tokens(text, MERGES) for text in a).items():
        sums[tokens_of_a] += weight * number
    losses = _native.NgramProxy(MERGES, *table.columns).losses(
        pa.array(a, pa.string()), pa.array([b, None]), weight
    )
    for name, ngram_counts in ("before", unpacked(table)), ("after", sums):
        bits_of_tokens = WittenBell(ngram_counts, 256 + len(MERGES)).bits(tokens(b, MERGES))
        [bits, missing] = losses[name].to_pylist()
        assert bits == pytest.approx(sum(bits_of_tokens))
        assert missing is None


def test_a_proxy_scores_as_the_model_of_its_counts_and_learns_only_what_it_is_shown() -> None:
    columns = _native.ngram_table(*count(SENTENCES[:2] * 9).columns, 2).columns
    proxy, b = _native.NgramProxy(MERGES, *columns), pa.array([SENTENCES[2], SENTENCES[3]])
    unseen = _native.NgramModel(MERGES, *columns).bits(b).to_pylist()
    for text, same, other in ((SENTENCES[2], 0, 1), (SENTENCES[3], 1, 0)):
        losses = proxy.losses(pa.array([text, None, text]), b, 1.0)
        assert losses["before"].to_pylist() == pytest.approx(unseen, rel=1e-6)
        assert losses["after"][same].as_py() < unseen[same] / 3
        assert losses["after"][other].as_py() > unseen[other] / 2


@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, math.nan])
def test_a_weight_that_is_not_above_zero_is_refused(weight: float) -> None:
    proxy = _native.NgramProxy(MERGES, *_native.ngram_table(*count(SENTENCES[:1]).columns, 1).columns)
    with pytest.raises(ValueError, match="Give a number above 0"):
        proxy.losses(pa.array(["a"]), pa.array(["b"]), weight)
