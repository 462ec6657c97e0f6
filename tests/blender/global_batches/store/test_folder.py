"""Objects in a folder: durable before they are seen, whole, and refused in one sentence."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from io import BufferedWriter
from pathlib import Path

import pytest

from blender.global_batches.log.operations import Creation
from blender.global_batches.store.folder import Folder
from factory.errors import ConfigurationError, FactoryError, MachineError, error_from_text

ROOT = Path(__file__).parents[3]
DRAFTS = ".drafts"


class Syncs:
    """The files and folders that were synced, each with whether `watched` had its name by then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, watched: Path) -> None:
        self.paths: list[tuple[Path, bool]] = []
        fsync = os.fsync

        def recorder(descriptor: int) -> None:
            path = Path(f"/proc/self/fd/{descriptor}").readlink()
            self.paths.append((path, watched.exists()))
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", recorder)


@pytest.mark.invariant(
    "A file is fsynced before its name becomes visible. A store that lets two processes create one name, "
    "or hides a created one, is refused."
)
@pytest.mark.parametrize("operation", ["create", "put"])
def test_an_object_is_synced_before_it_has_its_name_and_the_name_before_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    root = tmp_path / "new" / "run"
    name = root / "log" / "1"
    syncs = Syncs(monkeypatch, name)
    getattr(Folder(root), operation)("log/1", b"body")
    unnamed = [path for path, named in syncs.paths if not named]
    assert [path for path, named in syncs.paths if named] == [name.parent]
    assert sum(path.parent == root / DRAFTS for path in unnamed) == 1
    assert {root, root.parent, tmp_path} <= set(unnamed)  # the names of `log`, `run` and `new`


@pytest.mark.parametrize("operation", ["create", "put"])
def test_a_second_object_costs_two_syncs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    folder = Folder(tmp_path)
    folder.put("log/1", b"first")
    syncs = Syncs(monkeypatch, tmp_path / "log" / "2")
    getattr(folder, operation)("log/2", b"second")
    assert [path.parent.name for path, _ in syncs.paths] == [DRAFTS, tmp_path.name]


def test_a_reader_syncs_the_name_that_another_process_may_not_have_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "1").write_bytes(b"of a killed process")
    syncs = Syncs(monkeypatch, tmp_path)
    assert Folder(tmp_path).get("log/1") == b"of a killed process"
    assert [path for path, _ in syncs.paths] == [tmp_path / "log"]
    assert Folder(tmp_path).get("log/2") is None
    assert len(syncs.paths) == 1
    bodies = Folder(tmp_path).get_all(["log/1", "log/2", "log/1"])
    assert bodies == [b"of a killed process", None, b"of a killed process"]
    assert len(syncs.paths) == 2


def test_a_writer_syncs_folders_that_another_process_may_not_have_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "run"
    (root / "log").mkdir(parents=True)
    syncs = Syncs(monkeypatch, root / "log" / "1")
    Folder(root).create("log/1", b"body")
    assert {root, tmp_path} <= {path for path, named in syncs.paths if not named}


