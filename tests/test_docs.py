"""The pages for readers name only files, tests, commands and settings that exist; their Python is Python."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.main import get_command

from blender.errors import EndOfData
from factory import errors
from factory.cli.main import app
from factory.lake.lineage import Lineage
from factory.lake.names import STAGE_OF_NAMESPACE
from factory.lake.schemas.packing import N_TOKENS, TOKENIZER_ID, VOCABULARY_SIZE
from factory.settings import Settings
from tests.invariants import PAGE, invariants
from tests.invariants import page as invariants_page

ROOT = Path(__file__).parents[1]
FRAMEWORKS = {"accelerate", "torchdata", "transformers"}  # tests/test_frameworks.py runs their programs
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
IDS = [page.relative_to(ROOT).as_posix() for page in PAGES]
every_page = pytest.mark.parametrize("page", PAGES, ids=IDS)

LOGGER = re.compile(r'getLogger\("([\w.]+)"\)')
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"[\w.-]*(?:/[\w.-]+)*\.(?:py|pyi|rs|toml|txt|md|proto|yaml|svg|sh)")
KIND = re.compile(r"\*(?:Tutorial|Guide|Reference|Concept) for [^*:]+: [^*]+\.\*")
MOST_LINES = {"README.md": 140, "ARCHITECTURE.md": 340}
SETTINGS = {f"FACTORY_{name.upper()}": field for name, field in Settings.model_fields.items()}


def fenced(page: Path, language: str | None = None) -> list[str]:
    """The code blocks of a page, all or those of a language."""
    return [body for of, body in FENCE.findall(page.read_text()) if language in (None, of)]


def spans(page: Path) -> list[str]:
    """The inline code of a page."""
    return re.findall(r"`([^`\n]+)`", FENCE.sub("", page.read_text()))


def commands(page: Path, name: str) -> Iterator[list[str]]:
    """The words after `name` wherever code calls it."""
    for code in (*spans(page), *"\n".join(fenced(page)).splitlines()):
        for call in re.findall(rf"(?:^|[\s/;&|$]){name}((?: [\w./'*=-]+)+)", f" {code.split('#')[0]}"):
            yield call.split()


def anchors(page: Path) -> set[str]:
    """The fragments that the headings of a page make."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def section(page: Path, heading: str) -> str:
    """The text below a heading, up to the next one of its level."""
    return page.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]


@every_page
def test_every_page_says_its_kind_and_its_readers(page: Path) -> None:
    title, kind, _ = page.read_text().split("\n\n", 2)
    assert title.startswith("# ")
    assert KIND.fullmatch(kind), "Begin with a line such as `*Guide for operators: remake tables.*`."


@pytest.mark.parametrize("name", MOST_LINES)
def test_the_first_pages_of_a_reader_stay_short(name: str) -> None:
    assert len((ROOT / name).read_text().splitlines()) <= MOST_LINES[name]


def test_the_newest_version_of_the_changelog_is_the_version_of_the_package() -> None:
    newest, *_ = re.findall(
        r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert newest == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


@every_page
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text())):
        if target.startswith("https://"):
            continue
        path, _, fragment = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        assert not fragment or fragment in anchors(file), target


@every_page
def test_every_file_and_folder_named_exists(page: Path) -> None:
    for span in spans(page):
        for word in span.split():
            path = word.split("::")[0]
            if FILE.fullmatch(path) or re.fullmatch(r"(?:[\w.-]+/)+", path):
                assert (ROOT / path).exists() or (page.parent / path).exists(), path


@every_page
def test_every_test_named_exists(page: Path) -> None:
    for span in spans(page):
        path, _, name = span.partition("::")
        if name:
            keyword = "fn" if path.endswith(".rs") else "def"
            assert re.search(rf"^ *{keyword} {name}\(", (ROOT / path).read_text(), re.MULTILINE), span


@every_page
def test_every_module_and_property_named_exists(page: Path) -> None:
    of_rows = (TOKENIZER_ID, VOCABULARY_SIZE, N_TOKENS)
    properties = [*Lineage(asset="", run_id="", code_version="").to_properties(), *of_rows]
    loggers = {name for path in (ROOT / "blender").rglob("*.py") for name in LOGGER.findall(path.read_text())}
    for span in spans(page):
        if re.fullmatch(r"(?:factory|blender|spark_udfs|assets|jobs)(?:\.[\w-]+)+", span):
            path = ROOT / span.replace(".", "/")
            files = (path, path.with_suffix(".py"), path.with_suffix(".pyi"))
            assert span in properties or span in loggers or any(file.exists() for file in files), span


