"""A stranger's walk: from a folder of their own files to a batch, its text and an export, by the pages.

The commands and files are taken from the pages as they stand, and run in one shell in the order of the pages:
`docs/your-data.md` whole, then the README's on the lake that is there by then, with its datasets in place of
the demo's, then `docs/platform.md`. A command that differs from one that ran only in the variables before it
has run already.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import zstandard

from factory.errors import ConfigurationError
from factory.orchestration.chain.models.tokenizer import tokenizer
from factory.orchestration.datasets.assets import corpus
from factory.orchestration.datasets.file import datasets_file
from factory.orchestration.host.definitions import definitions
from factory.settings import Settings
from tests.pages import commands, fenced, is_shown
from tests.ports import free_ports
from tests.walk_data import write_data

ROOT = Path(__file__).parents[1]
WALK, FIELDS, README = ROOT / "docs" / "your-data.md", ROOT / "docs" / "datasets.md", ROOT / "README.md"
PLATFORM = ROOT / "docs" / "platform.md"
OF_THE_DEMO = {"python_code": "code", "python_prose": "notes"}  # datasets of the README, and the walk's
PATIENCE_S = 1_200  # two minutes where nothing else runs
CLONING = "git clone <address of this repository> model-factory && cd model-factory"

PORTS = {"50052": "SECOND_PORT", "9464": "METRICS_PORT"}  # of the pages, and those that are free

SHELL = """
set -e
make() { command make -o setup "$@"; }  # what setup does was done before the tests
run_server() {  # LOG SENTENCE COMMAND...
    log=$1 sentence=$2; shift 2
    : > $log
    "$@" > $log 2>&1 &
    while kill -0 $! && ! grep -q "$sentence" $log; do sleep 0.2; done
    cat $log
}
ui() {
    run_server ui.log "The UI is at" factory ui --port $UI_PORT
    python look.py http://127.0.0.1:$UI_PORT > seen.json
    kill $!; wait $!
}
serve() { run_server serve.log "Ctrl-C or SIGTERM" make serve; }  # with PORT
"""
LOOK = """
import json, sys, urllib.request
asked = {"query": "{assetNodes {assetKey {path} assetMaterializations(limit: 1) {runId}}}"}
header = {"Content-Type": "application/json"}
request = urllib.request.Request(f"{sys.argv[1]}/graphql", json.dumps(asked).encode(), header)
page = urllib.request.urlopen(f"{sys.argv[1]}/assets/raw.notes").read().decode()
nodes = json.load(urllib.request.urlopen(request))["data"]["assetNodes"]
made = [it["assetKey"]["path"][0] for it in nodes if it["assetMaterializations"]]
print(json.dumps({"page": page, "made": made}))
"""


def of_the_walk(text: str) -> str:
    """The README's words with the walk's datasets for the demo's."""
    for theirs, ours in OF_THE_DEMO.items():
        text = text.replace(theirs, ours)
    return text


def _in_a_shell(text: str) -> str:
    """A command of a page as the shell of the test runs it: with ports of its own, and without a terminal."""
    for port, variable in PORTS.items():
        text = text.replace(port, f"${variable}")
    if text.endswith(" &"):
        return f'run_server second.log "Ctrl-C or SIGTERM" {text.removesuffix(" &")}'
    return {"factory serve": "serve", "factory ui": "ui"}.get(text, text)


def script() -> tuple[list[str], str]:
    """The commands that are run, each once, and the shell script that runs them."""
    (readme_blend,) = re.findall(r"factory trace batch (\w{32})", README.read_text())
    lines, ran = [], dict[str, None]()

    def run(text: str, bare: str) -> None:
        ran[bare] = None
        lines.append(f"printf '\\n@@@ %s\\n' {shlex.quote(bare)}")
        lines.append(_in_a_shell(text))

    for page in (WALK, README, PLATFORM):
        for command in commands(page):
            text = of_the_walk(command.text.replace(CLONING, "").replace(readme_blend, "$BLEND")).strip()
            bare = re.sub(r"^(?:[A-Z_]+=[^$ ]+ )+", "", text)
            if bare and bare not in ran:
                run(text, bare)
            if bare == "factory init my-data":
                lines.append("cp page.yaml my-data/datasets.yaml")
            if bare == "factory serve":
                run("python readme.py", "python readme.py")
    return list(ran), SHELL + "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the commands find what they find in a clone, and the stranger's data."""
    folder = tmp_path_factory.mktemp("walk") / "clone"
    folder.mkdir()
    for name in ("Makefile", ".venv", "constraints.txt", "native"):
        (folder / name).symlink_to(ROOT / name)
    write_data(folder / "my-data")
    return folder


