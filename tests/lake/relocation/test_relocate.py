"""A relocated copy holds what its original held, never touches it, and survives a kill at any instant."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.avro.file import AvroFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.typedef import Record

from blender.catalog.blends import open_blends
from blender.records import Source
from factory.errors import ConfigurationError, DamagedFile, LakeLocked, LakeMoved, NotFound
from factory.lake.files.location import local_path, location
from factory.lake.files.registered import filled
from factory.lake.fingerprint import fingerprint
from factory.lake.identity import content_hash
from factory.lake.lineage import Lineage
from factory.lake.lock import writing
from factory.lake.names import TableName, raw, registered
from factory.lake.place import read_claim, read_record, require_place
from factory.lake.registration import register
from factory.lake.relocation import relocate as relocate_module
from factory.lake.relocation.moves import Move, warehouse_of
from factory.lake.schemas.ingest import RAW, TEXT_AT
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.blender.equality_deletes import delete_equal, delete_positions
from tests.blender.lakes import CODE, PROSE, append_rows, load_table, make_lake, packed_rows, write_table
from tests.cli.command import factory
from tests.explain.lakes import document
from tests.lake.files.places import place
from tests.lake.relocation.lakes import (
    contents,
    copy_of,
    files,
    make_history,
    relocated,
    relocation,
    replace_rows,
    served,
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A lake with a history, which no test changes; blanks and letters of all kinds are in its path."""
    return make_history(tmp_path_factory.mktemp("lakes") / "die große %Seen lake" / ".factory")


@pytest.fixture(scope="module")
def original_contents(original: Settings) -> dict[str, object]:
    return contents(original)


@pytest.fixture
def copy(original: Settings, tmp_path: Path) -> Settings:
    return copy_of(original, tmp_path / "a copy")


@pytest.mark.invariant(
    "A relocated copy holds every snapshot, reference and blend of its original, and never touches it. "
    "Killed at any instant, a relocation leaves a lake that is refused or whole, and running it again "
    "completes it."
)
def test_a_relocated_copy_holds_every_snapshot_reference_and_blend(
    original: Settings, original_contents: dict[str, object], copy: Settings
) -> None:
    batches = served(original)
    before = files(original.home)
    result = relocated(copy)
    assert ([str(name) for name in result.tables], result.rows) == ([CODE, PROSE], 20)
    away = original.home.rename(original.home.with_name("away"))
    try:
        assert contents(copy) == original_contents
        assert served(copy) == batches
        replace_rows(copy, 5)
        append_rows(copy, PROSE, 12, 13)
        open_blends(copy).create([Source(CODE, weight=1)], seed=9)
        assert Lake(copy).published(TableName.parse(CODE)).rows == 5
    finally:
        away.rename(original.home)
    assert files(original.home) == before


def test_no_file_of_a_relocated_copy_names_the_original(original: Settings, copy: Settings) -> None:
    relocated(copy)
    place = str(original.home).encode()
    for file in copy.home.rglob("*"):
        if file.is_file():
            assert place not in file.read_bytes(), file
            if file.suffix == ".avro":
                with AvroFile[Record](PyArrowFileIO().new_input(str(file))) as reader:
                    assert not any(str(original.home) in str(record) for record in reader), file
    assert not list(copy.home.glob("relocation.json"))


def test_only_paths_and_lengths_change_in_manifests(original: Settings, copy: Settings) -> None:
    relocated(copy)
    move = Move((original.warehouse_uri,), copy.warehouse_uri)
    n_files = 0
    for file in original.files.warehouse.rglob("*.avro"):
        old_header, old = read(str(file))
        new_header, new = read(move.renamed(f"file://{file}").removeprefix("file://"))
        assert new_header == old_header
        for before, after in zip(old, new, strict=True):
            assert plain(after) == plain(before, move)
        n_files += 1
    assert n_files > 8


def read(path: str) -> tuple[dict[str, str], list[Record]]:
    with AvroFile[Record](PyArrowFileIO().new_input(path)) as reader:
        return reader.header.meta, list(reader)


