"""Whether the extra that reads web pages is installed."""

from __future__ import annotations

from importlib.util import find_spec

from factory.errors import ConfigurationError

_MODULES = ("resiliparse", "trafilatura", "brotli")


def require_html() -> None:
    """Raise ConfigurationError, which names the extra, if a package that reads pages is missing."""
    missing = [name for name in _MODULES if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"Reading web pages needs {missing[0]}. Install it: pip install 'model-factory[html]'."
        )
