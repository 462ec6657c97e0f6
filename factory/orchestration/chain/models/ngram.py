"""The assets of n-gram models of languages, and the rules that read them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from factory.filters.documents_table import documents_table
from factory.filters.limits import Limit
from factory.filters.rules.language import LanguageScore
from factory.filters.rules.perplexity import BitsPerByte
from factory.filters.stage import measure
from factory.lake.schemas.models import NGRAM_MODEL
from factory.models.ngram_model import VOCABULARY, candidates, ngram_models, require_vocabulary
from factory.orchestration.chain.models.rule import RuleModel
from factory.orchestration.groups import MODELS
from factory.orchestration.table.table_asset import table_asset


def language_model(
    name: str,
    table: str,
    *,
    languages: Sequence[str] = (),
    vocabulary: int = VOCABULARY,
    limit: Limit | None = None,
) -> RuleModel:
    """Declare n-gram models of the documents of `table`: a dataset, or a table such as `deduplicated.web`.

    There is one for each of `languages`, or for each language with enough text. `models.<name>` lasts: it is
    trained again if its declaration changed, or by a run that selects it without its documents. Raises
    ConfigurationError for a vocabulary that no model can have, and for a language that is not detected.
    """
    require_vocabulary(vocabulary)
    LanguageScore(languages)
    documents_of = documents_table(table)

    @table_asset(
        namespace="models",
        name=name,
        asset_group=MODELS,
        schema=NGRAM_MODEL,
        upstream={"documents": documents_of},
        description=f"n-gram models of the languages of `{documents_of}`.",
        config={"vocabulary": vocabulary, "languages": list(languages)},
        lasting=True,
    )
    def model(documents: DataFrame) -> DataFrame:
        texts = candidates(documents)
        labels = measure(texts, [LanguageScore()]).select("doc_id", "detected_language")
        return ngram_models(texts.join(labels, "doc_id"), languages, vocabulary)

    return RuleModel(model, BitsPerByte(name, limit))
