"""Rules of the tree that the import linter cannot see."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from factory.home import HomeFiles

ROOT = Path(__file__).parents[1]
PACKAGES = ("factory", "spark_udfs", "assets", "jobs", "blender")
NATIVE_USERS = (
    "factory/lake",
    "factory/orchestration/asset/code_version.py",
    "factory/filters",
    "factory/dedup",
    "factory/packing",
    "spark_udfs",
    "blender",
    "factory/cli/doctor.py",
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
FRAMEWORKS = ("dagster", "pyspark", "grpc")


def sources() -> list[Path]:
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return [path for path in paths if "proto" not in path.parts]


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


every_source = pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))


@every_source
def test_a_file_knows_one_framework(path: Path) -> None:
    known = {it for it in FRAMEWORKS for name in imports(path) if name.split(".")[0].startswith(it)}
    joins = path.is_relative_to(ROOT / "factory" / "orchestration")  # alone joins Dagster and Spark
    assert len(known) <= 1 or joins


@every_source
def test_only_the_lower_floors_call_native_code(path: Path) -> None:
    if "factory._native" in imports(path):
        assert path.relative_to(ROOT).as_posix().startswith(NATIVE_USERS)


def test_the_code_of_a_stage_is_in_folders_of_its_name() -> None:
    """A stage's workers import no other stage's, and only the stage itself calls them and its kernels."""
    stages = {path.name for path in (ROOT / "spark_udfs").iterdir() if (path / "__init__.py").exists()}
    assert stages == {"dedup", "depsort", "filters", "ingest", "models", "packing"}
    for path in sources():
        parts = path.relative_to(ROOT).parts
        if parts[0] in ("factory", "spark_udfs") and parts[1] in stages:
            used = {name.split(".")[1] for name in imports(path) if name.startswith("spark_udfs.")} & stages
            assert used <= {parts[1], "models"}, path  # packing tokenizes with a model
    kernels = {path.name for path in (ROOT / "native" / "src").iterdir() if path.is_dir()}
    assert kernels == {"blend", "dedup", "depsort", "filters", "lake", "loading", "packing", "pages"}
    flat = {path.name for path in (ROOT / "spark_udfs").glob("*.py")}
    assert flat == {"__init__.py", "broadcast.py", "column_fetch.py", "hstack.py", "regroup.py"}


def test_no_text_sends_those_with_the_wheel_alone_to_the_makefile() -> None:
    targets = "|".join(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in sources():
        tree = ast.parse(path.read_bytes())
        docs = {
            ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, DOCUMENTED)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in docs:
                text = node.value.replace("in a clone, run make", "")
                assert not re.search(rf"\bmake ({targets})\b", text), f"{path}: {node.value}"


def test_names_below_the_home_stand_in_one_module() -> None:
    paths = vars(HomeFiles(Path("home"))).values()
    names = {path.name for path in paths if path.suffix or "-" in path.name}
    for path in sources():
        if path.relative_to(ROOT).as_posix() != "factory/home.py":
            strings = (
                node.value
                for node in ast.walk(ast.parse(path.read_bytes()))
                if isinstance(node, ast.Constant)
            )
            assert not names.intersection(it for it in strings if isinstance(it, str)), path


def test_loading_the_definitions_starts_no_jvm_and_opens_no_connection() -> None:
    code = (
        "import socket, psutil\n"
        "def refuse(*a, **k): raise AssertionError('import reached for the outside')\n"
        "socket.socket.connect = refuse\n"
        "import jobs.definitions as d\n"
        "assert not psutil.Process().children(recursive=True), 'import left a process running'\n"
        "print(len(list(d.defs.resolve_all_asset_keys())))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
