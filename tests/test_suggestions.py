"""A name that does not exist is answered with the nearest that do."""

from __future__ import annotations

from factory.suggestions import unknown_name
from spark_udfs.filters.language_id import languages


def test_the_one_that_was_perhaps_meant_is_named() -> None:
    assert unknown_name("rule", "word_cuont", ["word_count", "lines"]) == (
        "Unknown rule `word_cuont`. Did you mean `word_count`?"
    )


def test_of_few_all_are_named_and_of_many_the_nearest() -> None:
    assert unknown_name("kind", "xyz", ["prose", "code"]) == "Unknown kind `xyz`. Use one of `prose`, `code`."
    said = unknown_name("language", "chinese", sorted(languages()))
    assert said.startswith("Unknown language `chinese`. Use one of 176, such as `")
    assert said.count("`") == 2 * (1 + 12)
