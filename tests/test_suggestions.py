"""A name that does not exist is answered with the nearest that do."""

from __future__ import annotations

from factory.suggestions import known
from spark_udfs.filters.language_id import languages


def test_the_one_that_was_perhaps_meant_is_named() -> None:
    assert known("rule", "word_cuont", ["word_count", "lines"]) == (
        "`word_cuont` is no rule. Did you mean `word_count`?"
    )


def test_of_few_all_are_named_and_of_many_the_nearest() -> None:
    assert known("kind", "xyz", ["prose", "code"]) == "`xyz` is no kind. Use one of `prose`, `code`."
    said = known("language", "chinese", sorted(languages()))
    assert said.startswith("`chinese` is no language. Use one of 176, such as `")
    assert said.count("`") == 2 * (1 + 12)