@pytest.fixture(scope="module")
def outputs(clone: Path) -> dict[str, str]:
    """What every command of the pages printed."""
    port, ui_port, second_port, metrics_port = free_ports(4)
    for name, text in zip(("page.yaml", "blend.yaml"), fenced(WALK, "yaml"), strict=True):
        (clone / name).write_text(text)
    for name, page in (("batches.py", WALK), ("readme.py", README)):
        (text,) = [block for block in fenced(page, "python") if "BlenderClient(" in block]
        (clone / name).write_text(of_the_walk(text).replace("50051", str(port)))
    (clone / "look.py").write_text(LOOK)
    ran, text = script()
    environment = os.environ | {
        "FACTORY_CACHE": str(Settings().cache),
        "FACTORY_SPARK_MASTER": "local[2]",
        "FACTORY_SPARK_DRIVER_MEMORY": "2g",
        "FACTORY_SPARK_SHUFFLE_PARTITIONS": "1",
        "PORT": str(port),
        "UI_PORT": str(ui_port),
        "SECOND_PORT": str(second_port),
        "METRICS_PORT": str(metrics_port),
        "COLUMNS": "160",
    }
    for name in ("FACTORY_HOME", "FACTORY_DATASETS"):
        environment.pop(name, None)
    with (clone / "said").open("wb") as said:
        shell = subprocess.Popen(
            ["bash", "-c", text],
            cwd=clone,
            env=environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        status = shell.wait(timeout=PATIENCE_S)
    finally:
        with suppress(ProcessLookupError):  # it came to no server
            os.killpg(shell.pid, signal.SIGTERM)
    all_of_it = (clone / "said").read_text()
    assert status == 0, all_of_it[-4000:]
    parts = re.split(r"^@@@ (.*)\n", all_of_it, flags=re.MULTILINE)[1:]
    found = dict(zip(parts[::2], parts[1::2], strict=True))
    assert list(found) == ran
    return found


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(PATIENCE_S + 30)
def test_the_pages_lead_from_a_folder_to_a_batch_and_an_export(outputs: dict[str, str], clone: Path) -> None:
    for command in (*commands(WALK), *commands(PLATFORM)):
        said = outputs[command.text]
        assert not command.shown or is_shown(command.shown, said), f"{command.text} printed\n{said}"
    assert "1,000 steps" in outputs["make demo"]
    assert "bad record" in outputs["factory trace document test/tokenizedata/badsyntax_pep3120.py"]
    assert "code_letters is" in outputs["factory trace document stringprep.py"]
    assert re.search(r"^500 501 \(8, 2048\) \[[01 ]+\]\n\[ +0 ", outputs["python readme.py"], re.MULTILINE)
    seen = json.loads((clone / "seen.json").read_text())
    assert ">Dagster</title>" in seen["page"]
    assert {"raw.notes", "packed.code"} <= set(seen["made"])


@pytest.mark.slow
def test_decoded_rows_are_parts_of_the_files(outputs: dict[str, str], clone: Path) -> None:
    texts = [
        file.read_text() for file in (clone / "my-data").rglob("*.*") if b"\xf6" not in file.read_bytes()
    ]
    (batches,) = [command for command in commands(WALK) if command.text.startswith("python batches.py")]
    for said, n_rows in ((outputs[batches.text], 8), (batches.shown, 4)):
        rows = [ast.literal_eval(line) for line in said.splitlines() if line.startswith(("'", '"'))]
        assert len(rows) == n_rows
        for row in rows:
            assert any(row in text for text in texts), row


@pytest.mark.slow
def test_exports_have_the_documents_of_the_last_tables(outputs: dict[str, str], clone: Path) -> None:
    lines = zstandard.open(clone / "notes.jsonl.zst", "rt").read().splitlines()
    texts = {row["key"]: row["text"] for row in map(json.loads, lines)}
    assert texts
    for key, text in texts.items():
        assert text == (clone / "my-data" / "notes" / key).read_text()
    decisions = pq.read_table(clone / "notes.parquet", columns=["key", "reason"]).to_pylist()
    reasons = {row["key"]: row["reason"] for row in decisions}
    assert len(reasons) == 42
    assert (reasons["short.md"], reasons["n03.md"]) == ("filtered", "filtered")
    assert sorted([reasons["copy.md"], reasons["n39.md"]]) == ["exact_copy", "kept"]


def test_the_example_at_the_root_declares_datasets() -> None:
    found = corpus(ROOT / "datasets.yaml")
    assert found.datasets == ("pages", "pages__long", "platform")
    definitions(found.assets, Settings())


def test_the_files_on_the_pages_declare_datasets(clone: Path) -> None:
    for page in (WALK, README):
        text = fenced(page, "yaml")[0]
        (clone / "my-data" / "page.yaml").write_text(text)
        found = corpus(clone / "my-data" / "page.yaml")
        assert {"notes", "code"} <= set(found.datasets)


def test_the_mistake_on_the_page_is_answered_as_it_says(clone: Path) -> None:
    (clone / "datasets.yaml").write_text(fenced(WALK, "yaml")[0].replace("include", "inclde", 1))
    with pytest.raises(ConfigurationError) as raised:
        corpus(clone / "datasets.yaml")
    assert str(raised.value).splitlines()[-1].strip() in [block.strip() for block in fenced(WALK, "")]


def test_the_module_on_the_page_declares_assets(tmp_path: Path) -> None:
    (text,) = [block for block in fenced(FIELDS, "python") if "ASSETS = " in block]
    (tmp_path / "notes.py").write_text(text)
    spec = importlib.util.spec_from_file_location("notes", tmp_path / "notes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    definitions([*module.ASSETS, tokenizer("tokenizer", ["notes"])], Settings(home=tmp_path))


def test_every_field_of_the_file_is_on_the_page() -> None:
    page = FIELDS.read_text()
    formats = datasets_file().model_json_schema()["$defs"]
    for model in formats.values():
        for field in model.get("properties", {}):
            assert f"`{field}`" in page or f"`{field}:" in page or f"{field}:" in page, field
    for field in datasets_file().model_fields:
        assert f"`{field}`" in page, field