def plain(value: Any, move: Move | None = None) -> Any:
    """A record as plain values; without a manifest's length, which follows its compressed paths."""
    if isinstance(value, Record):
        values = [plain(value[index], move) for index in range(len(value))]
        is_manifest = values and isinstance(values[0], str) and values[0].endswith(".avro")
        return [values[0], *values[2:]] if is_manifest else values
    if isinstance(value, str) and move is not None:
        return move.renamed(value) if value.endswith(".avro") else move.moved(value)
    return dict(value.items()) if hasattr(value, "items") else value


def test_a_manifest_has_the_length_that_its_list_says(copy: Settings) -> None:
    relocated(copy)
    for name in (CODE, PROSE):
        table = load_table(copy, name)
        for snapshot in table.snapshots():
            for manifest in snapshot.manifests(table.io):
                path = Path(manifest.manifest_path.removeprefix("file://"))
                assert path.stat().st_size == manifest.manifest_length


@pytest.fixture(scope="module")
def undisturbed(original: Settings, tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, list[str]]:
    """A copy that was relocated without a disturbance, and the lines that this executed."""
    copy = copy_of(original, tmp_path_factory.mktemp("undisturbed") / "copy")
    done = relocation(copy)
    assert done.returncode == 0, done.stderr
    return copy, done.stderr.splitlines()


@pytest.mark.invariant(
    "A relocated copy holds every snapshot, reference and blend of its original, and never touches it. "
    "Killed at any instant, a relocation leaves a lake that is refused or whole, and running it again "
    "completes it."
)
@pytest.mark.process
@pytest.mark.timeout(1_800)
def test_a_relocation_killed_at_any_instant_is_completed_by_the_next(
    original: Settings,
    original_contents: dict[str, object],
    undisturbed: tuple[Settings, list[str]],
    kill_points: int,
    kill_seed: int,
) -> None:
    copy, executed = undisturbed
    before, expected = files(original.home), tree(copy)
    for instant in instants(executed, kill_points, random.Random(kill_seed)):
        copy_of(original, copy.home)
        assert relocation(copy, str(instant)).returncode == -signal.SIGKILL
        state = "refused"
        with suppress(LakeMoved):
            require_place(copy)
            state = "open"
            assert contents(copy) == original_contents
        print(f"killed at {executed[instant - 1]}, line {instant:,} of {len(executed):,}: {state}")
        relocated(copy)
        assert tree(copy) == expected
        assert contents(copy) == original_contents
        assert files(original.home) == before


def instants(executed: list[str], n: int, chance: random.Random) -> list[int]:
    """Every second instant is at any line of any step, the others at lines after the verification."""
    verified = max(number for number, line in enumerate(executed) if line.startswith("verification.py"))
    parts = [range(len(executed)), range(verified + 1, len(executed))]
    chosen = []
    for number in range(n):
        part = parts[number % 2]
        line = chance.choice(list(dict.fromkeys(executed[instant] for instant in part)))
        chosen.append(chance.choice([instant for instant in part if executed[instant] == line]) + 1)
    return chosen


def tree(lake: Settings) -> dict[str, str]:
    """The files of a relocated lake with their content, except the catalog's, which is compared by table."""
    left_out = ("catalog.db", "writing.lock", "making.lock")
    return {name: digest for name, (digest, _) in files(lake.home).items() if name not in left_out}


@pytest.mark.process
def test_a_copy_killed_before_the_switch_is_whole_at_the_place_of_its_original(
    original: Settings,
    original_contents: dict[str, object],
    undisturbed: tuple[Settings, list[str]],
    tmp_path: Path,
) -> None:
    executed = undisturbed[1]
    verified = max(number for number, line in enumerate(executed, 1) if line.startswith("verification.py"))
    copy = copy_of(original, tmp_path / "copy")
    assert relocation(copy, str(verified)).returncode == -signal.SIGKILL
    away = original.home.rename(original.home.with_name("away"))
    try:
        copy.home.rename(original.home)
        assert contents(original) == original_contents
    finally:
        shutil.rmtree(original.home, ignore_errors=True)
        away.rename(original.home)


