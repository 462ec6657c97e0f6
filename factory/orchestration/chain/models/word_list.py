"""The assets of word lists, and the rules that read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame

from factory.errors import ConfigurationError
from factory.filters.limits import Limit
from factory.filters.rules.listed_words import ListedWords
from factory.lake.schemas.models import WORD_LIST
from factory.models.word_list import FLAGGED, PROFANE
from factory.models.word_list_file import word_list_table
from factory.orchestration.chain.models.rule import RuleModel
from factory.orchestration.groups import MODELS
from factory.orchestration.table.table_asset import table_asset
from spark_udfs.filters.language_id import languages


def word_list(
    name: str,
    profane: Mapping[str, Path],
    flagged: Mapping[str, Path] | None = None,
    *,
    limit: Limit | None = None,
) -> RuleModel:
    """Declare a list of words: files by the code of the language that they judge, an entry a line.

    An unchanged list is not read again, and nothing is measured again. Raises ConfigurationError for an
    unknown code of a language, for a list without a file, and as `word_list_table`.
    """
    files = {(language, PROFANE): path for language, path in profane.items()}
    files |= {(language, FLAGGED): path for language, path in (flagged or {}).items()}
    if not files:
        raise ConfigurationError(f"The word list `{name}` has no file. Give one a language.")
    for language, _ in files:
        if language not in languages():
            raise ConfigurationError(
                f"The word list `{name}` has a file for `{language}`, which is no language that is detected. "
                "Use a code such as `en`."
            )
    word_list_table(files)  # so that an entry that cannot be found is told before a run

    @table_asset(
        namespace="models",
        name=name,
        asset_group=MODELS,
        schema=WORD_LIST,
        description=f"The words of {', '.join(sorted(path.name for path in files.values()))}.",
        config={"files": sorted(f"{language} {tier} {path}" for (language, tier), path in files.items())},
        files=lambda _: list(files.values()),
    )
    def words(pyspark) -> DataFrame:  # type: ignore[no-untyped-def]
        return pyspark.spark_session.createDataFrame(word_list_table(files))

    return RuleModel(words, ListedWords(name, limit))
