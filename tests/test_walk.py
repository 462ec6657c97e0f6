"""A stranger's walk: from a folder of their own files to a fetched batch, by what the pages say.

The commands and files are taken from the pages as they stand, and run in one shell in the order of the pages:
`docs/your-data.md` whole, then the README's on the lake that is there by then, with its datasets in place of
the demo's. A command that differs from one that ran only in the variables before it has run already.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sysconfig
from contextlib import suppress
from pathlib import Path

import pytest

from factory.orchestration.chain.refine import tokenizer
from factory.orchestration.datasets.assets import corpus
from factory.orchestration.datasets.file import DatasetsFile
from factory.orchestration.host.definitions import definitions
from factory.settings import Settings
from tests.ports import free_ports

ROOT = Path(__file__).parents[1]
WALK, README = ROOT / "docs" / "your-data.md", ROOT / "README.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(factory (?:sample|diff|trace|blends|tables)(?: [^`\s]+)+)`")
OF_THE_DEMO = {"python_code": "code", "python_prose": "notes"}  # datasets of the README, and the walk's
PATIENCE_S = 1_200  # a minute and a half where nothing else runs
CLONING = "git clone <address of this repository> model-factory && cd model-factory"

SHELL = """
set -e
make() { command make -o setup "$@"; }  # what setup does was done before the tests
serve() {
    make serve &
    while kill -0 $!; do (: > /dev/tcp/127.0.0.1/$PORT) 2>/dev/null && return; sleep 0.2; done
    exit 1
}
"""


def write_data(folder: Path) -> None:
    """Notes of many lengths, one copied, one short; files of repositories: good, alike, generated, broken."""
    from pydoc_data.topics import topics

    words = re.findall(r"\S+", " ".join(topics[name] for name in sorted(topics)))
    texts = {f"n{n:02}": " ".join(words[200 * n : 200 * n + 100 + 5 * n]) for n in range(40)}
    texts |= {"copy": texts["n39"], "short": "Too short."}
    (folder / "notes").mkdir(parents=True)
    for name, text in texts.items():
        (folder / "notes" / f"{name}.md").write_text(f"{text}\n")
    standard = Path(sysconfig.get_path("stdlib"))
    files = {
        "cpython": ["stringprep.py", "encodings/cp1252.py", "encodings/cp1254.py", "encodings/cp1250.py"],
        "email": ["email/charset.py", "email/errors.py", "email/message.py", "email/utils.py"],
    }
    files["cpython"] += [f"json/{name}.py" for name in ("__init__", "decoder", "encoder", "scanner", "tool")]
    for repository, names in files.items():
        for name in names:
            target = folder / "checkouts" / repository / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(standard / name, target)
    broken = folder / "checkouts" / "cpython" / "test" / "tokenizedata" / "badsyntax_pep3120.py"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b'print("b\xf6se")\n')


def fenced(page: Path, language: str) -> list[str]:
    return [body for of, body in FENCE.findall(page.read_text()) if of == language]


def commands(page: Path) -> list[str]:
    """Every command of a page in its order: lines of shell blocks, lines behind `$ `, and inline ones."""
    found: list[str] = []
    for match in re.finditer(rf"{FENCE.pattern}|{INLINE.pattern}", page.read_text(), FENCE.flags):
        language, body, inline = match.groups()
        if inline:
            found.append(inline)
        elif language == "sh":
            found += [line.split("#")[0].strip() for line in body.splitlines()]
        else:
            found += [line[2:] for line in body.splitlines() if line.startswith("$ ")]
    return [it for line in found for it in line.split("; echo ")[:1] if it]


def of_the_walk(text: str) -> str:
    """The README's words with the walk's datasets for the demo's."""
    for theirs, ours in OF_THE_DEMO.items():
        text = text.replace(theirs, ours)
    return text


def script(port: int) -> tuple[list[str], str]:
    """The commands that are run, each once, and the shell script that runs them."""
    (readme_blend,) = re.findall(r"factory trace batch (\w{32})", README.read_text())
    lines, ran = [], dict[str, None]()
    for page in (WALK, README):
        for command in commands(page):
            command = of_the_walk(command.replace(f"{CLONING}", "")).strip()
            bare = re.sub(r"^(?:[A-Z_]+=\S+ )+", "", command)
            if not bare or bare in ran:
                continue
            ran[bare] = None
            lines.append(f"printf '\\n@@@ %s\\n' {_quoted(bare)}")
            lines.append("serve" if command == "make serve" else command.replace(readme_blend, "$BLEND"))
            if command == "factory init my-data":
                lines.append("cp page.yaml my-data/datasets.yaml")
            if command == "python fetch.py":
                lines.append("python fetch.py > again; cat again; BLEND=$(sed -n 's/^blend //p' again)")
                lines.append("python readme.py")
    return list(ran), SHELL + "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the commands find what they find in a clone, and the stranger's data."""
    folder = tmp_path_factory.mktemp("walk") / "clone"
    folder.mkdir()
    for name in ("Makefile", ".venv", "native"):
        (folder / name).symlink_to(ROOT / name)
    write_data(folder / "my-data")
    return folder


