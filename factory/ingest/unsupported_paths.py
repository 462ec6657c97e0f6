"""Paths that cannot be read where they are: addresses of object stores and sites, and patterns of names."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from factory.suggestions import quoted
from spark_udfs.ingest.place import Place

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/{1,2}(.*)")
_WILDCARD = re.compile(r"[*?\[\]]|\{[^{}]*,[^{}]*\}")
_COPY = {  # by scheme: the command that copies a folder, with the address and the name of the copy
    "s3": "aws s3 sync {address} {name}",
    "s3a": "aws s3 sync {address} {name}",
    "gs": "gcloud storage cp -r {address} {name}",
    "gcs": "gcloud storage cp -r {address} {name}",
    "hdfs": "hdfs dfs -get {address} {name}",
    "hf": "hf download {repository} --repo-type dataset --local-dir {name}",
    "http": "curl -LO {address}",
    "https": "curl -LO {address}",
}
_SCHEMES = {"s3a": "s3", "gcs": "gs"}  # as the command writes them


def why_unsupported(path: str, patterns: Sequence[str] = ()) -> str | None:
    """Return why a path that does not exist cannot be read, and what to do; None for a plain path.

    `patterns` match the files that its reader takes below a folder; without any the user chooses them.
    """
    if address := _ADDRESS.fullmatch(path):
        return _address(path, address[1].lower(), address[2].lstrip("/"))
    if "$" in path:
        return f"Variables in `paths` are not supported yet: `{path}`. Write the path itself."
    if _WILDCARD.search(path):
        return f"Patterns in `paths` are not supported yet: `{path}`. {_folder_of(path, patterns)}"
    return None


def _address(path: str, scheme: str, rest: str) -> str:
    if scheme == "file":
        return f"`{path}` is an address. Write the path, `/{rest}`."
    fact = f"Remote paths are not supported yet: `{path}`."
    command = _COPY.get(scheme)
    if command is None:
        return f"{fact} Copy it, or mount it, and name that folder."
    parts = [part for part in rest.split("/") if part]
    name = parts[-1] if parts else "data"
    if scheme == "hf":
        parts = parts[1:] if parts[:1] == ["datasets"] else parts
        name = parts[1].partition("@")[0] if len(parts) > 1 else name
    address = re.sub("^[^:]+:/+", f"{_SCHEMES.get(scheme, scheme)}://", path)
    command_line = command.format(
        address=address, name=name, repository="/".join(parts[:2]).partition("@")[0]
    )
    return f"{fact} Copy it (`{command_line}`), or mount it, and name `{name}`."


def _folder_of(path: str, patterns: Sequence[str]) -> str:
    parts = PurePosixPath(path).parts
    number = next(number for number, part in enumerate(parts) if _WILDCARD.search(part))
    folder, rest = str(PurePosixPath(*parts[:number])) or ".", "/".join(parts[number:])
    if patterns:
        return f"Name the folder, `{folder}`: files below it that match {quoted(patterns)} are read."
    if re.search(r"[\[\]{}]", rest):
        return f"Name the folder, `{folder}`, and choose its files by `include`, with `*` and `**/`."
    return f"Name the folder, `{folder}`, and use `include: {json.dumps(rest)}`."


def why_missing(name: str, place: Place, patterns: Sequence[str] = ()) -> str | None:
    """Return the fault of a place that does not exist, `name` as the user wrote it; None for a plain path."""
    if target := place.link_target():
        return f"`{name}` is a link to `{target}`, which does not exist. Correct or remove it."
    return why_unsupported(name, patterns)


def why_unreadable(error: OSError) -> str:
    """Return why the operating system refuses a path, and what to do."""
    path = os.fsdecode(error.filename) if error.filename is not None else "The file"
    cause = error.strerror or "unknown cause"
    return f"`{path}` cannot be read ({cause}). Let this user read it, or leave it out."
