"""Whether the extra that reads pictures is installed."""

from __future__ import annotations

from importlib.util import find_spec

from factory.errors import ConfigurationError


def require_images() -> None:
    """Raise ConfigurationError with the name of the extra if Pillow is missing."""
    if find_spec("PIL") is None:
        raise ConfigurationError(
            "Reading pictures needs Pillow. Install it: pip install 'corpus-factory[images]'."
        )
