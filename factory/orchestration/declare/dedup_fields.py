"""The fields of deduplication: the group of a dataset, the decisions of a variant, and options of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from factory.dedup.config import DedupConfig, Similarity
from factory.dedup.decisions import Keep
from factory.frozen_model import FrozenModel
from factory.orchestration.declare.ingest_dataset import PartFields, name_of_tables


class DecisionFields(PartFields):
    """Another way to decide on similar documents."""

    threshold: Similarity | None = Field(
        default=None, description="least weighted Jaccard of similar documents"
    )
    keep: Keep | None = Field(default=None, description="rule for which of similar documents stay")

    @property
    def shares_comparisons(self) -> bool:
        """Whether the variant shares its dataset's filters and comparisons and only decides differently."""
        return self.threshold is not None or self.keep is not None


DECISIONS = tuple(DecisionFields.model_fields)


class GroupFields(PartFields):
    """The dedup group of a dataset."""

    group: str | None = Field(default=None, description="dedup group; default: that of its kind")

    @field_validator("group")
    @classmethod
    def _group_fits_tables(cls, name: str | None) -> str | None:
        return name if name is None else name_of_tables(name)

    @model_validator(mode="before")
    @classmethod
    def _no_options_of_a_group(cls, values: Any) -> Any:
        fields = values if isinstance(values, Mapping) else {}
        for name in fields:
            if name in cls.model_fields or name not in DedupConfig.model_fields:
                continue
            group = fields.get("group") or fields.get("kind") or "prose"
            where = "a group or a variant" if name in DECISIONS else "a group"
            raise PydanticCustomError(
                "option_of_group",
                "`{field}` belongs to {where}. Write `{remedy}`.",
                {
                    "field": name,
                    "where": where,
                    "remedy": f"groups: {{{group}: {{{name}: {fields[name]}}}}}",
                },
            )
        return values


class GroupsSection(FrozenModel):
    """The dedup groups of a file."""

    groups: dict[str, dict[str, Any]] = Field(
        default={}, description="options of `DedupConfig`, `repositories`, and `against`, by group"
    )
