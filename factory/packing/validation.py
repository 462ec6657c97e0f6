"""Which documents are validation: a share of the repositories, and of the documents without one.

    draw(repository or key) < share    the document is in the validation part

A record that a worker made of a document counts by the key of that document, its
`metadata.derived_from_key`.

A draw depends on nothing else, so a document stays on its side while others come and go, a smaller share is a
part of a larger one, and every document and revision of a repository is on the same side. The parts are drawn
from deduplicated documents: the copies of a validation document are gone before, so their own draws do not
matter.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factory.lake.identity import DERIVED_FROM_KEY, DRAW_DIGITS, DRAW_SALT


def draw(documents: DataFrame) -> Column:
    """Return the column of `factory.lake.identity.draw`, by repository or key of `documents`, rows of RAW."""
    repository = F.nullif(documents["repository"], F.lit(""))
    key = F.coalesce(documents["metadata"][DERIVED_FROM_KEY], documents["key"])
    digest = F.sha2(F.concat(F.lit(DRAW_SALT), F.coalesce(repository, key)), 256)
    number = F.conv(F.substring(digest, 1, DRAW_DIGITS), 16, 10).cast("long")
    return number / F.lit(float(1 << 4 * DRAW_DIGITS))


def validation_part(tokens: DataFrame, documents: DataFrame, share: float) -> DataFrame:
    """Return the tokens of the validation part of `documents`, rows of RAW: TOKENIZED."""
    return tokens.join(documents.where(draw(documents) < share).select("doc_id"), "doc_id", "left_semi")


def training_part(tokens: DataFrame, documents: DataFrame, share: float) -> DataFrame:
    """Return the tokens of `documents` outside the validation part of the same share: TOKENIZED.

    Tokens of a document that is no longer among `documents` are in neither part.
    """
    return tokens.join(documents.where(draw(documents) >= share).select("doc_id"), "doc_id", "left_semi")