def test_a_create_keeps_what_has_the_name(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.create("log/1", b"first") is Creation.STORED
    assert folder.create("log/1", b"second") is Creation.TAKEN
    assert folder.get("log/1") == b"first"
    folder.put("log/1", b"third")
    assert folder.get("log/1") == b"third"
    assert list((tmp_path / DRAFTS).iterdir()) == []


WRITER = """
import os, sys, time
from pathlib import Path
from blender.global_batches.store.folder import Folder
def stuck(descriptor):
    if Path(os.readlink(f"/proc/self/fd/{descriptor}")).parent.name == ".drafts":
        print("stuck", flush=True)
        time.sleep(600)
os.fsync = stuck
Folder(Path(sys.argv[1])).put("log/1", b"body")
"""


def test_the_draft_of_a_killed_writer_is_no_name_and_is_cleared_once_it_is_dead(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "stuck\n"
    (draft,) = (tmp_path / DRAFTS).iterdir()
    Folder(tmp_path).put("log/2", b"body")
    assert draft.exists()  # its writer lives
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert draft.exists()
    assert Folder(tmp_path).list("") == ["log/2"]
    Folder(tmp_path).put("log/3", b"body")
    assert not draft.exists()


def test_a_draft_that_was_cleared_before_it_was_locked_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock
    cleared = []

    def late_flock(file: BufferedWriter, how: int) -> None:
        if not cleared:
            cleared.append(Path(file.name))
            Path(file.name).unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late_flock)
    assert Folder(tmp_path).create("log/1", b"body") is Creation.STORED
    assert cleared[0].parent == tmp_path / DRAFTS


def test_a_list_holds_the_names_below_a_prefix_alone(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.list("log/") == []
    for name in ("log/1", "log/12", "logs/1", "batches/a/1/0-x", "batches/b/1/0-y", "namespace.json"):
        folder.create(name, b"")
    (tmp_path / ".DS_Store").touch()
    assert sorted(folder.list("log/")) == ["log/1", "log/12"]
    assert folder.list("log/12") == ["log/12"]
    assert sorted(folder.list("batches/")) == ["batches/a/1/0-x", "batches/b/1/0-y"]
    assert len(folder.list("")) == 6


def test_a_namespace_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "run")
    folder.create("log/1", b"")
    shutil.rmtree(tmp_path / "run")
    assert folder.get("log/1") is None
    folder.delete(["log/1"])
    with pytest.raises(Exception, match="No such file"):
        folder.create("log/1", b"again")
    assert folder.create("log/1", b"again") is Creation.STORED


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    for action in (
        lambda folder: folder.get("log/1"),
        lambda folder: folder.create("log/1", b""),
        lambda folder: folder.list("log/"),
    ):
        with pytest.raises(
            ConfigurationError, match=r"run does not serve \(Not a directory: .*\)\. Give the"
        ):
            action(Folder(tmp_path / "run"))


UNSHARE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec"]
ATTEMPT = """
import os, sys
from pathlib import Path
from blender.global_batches.store.folder import Folder
from factory.errors import FactoryError
folder = Folder(Path(sys.argv[1]))
for action in (folder.create, folder.put):
    try:
        action("log/2", bytes(100_000))
    except FactoryError as error:
        print(f"{type(error).__module__}.{type(error).__qualname__}: {error}")
print(folder.get("log/1"), folder.list(""), os.listdir(Path(sys.argv[1], ".drafts")))
"""


def may_mount() -> bool:
    """Whether this user may mount in a namespace of its own."""
    try:
        return subprocess.run([*UNSHARE, "mount -t tmpfs none /mnt"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def refusals_below(mount: str, folder: Path) -> tuple[list[FactoryError | None], str]:
    """The errors of a create and a put on a mount over a folder, and what the folder holds after them."""
    script = f'{mount}; exec "$1" -c "$2" "$0"'
    output = subprocess.run(
        [*UNSHARE, script, folder, sys.executable, ATTEMPT],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        check=True,
    ).stdout.splitlines()
    return [error_from_text(line) for line in output[:-1]], output[-1]


@pytest.mark.skipif(not may_mount(), reason="this user may not mount")
def test_a_full_disk_is_one_sentence_and_leaves_no_draft(tmp_path: Path) -> None:
    mount = 'mount -t tmpfs -o size=64k none "$0"; mkdir "$0/log"; echo -n kept > "$0/log/1"'
    errors, content = refusals_below(mount, tmp_path)
    assert [type(error) for error in errors] == [MachineError, MachineError]
    assert str(errors[0]) == f"The disk of {tmp_path} is full. Free some room, then start again."
    assert content == "b'kept' ['log/1'] []"


@pytest.mark.skipif(not may_mount(), reason="this user may not mount")
def test_a_folder_that_may_not_be_written_is_read_and_one_sentence(tmp_path: Path) -> None:
    Folder(tmp_path).create("log/1", b"kept")
    mount = 'mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"'
    errors, content = refusals_below(mount, tmp_path)
    assert [type(error) for error in errors] == [MachineError, MachineError]
    assert "Read-only file system" in str(errors[0])
    assert content == "b'kept' ['log/1'] []"
