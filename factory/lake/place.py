"""The place of an embedded lake, checked before anything of the lake is read or written.

Iceberg's metadata holds absolute paths, so a copied or moved lake would read and write its original. The lake
therefore records where it was made. Another home, such as a copy, can reach the same warehouse if it is in an
object store or if FACTORY_WAREHOUSE names it, so the warehouse holds a claim: the one home that may use it. A
home with its warehouse inside needs no claim to use it, since both are copied and moved together.

    FACTORY_HOME/lake.json    {"lake": "7f3c...", "warehouse": "file:///data/.factory/warehouse"}
    WAREHOUSE/claim.json      {"lake": "7f3c...", "machine": "alpha", "home": "/data/.factory"}

Both are written when a lake is made; an older lake gets them at its next run. Places are compared as folders,
not as text: a link or a bind mount at the recorded path leads to the same lake. A lake on servers has neither
file, because its catalog is shared by all homes.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import obstore
import psutil
from obstore.exceptions import AlreadyExistsError, BaseError
from pydantic import ValidationError

from factory.atomic_file import write_atomically
from factory.errors import DamagedFile, LakeMoved, first_line
from factory.frozen_model import FrozenModel
from factory.lake.files.location import local_path
from factory.lake.lost_catalog import require_catalog_file
from factory.lake.servers import unusable
from factory.lake.store import object_store
from factory.settings import Settings

CLAIM = "claim.json"  # name of the claim in the warehouse
_LOCATIONS = "select metadata_location from iceberg_tables where metadata_location is not null"


class LakeRecord(FrozenModel):
    """The identity of a lake and the location of its warehouse, as its metadata spells it."""

    lake: str
    warehouse: str


class WarehouseClaim(FrozenModel):
    """The one home that may use a warehouse."""

    lake: str
    machine: str
    home: str


Record = TypeVar("Record", LakeRecord, WarehouseClaim)


def require_place(settings: Settings) -> None:
    """Raise LakeMoved unless an embedded lake is where it was made and its home may use its warehouse.

    Reads the record, the claim of a warehouse outside the home, and the catalog of a lake without a record.
    A lake that is still to be made passes, unless its warehouse belongs to another home. Raises DamagedFile
    for an unreadable record and for a lake that has lost its catalog, MachineError or ConfigurationError if
    the object store does not serve.
    """
    if not settings.embedded:
        return
    record = read_record(settings)
    for location in _elsewhere(settings, record):
        raise LakeMoved(
            f"The lake in {settings.home} was copied or moved: its warehouse is "
            f"{settings.warehouse_uri}, and its metadata holds paths to {location}. Rewrite these paths "
            "with `factory relocate`, or set FACTORY_HOME and FACTORY_WAREHOUSE to where it was made."
        )
    if is_outside(settings) and require_claim(settings, record) is None and record is not None:
        raise LakeMoved(
            f"The warehouse {settings.warehouse_uri} has lost its {CLAIM}, which names the one home that "
            f"may use it. If no copy of {settings.home} does, write it again: `factory relocate --take`."
        )
    require_catalog_file(settings)


def require_claim(settings: Settings, record: LakeRecord | None) -> WarehouseClaim | None:
    """The claim of a warehouse outside the home, if any; raises LakeMoved if another home may use it."""
    if not is_outside(settings):
        return None
    claim = read_claim(settings)
    if claim is not None and not is_ours(claim, record, settings):
        raise LakeMoved(
            f"The warehouse {settings.warehouse_uri} belongs to the lake in {claim.home} on "
            f"{claim.machine}, not to the one in {settings.home} on {machine_of(settings.home)}. Work from "
            "that home, or hand the warehouse to this one, which shuts that one out: "
            "`factory relocate --take`."
        )
    return claim


def record_place(settings: Settings) -> None:
    """Write the missing records of an embedded lake; the caller holds its lock or makes it.

    Raises the errors of `require_place`, and writes nothing then.
    """
    require_place(settings)
    if not settings.embedded:
        return
    record = read_record(settings)
    lake = record.lake if record else uuid.uuid4().hex
    claim = read_claim(settings)
    if claim is None and not _put_claim(settings, lake, mode="create"):
        require_place(settings)  # another process was faster: of this home, or of another one
        claim = read_claim(settings)
    if claim is not None and is_ours(claim, record, settings):
        lake = claim.lake
    elif claim is not None:
        require_claim(settings, record)  # another home may have been faster
        # A claim inside the home is a copy, in a copy of a home that is restored at the same path.
        take_claim(settings, lake)
    if record is None:
        write_record(settings, lake)


def _elsewhere(settings: Settings, record: LakeRecord | None) -> Iterator[str]:
    """Yield the locations on record that differ from the settings."""
    if record is not None:
        if not _same_folder(record.warehouse, settings.warehouse_uri):
            yield record.warehouse
        return
    for location in metadata_locations(settings):
        if not is_below(location, settings.warehouse_uri):
            yield location


def write_record(settings: Settings, lake: str) -> None:
    """Record that the lake is at the place that the settings name."""
    record = LakeRecord(lake=lake, warehouse=settings.warehouse_uri)
    write_atomically(settings.files.lake_record, record.model_dump_json(indent=2) + "\n")


def take_claim(settings: Settings, lake: str) -> None:
    """Make the home of the settings the one that may use the warehouse."""
    _put_claim(settings, lake, mode="overwrite")


def read_record(settings: Settings) -> LakeRecord | None:
    """Return the record of a lake, None for a new lake and for one from before records."""
    file = settings.files.lake_record
    try:
        return _parsed(LakeRecord, file.read_bytes(), str(file))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError as error:
        raise _is_folder(file) from error


def read_claim(settings: Settings) -> WarehouseClaim | None:
    """Return the claim in the warehouse, None if there is none."""
    folder = local_path(settings.warehouse_uri)
    try:
        if folder is not None:  # a store would create the folder
            content = Path(folder, CLAIM).read_bytes()
        else:
            content = obstore.get(object_store(settings), CLAIM).bytes().to_bytes()
    except FileNotFoundError:
        return None
    except IsADirectoryError as error:
        raise _is_folder(Path(folder or "", CLAIM)) from error
    except BaseError as error:
        raise unusable(error, settings) from error
    return _parsed(WarehouseClaim, content, f"{settings.warehouse_uri}/{CLAIM}")


def is_outside(settings: Settings) -> bool:
    """Whether the warehouse is outside the home, so that another home may name it too."""
    folder = local_path(settings.warehouse_uri)
    return folder is None or not Path(folder).is_relative_to(settings.home)


def machine_of(home: Path) -> str:
    """Return the name of the machine that stores a home: this one, or the file server it is mounted from.

    Trainers on many machines may mount one home at one path: it is still one home.
    """
    mounts = {mount.mountpoint: mount.device for mount in psutil.disk_partitions(all=True)}
    return file_server(home.resolve(), mounts) or socket.gethostname()


def file_server(folder: Path, mounts: Mapping[str, str]) -> str | None:
    """Return the device that a folder is mounted from, by devices of mount points, if it is on a server.

    NFS, Ceph, Lustre and SSH name `server:/path`, SMB `//server/path`.
    """
    point = next((str(parent) for parent in (folder, *folder.parents) if str(parent) in mounts), None)
    device = mounts[point] if point is not None else ""
    return device if ":/" in device or device.startswith("//") else None


def metadata_locations(settings: Settings) -> Sequence[str]:
    """Return the metadata files that the embedded catalog names; none if the catalog is missing or damaged.

    `open_catalog` reports the damage.
    """
    database = settings.files.catalog_database
    if not database.exists():
        return ()
    address = f"file:{quote(str(database))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, timeout=60, uri=True)) as connection:
            return [location for (location,) in connection.execute(_LOCATIONS)]
    except sqlite3.Error:
        return ()


def is_below(location: str, warehouse: str) -> bool:
    """Whether a file's location is inside a warehouse, as the location spells it or by way of a link."""
    file, folder = local_path(location), local_path(warehouse)
    if file is None or folder is None:
        return location.startswith(f"{warehouse.rstrip('/')}/")
    return any(_same_folder(str(parent), folder) for parent in Path(file).parents)