@pytest.fixture(scope="module")
def port() -> int:
    (port,) = free_ports(1)
    return port


@pytest.fixture(scope="module")
def outputs(clone: Path, port: int) -> dict[str, str]:
    """What every command of the pages printed."""
    (clone / "page.yaml").write_text(fenced(WALK, "yaml")[0])
    for name, page in (("fetch.py", WALK), ("readme.py", README)):
        (text,) = [it for it in fenced(page, "python") if "BlenderClient(" in it]
        (clone / name).write_text(of_the_walk(text).replace("50051", str(port)))
    ran, text = script(port)
    environment = os.environ | {
        "FACTORY_CACHE": str(Settings().cache),
        "FACTORY_SPARK_MASTER": "local[2]",
        "FACTORY_SPARK_DRIVER_MEMORY": "2g",
        "FACTORY_SPARK_SHUFFLE_PARTITIONS": "1",
        "PORT": str(port),
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


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(PATIENCE_S + 30)
def test_the_pages_lead_from_a_folder_to_a_batch(outputs: dict[str, str]) -> None:
    assert "repositories" in outputs["factory init my-data"]
    assert re.search(r"^ notes .* 42  long", outputs["factory check my-data/datasets.yaml"], re.MULTILINE)
    assert "1,000 steps" in outputs["make demo"]
    dry = outputs["factory materialize --changed --dry-run '*'"]
    assert re.search(r"^make  raw\.notes +because sources are read every time$", dry, re.MULTILINE)
    made = outputs["factory materialize --changed notes"]
    assert re.search(r"^made  filtered\.notes .* because its configuration changed$", made, re.MULTILINE)
    assert re.search(r"^kept  models\.tokenizer .* although deduplicated\.notes changed", made, re.MULTILINE)
    assert "Rows in and out" in made
    assert "bad record" in outputs["factory trace document test/tokenizedata/badsyntax_pep3120.py"]
    assert "served first at step" in outputs["factory trace document json/decoder.py"]
    assert "code_letters is" in outputs["factory trace document stringprep.py"]
    assert "not_utf8" in outputs["factory sample raw.code_rejected -n 5"]
    assert "short.md" in outputs["factory sample filtered.notes --rejected-by word_count -n 5"]
    for compared in ("factory diff filtered.notes filtered.notes__long", "factory diff filtered.notes"):
        assert re.search(r"^[1-9]\d* leave \(", outputs[compared], re.MULTILINE)
        assert "word_count" in outputs[compared]
    fetched = re.findall(r"^(\d+) (\d+) \((\d+), \d+\) \[[ 01]+\]$", outputs["python fetch.py"], re.MULTILINE)
    assert [tuple(map(int, it)) for it in fetched[:2]] == [(40, 41, 4), (41, 42, 4)]
    assert fetched[2:4] == fetched[:2]  # the same again


def test_the_example_at_the_root_declares_datasets() -> None:
    found = corpus(ROOT / "datasets.yaml")
    assert found.datasets == ("pages", "pages__long", "platform")
    definitions(found.assets, Settings())


def test_the_files_on_the_pages_declare_datasets(clone: Path) -> None:
    for page in (WALK, README):
        for text in fenced(page, "yaml"):
            (clone / "my-data" / "page.yaml").write_text(text)
            found = corpus(clone / "my-data" / "page.yaml")
            assert {"notes", "code"} <= set(found.datasets)


def test_the_module_on_the_page_declares_assets(tmp_path: Path) -> None:
    (text,) = [it for it in fenced(WALK, "python") if "ASSETS = " in it]
    (tmp_path / "notes.py").write_text(text)
    spec = importlib.util.spec_from_file_location("notes", tmp_path / "notes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    definitions([*module.ASSETS, tokenizer("tokenizer", ["notes"])], Settings(home=tmp_path))


def test_every_field_of_the_file_is_on_the_page() -> None:
    page = WALK.read_text()
    formats = DatasetsFile.model_json_schema()["$defs"]
    for model in formats.values():
        for field in model.get("properties", {}):
            assert f"`{field}`" in page or f"`{field}:" in page or f"{field}:" in page, field
    for field in DatasetsFile.model_fields:
        assert f"`{field}`" in page, field
