"""Lakes of the benches' own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from factory.settings import Settings, settings


def own_lake(home: Path, **changes: Any) -> Settings:
    """Settings of an embedded lake in `home`, whatever FACTORY_* says of another one."""
    embedded = {"home": home.absolute(), "catalog": "sqlite", "catalog_uri": None, "warehouse": None}
    return settings().model_copy(update=embedded | changes)
