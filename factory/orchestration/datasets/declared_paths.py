"""The files and folders that a datasets file names, as places that exist."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from factory.errors import ConfigurationError
from factory.ingest.unsupported_paths import why_missing
from factory.orchestration.declare.ingest_dataset import Dataset
from factory.orchestration.declare.ingest_partition_paths import PARTITION
from factory.orchestration.declare.located_yaml import InvalidValue, LocatedYaml, YamlPath
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.place import Place


def declared_paths(located: LocatedYaml, above: YamlPath, entry: Dataset) -> Iterator[Place]:
    """Yield the paths of the dataset at `above`; raises InvalidValue if one, or its folder, is missing."""
    for number, written in enumerate(entry.paths):
        try:
            path = folder = place_of(written, located.path.parent)
            while PARTITION in folder.display():
                folder = folder.parent
            exists = folder.kind() is not None
        except ConfigurationError as error:  # of a remote address
            raise InvalidValue((*above, "paths", number), str(error)) from error
        except (OSError, RuntimeError) as error:  # too long a name, the home of an unknown user
            reason = getattr(error, "strerror", None) or str(error).rstrip(".")
            raise InvalidValue(
                (*above, "paths", number), f"`{written}` cannot be looked at ({reason}). Correct it."
            ) from error
        if not exists:
            raise InvalidValue((*above, "paths", number), _why_missing(written, path, located.path.parent))
        yield path


def _why_missing(name: str, path: Place, folder: Path) -> str:
    """Say why a path of the file does not exist, and how it is resolved."""
    if sentence := why_missing(name, path):
        return sentence
    if name.startswith("~"):
        return f"`{name}` does not exist. `~` is a home folder: the path is {path.display()}. Correct it."
    return f"`{name}` does not exist. Paths are relative to the folder of this file, {folder}."
