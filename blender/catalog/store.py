"""The stored blends of a lake: objects beside the tables in the warehouse, without a database.

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
from obstore.store import ObjectStore
from pydantic import BaseModel, ConfigDict

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

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def put(self, config: BlendConfig, pins: Pins) -> str:
        """Store a blend under its id; an existing config stays, its pins are replaced."""
        blend = config.id
        self.put_pins(blend, pins)
        with contextlib.suppress(AlreadyExistsError):  # the id is a hash of these bytes: they are there
            obstore.put(self._store, _path(blend, _CONFIG), config.canonical_json(), mode="create")
        return blend

    def put_pins(self, blend: str, pins: Pins) -> None:
        """Replace the pins of a blend."""
        obstore.put(self._store, _path(blend, _PINS), with_checksum(pins.model_dump_json().encode()))

    def put_history_block(self, blend: str, block: HistoryBlock) -> None:
        """Store the history block that ends with a blend."""
        content = block.model_dump_json(exclude_defaults=True).encode()
        obstore.put(self._store, _path(blend, _HISTORY), with_checksum(content))

    def history_block(self, blend: str) -> HistoryBlock | None:
        """The block that ends with a blend; None if it is missing or damaged: the configs say the same."""
        try:
            stored = obstore.get(self._store, _path(blend, _HISTORY)).bytes().to_bytes()
            return HistoryBlock.model_validate_json(verified_content(stored, optional=True))
        except FileNotFoundError:
            return None
        except ValueError as error:
            _LOG.warning("%s is damaged (%s) and not used.", _path(blend, _HISTORY), first_line(error))
            return None

    def hold(self, blend: str, tags_of: str) -> None:
        """Record that `blend` uses the tags of another blend."""
        obstore.put(self._store, _held(tags_of, blend), b"")

    def release(self, blend: str, tags_of: str) -> None:
        """Undo `hold`."""
        with contextlib.suppress(FileNotFoundError):
            obstore.delete(self._store, _held(tags_of, blend))

    def holders(self, tags_of: str) -> list[str]:
        """The other blends that use the tags of one."""
        listed = obstore.list(self._store, prefix=f"{_FOLDER}/{tags_of}{_HELD}")
        return [Path(entry["path"]).name.removesuffix(_HELD) for chunk in listed for entry in chunk]

    def record_progress(self, tag: str, progress: LiveProgress) -> None:
        """Record how far the live source under `tag` was read.

        The furthest record wins, so Blenders that look at the same time take nothing back.
        """
        before = self._progress_records(tag)
        folder = f"{_FOLDER}/{tag}{_PROGRESS}"
        path = f"{folder}/{progress.rows:020}.{progress.sequence:020}.{progress.snapshot}{_PROGRESS}"
        obstore.put(self._store, path, progress.content())
        for one, old in before:
            if one < progress:
                with contextlib.suppress(FileNotFoundError):
                    obstore.delete(self._store, old)

    def progress(self, tag: str) -> LiveProgress | None:
        """The furthest progress on record for the live source under `tag`."""
        while found := self._progress_records(tag):
            newest, path = max(found)
            with contextlib.suppress(FileNotFoundError):  # another Blender recorded more
                files = obstore.get(self._store, path).bytes().to_bytes()
                return replace(newest, files=from_content(files))
        return None

    def progress_files(self) -> list[str]:
        """The paths of all records of progress."""
        paths = [entry["path"] for chunk in obstore.list(self._store, prefix=_FOLDER) for entry in chunk]
        return [path for path in paths if path.endswith(_PROGRESS)]

    def _progress_records(self, tag: str) -> list[tuple[LiveProgress, str]]:
        listed = obstore.list(self._store, prefix=f"{_FOLDER}/{tag}{_PROGRESS}")
        return [(_named(entry["path"]), entry["path"]) for chunk in listed for entry in chunk]

    def has(self, blend: str) -> bool:
        """Whether a blend is on record."""
        try:
            obstore.head(self._store, _path(blend, _CONFIG))
        except FileNotFoundError:
            return False
        return True

    def get(self, blend: str) -> tuple[BlendConfig, Pins]:
        """A blend by id; raises BlendNotFound and BrokenBlend."""
        if not _is_id(blend):
            raise self._malformed(blend)
        try:
            config = obstore.get(self._store, _path(blend, _CONFIG)).bytes().to_bytes()
            pins = obstore.get(self._store, _path(blend, _PINS)).bytes().to_bytes()
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
        names = [entry["path"] for chunk in obstore.list(self._store, prefix=_FOLDER) for entry in chunk]
        for path in sorted(names):
            blend = Path(path).name.removesuffix(_CONFIG)
            if _is_id(blend):
                yield blend


def open_store(settings: Settings) -> BlendStore:
    """The blends of the lake's warehouse, on local disk or S3; raises LakeMoved for a copied lake."""
    require_place(settings)
    return BlendStore(object_store(settings))


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
