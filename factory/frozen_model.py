"""The base of every settings model: immutable after validation, unknown fields refused."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """Settings of a stage or a table."""

    model_config = ConfigDict(frozen=True, extra="forbid")
