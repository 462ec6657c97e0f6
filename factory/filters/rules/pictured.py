"""Rules that judge the pictures of a document by the facts in `images.<dataset>`; none reads a pixel.

Each rule has one number for a document, from its worst picture. A document without a picture has none but the
number of its pictures. Their table of signals is `signals.<dataset>_by_images`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.filters.joined_rule import JoinedRule
from factory.filters.limits import AtLeast, AtMost, Limit
from factory.filters.rule import Kind
from factory.lake import names

SIGNALS = ("unreadable_images", "image_pixels", "image_side", "image_ratio", "images_per_document")


class ImageRule(JoinedRule):
    """A number of the pictures of a document; `paper` is where its limit comes from."""

    paper: str = ""

    @property
    def part(self) -> str:
        return "images"

    @property
    def signals(self) -> Mapping[str, Kind]:
        return dict.fromkeys(SIGNALS, "number")

    def of_dataset(self, dataset: str) -> Self:
        rule = copy.copy(self)
        rule.reads = {"images": names.images(dataset)}
        return rule

    def values(self, documents: DataFrame, tables: Mapping[str, DataFrame]) -> DataFrame:
        """Return the numbers of every rule on pictures for each document."""
        width, height = F.col("width").cast("double"), F.col("height").cast("double")
        numbers = (
            tables["images"]
            .groupBy("doc_id")
            .agg(
                F.count_if(~F.col("is_readable")).cast("double").alias("unreadable_images"),
                F.min(width * height).alias("image_pixels"),
                F.min(F.least(width, height)).alias("image_side"),
                F.max(F.greatest(width, height) / F.least(width, height)).alias("image_ratio"),
                F.count("*").cast("double").alias("images_per_document"),
            )
        )
        zeros = {"unreadable_images": 0.0, "images_per_document": 0.0}  # of documents without a picture
        return documents.select("doc_id").join(numbers, "doc_id", "left").fillna(zeros)


class UnreadableImages(ImageRule):
    """Pictures of the document that do not decode."""

    name, unit, limit = "unreadable_images", "pictures", AtMost(0)


class ImagePixels(ImageRule):
    """Pixels of the document's smallest picture."""

    name, unit, limit = "image_pixels", "pixels", AtLeast(4_096)


class ImageSide(ImageRule):
    """Shortest side of the document's pictures."""

    name, unit, limit = "image_side", "pixels", AtLeast(28)


class ImageRatio(ImageRule):
    """Longest side over shortest side of the document's most elongated picture."""

    name, unit, paper = "image_ratio", "ratio", "DataComp, 2023"
    limit: Limit = AtMost(3)


class ImagesPerDocument(ImageRule):
    """Pictures of the document."""

    name, unit, paper = "images_per_document", "pictures", "OBELICS, 2023"
    limit: Limit = AtMost(30)


RULES = (UnreadableImages(), ImagePixels(), ImageSide(), ImageRatio(), ImagesPerDocument())
