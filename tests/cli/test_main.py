"""The `factory` command as a person meets it: answers, sentences and exit codes."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import dagster as dg
import pytest
from typer.testing import CliRunner, Result

from blender.catalog.blends import open_blends
from blender.records import Source
from factory.cli import error_boundary, main
from factory.cli.selection import select
from factory.errors import ConfigurationError, DamagedFile, LakeLocked, MachineError
from factory.lake.lock import writing
from factory.lake.names import TableName, filtered, raw, rejected
from factory.lake.schemas import FILTERED, RAW, REJECTED
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import document, documents, pack, publish
from tests.terminal import in_columns


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake with ten documents, four of them rejected, that the command works on."""
    lake = Lake(Settings(home=tmp_path))
    monkeypatch.setattr(main, "_settings", lambda: lake.settings)
    documents = [
        {
            "doc_id": f"{number:032x}",
            "source": "book",
            "key": f"page {number}" if number else "page [id].tsx [/]",
            "text": f"text of page {number}",
            "content_hash": f"{number}",
            "n_bytes": 14,
            "media_type": "text/plain",
        }
        for number in range(10)
    ]
    failing = [{"rule": "word_count", "value": 3.0, "threshold": 50.0}]
    verdicts = [
        {"doc_id": row["doc_id"], "kept": number > 3, "rejections": [] if number > 3 else failing}
        for number, row in enumerate(documents)
    ]
    publish(lake, raw("book"), RAW, documents)
    publish(lake, filtered("book"), FILTERED, verdicts)
    return lake


def factory(*arguments: str) -> Result:
    return CliRunner().invoke(main.app, list(arguments))


def process(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "factory.cli.main", *arguments],
        env=os.environ | {"FACTORY_HOME": str(home)} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_tables_lists_what_is_published(lake: Lake) -> None:
    assert "raw.book" in factory("tables").stdout
    listed = json.loads(factory("tables", "--json").stdout)
    assert [(it["table"], it["rows"], it["stage"]) for it in listed] == [
        ("raw.book", 10, "ingest"),
        ("filtered.book", 10, "filters"),
    ]


def test_tables_cuts_no_name_on_a_narrow_screen(lake: Lake) -> None:
    name = TableName.parse("raw.a_dataset_whose_name_is_long")
    publish(lake, name, RAW, [])
    lines = in_columns(60, "tables").stdout.splitlines()
    assert len(lines) == 4  # the header and a line a table
    assert any(str(name) in line for line in lines)


def test_a_sample_is_the_same_for_the_same_seed_and_another_for_another(lake: Lake) -> None:
    first, again = factory("sample", "raw.book", "-n", "3"), factory("sample", "raw.book", "-n", "3")
    assert first.stdout == again.stdout
    assert first.stdout.count("text of page") == 3
    assert factory("sample", "raw.book", "-n", "3", "--seed", "1").stdout != first.stdout


def test_a_sample_of_rejected_documents_shows_their_text_and_reason(lake: Lake) -> None:
    shown = factory("sample", "filtered.book", "--rejected-by", "word_count").stdout
    assert shown.count("word_count = 3 (limit 50)") == 4
    assert shown.count("text of page") == 4
    assert shown.count("key page ") == shown.count("source book") == 4


def test_a_sample_shows_rejected_bytes_as_text_and_escapes_the_rest(lake: Lake) -> None:
    record = {
        "doc_id": "f" * 32,
        "source": "book",
        "key": "bad.py",
        "location": "byte 8",
        "reason": "not_utf8",
    }
    given = {"n_bytes": 999, "sample": b'print("b\xf6se")\x1b[2J\n\tna\xc3\xafve'}
    publish(lake, rejected("book"), REJECTED, [{**record, "detail": "Byte 8 is not UTF-8.", **given}])
    lines = [line.strip("│ ") for line in factory("sample", "raw.book_rejected").stdout.splitlines()]
    assert 'print("b\\xf6se")\\x1b[2J' in lines
    assert "naïve" in lines
    assert "... (first 25 of 999 bytes)" in lines