def test_a_moved_lake_is_relocated_without_its_original(
    original: Settings, original_contents: dict[str, object], tmp_path: Path
) -> None:
    lake = copy_of(original, tmp_path / "first")
    relocated(lake)
    record = read_record(lake)
    lake.home.rename(tmp_path / "second")
    moved = Settings(home=tmp_path / "second")
    relocated(moved)
    after = read_record(moved)
    assert record is not None
    assert after is not None
    assert (after.lake, after.warehouse) == (record.lake, moved.warehouse_uri)
    assert contents(moved) == original_contents


def test_a_lake_at_its_place_is_left_as_it_is(copy: Settings, original_contents: dict[str, object]) -> None:
    relocated(copy)
    before = files(copy.files.warehouse)
    result = relocated(copy)
    assert (result.tables, result.files) == ([], 0)
    assert files(copy.files.warehouse) == before
    assert contents(copy) == original_contents


def test_a_copy_of_an_older_lake_is_relocated_and_gets_an_id(
    copy: Settings, original_contents: dict[str, object]
) -> None:
    copy.files.lake_record.unlink()
    (copy.files.warehouse / "claim.json").unlink()
    relocated(copy)
    record, claim = read_record(copy), read_claim(copy)
    assert record is not None
    assert claim is not None
    assert claim.lake == record.lake
    assert contents(copy) == original_contents


@pytest.mark.parametrize("harm", ["missing", "short", "manifest"])
def test_an_incomplete_copy_is_named_and_stays_as_it_was(copy: Settings, harm: str) -> None:
    folder = copy.files.warehouse / "packed" / "code"
    (victim, *_) = sorted(folder.rglob("*-m0.avro" if harm == "manifest" else "*.parquet"))
    if harm == "short":
        victim.write_bytes(victim.read_bytes()[:-1])
    else:
        victim.unlink()
    before = files(copy.files.warehouse)
    with pytest.raises(DamagedFile, match="was not relocated and is as it was") as refused:
        relocated(copy)
    assert victim.name in str(refused.value)
    assert files(copy.files.warehouse) == before
    with pytest.raises(LakeMoved):
        require_place(copy)


def test_rows_with_another_fingerprint_than_the_one_on_record_are_refused(
    original: Settings, tmp_path: Path
) -> None:
    lake = copy_of(original, tmp_path / "first")
    relocated(lake)
    write_table(lake, CODE, packed_rows("code", 3), snapshot_properties={"factory.content": f"{1:032x}-3"})
    with pytest.raises(DamagedFile, match=f"Table {CODE} has content"):
        relocated(copy_of(lake, tmp_path / "second"))


def test_a_lake_that_a_run_writes_is_not_relocated(original: Settings, tmp_path: Path) -> None:
    lake = copy_of(original, tmp_path / "lake")
    relocated(lake)
    with writing(lake, "a test"), pytest.raises(LakeLocked):
        relocated(lake)


def test_a_home_without_a_lake_and_a_lake_on_servers_are_refused(tmp_path: Path) -> None:
    for take in (False, True):
        with pytest.raises(NotFound, match="There is no lake in"):
            relocated(Settings(home=tmp_path), take=take)
    servers = Settings(home=tmp_path, catalog="postgres", catalog_uri="postgresql://h/d", warehouse="/w")
    with pytest.raises(ConfigurationError, match="on a server"):
        relocated(servers)


@pytest.mark.parametrize("by", ["position", "value"])
def test_a_table_with_files_of_deleted_rows_is_refused_by_name(tmp_path: Path, by: str) -> None:
    lake = make_lake(tmp_path / "lake", code=4)
    table, path = load_table(lake, CODE), lake.files.warehouse / "deletes.parquet"
    if by == "value":
        delete_equal(table, "ordinal", pa.array([1, 2], pa.int64()), path)
    else:
        delete_positions(table, table.inspect.files()["file_path"][0].as_py(), [1], path)
    with pytest.raises(ConfigurationError, match=f"Table {CODE} has a file of deleted rows"):
        relocated(copy_of(lake, tmp_path / "copy"))


