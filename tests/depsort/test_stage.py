"""Depsort through Spark: tables with the declared schemas, the same for any partitioning."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from factory.depsort.stage import dependencies, sorted_documents, symbols
from factory.lake.schemas.depsort import DEPENDENCIES, SORTED, SYMBOLS
from factory.lake.schemas.ingest import RAW

FILES = [
    ("app", "app/__init__.py", "from .core import run\n"),
    ("app", "app/core.py", "from .util import helper\n\ndef run():\n    return helper()\n"),
    ("app", "app/util.py", "def helper():\n    return 1\n"),
    ("app", "README.md", "An application.\n"),
    ("app", "main.py", "import app\n\napp.run()\n"),
    ("ring", "a.py", "from b import g\n\ndef f():\n    return g() + g()\n"),
    ("ring", "b.py", "from a import f\n\ndef g():\n    return f()\n"),
    ("ring", "broken.py", "def (((:\n"),
    (None, "alone.py", "import os\n"),
]
REVISIONS = [
    *(("1", "a.py", "import b\n"), ("1", "b.py", "x = 1\n")),
    *(("2", "a.py", "x = 1\n"), ("2", "b.py", "import a\n")),
]

pytestmark = pytest.mark.spark


def document(repository: str | None, path: str, text: str, revision: str | None = None) -> dict[str, object]:
    language = "python" if path.endswith(".py") else "markdown"
    row: dict[str, object] = dict.fromkeys(RAW.names)
    return row | {
        "doc_id": f"{repository}:{path}" if revision is None else f"{repository}@{revision}:{path}",
        "source": "test",
        "key": path,
        "text": text,
        "content_hash": path,
        "n_bytes": len(text),
        "media_type": "text/plain",
        "language": language,
        "repository": repository,
        "path": path,
        "revision": revision,
    }


def frame(spark: SparkSession, files: Sequence[tuple[str | None, str, str]]) -> DataFrame:
    return documents_frame(spark, [document(*file) for file in files])


def documents_frame(spark: SparkSession, rows: list[dict[str, object]]) -> DataFrame:
    return spark.createDataFrame(
        pa.Table.from_pylist(rows, schema=RAW.columns), from_arrow_schema(RAW.columns)
    )


class Line:
    """The three tables of some files, collected."""

    def __init__(self, documents: DataFrame) -> None:
        self.symbol_frame = symbols(documents).localCheckpoint()
        self.edge_frame = dependencies(documents, self.symbol_frame).localCheckpoint()
        self.sorted_frame = sorted_documents(documents, self.edge_frame).localCheckpoint()
        self.symbols = self.symbol_frame.toArrow().sort_by([(c, "ascending") for c in SYMBOLS.key])
        self.edges = self.edge_frame.toArrow().sort_by([(c, "ascending") for c in DEPENDENCIES.key])
        self.sorted = self.sorted_frame.toArrow().sort_by("doc_id")


@pytest.fixture(scope="module")
def line(spark: SparkSession) -> Line:
    return Line(frame(spark, FILES))


def test_the_tables_have_the_declared_columns(line: Line) -> None:
    assert line.symbols.schema.names == SYMBOLS.names
    assert line.edges.schema.names == DEPENDENCIES.names
    assert line.sorted.schema.names == SORTED.names


def test_every_document_gets_one_position_within_its_repository(line: Line) -> None:
    positions: dict[str | None, list[int]] = {}
    for row in line.sorted.to_pylist():
        positions.setdefault(row["repository"], []).append(row["position"])
    assert {repository: sorted(p) for repository, p in positions.items()} == {
        "app": [0, 1, 2, 3, 4],
        "ring": [0, 1, 2],
        None: [0],
    }


def test_files_stand_after_what_they_depend_on(line: Line) -> None:
    ordered = sorted(line.sorted.to_pylist(), key=lambda row: row["position"])
    app = [row["path"] for row in ordered if row["repository"] == "app"]
    assert app == ["README.md", "app/util.py", "app/core.py", "app/__init__.py", "main.py"]


def test_an_edge_is_satisfied_exactly_if_the_positions_say_so(line: Line) -> None:
    position = {row["doc_id"]: row["position"] for row in line.sorted.to_pylist()}
    edges = line.edges.to_pylist()
    assert {edge["satisfied"] for edge in edges} == {True, False}
    for edge in edges:
        assert edge["satisfied"] == (position[edge["depends_on"]] < position[edge["doc_id"]])


def test_a_cycle_is_broken_where_it_weighs_least_and_listed(line: Line) -> None:
    broken = [edge for edge in line.edges.to_pylist() if not edge["satisfied"]]
    assert [(edge["doc_id"], edge["depends_on"]) for edge in broken] == [("ring:b.py", "ring:a.py")]
    in_cycles = [row for row in line.sorted.to_pylist() if row["cycle_size"] > 1]
    assert sorted((row["repository"], row["path"], row["cycle_size"]) for row in in_cycles) == [
        ("ring", "a.py", 2),
        ("ring", "b.py", 2),
    ]
    assert len({row["cycle"] for row in in_cycles}) == 1


@pytest.mark.invariant("Every revision of a repository is sorted and packed separately.")
def test_revisions_of_a_repository_are_sorted_each_by_itself(spark: SparkSession) -> None:
    documents = [document("twice", path, text, revision) for revision, path, text in REVISIONS]
    both = Line(documents_frame(spark, documents))
    edges = {(row["revision"], row["doc_id"], row["depends_on"]) for row in both.edges.to_pylist()}
    assert edges == {("1", "twice@1:a.py", "twice@1:b.py"), ("2", "twice@2:b.py", "twice@2:a.py")}
    assert set(both.edges["satisfied"].to_pylist()) == {True}
    positions = {row["doc_id"]: row["position"] for row in both.sorted.to_pylist()}
    assert positions == {"twice@1:b.py": 0, "twice@1:a.py": 1, "twice@2:a.py": 0, "twice@2:b.py": 1}


def test_the_tables_do_not_depend_on_partitions_or_the_order_of_rows(spark: SparkSession, line: Line) -> None:
    shuffled = Line(frame(spark, FILES[::-1]).repartition(5))
    assert shuffled.symbols.equals(line.symbols)
    assert shuffled.edges.equals(line.edges)
    assert shuffled.sorted.equals(line.sorted)
