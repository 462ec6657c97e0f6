"""Small texts with known verdicts: datatrove's own test vectors, restated for these rules."""

from __future__ import annotations

import pyarrow as pa
import pytest

from factory import _native
from factory.filters.limits import Between
from factory.filters.rule import TextRule
from factory.filters.sets import RULE_SETS, rules
from factory.filters.text import Text

ENGLISH = (
    "I wish it need not have happened in my time,' said Frodo. 'So do I,' said Gandalf, 'and so do all who "
    "live to see such times. But that is not for them to decide. All we have to decide is what to do with "
    "the time that is given us.'"
)
JOHN = "I am Frank, you are Jhon. I am Frank. I am Frank you are Jhon"


def of_short_texts(*sets: str) -> tuple[TextRule, ...]:
    """The rules of `sets`, with a limit of ten words."""
    enough = Between(10, 1000)
    return tuple(rule.with_limit(enough) if rule.name == "word_count" else rule for rule in rules(sets))


def failing(text: str, chosen: tuple[TextRule, ...]) -> list[str]:
    """The names of the rules `text` fails, by their reference measures."""
    seen = Text(text)
    return [rule.name for rule in chosen if rule.limit.violated(rule.measure(seen)) is not None]


@pytest.mark.parametrize(
    "text,rule",
    [
        ("I am your father.\n" * 4, "duplicate_lines"),
        ("I am your father.\n\n" * 4, "duplicate_paragraphs"),
        (
            "I am groot.\n\nYou are a wizard.\n\nI am your father.\n\n" + f"{'x' * 30}.\n\n" * 2,
            "duplicate_paragraph_chars",
        ),
        (
            "I am groot.\nYou are a wizard.\nI am your father.\n" + f"{'x' * 40}.\n" * 2,
            "duplicate_line_chars",
        ),
        ("I am Frank, I am Frank, I am Frank", "top_2_gram"),
        (JOHN, "top_3_gram"),
        ("I am a solo traveller " * 4 + ENGLISH, "duplicate_5_grams"),
    ],
)
def test_repetition_is_found(text: str, rule: str) -> None:
    assert rule in failing(text, rules(["gopher_repetition"]))


@pytest.mark.parametrize(
    "text,rule",
    [
        ("I am too small...", "word_count"),
        ("I am " * 20, "mean_word_length"),
        ("interconnection " * 20, "mean_word_length"),
        ("# comment " * 20, "hash_to_word_ratio"),
        ("... comment " * 20, "ellipsis_to_word_ratio"),
        ("the ./!*?<><> apple <?////> orange  ++ interconnection !<>??? have" * 20, "alphabetic_words"),
    ],
)
def test_poor_quality_is_found(text: str, rule: str) -> None:
    assert rule in failing(text, of_short_texts("gopher_quality"))


C4_LINES = [
    " This is a sentence that has . and is long enough.",
    " This is another sentence! That one has an exclamation point.",
    'Yes we can "quote" things, he said "."',
    "Should this line be kept? It should.",
    "And so should this last one, in all likelihood.",
]


@pytest.mark.parametrize(
    "lines,expected",
    [
        (C4_LINES, []),
        ([*C4_LINES[:4], "This one has lorem ipsum in its middle, sadly."], ["c4_lorem_ipsum"]),
        ([*C4_LINES, "What { is that in the middle of it?"], ["c4_curly_brackets"]),
        (C4_LINES[:1], ["c4_sentences"]),
        (["no mark at its end {", "lorem ipsum", *C4_LINES], []),
        (["Without javascript {} nothing moves.", *C4_LINES], []),
        ([f"Javascript: {line}" for line in C4_LINES], ["c4_sentences"]),
        ([f"{line} {'x' * 1_001}." for line in C4_LINES], ["c4_sentences"]),
        (["Too short.", "Too short!"] * 5, ["c4_sentences"]),
    ],
)
def test_c4_counts_what_it_would_keep_and_discard(lines: list[str], expected: list[str]) -> None:
    assert failing("\n".join(lines), rules(["c4"])) == expected


