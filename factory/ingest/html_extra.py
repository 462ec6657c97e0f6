"""Whether the extra that reads web pages is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from factory.errors import ConfigurationError

_MODULES = ("resiliparse", "trafilatura", "brotli")


def missing_html() -> str | None:
    """Return a sentence that names the extra if a package that reads pages is missing, else None."""
    missing = [name for name in _MODULES if find_spec(name) is None]
    if not missing:
        return None
    return f"Reading web pages needs {missing[0]}. Install it: pip install 'corpus-factory[html]'."


def extractor_versions() -> dict[str, str | None]:
    """Return the versions of the libraries that decide the main text of a page, None of a missing one."""
    return {library: _version(library) for library in ("resiliparse", "trafilatura", "lxml")}


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def require_html() -> None:
    """Raise ConfigurationError, with the sentence of `missing_html`, if the extra is missing."""
    if (sentence := missing_html()) is not None:
        raise ConfigurationError(sentence)
