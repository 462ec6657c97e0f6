"""The stored blends of a lake: objects in the warehouse, next to the tables, without a database.

    <warehouse>/blends/<id>.json               the canonical config, written once and never replaced
    <warehouse>/blends/<id>.pins.json          snapshot ids, time of creation, retired or not; replaceable
    <warehouse>/blends/<id>.history.json       for some updates, the plans of their ancestors
    <warehouse>/blends/<id>.held/<id>.held     the blends that use another blend's tags
    <warehouse>/blends/<tag>.progress/<rows>.<sequence>.<snapshot>.progress    progress of a live source

The id is a hash of the config. The pins say which snapshots of this lake hold that content.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import obstore
from obstore.exceptions import AlreadyExistsError
from pydantic import BaseModel, ConfigDict

from blender.catalog.refusals import naming_folder
from blender.errors import BlendNotFound, BrokenBlend
from blender.rows.checksummed_json import verified_content, with_checksum
from blender.rows.live.live_progress import LiveProgress, from_content
from blender.spec.config import BlendConfig, id_of
from blender.spec.history import HistoryBlock
from factory.errors import first_line
from factory.lake.place import require_place
from factory.lake.store import object_store
from factory.settings import Settings

_LOG = logging.getLogger(__name__)

_FOLDER = "blends"
_CONFIG = ".json"
_PINS = ".pins.json"
_HISTORY = ".history.json"
_HELD = ".held"
_PROGRESS = ".progress"
_PART_OF_ID = re.compile("[0-9a-f]{4,32}")


class Pins(BaseModel):
    """The snapshots of this lake with a blend's content, in the order of its sources."""

    model_config = ConfigDict(frozen=True)

    snapshots: tuple[int, ...]
    created_at: str
    """UTC, ISO 8601."""
    retired: bool = False
    depth: int = 0
    """The number of ancestors."""
    tagged_by: tuple[tuple[str, int], ...] = ()
    """The blends whose tags keep the snapshots: (blend, first source) per range; empty for its own tags."""


