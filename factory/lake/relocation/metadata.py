"""The metadata of one table rewritten for the new place of its warehouse, next to the old files.

    00007-<uuid>.metadata.json    the catalog names it; it names older metadata files and
    └── snap-<id>-<uuid>.avro     a list of manifests per snapshot
        └── <uuid>-m0.avro        manifests, which several lists share, with the paths of data files

Manifests are written first, because a list holds their lengths. Every file gets a new name, and old files do
not change, so the table is unchanged until the catalog names the new metadata file.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyiceberg.io import FileIO

from factory.errors import ConfigurationError, DamagedFile, FactoryError, first_line
from factory.lake.files.damage import UNPARSED
from factory.lake.relocation.avro import AvroRecord, rewrite_avro
from factory.lake.relocation.moves import Move, spelled_alike

_GZIPPED = (".gz.metadata.json", ".metadata.json.gz")
_ROWS = 0  # content of a data file; others hold deletes


class MetadataRewriter:
    """Rewrites the metadata files of one table for a move; reads and writes at the new place only."""

    def __init__(self, io: FileIO, move: Move, table: str) -> None:
        self._io, self._move, self._table = io, move, table
        self._rewritten: dict[str, str] = {}

    @property
    def obsolete(self) -> list[str]:
        """The old files that were rewritten."""
        return list(self._rewritten.values())

    @property
    def written(self) -> list[str]:
        """The new files."""
        return [self._move.renamed(location) for location in self._rewritten.values()]

    def rewrite(self, metadata_location: str) -> str:
        """Rewrite the files of the table from its newest metadata file on; return the new metadata file.

        Raises DamagedFile for a file that is missing or cannot be read, ConfigurationError for a table with
        files of deleted rows.
        """
        newest = self._load(metadata_location)
        documents = {
            location: self._load(location)
            for location in (entry["metadata-file"] for entry in newest.get("metadata-log", ()))
            if self._exists(location)
        }
        documents[metadata_location] = newest
        for document in documents.values():
            for snapshot in document.get("snapshots", ()):
                manifest_list = snapshot["manifest-list"]
                # An older metadata file names snapshots that have expired since.
                if not self._is_rewritten(manifest_list) and (
                    document is newest or self._exists(manifest_list)
                ):
                    self._rewrite_avro(manifest_list, self._move_manifest)
        for location in documents:
            self._note(location)
        for location, document in documents.items():
            self._store(self._move.renamed(location), self._with_new_locations(document))
        return self._move.renamed(metadata_location)

    def new_location(self, location: str) -> str:
        """Return the location of a file after the move, with its new name if it was rewritten."""
        moved = self._move.moved(location)
        return self._move.renamed(location) if spelled_alike(moved) in self._rewritten else moved

    def _move_manifest(self, manifest: AvroRecord) -> None:
        location = str(manifest["manifest_path"])
        target = self._move.renamed(location)
        if not self._is_rewritten(location):
            self._rewrite_avro(location, self._move_data_file)
        manifest["manifest_path"] = target
        manifest["manifest_length"] = len(self._io.new_input(target))

    def _move_data_file(self, entry: AvroRecord) -> None:
        data_file = entry.struct("data_file")
        location = str(data_file["file_path"])
        if "content" in data_file and data_file["content"] != _ROWS:
            raise ConfigurationError(
                f"Table {self._table} has a file of deleted rows ({location}), which may hold paths that "
                "`factory relocate` does not rewrite. Rewrite the table's data files where the lake was "
                "made, and expire the snapshots with deletes."
            )
        data_file["file_path"] = self._move.moved(location)

    def _rewrite_avro(self, location: str, change: Callable[[AvroRecord], None]) -> None:
        self._note(location)
        with self._reading(location):
            source = self._io.new_input(self._move.moved(location))
            rewrite_avro(source, self._io.new_output(self._move.renamed(location)), change)

    def _with_new_locations(self, document: Any) -> Any:
        """Return a JSON document with the new location of every file that it names."""
        if isinstance(document, dict):
            return {key: self._with_new_locations(value) for key, value in document.items()}
        if isinstance(document, list):
            return [self._with_new_locations(value) for value in document]
        if isinstance(document, str) and self._move.concerns(document):
            return self.new_location(document)
        return document

    def _note(self, location: str) -> None:
        """Note that a file is rewritten, before its new one exists."""
        moved = self._move.moved(location)
        self._rewritten[spelled_alike(moved)] = moved

    def _is_rewritten(self, location: str) -> bool:
        return spelled_alike(self._move.moved(location)) in self._rewritten

    def _exists(self, location: str) -> bool:
        return bool(self._io.new_input(self._move.moved(location)).exists())

    def _load(self, location: str) -> Any:
        with self._reading(location), self._io.new_input(self._move.moved(location)).open() as file:
            content = file.read()
            return json.loads(gzip.decompress(content) if location.endswith(_GZIPPED) else content)

    def _store(self, location: str, document: Any) -> None:
        content = json.dumps(document).encode()
        with self._io.new_output(location).create(overwrite=True) as file:
            file.write(gzip.compress(content) if location.endswith(_GZIPPED) else content)

    @contextmanager
    def _reading(self, location: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise self._unreadable(location, "it is missing") from error
        except FactoryError:
            raise
        except UNPARSED as error:
            raise self._unreadable(location, first_line(error)) from error

    def _unreadable(self, location: str, cause: str) -> DamagedFile:
        return DamagedFile(
            f"File {self._move.moved(location)} of table {self._table} cannot be read ({cause}). "
            "Copy the lake again, with the files whose names begin with a dot."
        )