@pytest.mark.parametrize(
    "text,rule",
    [
        ("hi\nbye\nok no, it is a longer line than thirty characters\n" * 3, "line_punctuation"),
        ("hi.\nbye.\nok.\nno.\nyes.", "short_lines"),
        ("It has been raining since early this morning.\n" * 2, "fineweb_duplicate_chars"),
        ("fresh_milk_from_the_farm and_brown_eggs.\n" * 3, "newline_to_word_ratio"),
    ],
)
def test_lists_and_menus_are_found(text: str, rule: str) -> None:
    assert rule in failing(text, rules(["fineweb"]))


def test_good_prose_fails_nothing() -> None:
    assert failing(ENGLISH, of_short_texts("gopher_quality", "gopher_repetition")) == []


def test_good_code_fails_nothing() -> None:
    code = (
        '"""Words of a text."""\n\nimport re\n\nWORD = re.compile("[a-z]+")\n\n\n'
        "def words(text: str) -> list[str]:\n    # Capitals are small letters, too.\n"
        "    return WORD.findall(text.lower())\n\n\n"
        "def count(text: str) -> int:\n    found = words(text)\n    return len(found)\n\n\n"
        'if __name__ == "__main__":\n    print(count("one two three"), "words in the sentence above")\n'
    )
    assert failing(code, rules(["code"])) == []


@pytest.mark.parametrize("text", ["", " \n\u3000\n", "\n" * 10])
def test_a_text_without_words_is_rejected_and_divides_by_no_zero(text: str) -> None:
    everything = rules(list(RULE_SETS))
    seen = Text(text)
    assert "word_count" in failing(text, everything)
    assert [rule.name for rule in rules(["gopher_repetition"]) if rule.measure(seen) not in (None, 0.0)] == []
    assert next(rule for rule in everything if rule.name == "mean_word_length").measure(seen) is None


def test_an_ngram_seen_once_is_no_repetition() -> None:
    assert failing("Hello world", rules(["gopher_repetition"])) == []