class BlendStore:
    """The blends of a warehouse."""

    def __init__(self, settings: Settings) -> None:
        """Raises MachineError if the warehouse is missing and cannot be made."""
        self._settings = settings
        with self._naming_folder("written"):
            self._store = object_store(settings)

    def put(self, config: BlendConfig, pins: Pins) -> str:
        """Store a blend under its id; an existing config stays, its pins are replaced."""
        blend = config.id
        self.put_pins(blend, pins)
        # The id is a hash of these bytes, so an existing object has them.
        with contextlib.suppress(AlreadyExistsError), self._naming_folder("written"):
            obstore.put(self._store, _path(blend, _CONFIG), config.canonical_json(), mode="create")
        return blend

    def put_pins(self, blend: str, pins: Pins) -> None:
        """Replace the pins of a blend."""
        self._put(_path(blend, _PINS), with_checksum(pins.model_dump_json().encode()))

    def put_history_block(self, blend: str, block: HistoryBlock) -> None:
        """Store the history block that ends with a blend."""
        content = block.model_dump_json(exclude_defaults=True).encode()
        self._put(_path(blend, _HISTORY), with_checksum(content))

    def history_block(self, blend: str) -> HistoryBlock | None:
        """The block that ends with a blend; None if it is missing or damaged: the configs say the same."""
        try:
            stored = self._get(_path(blend, _HISTORY))
            return HistoryBlock.model_validate_json(verified_content(stored, optional=True))
        except FileNotFoundError:
            return None
        except ValueError as error:
            _LOG.warning("%s is damaged (%s) and not used.", _path(blend, _HISTORY), first_line(error))
            return None

    def hold(self, blend: str, tags_of: str) -> None:
        """Record that `blend` uses the tags of another blend."""
        self._put(_held(tags_of, blend), b"")

    def release(self, blend: str, tags_of: str) -> None:
        """Undo `hold`."""
        self._delete(_held(tags_of, blend))

    def holders(self, tags_of: str) -> list[str]:
        """The other blends that use the tags of one."""
        return [Path(path).name.removesuffix(_HELD) for path in self._paths(f"{_FOLDER}/{tags_of}{_HELD}")]

    def record_progress(self, tag: str, progress: LiveProgress) -> None:
        """Record how far the live source under `tag` was read.

        The furthest record wins, so Blenders that look at the same time take nothing back.
        """
        before = self._progress_records(tag)
        folder = f"{_FOLDER}/{tag}{_PROGRESS}"
        path = f"{folder}/{progress.rows:020}.{progress.sequence:020}.{progress.snapshot}{_PROGRESS}"
        self._put(path, progress.content())
        for one, old in before:
            if one < progress:
                self._delete(old)

    def progress(self, tag: str) -> LiveProgress | None:
        """The furthest progress on record for the live source under `tag`."""
        while found := self._progress_records(tag):
            newest, path = max(found)
            with contextlib.suppress(FileNotFoundError):  # another Blender recorded more
                return replace(newest, files=from_content(self._get(path)))
        return None

    def progress_files(self) -> list[str]:
        """The paths of all records of progress."""
        return [path for path in self._paths(_FOLDER) if path.endswith(_PROGRESS)]

    def _progress_records(self, tag: str) -> list[tuple[LiveProgress, str]]:
        return [(_named(path), path) for path in self._paths(f"{_FOLDER}/{tag}{_PROGRESS}")]

    def has(self, blend: str) -> bool:
        """Whether a blend is on record."""
        try:
            with self._naming_folder("read"):
                obstore.head(self._store, _path(blend, _CONFIG))
        except FileNotFoundError:
            return False
        return True

    def get(self, blend: str) -> tuple[BlendConfig, Pins]:
        """A blend by id; raises BlendNotFound and BrokenBlend."""
        if not _is_id(blend):
            raise self._malformed(blend)
        try:
            config, pins = self._get(_path(blend, _CONFIG)), self._get(_path(blend, _PINS))
        except FileNotFoundError as error:
            raise BlendNotFound(
                f"This lake has no blend {blend}. `factory blend list` lists its blends; a server has those "
                "of its own lake."
            ) from error
        with _parsing(blend, _path(blend, _CONFIG)):
            if id_of(config) != blend:
                raise ValueError("its content has another id")
            found = BlendConfig.from_json(config)
        with _parsing(blend, _path(blend, _PINS)):
            return found, Pins.model_validate_json(verified_content(pins, optional=True))

    def _malformed(self, blend: str) -> BlendNotFound:
        """The error about an id of another length, with the blends that it may abbreviate."""
        part = blend.lower()
        candidates = self.ids() if _PART_OF_ID.fullmatch(part) else []
        matches = [candidate for candidate in candidates if candidate.startswith(part)]
        if len(matches) == 1:
            return BlendNotFound(f"`{blend}` is not a whole blend id. Did you mean `{matches[0]}`?")
        if matches:
            return BlendNotFound(
                f"`{blend}` begins the ids of {len(matches):,} blends, such as `{matches[0]}` and "
                f"`{matches[1]}`. Give all 32 digits of one; `factory blend list` lists them."
            )
        return BlendNotFound(
            f"Malformed blend id `{blend}`. An id has 32 hexadecimal digits; `factory blend list` lists them."
        )

    def ids(self) -> Iterator[str]:
        """Every blend, in order of ids."""
        for path in sorted(self._paths(_FOLDER)):
            blend = Path(path).name.removesuffix(_CONFIG)
            if _is_id(blend):
                yield blend

    def _put(self, path: str, content: bytes) -> None:
        with self._naming_folder("written"):
            obstore.put(self._store, path, content)

    def _get(self, path: str) -> bytes:
        """The bytes of an object; raises FileNotFoundError."""
        with self._naming_folder("read"):
            return obstore.get(self._store, path).bytes().to_bytes()

    def _delete(self, path: str) -> None:
        """Delete an object that may be gone."""
        with contextlib.suppress(FileNotFoundError), self._naming_folder("written"):
            obstore.delete(self._store, path)

    def _paths(self, prefix: str) -> list[str]:
        with self._naming_folder("read"):
            return [entry["path"] for chunk in obstore.list(self._store, prefix=prefix) for entry in chunk]

    def _naming_folder(self, action: str) -> contextlib.AbstractContextManager[None]:
        return naming_folder(self._settings, f"{self._settings.warehouse_uri}/{_FOLDER}", action)


def open_store(settings: Settings) -> BlendStore:
    """The blends of the lake's warehouse, on local disk or S3; raises LakeMoved for a copied lake."""
    require_place(settings)
    return BlendStore(settings)


@contextlib.contextmanager
def _parsing(blend: str, path: str) -> Iterator[None]:
    """Translate parse errors of a blend's file into BrokenBlend; InvalidBlend for its format stays."""
    try:
        yield
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise BrokenBlend(
            f"Blend {blend} cannot be read: {path} is not what was stored "
            f"({first_line(error)}). Restore it, or create the blend again."
        ) from error


def _path(blend: str, end: str) -> str:
    return f"{_FOLDER}/{blend}{end}"


def _held(tags_of: str, blend: str) -> str:
    return f"{_FOLDER}/{tags_of}{_HELD}/{blend}{_HELD}"


def _named(path: str) -> LiveProgress:
    """Progress by the name of its record; early records had no sequence number and no files."""
    rows, *between, snapshot = Path(path).name.removesuffix(_PROGRESS).split(".")
    return LiveProgress(int(rows), int(between[0]) if between else 0, int(snapshot))


def _is_id(text: str) -> bool:
    return len(text) == 32 and all(character in "0123456789abcdef" for character in text)
