"""A warehouse that cannot be written: one sentence with the folder and the reason, in process and by gRPC."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import event

from blender.catalog.blends import Blends
from blender.catalog.namespaces import register_namespace
from blender.catalog.refusals import naming_folder
from blender.catalog.tags import tag
from blender.errors import StoreUnavailable
from blender.records import Source
from blender.trainer.client import BlenderClient
from blender.wire.status import to_status
from factory.errors import MachineError
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.blender.lakes import CODE, current_snapshot, store_settings, tags
from tests.ports import free_ports

SOURCES = [Source(CODE, 2)]


def refuse_objects(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every write of an object fail as obstore's does, for root too."""
    reason = os.strerror(number)

    def fail(store: object, path: str, *content: object, **options: object) -> None:
        raise GenericError(
            f"Generic LocalFileSystem error: Unable to open file /lake/{path}#1: {reason} (os error {number})"
            '\n\nDebug source:\nGeneric {\n    store: "LocalFileSystem",\n}'
        )

    monkeypatch.setattr(obstore, "put", fail)


@pytest.mark.parametrize(
    "number, sentence",
    [
        (errno.EACCES, r"\(Permission denied\)\. Grant yourself access"),
        (errno.EROFS, r"\(Read-only file system\)\. Grant yourself access"),
        (errno.ENOSPC, r"\(No space left on device\)\. Free space on its disk"),
    ],
)
def test_a_client_is_told_the_folder_that_a_server_cannot_write(
    number: int, sentence: str, lake: Settings, client: BlenderClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    blend = client.create(SOURCES).id
    refuse_objects(number, monkeypatch)
    calls: list[Callable[[], object]] = [
        lambda: client.retire(blend),
        lambda: client.create(SOURCES, seed=8),
        lambda: client.update(blend, 3, {CODE: 1}),
    ]
    for call in calls:
        with pytest.raises(
            MachineError, match=f"{lake.files.warehouse}/blends cannot be written {sentence}"
        ) as raised:
            call()
        assert type(raised.value) is MachineError
        assert "\n" not in str(raised.value)
        assert to_status(raised.value)[0].name == "FAILED_PRECONDITION"
    assert [record.id for record in client.list()] == [blend]
    assert len(tags(lake)) == 1  # those of the refused blend are gone


def test_a_file_in_place_of_the_folder_is_named(lake: Settings, blends: Blends) -> None:
    (lake.files.warehouse / "blends").write_text("in the way")
    with pytest.raises(MachineError, match=r"/blends cannot be (written|read) \(Not a directory\)"):
        blends.create(SOURCES)


@pytest.mark.parametrize(
    "error",
    [
        OSError(
            errno.ENOSPC, "[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device"
        ),
        OSError(errno.EROFS, "Read-only file system"),
        PermissionError("Cannot create file, access denied: file:///lake/x.metadata.json"),
    ],
)
def test_a_metadata_folder_that_refuses_a_tag_is_named(
    error: OSError, lake: Settings, blends: Blends, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(SqlCatalog, "_write_metadata", fail)
    folder = lake.files.warehouse / "packed" / "code" / "metadata"
    reason = os.strerror(error.errno or errno.EACCES)
    with pytest.raises(MachineError, match=rf"^The folder {folder} cannot be written \({reason}\)\. "):
        blends.create(SOURCES)
    assert blends.list() == []


def test_a_catalog_that_refuses_a_tag_is_named(lake: Settings, blends: Blends) -> None:
    catalog = Lake(lake).catalog
    assert isinstance(catalog, SqlCatalog)

    def make_read_only(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute("PRAGMA query_only = 1")

    event.listen(catalog.engine, "checkout", make_read_only)
    reading_lake = Lake(lake)
    reading_lake.catalog = catalog
    with pytest.raises(MachineError, match=f"The database {lake.files.catalog_database} cannot be used "):
        tag(reading_lake, TableName.parse(CODE), {"blend_0": current_snapshot(lake)})


def test_a_namespace_that_cannot_be_registered_names_its_folder(
    lake: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_objects(errno.EACCES, monkeypatch)
    with pytest.raises(MachineError, match=r"/batches cannot be written \(Permission denied\)"):
        register_namespace(lake, "0" * 32, lake.home / "batches", "1" * 32)


def test_errors_with_a_meaning_and_those_of_a_catalog_server_pass_through(lake: Settings) -> None:
    folder = lake.warehouse_uri
    for error in (FileNotFoundError("gone"), AlreadyExistsError("there"), OSError("connection refused")):
        with pytest.raises(type(error)) as raised, naming_folder(lake, folder):
            raise error
        assert raised.value is error


def test_a_store_that_is_away_can_be_asked_again(tmp_path: Path) -> None:
    settings = store_settings(tmp_path, free_ports(1)[0])
    naming = naming_folder(settings, f"{settings.warehouse_uri}/blends")
    with pytest.raises(StoreUnavailable, match="does not serve") as raised, naming:
        raise GenericError("Generic S3 error: error sending request")
    assert to_status(raised.value)[0].name == "UNAVAILABLE"
