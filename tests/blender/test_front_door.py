"""The names that `blender` and its packages export, each loaded when it is first used."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType

import pytest

import blender
import blender.global_batches
import blender.loading
from tests.blender.lakes import ROOT
from tests.blender.programs import run

DOORS = (blender, blender.loading, blender.global_batches)


@pytest.mark.parametrize("door, name", [(door, name) for door in DOORS for name in door.__all__])
def test_every_exported_name_is_its_module_s(door: ModuleType, name: str) -> None:
    assert getattr(door, name).__module__.startswith("blender.")


@pytest.mark.parametrize("door", DOORS)
def test_mypy_sees_the_names_that_are_exported(door: ModuleType) -> None:
    tree = ast.parse(Path(str(door.__file__)).read_text())
    (checked,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        (alias.asname, node.module)
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {(name, getattr(door, name).__module__) for name in door.__all__}


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute `BlenderServer`"):
        blender.BlenderServer  # noqa: B018


@pytest.mark.parametrize(
    "statement, absent",
    [
        ("import blender", {"grpc", "numpy", "pyarrow", "pydantic", "pyiceberg", "torch"}),
        ("from blender import BlenderClient, Schedule, Source, Tls", {"pydantic", "pyiceberg", "torch"}),
        ("from blender.loading import Mesh", {"grpc", "numpy", "pyarrow", "pydantic", "pyiceberg", "torch"}),
        (
            "from blender.global_batches import BatchReader, BatchWriter, create_namespace, cut",
            {"dagster", "grpc", "pandas", "pyiceberg", "pyspark", "torch"},
        ),
    ],
)
def test_importing_a_name_loads_its_module_alone(statement: str, absent: set[str]) -> None:
    program = f"import sys; {statement}; print(*{{name.split('.')[0] for name in sys.modules}})"
    assert not absent & set(run(program, PYTHONPATH=str(ROOT)).split())


def test_a_name_that_needs_torch_says_so() -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "try: from blender import BlendDataset\n"
        "except ModuleNotFoundError as error: print(error, error.name)"
    )
    assert run(program, PYTHONPATH=str(ROOT)).strip() == (
        "`blender.BlendDataset` needs PyTorch, which is not installed. "
        "Install it with `pip install torch`. torch"
    )


def test_the_examples_of_readme_and_docs_import_from_the_front_door() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    imported = {line for page in pages for line in page.read_text().splitlines() if "from blender" in line}
    modules = {line.split()[1] for line in imported if line.startswith("from blender")}
    assert modules == {"blender", "blender.global_batches", "blender.loading", "blender.pages"}
