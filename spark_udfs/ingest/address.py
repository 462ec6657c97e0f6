"""The place of an address as users write it; each kind of address has a line here."""

from __future__ import annotations

from pathlib import Path

from spark_udfs.ingest.matching import matching
from spark_udfs.ingest.place import LocalFiles, Place
from spark_udfs.ingest.remote.files import RemoteFiles

REMOTE_SCHEMES = ("s3", "gs", "az", "hf", "http", "https")


def place_of(address: str | Path | Place, folder: Path | None = None) -> Place:
    """Return the place of an address; one with wildcards is a pattern, unless a file has this name.

    The address in a file of `folder` is relative to it, with `~` for a home folder, and keeps its links for
    sentences; `canonical` removes them. Any other address is returned without links. Raises
    ConfigurationError for a remote address that names no bucket or holds a secret.
    """
    if not isinstance(address, str | Path):
        return address
    scheme, separator, _ = str(address).partition("://")
    if separator and scheme in REMOTE_SCHEMES:
        return matching(RemoteFiles.parse(str(address)))
    if folder is not None:
        return matching(LocalFiles.at(folder / Path(address).expanduser()))
    return matching(LocalFiles.at(address)).canonical()
