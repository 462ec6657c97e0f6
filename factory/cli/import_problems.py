"""Why a module cannot be imported: a folder hides one of our packages, or an extra is not installed."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution, requires
from importlib.util import find_spec
from pathlib import Path

import factory
from factory.errors import ConfigurationError, FactoryError, MachineError

DISTRIBUTION = "corpus-factory"

_PACKAGES = ("assets", "jobs", "spark_udfs", "blender")
_REQUIREMENT = re.compile(r"([\w.-]+).*\bextra == ['\"](\w+)['\"]")


def import_problem(error: ImportError) -> FactoryError | None:
    """Return the cause of a failed import with its remedy; None if it is something else."""
    try:
        require_own_packages()
    except ConfigurationError as problem:
        return problem
    module = (error.name or "").partition(".")[0]
    extra = _extra_with(module) if isinstance(error, ModuleNotFoundError) else None
    if extra is None:
        return None
    return MachineError(
        f"This command needs `{module}`, which is not installed. "
        f"Install it: pip install '{DISTRIBUTION}[{extra}]'."
    )


def require_own_packages() -> None:
    """Raise ConfigurationError if Python would import something else in place of one of our packages."""
    for package in _PACKAGES:
        place = _place_of_stranger(package)
        if place is not None:
            elsewhere = ", or run the command in another folder" if place.parent == Path.cwd() else ""
            raise ConfigurationError(
                f"{place} comes before the factory's package `{package}` on Python's path and hides it. "
                f"Rename it, or take {place.parent} out of PYTHONPATH{elsewhere}."
            )


def _place_of_stranger(package: str) -> Path | None:
    """Return the folder or module that Python imports in place of one of our packages, None if it is ours."""
    spec = find_spec(package)
    ours = Path(factory.__file__).parents[1] / package
    if spec is None or spec.origin is None or Path(spec.origin).is_relative_to(ours):
        return None
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin


def _extra_with(module: str) -> str | None:
    """Return the extra that requires a module, or the pipeline's if a package of that is missing."""
    if not _is_installed(DISTRIBUTION):  # a clone on PYTHONPATH
        return None
    matches = map(_REQUIREMENT.match, requires(DISTRIBUTION) or ())
    pairs = [(match[1].replace("-", "_"), match[2]) for match in matches if match and match[2] != "dev"]
    extras = dict(pairs) | {name: extra for name, extra in pairs if name == extra}
    if module in extras:
        return extras[module]
    pipeline = [name for name, extra in extras.items() if extra == "pipeline"]
    return None if all(map(_is_installed, pipeline)) else "pipeline"


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