@pytest.mark.parametrize("there", [True, False])
def test_registered_files_stay_where_they_are(tmp_path: Path, there: bool) -> None:
    lake, file = Settings(home=tmp_path / "lake"), tmp_path / "mine.parquet"
    texts = pa.table({"text": ["one", "two", "three"]})
    pq.write_table(texts, file)
    lineage = Lineage("registered.web", "run", "1")
    register(Lake(lake), registered("web"), [location(str(file))], texts.schema, lineage)
    hashes = [content_hash(text) for text in texts["text"].to_pylist()]
    places = [{"doc_id": str(row), "text": None, "text_at": place(file, row, "text")} for row in range(3)]
    rows = [
        document("a") | located | {"content_hash": digest}
        for located, digest in zip(places, hashes, strict=True)
    ]
    schema = replace(RAW, columns=RAW.columns.append(TEXT_AT))
    stored = pa.Table.from_pylist(rows, schema=schema.columns)
    content = str(fingerprint(filled(stored).to_batches(), RAW.fingerprinted))
    table = Lake(lake).create(raw("web"), schema)
    table.append(stored, snapshot_properties={"factory.content": content})
    copy = copy_of(lake, tmp_path / "copy")
    if not there:
        file.rename(tmp_path / "elsewhere.parquet")
    result = relocated(copy)
    missing = [] if there else [f"The rows of raw.web were not compared. The file {file}, whose rows are"]
    unknown = "The rows of registered.web were not compared, because it has no fingerprint on record."
    for caveat, beginning in zip(result.caveats, [*missing, unknown], strict=True):
        assert caveat.startswith(beginning)
    if not there:
        (tmp_path / "elsewhere.parquet").rename(file)
    shutil.rmtree(lake.home)
    assert result.rows == (3 if there else 0)
    assert Lake(copy).read(raw("web"))["text"].to_pylist() == ["one", "two", "three"]
    assert Lake(copy).read(registered("web"))["text"].to_pylist() == ["one", "two", "three"]


def test_compressed_metadata_is_rewritten_compressed(
    copy: Settings, original_contents: dict[str, object]
) -> None:
    with sqlite3.connect(copy.files.catalog_database) as catalog:
        ((old,),) = catalog.execute("select metadata_location from iceberg_tables where table_name = 'code'")
        new = old.replace(".metadata.json", ".gz.metadata.json")
        catalog.execute("update iceberg_tables set metadata_location = ? where table_name = 'code'", (new,))
    move = Move((warehouse_of(old) or "",), copy.warehouse_uri)
    plain_file, packed_file = (Path(local_path(move.moved(file)) or "") for file in (old, new))
    packed_file.write_bytes(gzip.compress(plain_file.read_bytes()))
    relocated(copy)
    assert contents(copy) == original_contents


def test_a_home_takes_the_warehouse_that_it_shares_with_its_original(tmp_path: Path) -> None:
    first = Settings(home=tmp_path / "first", warehouse=str(tmp_path / "warehouse"))
    write_table(first, CODE, packed_rows("code", 4))
    second = copy_of(first, tmp_path / "second")
    with pytest.raises(LakeMoved, match="factory relocate --take"):
        relocated(second)
    assert relocated(second, take=True).taken_from.startswith(f"{first.home} on ")
    assert Lake(second).names()
    with pytest.raises(LakeMoved):
        Lake(first).names()


def test_a_new_home_takes_the_warehouse_of_a_lost_one(tmp_path: Path) -> None:
    lost = Settings(home=tmp_path / "lost", warehouse=str(tmp_path / "warehouse"))
    write_table(lost, CODE, packed_rows("code", 4))
    new = lost.model_copy(update={"home": tmp_path / "new"})
    with pytest.raises(LakeMoved):
        Lake(new).names()
    relocated(new, take=True)
    for _ in range(2):
        assert Lake(new).names() == []
    record, claim = read_record(new), read_claim(new)
    assert record is not None
    assert claim is not None
    assert claim.lake == record.lake