def test_a_sample_says_how_much_of_a_text_it_shows(lake: Lake) -> None:
    rows = [{**document("a"), "text": "x" * 1_200}, {**document("b"), "text": "y" * 34_567}]
    publish(lake, raw("long"), RAW, [{**row, "path": "p" * 201} for row in rows])
    shown = re.sub(r"[\s│]", "", factory("sample", "raw.long").stdout)  # lines break anywhere
    assert shown.count("x" * 1_200) == shown.count("y" * 1_200) == 1
    assert shown.count("...(first1,200of34,567characters)") == 1
    assert shown.count("...(first200of201characters)") == 2
    assert shown.count("...(first") == 3


def test_a_rule_that_rejected_nothing_is_named_with_those_that_did(lake: Lake) -> None:
    result = factory("sample", "filtered.book", "--rejected-by", "mean_word_length")
    assert result.exit_code == 8
    assert "Rules that did: word_count" in result.stderr


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (("sample", "book"), 2, "namespace.name"),
        (("sample", "row.book"), 2, "Unknown namespace `row`"),
        (("sample", "raw.other"), 5, "factory materialize raw.other"),
        (("sample", "raw.book", "--rejected-by", "word_count"), 2, "Sample filtered.book"),
        (("trace", "document", "nothing"), 8, "`nothing`"),
        (("trace", "batch", "0" * 32, "3"), 8, "no blend"),
    ],
)
def test_a_wrong_name_is_one_sentence_and_its_own_exit_code(
    lake: Lake, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = factory(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_trace_follows_a_rejected_document_to_its_reason(lake: Lake) -> None:
    shown = factory("trace", "document", "page 2").stdout
    assert "rejected by 1 rule(s): word_count is 3 (limit 50)" in " ".join(shown.split())
    (plain,) = json.loads(factory("trace", "document", "page 2", "--json").stdout)
    assert plain["outcome"] == "filtered"


def test_trace_shows_the_literal_key_and_skips_unpublished_tables(lake: Lake) -> None:
    lake.create(raw("half"), RAW)
    result = factory("trace", "document", "page [id].tsx [/]")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "book / page [id].tsx [/]" in result.stdout


def test_a_sample_without_raw_documents_skips_unpublished_tables(lake: Lake) -> None:
    lake.create(raw("half"), RAW)
    verdict = {"doc_id": f"{1:032x}", "kept": True, "rejections": []}
    publish(lake, filtered("other"), FILTERED, [verdict])
    assert "text of page 1" in factory("sample", "filtered.other").stdout


def test_trace_takes_the_name_that_it_prints_and_suggests_near_ones(lake: Lake) -> None:
    for name in ("book / page 2", "book/page 2", "shelf/book/page 2"):
        assert factory("trace", "document", name).stdout.startswith("book / page 2 ")
    result = factory("trace", "document", "book/pgae 2")
    assert (result.exit_code, result.stdout) == (8, "")
    assert "Did you mean `book / page 2`" in result.stderr


def test_trace_names_table_and_file_of_placements_that_were_cut_short(lake: Lake) -> None:
    documents(lake, "book", "ab")
    pack(lake, "book", "ab")
    (file,) = (lake.settings.files.warehouse / "packed" / "book_placements").rglob("*.parquet")
    whole = file.read_bytes()
    for n_bytes in (0, 3, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:n_bytes])
        result = factory("trace", "document", "page a")
        assert (result.exit_code, result.stdout) == (DamagedFile.exit_code, "")
        fact = f"Table packed.book_placements is damaged. File {file} cannot be read as Parquet: "
        assert result.stderr.startswith(fact)
        remedy = "Restore the file, or make the table anew: factory materialize packed.book_placements."
        assert result.stderr.endswith(f". {remedy}\n")


def test_a_damaged_page_index_is_made_again_with_a_warning(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    documents(lake, "book", "ab")
    pack(lake, "book", "ab")
    blend = open_blends(lake.settings).create([Source(table="packed.book", weight=1)]).id
    shown = factory("trace", "batch", blend, "0").stdout
    assert "page a" in shown
    indexes = [it for it in lake.settings.files.page_index.rglob("snapshots/*") if it.suffix != ".facts"]
    for index in indexes:
        index.write_bytes(b"damaged")
    again = factory("trace", "batch", blend, "0")
    assert (again.exit_code, again.stdout) == (0, shown)
    unread = [it for it in indexes if it.read_bytes() == b"damaged"]  # a trace reads no tokens
    assert len(unread) == 1
    for index in set(indexes) - set(unread):
        assert f"Page index {index} is damaged. It is made again from the data files." in caplog.text


def test_clean_drops_what_failed_runs_left(lake: Lake) -> None:
    table = lake.table(raw("book"))
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "failed_abc").commit()  # type: ignore[union-attr]
    assert json.loads(factory("clean").stdout) == {"raw.book": ["failed_abc"]}
    assert "Nothing to drop" in factory("clean").stdout


def test_one_damaged_table_is_a_sentence_of_its_own(lake: Lake) -> None:
    folder = lake.settings.files.warehouse / "filtered" / "book" / "metadata"
    newest = max(folder.glob("*.metadata.json"))
    newest.write_text("{}")
    told = [factory("tables"), factory("tables", "--json"), factory("clean")]
    assert [it.exit_code for it in told] == [DamagedFile.exit_code] * 3
    for it in told:
        assert (newest.name in it.stderr, "factory materialize filtered.book" in it.stderr) == (True, True)
    assert "raw.book" in told[0].stdout
    assert [it["table"] for it in json.loads(told[1].stdout)] == ["raw.book"]
    assert "Nothing to drop" in told[2].stdout
    asked = factory("trace", "document", "page 2")
    assert (asked.exit_code, newest.name in asked.stderr) == (DamagedFile.exit_code, True)


def test_a_document_is_followed_past_a_damaged_table_that_may_not_hold_it(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    lake.create(raw("other"), RAW)
    (metadata,) = (lake.settings.files.warehouse / "raw" / "other").rglob("*.metadata.json")
    metadata.write_text("{}")
    result = factory("trace", "document", "page 2")
    assert (result.exit_code, "rejected by 1 rule(s)" in " ".join(result.stdout.split())) == (0, True)
    assert metadata.name in caplog.text
    assert factory("trace", "document", "nowhere").exit_code == DamagedFile.exit_code


def test_clean_waits_for_no_run(lake: Lake) -> None:
    with writing(lake.settings, "a long run"):
        result = factory("clean")
    assert result.exit_code == LakeLocked.exit_code
    assert "a long run" in result.stderr


def test_an_empty_lake_is_an_empty_table_and_says_how_to_fill_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "_settings", lambda: Settings(home=tmp_path))
    result = factory("tables")
    assert result.exit_code == 0
    assert result.stdout.split() == ["table", "stage", "rows", "MB", "published", "content"]
    assert result.stderr == "No table is published yet. Run the pipeline: factory materialize '*'.\n"
    plain = factory("tables", "--json")
    assert (plain.exit_code, json.loads(plain.stdout), plain.stderr) == (0, [], "")


@pytest.mark.process
def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for command in ("ui", "serve"):
            done = process(tmp_path, command, "--port", port)
            assert done.returncode == MachineError.exit_code, done.stderr
            assert port in done.stderr
            assert "Traceback" not in done.stderr


def test_a_number_that_no_port_has_is_one_sentence(lake: Lake) -> None:
    result = factory("ui", "--port", "99999")
    assert (result.exit_code, result.stdout) == (ConfigurationError.exit_code, "")
    assert result.stderr == "Port 99,999 is out of range. Use 1 to 65,535, or 0 for any.\n"


@pytest.mark.process
def test_a_missing_jvm_is_one_sentence(tmp_path: Path) -> None:
    for java_home in ("", "/nonexistent"):
        for command in (("materialize", "*"), ("demo",)):
            done = process(tmp_path, *command, PATH="/nonexistent", JAVA_HOME=java_home)
            assert done.returncode == MachineError.exit_code
            (line,) = done.stderr.splitlines()
            assert "needs a JVM of version 17 or newer. " in line
    found = process(tmp_path, "doctor", PATH="/nonexistent", JAVA_HOME="")
    assert found.returncode == MachineError.exit_code


@pytest.mark.process
def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = process(tmp_path / "file" / "lake", "materialize", "*")
    assert done.returncode == MachineError.exit_code
    assert "cannot be written (Not a directory). Set FACTORY_HOME" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.process
def test_a_second_run_on_the_lake_is_told_who_holds_it(tmp_path: Path) -> None:
    with writing(Settings(home=tmp_path), "the first run"):
        done = process(tmp_path, "materialize", "*")
    assert done.returncode == LakeLocked.exit_code
    assert "the first run" in done.stderr


@pytest.mark.process
def test_a_selection_of_nothing_lists_the_assets(tmp_path: Path) -> None:
    done = process(tmp_path, "materialize", "raw.nowhere")
    assert done.returncode == ConfigurationError.exit_code
    assert "raw.python_code" in done.stderr


@pytest.mark.process
def test_a_dry_run_says_why_and_makes_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("One note.")
    file, home = tmp_path / "my.yaml", tmp_path / "lake"
    file.write_text("datasets: [{name: notes, kind: prose, format: files, paths: notes}]")
    done = process(home, "materialize", "--dry-run", "raw.*", FACTORY_DATASETS=str(file), PATH="/nonexistent")
    assert (done.returncode, done.stderr) == (0, "")
    line, last = done.stdout.splitlines()
    assert line.split() == ["make", "raw.notes", "because", "it", "is", "new"]
    assert last == "Nothing was run. A run makes 1 table, and keeps 0."
    assert Lake(Settings(home=home)).names() == []


@pytest.mark.process
def test_assets_are_listed_by_dataset(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text("datasets: [{name: notes, kind: prose, format: files, paths: .}]")
    done = process(tmp_path, "assets", "--json", FACTORY_DATASETS=str(file))
    found = {(it["kind"], it["name"]): it["assets"] for it in json.loads(done.stdout)}
    assert list(found) == [("dataset", "notes"), ("dedup group", "prose"), ("models", "")]
    assert found["dataset", "notes"][0] == "raw.notes"
    assert "packed.notes" in found["dataset", "notes"]


def test_init_writes_a_file_that_check_accepts_and_writes_over_none(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("One note.")
    written = factory("init", str(tmp_path))
    assert written.exit_code == 0, written.stderr
    checked = factory("check", str(tmp_path / "datasets.yaml"))
    assert checked.exit_code == 0
    assert checked.stdout.splitlines()[1].split() == ["notes", "prose", "files", "1"]
    assert written.stdout.endswith(checked.stdout)
    (tmp_path / "notes" / "a.md").unlink()
    (tmp_path / "b.txt").touch()
    again, empty = factory("init", str(tmp_path)), factory("check", str(tmp_path / "datasets.yaml"))
    assert (again.exit_code, "exists already" in again.stderr) == (2, True)
    assert (empty.exit_code, "line 12, datasets[0].paths: No file exists" in empty.stderr) == (2, True)


def test_check_without_a_file_says_which_to_name(lake: Lake) -> None:
    assert factory("check").exit_code == 2
    assert "factory init" in factory("check").stderr


def test_a_shell_can_complete_the_commands() -> None:
    asked = {"_FACTORY_COMPLETE": "complete_bash", "COMP_WORDS": "factory mat", "COMP_CWORD": "1"}
    completed = CliRunner().invoke(main.app, [], prog_name="factory", env=asked)
    assert completed.stdout.split() == ["materialize"]


def test_the_version_is_that_of_the_package() -> None:
    assert factory("--version").stdout == f"factory {version('model-factory')}\n"


@pytest.mark.parametrize(
    "given, meant",
    [
        ("raw/web* or raw/books*", 'key:"raw.web"+ or key:"raw.books"+'),
        ("*raw/web and packed/web", '+key:"raw.web" and key:"packed.web"'),
        ("raw/web, raw/books", 'key:"raw.web" or key:"raw.books"'),
        ("raw/web* raw.books+", 'key:"raw.web"+ or key:"raw.books"+1'),
        ("((", 'key:"raw.web"+ or key:"raw.books"+'),
    ],
)
def test_a_selection_that_does_not_parse_is_told_what_to_write(given: str, meant: str) -> None:
    assert dg.AssetSelection.from_string(meant)
    with pytest.raises(ConfigurationError) as caught:
        select(dg.Definitions(), given)
    assert str(caught.value).endswith(f"Write '{meant}'.")


def test_a_selection_that_names_no_asset_is_told_the_nearest() -> None:
    defined = dg.Definitions(assets=[dg.AssetSpec(dg.AssetKey("raw.web"))])
    for given in ("raw.wep", "raw/wep", "raw/webs*"):
        with pytest.raises(ConfigurationError, match=r"Did you mean `raw\.web`"):
            select(defined, given)


@pytest.mark.process
@pytest.mark.parametrize("command", [("ui", "--port", "0"), ("demo",), ("materialize", "*")])
def test_a_wrong_file_of_datasets_is_told_with_its_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "my.yaml").write_text("datasets:\n- {name: a, kind: prose, format: files, pahts: .}\n")
    done = process(tmp_path, *command, FACTORY_DATASETS=str(tmp_path / "my.yaml"))
    assert (done.returncode, done.stdout) == (ConfigurationError.exit_code, "")
    assert done.stderr.splitlines() == [
        "my.yaml, line 2, datasets[0].pahts: Unknown field `pahts`. Did you mean `paths`?",
        "my.yaml, line 2, datasets[0].paths: `paths` is missing. Add it.",
    ]


@pytest.mark.process
def test_weights_that_no_blend_takes_are_told_before_the_line_runs(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    dataset = "{name: notes, kind: prose, format: files, paths: .}"
    file.write_text(f"datasets: [{dataset}]\nblend: {{weights: {{notes: {10**20}}}}}\n")
    ended = process(tmp_path / "lake", "demo", FACTORY_DATASETS=str(file))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.endswith("rows a step. Use at most 1,048,576.\n")


@pytest.mark.process
def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    done = process(tmp_path, "tables", FACTORY_INSTALLATION_SHARE="7")
    assert done.returncode == ConfigurationError.exit_code
    assert "FACTORY_INSTALLATION_SHARE" in done.stderr


def test_a_full_disk_is_recognised_in_whoever_says_it() -> None:
    for said in ("java.io.IOException: No space left on device", "database or disk is full"):
        known = error_boundary.translate(RuntimeError(f"raw.x: {said}"))
        assert isinstance(known, MachineError)
        assert "The disk is full" in str(known)


def test_a_refused_access_names_what_was_refused_and_claims_no_more() -> None:
    read = error_boundary.translate(PermissionError(13, "Permission denied", "/data/web.jsonl"))
    assert str(read).startswith("Access was refused: Permission denied (/data/web.jsonl). ")
    nameless = error_boundary.translate(PermissionError(1, "Operation not permitted"))
    assert str(nameless).startswith("Access was refused: Operation not permitted. ")
    assert isinstance(nameless, MachineError)


def test_an_error_nobody_foresaw_is_not_hidden() -> None:
    assert error_boundary.translate(KeyError("surprise")) is None


def test_blends_lists_what_there_is(lake: Lake) -> None:
    assert "No blend yet" in factory("blends").stdout
    pack(lake, "book", "a")
    source = Source(table="packed.book", weight=1, columns=("n_tokens",))
    made = open_blends(lake.settings).create([source])
    assert made.id in in_columns(50, "blends").stdout


def test_blends_shows_which_blend_another_updates_and_from_which_step(lake: Lake) -> None:
    pack(lake, "book", "a", "b", "c", "d")
    blends = open_blends(lake.settings)
    first = blends.create([Source(table="packed.book", weight=1, columns=("n_tokens",))])
    second = blends.update(first.id, 1, {"packed.book": 2})
    third = blends.update(second.id, 2, {"packed.book": 1})
    lines = in_columns(120, "blends").stdout.splitlines()
    after = {
        line.split()[0]: following.split() for line, following in zip(lines, [*lines[1:], ""], strict=True)
    }
    assert after[second.id] == ["updates", first.id, "from", "step", "1", "on"]
    assert after[third.id] == ["updates", second.id, "from", "step", "2", "on"]
    assert factory("blends", third.id).stdout.splitlines()[-2:] == [
        f"Before step 2 it equals blend {second.id}.",
        f"Before step 1 it equals blend {first.id}.",
    ]
    assert "Before step" not in factory("blends", first.id).stdout