@pytest.mark.parametrize(
    "text,rule,value",
    [
        ("The cat, and THE dog: that's all.", "stop_words", 2.0),
        ("THE BE TO OF AND THAT HAVE WITH", "stop_words", 8.0),
        ("then bee too often\0 be\0x", "stop_words", 0.0),
        ("(don't) -- 42 !", "word_count", 2.0),
        ("(don't) -- 42 !", "mean_word_length", 3.5),
        ("(don't) -- 42 !", "alphabetic_words", 0.25),
        ("  (don't) C++ -- naïve!\u00a0日本。", "word_count", 4.0),
        ("  (don't) C++ -- naïve!\u00a0日本。", "mean_word_length", 13 / 4),
        ("  (don't) C++ -- naïve!\u00a0日本。", "code_whitespace", 6 / 27),
        ("....... a... b.. …", "ellipsis_to_word_ratio", 4 / 4),
        ("- a\n\n  - b\nc\n\n\n", "bullet_lines", 2 / 3),
        (" - one...\n\u2003• two… \n\n* three . . .", "bullet_lines", 2 / 3),
        (" - one...\n\u2003• two… \n\n* three . . .", "ellipsis_lines", 2 / 3),
        ("one...\n \ntwo…  \nthree\nfour\n", "ellipsis_lines", 0.5),
        ("a\nb\n \t\r\na\nb", "duplicate_paragraphs", 0.5),
        ("a\nb\n \t\na\nb\n\nc", "duplicate_paragraph_chars", 3 / 13),
        ("a\nb\n \t\na\nb\n\nc", "duplicate_line_chars", 2 / 13),
        ("a b a b a b", "top_2_gram", 9 / 11),
        ("x x x x x x x", "top_2_gram", 18 / 13),
        ("a b c d e a b c d e a b c d e", "duplicate_5_grams", 10 / 29),
        ("/* a\n b */ c\n<!-- d -->", "code_comments", 14 / 15),
        ("x = '/*'\n/* never closed\ny", "code_comments", 0.0),
        ("# a b\nx = 1  # c\n\t// d\n-- e\n; f", "code_comments", 11 / 16),
        ("#include <a>\n#[derive]\n#{}\n#", "code_comments", 1 / 24),
        ("#include <a>\n# b\n", "code_comments", 2 / 13),
        ('def f():\n    """a b"""\n', "code_comments", 8 / 15),
        ("r'''a\nb'''\n", "code_comments", 9 / 9),
        ('x = """\n# text\n"""\n# b', "code_comments", 2 / 15),
        ('rest = """open\n# a', "code_comments", 2 / 14),
        ("\n\n\n\n// Code GENERATED by protoc", "code_generated", 1.0),
        ("\n\n\n\n\n// Code generated by protoc", "code_generated", 0.0),
        ("def generate(): ...", "code_generated", 0.0),
        (f"{'é' * 86}<?xml version=", "code_xml", 1.0),
        (f"{'é' * 87}<?xml version=", "code_xml", 0.0),
        ("  return x\nreturn x\nreturn x\n}\n}\n},\n},\nother", "code_duplicate_lines", 3 / 8),
        ("f(x)\n  f(x)\ng\ng\n},\n},\n", "code_duplicate_lines", 1 / 3),
        ('So it is. Or not? So, i.e. no ("Go!") Yes.', "c4_sentences", 4.0),
        ('It came. And went ("Why?") 2 times, i.e. twice! Yes it did.', "c4_sentences", 4.0),
        ("One two three.\n  \"Is it so?\" \nHe said 'no'", "c4_sentences", 3.0),
        ("One two.\nOne two three\nOne two three...\nOne two three,", "c4_sentences", 0.0),
        (f"It is {'é' * 999}.", "c4_sentences", 1.0),
        (f"It is {'é' * 1_000}.", "c4_sentences", 0.0),
        ("Please enable JavaScript to go on.\nRead our Privacy Policy here.", "c4_sentences", 0.0),
        ("This site uses Cookies to work.\nShe uses a cookie cutter.", "c4_sentences", 1.0),
        (
            "It was so.[12][]\nIt was not. [edit]\nHe is it.[citation needed]\nIt is a[1b].",
            "c4_sentences",
            3.0,
        ),
        ("It was so.[é]\nIt was so.[[2]\nIt was[1] so.[2]", "c4_sentences", 1.0),
        ("lorem ipsum\nSo Lorem Ipsum goes.\nA { b.\nThis javascript is {}.\nNo {", "c4_lorem_ipsum", 1.0),
        ("lorem ipsum\nSo Lorem Ipsum goes.\nA { b.\nThis javascript is {}.", "c4_curly_brackets", 1.0),
        ("See the list below.[1]\nSee the list. [2]\n", "c4_sentences", 1.0),
        ("One.\nTwo\n\nThree。 \n", "line_punctuation", 2 / 3),
        (f"{'x' * 30}\n\nWhy? \n{'y' * 30}.\n何。", "line_punctuation", 3 / 4),
        ("a b\nc d e\n\n", "newline_to_word_ratio", 3 / 5),
        ("abc\nde\nabc\n", "fineweb_duplicate_chars", 3 / 8),
        (f"{'x' * 30}\n\n{'y' * 31}\n", "short_lines", 0.5),
        ("self._f(x2, 'é') -- _", "code_words", 5.0),
        ("self._f(x2, 'é') -- _", "code_word_length", 2.0),
        (f'x="{"Qk" * 50}" {"a/b+" * 16} {"f" * 63}', "code_longest_encoded_run", 100.0),
        (f'x="{"Qk" * 50}" {"a/b+" * 16} {"f" * 63}', "code_encoded_chars", 164 / 233),
        ("short,words", "code_longest_encoded_run", 5.0),
        ("é1 2\n", "code_letters", 1 / 3),
        ("é\n", "code_bytes", 3.0),
        ("a\n\nbcd\n", "code_mean_line", 4 / 3),
        ("日本\nabc\r\n", "code_longest_line", 4.0),
        ("", "code_lines", 0.0),
        ("a", "code_lines", 1.0),
        ("a\n", "code_lines", 1.0),
        ("\n\n", "code_lines", 2.0),
    ],
)
def test_a_measure_counts_what_it_says(text: str, rule: str, value: float) -> None:
    assert rules([rule])[0].measure(Text(text)) == value
    assert _native.text_signals(pa.array([text]), [rule])[rule].to_pylist() == [value]