@every_page
def test_every_make_target_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in commands(page, "make"):
        assert {word for word in words if "=" not in word} <= targets, words


@every_page
def test_every_command_of_factory_named_exists(page: Path) -> None:
    known = get_command(app).commands  # type: ignore[attr-defined]
    for first, *rest in commands(page, "factory"):
        assert first in known or first in ("--install-completion", "--version"), first
        if rest and hasattr(known.get(first), "commands"):
            assert rest[0] in known[first].commands, rest[0]


@every_page
def test_every_variable_named_is_a_setting(page: Path) -> None:
    assert set(re.findall(r"\bFACTORY_[A-Z0-9_]+", page.read_text())) <= set(SETTINGS)


def test_every_setting_is_in_the_table_as_the_code_has_it() -> None:
    rows = [
        f"| `{name}` | {f'`{field.default}`' if field.default is not None else ''} | {field.description} |"
        for name, field in SETTINGS.items()
    ]
    table = section(ROOT / "docs" / "operation.md", "Settings").splitlines()
    assert [line for line in table if "`FACTORY_" in line] == rows


@every_page
def test_every_block_of_python_compiles_and_imports_what_there_is(page: Path) -> None:
    for block in fenced(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] not in FRAMEWORKS:
                module = importlib.import_module(str(node.module))
                for alias in node.names:
                    assert hasattr(module, alias.name), ast.unparse(node)


def test_the_folders_are_listed_in_the_order_of_the_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [name for line in contracts[0]["layers"] for name in line.split(" | ")]
    listed = section(ROOT / "ARCHITECTURE.md", "Folders, in import order").split("Outside the list")[0]
    rows = "\n".join(line.split("|")[1] for line in listed.splitlines() if line.startswith("|"))
    assert re.findall(r"`([^`]+)`", rows) == layers


def test_every_namespace_has_its_tables_listed() -> None:
    listed = section(ROOT / "ARCHITECTURE.md", "Tables")
    for namespace in STAGE_OF_NAMESPACE:
        assert f"`{namespace}`" in listed or f"| `{namespace}.<" in listed, namespace


def test_every_exit_code_is_listed_with_its_class() -> None:
    listed = section(ROOT / "docs" / "ci.md", "Exit codes")
    base = errors.FactoryError
    found = [var for var in vars(errors).values() if isinstance(var, type) and issubclass(var, base)]
    classes: list[type[errors.FactoryError]] = sorted([*found, EndOfData], key=lambda it: it.exit_code)
    expected = [f"| {error.exit_code} | `{error.__name__}` |" for error in classes]
    assert re.findall(r"^(\| \d+ \| `\w+` \|)", listed, re.MULTILINE) == expected


def test_the_page_of_invariants_lists_the_marks_of_the_tests() -> None:
    assert PAGE.read_text() == invariants_page(), "Run `python -m tests.invariants > docs/invariants.md`."


def test_every_invariant_of_the_architecture_is_held_by_a_test() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    paragraphs = re.findall(
        r"^(?:- )?\*\*Invariant\.\*\* (.*?)(?=\n\n|\n- |\Z)", text, re.DOTALL | re.MULTILINE
    )
    named = {" ".join(paragraph.split()) for paragraph in paragraphs}
    assert len(named) == text.count("**Invariant.**") > 20
    assert named <= {*invariants()}


def test_pictures_of_the_ui_are_those_that_its_test_takes() -> None:
    shown = {name for page in PAGES for name in re.findall(r"img/(ui-[\w-]+\.png)", page.read_text())}
    ui = (ROOT / "tests" / "ui" / "test_dagster_ui.py").read_text()
    assert shown == set(re.findall(r'pictures / "([\w-]+\.png)"', ui))


def test_pictures_are_small_and_whole() -> None:
    pictures = sorted((ROOT / "docs" / "img").glob("*.svg"))
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size < 200_000
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")
