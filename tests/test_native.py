"""The native module: its stub, and that Spark's workers load the same one."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from factory import _native

STUB = Path(_native.__file__).with_name("_native.pyi")


DECLARED = ast.parse(STUB.read_text()).body
FUNCTIONS = {node.name: node for node in DECLARED if isinstance(node, ast.FunctionDef)}


@pytest.mark.invariant(
    "The stub names every kernel with its arguments, and nothing else; Spark's workers load the same module."
)
def test_the_stub_names_every_function_and_no_other() -> None:
    functions = {name for name, value in vars(_native).items() if inspect.isbuiltin(value)}
    assert set(FUNCTIONS) == functions


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_stub_documents_the_function_and_its_arguments(name: str) -> None:
    declared = FUNCTIONS[name].args
    arguments = [argument.arg for argument in (*declared.args, *declared.kwonlyargs)]
    assert list(inspect.signature(getattr(_native, name)).parameters) == arguments
    assert ast.get_docstring(FUNCTIONS[name])


def test_the_stub_names_every_class_with_its_members() -> None:
    stub = {
        node.name: {
            it.target.id if isinstance(it, ast.AnnAssign) else it.name  # type: ignore[union-attr]
            for it in node.body
            if isinstance(it, ast.FunctionDef | ast.AnnAssign)
        }
        for node in DECLARED
        if isinstance(node, ast.ClassDef)
    }
    classes = {name: value for name, value in vars(_native).items() if inspect.isclass(value)}
    special = {"__init__", "__len__"}
    assert {name: members - special for name, members in stub.items()} == {
        name: {member for member in vars(value) if not member.startswith("_")}
        for name, value in classes.items()
    }


@pytest.mark.invariant(
    "The stub names every kernel with its arguments, and nothing else; Spark's workers load the same module."
)
@pytest.mark.spark
def test_a_worker_loads_the_same_native_module(spark: SparkSession) -> None:
    def where(batches):  # type: ignore[no-untyped-def]
        import sys

        import pyarrow as pa

        from factory import _native as loaded

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"file": [loaded.__file__], "python": [sys.executable]})

    import sys

    (row,) = spark.range(1).mapInArrow(where, "file string, python string").collect()
    assert row.file == _native.__file__
    assert row.python == sys.executable
