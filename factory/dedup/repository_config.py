"""The settings of repository-level deduplication: when a repository is a duplicate, and which always stay."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from factory.errors import ConfigurationError
from factory.frozen_model import FrozenModel
from factory.lake.names import TableName

Word = Annotated[str, Field(min_length=1)]


class RepositoryConfig(FrozenModel):
    """How the repositories of a group are compared, which topics split them, and which always stay."""

    share: float = Field(
        default=0.8,
        gt=0,
        le=1,
        description="share of a repository's documents, and of its bytes, that makes it the duplicate of a "
        "better one with equal or similar documents",
    )
    topics: dict[Word, Word] = Field(default={}, description="topic by repository, given by hand")
    topics_table: str | None = Field(
        default=None, description="table of topics instead, with columns `repository` and `topic`"
    )
    dropped_topics: tuple[Word, ...] = Field(
        default=(), description="topics whose repositories are removed as a whole"
    )
    pinned: tuple[Word, ...] = Field(
        default=(), description="repositories that always stay: `name`, or `name@revision` for one revision"
    )

    @field_validator("topics_table")
    @classmethod
    def _names_a_table(cls, given: str | None) -> str | None:
        try:
            return given if given is None else str(TableName.parse(given))
        except ConfigurationError as error:
            raise ValueError(str(error)) from error

    @model_validator(mode="after")
    def _topics_are_given_once(self) -> Self:
        if self.topics and self.topics_table:
            raise PydanticCustomError(
                "topics_given_twice",
                "Topics are given in `topics` and in table `{table}`. Leave one out.",
                {"field": "topics_table", "table": self.topics_table},
            )
        missing = sorted(set(self.dropped_topics) - set(self.topics.values()))
        if missing and not self.topics_table:
            raise PydanticCustomError(
                "topic_of_none",
                "No repository in `topics` has the topic `{topic}`. Correct it, or give it to one.",
                {"field": "dropped_topics", "topic": missing[0]},
            )
        return self
