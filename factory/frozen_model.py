"""The base of every settings model: immutable after validation, unknown fields refused."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

WordList = Annotated[
    tuple[str, ...], BeforeValidator(lambda words: [words] if isinstance(words, str) else words)
]
"""A field of several words, of which one may stand without its list."""


class FrozenModel(BaseModel):
    """Settings of a stage or a table."""

    model_config = ConfigDict(frozen=True, extra="forbid")
