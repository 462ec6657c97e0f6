"""No text yields a control token, by any kind of tokenizer; a tokenizer without the gap encodes as before."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from factory.errors import ConfigurationError
from spark_udfs.models.text_encoder import text_encoder
from spark_udfs.models.tokenizer import load
from spark_udfs.packing.tokenize import decode, encode

SPECIAL = ["<pad>", "</s>", "<unk>", "<s>"]
CORPUS = [
    f"the river runs to the sea {word} < / > | [ ] s p a d u n k 0" for word in ("stone", "bridge")
] * 40
KNOWN = set("".join(CORPUS))
FRAGMENTS = ["<", "/", "s", ">", "pad", "[", "SEP", "]", " ", "\n", "river", "0", "é", "▁", "##", "<0x41>"]


def unigram() -> Tokenizer:
    """Pieces weighed by score, where special tokens have the highest: T5, ALBERT, XLM-R."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def unigram_with_bytes() -> Tokenizer:
    """A unigram model with a token for each byte, which it yields for characters that it lacks: llm-jp."""
    content = json.loads(unigram().to_str())
    content["model"]["vocab"] += [[f"<0x{byte:02X}>", 0.0] for byte in range(256)]
    content["model"]["byte_fallback"] = True
    content["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, content["decoder"]]}
    return Tokenizer.from_str(json.dumps(content))


def byte_level() -> Tokenizer:
    """Merges of bytes, with special tokens in the vocabulary: GPT-2."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def merges_across_blanks() -> Tokenizer:
    """Merges of characters without a pre-tokenizer: Llama 2, Mistral."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    trainer = trainers.BpeTrainer(vocab_size=120, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def whole_words_first() -> Tokenizer:
    """Merges that look for a whole word first, as Llama 3's, but between blanks."""
    content = json.loads(merges_across_blanks().to_str())
    content["normalizer"] = None
    content["model"]["ignore_merges"] = True
    content["pre_tokenizer"] = {
        "type": "Metaspace",
        "replacement": "▁",
        "prepend_scheme": "never",
        "split": True,
    }
    return Tokenizer.from_str(json.dumps(content))


def word_pieces(pre_tokenizer: pre_tokenizers.PreTokenizer) -> Tokenizer:
    """The longest piece at each place: BERT."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizer
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def words() -> Tokenizer:
    """A number for each word between blanks."""
    vocabulary = {token: number for number, token in enumerate([*SPECIAL, "the", "river", "<", "/s>"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


WITH_GAP: dict[str, Callable[[], Tokenizer]] = {
    "unigram": unigram,
    "unigram with bytes": unigram_with_bytes,
    "whole words first": whole_words_first,
    "word pieces between blanks": lambda: word_pieces(pre_tokenizers.WhitespaceSplit()),
    "words": words,
}
WITHOUT_GAP: dict[str, Callable[[], Tokenizer]] = {
    "byte level": byte_level,
    "merges across blanks": merges_across_blanks,
    "word pieces": lambda: word_pieces(pre_tokenizers.BertPreTokenizer()),
}


@cache
def content_of(kind: str) -> str:
    return {**WITH_GAP, **WITHOUT_GAP}[kind]().to_str()


@cache
def control_ids(kind: str) -> dict[int, str]:
    """The special tokens of a kind by id, without the one for unknown characters of a model that names it."""
    tokenizer = load(content_of(kind))
    unknown = getattr(tokenizer.model, "unk_token", None)
    added = tokenizer.get_added_tokens_decoder().items()
    return {number: token.content for number, token in added if token.content != unknown}


def texts() -> st.SearchStrategy[str]:
    """Texts of spellings and fragments of special tokens."""
    return st.lists(st.sampled_from([*SPECIAL, "[SEP]", "[CLS]", *FRAGMENTS]), max_size=12).map("".join)


@pytest.mark.invariant(
    "No text yields a special token of its tokenizer or a token around documents, by any kind of "
    "tokenizer; one that never did so encodes as before."
)
@pytest.mark.parametrize("kind", [*WITH_GAP, *WITHOUT_GAP])
@given(text=texts())
def test_no_text_yields_a_control_token(kind: str, text: str) -> None:
    control = control_ids(kind)
    end, *_, begin = control
    (tokens,) = encode([text], content_of(kind), begin, end)
    inner = set(tokens[1:-1].tolist())
    if kind == "unigram" and not set(text) <= KNOWN | {"▁"}:
        inner.discard(SPECIAL.index("<unk>"))  # of an unknown character
    assert not inner & control.keys()
    assert (tokens[0], tokens[-1]) == (begin, end)


@given(text=texts())
def test_pieces_of_a_special_token_decode_to_its_spelling(text: str) -> None:
    known = "".join(character for character in text if character in KNOWN).strip()
    (tokens,) = encode([known], content_of("unigram"), None, 1)
    assert decode(tokens.tobytes(), content_of("unigram"), None, 1) == known


@given(text=texts())
def test_a_spelling_of_a_byte_decodes_to_itself(text: str) -> None:
    (tokens,) = encode([text.strip(" ▁")], content_of("unigram with bytes"), None, 1)
    decoded = decode(tokens.tobytes(), content_of("unigram with bytes"), None, 1)
    assert decoded == text.strip(" ▁").replace("▁", " ")


def test_the_pieces_of_a_special_token_are_those_of_its_characters() -> None:
    tokens = load(content_of("unigram")).id_to_token
    (ids,) = encode(["river</s>"], content_of("unigram"), None, None)
    assert [tokens(number) for number in ids.tolist()][-4:] == ["<", "/", "s", ">"]


@pytest.mark.parametrize("kind", [*WITH_GAP, *WITHOUT_GAP])
@given(text=st.lists(st.sampled_from(["the", "river", " ", "<", "s", "é", "stone", "[", "SEP"]), max_size=9))
def test_a_text_without_spellings_has_the_tokens_that_it_had(kind: str, text: list[str]) -> None:
    joined = "".join(text)
    before = load(content_of(kind)).encode(joined, add_special_tokens=False).ids
    assert encode([joined], content_of(kind), None, None)[0].tolist() == before


@pytest.mark.invariant(
    "No text yields a special token of its tokenizer or a token around documents, by any kind of "
    "tokenizer; one that never did so encodes as before."
)
@pytest.mark.parametrize("kind", WITHOUT_GAP)
def test_a_tokenizer_without_the_gap_is_used_as_it_is(kind: str) -> None:
    assert text_encoder(content_of(kind), tuple(control_ids(kind))) is load(content_of(kind))


def test_other_added_tokens_keep_their_numbers() -> None:
    tokenizer = unigram()
    tokenizer.add_tokens(["<tool>"])
    tokenizer.add_special_tokens([AddedToken("<eod>", special=True)])
    tool, end = (tokenizer.token_to_id(token) for token in ("<tool>", "<eod>"))
    (ids,) = encode(["<tool></s><eod>"], tokenizer.to_str(), None, end)
    assert (ids[0], ids[-1]) == (tool, end)
    assert ids.tolist().count(end) == 1


def test_a_token_after_documents_is_closed_even_if_it_is_not_special() -> None:
    tokenizer = byte_level()
    tokenizer.add_tokens(["<end>"])
    end = tokenizer.token_to_id("<end>")
    (ids,) = encode(["the<end>sea"], tokenizer.to_str(), None, end)
    assert ids.tolist().index(end) == len(ids) - 1
    assert decode(ids.tobytes(), tokenizer.to_str(), None, end) == "the<end>sea"


def test_a_token_that_texts_need_is_refused_around_documents() -> None:
    tokenizer = byte_level()
    newline = tokenizer.token_to_id("Ċ")
    with pytest.raises(ConfigurationError, match="has `Ċ` as a special token or around documents"):
        text_encoder(tokenizer.to_str(), (newline,))


@pytest.mark.parametrize("kind, around", [(unigram, "|"), (unigram, "/"), (words, "the")])
def test_a_token_around_documents_whose_text_would_become_unknown_is_refused(
    kind: Callable[[], Tokenizer], around: str
) -> None:
    tokenizer = kind()
    number = tokenizer.token_to_id(around)
    assert number is not None
    with pytest.raises(ConfigurationError, match="around documents, but ordinary text"):
        text_encoder(tokenizer.to_str(), (number,))


@pytest.mark.parametrize("kind", [unigram, words])
@pytest.mark.parametrize("key", ["pre_tokenizer", "decoder", "post_processor"])
def test_a_file_without_a_key_is_read_as_the_library_reads_it(
    kind: Callable[[], Tokenizer], key: str
) -> None:
    content = json.loads(kind().to_str())
    del content[key]
    encoder = text_encoder(json.dumps(content), ())
    control = {encoder.token_to_id(token) for token in ("</s>", "<s>")}
    assert not control & set(encoder.encode("the </s> <s>", add_special_tokens=False).ids)