def _same_folder(location: str, other: str) -> bool:
    """Whether two locations are one folder, perhaps through links and mounts."""
    one_folder, other_folder = local_path(location), local_path(other)
    if one_folder is None or other_folder is None:
        return location.rstrip("/") == other.rstrip("/")
    if os.path.normpath(one_folder) == os.path.normpath(other_folder):
        return True
    try:
        return Path(one_folder).samefile(other_folder)
    except OSError:  # the recorded place is not on this machine
        return False


def is_ours(claim: WarehouseClaim, record: LakeRecord | None, settings: Settings) -> bool:
    """Whether a claim names this home; a home without a record may be a new one in place of a deleted one."""
    if record is not None and record.lake != claim.lake:
        return False
    return claim.machine == machine_of(settings.home) and _same_folder(claim.home, str(settings.home))


def _put_claim(settings: Settings, lake: str, mode: str) -> bool:
    """Write a claim for this home; return False if `mode` is `create` and there is one."""
    claim = WarehouseClaim(lake=lake, machine=machine_of(settings.home), home=str(settings.home))
    content = claim.model_dump_json(indent=2).encode() + b"\n"
    try:
        obstore.put(object_store(settings), CLAIM, content, mode=mode)  # type: ignore[arg-type]
    except AlreadyExistsError:
        # A retried put may meet its own first attempt, whose answer was lost.
        return read_claim(settings) == claim
    except (BaseError, FileNotFoundError) as error:  # the second where the bucket is missing
        raise unusable(error, settings) from error
    return True


def _is_folder(file: Path) -> DamagedFile:
    return DamagedFile(
        f"{file}, which says where the lake was made, is a folder. Restore the file of that name from a copy."
    )


def _parsed(kind: type[Record], content: bytes, name: str) -> Record:
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        raise DamagedFile(
            f"The file {name}, which says where the lake was made, cannot be read "
            f"({first_line(error)}). Restore the file from a copy."
        ) from error
