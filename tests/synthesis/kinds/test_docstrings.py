"""Exercises of docstring and code are cut out of Python files."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.errors import ConfigurationError
from factory.synthesis.kind import NewRecord, Refusal, WorkItem
from factory.synthesis.kinds.docstrings import Docstrings
from factory.synthesis.outcomes import outcomes_of

SOURCE = '''
import os


class Shelf:
    """A class, which gives none."""

    @property
    def books(self) -> int:
        """Return the number of books that the shelf has."""
        return len(self._books)

    def few(self):
        """Too few words."""
        return 0


async def fetch(url):
    """Fetch the page at an address, and
    return its text."""
    page = await get(url)
    return page.text


def empty():
    """A docstring of enough words, and no body."""


def plain():
    return 1


def line(): """All of it in one line is left."""; return 2
'''


def records(text: str, **options: Any) -> list[NewRecord]:
    kind = Docstrings(options)
    outcomes = outcomes_of("docstrings", kind, WorkItem("1", "code", "a.py", text))
    assert all(isinstance(outcome, NewRecord) for outcome in outcomes), outcomes
    return [outcome for outcome in outcomes if isinstance(outcome, NewRecord)]


def test_each_function_with_docstring_and_body_gives_a_record_a_direction() -> None:
    assert [record.key for record in records(SOURCE)] == [
        *("code:Shelf.books:9", "docstring:Shelf.books:9"),
        *("code:fetch:18", "docstring:fetch:18"),
    ]
    assert {record.values["name"] for record in records(SOURCE, least_words=2)} == {
        *("Shelf.books", "Shelf.few", "fetch")
    }


def test_the_text_of_each_direction_is_python() -> None:
    code, docstring = (record.text for record in records(SOURCE)[:2])
    assert code == textwrap.dedent('''\
        @property
        def books(self) -> int:
            """Return the number of books that the shelf has."""
            return len(self._books)
        ''')
    assert docstring == textwrap.dedent('''\
        @property
        def books(self) -> int:
            return len(self._books)

            """Return the number of books that the shelf has."""
        ''')


def test_records_have_the_facts_of_their_function() -> None:
    assert [record.values for record in records(SOURCE, directions=["code"])] == [
        {"direction": "code", "name": "Shelf.books", "line": 9, "n_words": 9, "n_lines": 1},
        {"direction": "code", "name": "fetch", "line": 18, "n_words": 10, "n_lines": 2},
    ]


def test_a_whole_module_gives_texts_that_parse() -> None:
    for record in records(inspect.getsource(textwrap) + inspect.getsource(ast)):
        ast.parse(record.text)


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_are_counted_as_python_counts_them(end: str) -> None:
    text = SOURCE.replace("return 1", "return '\x0c\u2028'").replace("\n", end)
    assert [record.key for record in records(text)] == [record.key for record in records(SOURCE)]


@pytest.mark.parametrize("text", ["def f(:", "a\0b", "-" * 200_000 + "1", "(" * 1000, "\ufeff\ufeff"])
def test_what_python_does_not_parse_is_refused(text: str) -> None:
    (refusal,) = Docstrings({})(WorkItem("1", "code", "a.py", text))
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "not_python"


@given(st.text(alphabet="def f():\n\r\t \"'\\x#", max_size=60))
def test_any_text_gives_records_or_refusals(text: str) -> None:
    for outcome in outcomes_of("docstrings", Docstrings({}), WorkItem("1", "code", "a.py", text)):
        assert isinstance(outcome, NewRecord) or outcome.reason == "not_python"


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"direction": ["code"]}, "Did you mean `directions`?"),
        ({"directions": []}, "is a list of `code`, `docstring`"),
        ({"directions": ["cod"]}, "Unknown direction `cod`. Did you mean `code`?"),
        ({"least_words": 0}, "is a whole number from 1"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        Docstrings(options)
    assert sentence in str(error.value)