def test_a_home_and_its_warehouse_elsewhere_are_copied_together(tmp_path: Path) -> None:
    first = Settings(home=tmp_path / "first", warehouse=str(tmp_path / "warehouse"))
    write_table(first, CODE, packed_rows("code", 4))
    expected = contents(first)
    second = copy_of(first, tmp_path / "second").model_copy(update={"warehouse": str(tmp_path / "tables")})
    shutil.copytree(tmp_path / "warehouse", tmp_path / "tables")
    before = files(first.home), files(tmp_path / "warehouse")
    relocated(second, take=True)
    assert contents(second) == contents(first) == expected
    assert (files(first.home), files(tmp_path / "warehouse")) == before


def test_a_live_source_is_served_on_after_its_snapshot_has_expired(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", live=10)
    blend = open_blends(lake).create([Source("packed.live", weight=4, live=True)]).id
    append_rows(lake, "packed.live", 10, 20)
    before = open_blends(lake).open(blend).step(4).to_pylist()  # records the files of this snapshot
    append_rows(lake, "packed.live", 20, 30)
    table = load_table(lake, "packed.live")
    kept = {ref.snapshot_id for ref in table.refs().values()}
    ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
    expired = [snapshot_id for snapshot_id in ids if snapshot_id not in kept]
    table.maintenance.expire_snapshots().by_ids(expired).commit()
    copy = copy_of(lake, tmp_path / "copy")
    relocated(copy)
    shutil.rmtree(lake.home)
    opened = open_blends(copy).open(blend)
    assert opened.step(4).to_pylist() == before
    assert opened.step(6).num_rows == 4


def test_the_command_reports_what_it_did(
    copy: Settings, original: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from factory.settings import settings

    monkeypatch.setenv("FACTORY_HOME", str(copy.home))
    settings.cache_clear()
    try:
        answer = factory("relocate")
    finally:
        settings.cache_clear()
    assert answer.exit_code == 0, answer.stderr
    assert "of 2 tables and read 20 rows" in answer.stdout
    assert f"The lake in {copy.home} is at its place." in answer.stdout
    assert json.loads(copy.files.lake_record.read_text())["warehouse"] == copy.warehouse_uri


def killed_before_the_switch(copy: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relocate up to the transaction: the journal is there, and the catalog names the old files."""

    def killed(settings: Settings) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(relocate_module, "_catalog", in_turn(relocate_module._catalog, killed))
        with pytest.raises(KeyboardInterrupt):
            relocated(copy)
    assert copy.files.relocation.exists()


def in_turn(first: Callable[[Settings], Any], then: Callable[[Settings], Any]) -> Callable[[Settings], Any]:
    """A function that calls `first` once and `then` afterwards."""
    calls = iter([first])
    return lambda settings: next(calls, then)(settings)


@pytest.mark.parametrize("back_by", ["link", "move"])
def test_a_lake_that_goes_back_before_the_switch_loses_no_file(
    original: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back_by: str
) -> None:
    place, elsewhere = tmp_path / "place", tmp_path / "elsewhere"
    shutil.copytree(original.home, place, symlinks=True)
    here = original.model_copy(update={"home": place})
    relocated(here)
    before = contents(here)
    place.rename(elsewhere)
    there = original.model_copy(update={"home": elsewhere})
    killed_before_the_switch(there, monkeypatch)
    if back_by == "link":
        place.symlink_to(elsewhere)
        relocated(there)
    else:
        elsewhere.rename(place)
        relocated(here)
    assert contents(here) == before


def test_a_lake_made_below_its_new_place_is_refused(original: Settings, tmp_path: Path) -> None:
    copy = copy_of(original, tmp_path / "copy")
    above = copy.model_copy(update={"warehouse": str(original.home.parent)})
    with pytest.raises(ConfigurationError, match=r"made in .*, which is inside .* beside the original"):
        relocated(above, take=True)
