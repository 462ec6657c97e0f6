"""Listed words: the native search equals its readable definition, finds disguises and no longer words."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from factory import _native
from factory.errors import ConfigurationError
from factory.models.arrow_stream import arrow_stream_of
from factory.models.word_list import hits
from factory.models.word_list_file import word_list_table
from spark_udfs.filters import word_list as udf

LIST = [
    *("darn", "holy cow", "holy", "ass", "heck of a", "h\u00e4ck", "\u50bb\u903c", "be", "stra\u00dfe"),
    *("\u03c3\u03bf\u03c2", "\uac01", "_it_"),
]
PIECES = [
    *("darn", "Darn", "d4rn", "d@rn", "d.a.r.n", "d-a-r-n", "d.a-r.n", "daaaarn", "d**n", "*darn*", "darned"),
    *(
        "holy",
        "cow",
        "a$$",
        "455",
        "a55",
        "heck",
        "of",
        "a",
        "H\u00c4CK",
        "h\u00e4\u00e4\u00e4ck",
        "\u50bb",
        "\u903c",
    ),
    *(
        "ha\u0308ck",
        "STRASSE",
        "\u03a3\u039f\u03a3",
        "\u1100\u1161\u11a8",
        "da\u200brn",
        "da\u00adrn",
        "_darn_",
        "_holy cow_",
    ),
    *("it", "__it", "\u00ad", "\u0308", "\ufb01", "\uff44arn"),
    *(" ", "  ", "\n", ",", "!", "_", "*", "1", "b3", "B\u20ac", "\u00a0", "\u0130", "b_e", "x" * 101),
]
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30),
    st.text(alphabet="darn4@.*_ ", max_size=30),
)


def native(text: str, entries: list[str] = LIST) -> list[tuple[int, int, int]]:
    utf8 = text.encode()
    places = _native.WordList(entries).places(text)
    return [(entry, len(utf8[:begin].decode()), len(utf8[:end].decode())) for entry, begin, end in places]


@settings(max_examples=600, deadline=None)
@given(text=texts)
@example("d**n holy cow, HOLY heck of a DARN!")
def test_the_native_search_is_the_definition(text: str) -> None:
    assert native(text) == [(hit.entry, hit.begin, hit.end) for hit in hits(text, LIST)]


@pytest.mark.parametrize(
    "text, spellings",
    [
        ("Darn, HOLY  cow!", ["Darn", "HOLY  cow"]),
        ("d4rn D@rn! d.a.r.n daaaarn d**n (a$$)", ["d4rn", "D@rn!", "d.a.r.n", "daaaarn", "d**n", "(a$$)"]),
        ("darned assess Massachusetts heckler h3ckler", []),
        ("455 a55 a*s 13e 4.5.6", []),
        ("\u4f60\u662f\u50bb\u903c\u5417", ["\u50bb\u903c"]),
    ],
)
def test_whole_words_and_simple_disguises_are_found(text: str, spellings: list[str]) -> None:
    assert [text[begin:end] for _, begin, end in native(text)] == spellings


@pytest.mark.parametrize(
    "entry, text",
    [
        ("h\u00e4ck", "ha\u0308ck"),
        ("ha\u0308ck", "H\u00c4CK"),
        ("\uac01", "\u1100\u1161\u11a8"),
        ("stra\u00dfe", "STRASSE"),
        ("strasse", "Stra\u1e9ee"),
        ("\u03c3\u03bf\u03c2", "\u03a3\u039f\u03a3"),
        ("darn", "da\u200brn"),
        ("darn", "\uff44\uff41\uff52\uff4e"),
        ("\u0e44\u0e17\u0e22", "\u0e44\u200b\u0e17\u0e22"),
    ],
)
def test_a_word_is_found_in_every_form(entry: str, text: str) -> None:
    assert native(f"so {text}, no", [entry]) == [(0, 3, 3 + len(text))]


def test_underscores_around_a_word_are_emphasis() -> None:
    text = "_darn_ __darn__ _holy cow_ darn_it"
    assert [text[begin:end] for _, begin, end in native(text)] == ["darn", "darn", "holy cow"]


def test_an_entry_without_a_word_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`\*\*\*` has no letter or number"):
        _native.WordList(["***"])


def files(folder: Path, **lists: str) -> dict[tuple[str, str], Path]:
    paths = {}
    for name, text in lists.items():
        language, _, tier = name.partition("_")
        paths[language, tier] = folder / f"{name}.txt"
        paths[language, tier].write_text(text, "utf-8")
    return paths


def test_rates_are_by_tier_and_language(tmp_path: Path) -> None:
    table = word_list_table(
        files(
            tmp_path, en_profane="darn\n# a comment\n\nholy cow\n", en_flagged="heck\n", de_profane="mist\n"
        )
    )
    english = (
        "the darn weather was so bad that we stayed in all day, and the heck with it; holy cow, what rain"
    )
    german = "So ein Mist, das Wetter war den ganzen Tag so schlecht, dass wir lieber zu Hause geblieben sind"
    french = "Le temps a fait que nous sommes toujours dans notre petite maison de campagne, darn"
    columns = udf.rates(
        pa.array(["a"] * 4),
        pa.array([english, german, french, None]),
        word_list=arrow_stream_of(table),
        profane="bad",
        shown_only="bad_flagged",
    )
    assert columns["bad"].to_pylist() == [pytest.approx(2_000 / 21), pytest.approx(1_000 / 18), None, None]
    assert columns["bad_flagged"].to_pylist() == [pytest.approx(1_000 / 21), 0.0, None, None]


def test_a_bad_file_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"en_profane.txt, line 2: `--` has no letter or number"):
        word_list_table(files(tmp_path, en_profane="darn\n--\n"))
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe")
    for path in (tmp_path / "bytes.txt", tmp_path / "missing.txt"):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            word_list_table({("en", "profane"): path})


@pytest.mark.parametrize("entry", ["a$$", "c++", "d*rn", "s&m"])
def test_an_entry_of_signs_is_refused_because_only_words_are_compared(tmp_path: Path, entry: str) -> None:
    (tmp_path / "list.txt").write_text(f"darn it\nwell-known\ndon't\n{entry}\n")
    with pytest.raises(ConfigurationError, match=r"line 4: .* has a sign, and signs are not compared"):
        word_list_table({("en", "profane"): tmp_path / "list.txt"})


@pytest.mark.parametrize(
    "entry, text, n_hits",
    [("cock", "a cock\u00adtail", 0), ("cocktail", "a cock\u00adtail", 1), ("क", "क्षमा", 0)],
)
def test_marks_and_soft_hyphens_end_no_word(entry: str, text: str, n_hits: int) -> None:
    assert len(hits(text, [entry])) == len(_native.WordList([entry]).places(text)) == n_hits
