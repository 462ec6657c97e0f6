"""Rules of the tree that the import linter cannot see."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from factory.home import HomeFiles
from factory.lake.names import STAGE_OF_NAMESPACE
from tests.product_code import files_naming

ROOT = Path(__file__).parents[1]
PACKAGES = ("factory", "spark_udfs", "assets", "jobs", "blender")
STAGES = {stage for stage in STAGE_OF_NAMESPACE.values() if (ROOT / "factory" / stage).is_dir()}
SHARED_KERNELS = {"blend", "lake", "loading", "pages"}
NATIVE_USERS = (
    "factory/lake",
    "factory/orchestration/table/code_version.py",
    *(f"factory/{stage}/" for stage in STAGES),
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


@pytest.mark.invariant(
    "A file imports at most one of Dagster, Spark and gRPC; only `factory.orchestration` joins two of them."
)
@every_source
def test_a_file_knows_one_framework(path: Path) -> None:
    known = {it for it in FRAMEWORKS for name in imports(path) if name.split(".")[0].startswith(it)}
    joins = path.is_relative_to(ROOT / "factory" / "orchestration")  # alone joins Dagster and Spark
    assert len(known) <= 1 or joins


@pytest.mark.invariant(
    "Only the lower layers call native code. The import linter does not see a compiled module, so a test "
    "checks the calls."
)
@every_source
def test_only_the_lower_floors_call_native_code(path: Path) -> None:
    if "factory._native" in imports(path):
        assert path.relative_to(ROOT).as_posix().startswith(NATIVE_USERS)


@pytest.mark.invariant("The code of a stage is in folders of its name, and imports have no cycle.")
def test_the_code_of_a_stage_is_in_folders_of_its_name() -> None:
    """A stage's workers import no other stage's, and only the stage itself calls them and its kernels."""
    workers = {path.name for path in (ROOT / "spark_udfs").iterdir() if (path / "__init__.py").exists()}
    assert workers == STAGES
    kernels = {path.name for path in (ROOT / "native" / "src").iterdir() if path.is_dir()}
    assert kernels - STAGES == SHARED_KERNELS
    flat = {path.name for path in (ROOT / "spark_udfs").glob("*.py")}
    helpers = ("broadcast.py", "column_fetch.py", "hstack.py", "pictures.py", "regroup.py")
    assert flat == {"__init__.py", *helpers}


@every_source
def test_a_stage_imports_no_other_and_nothing_below_imports_one(path: Path) -> None:
    """Packing uses a model, so `models` is below the others."""
    package, folder = path.relative_to(ROOT).parts[:2]
    names = [name.split(".") for name in imports(path)]
    stages = {name[1] for name in names if name[0] in ("factory", "spark_udfs") and len(name) > 1} & STAGES
    if package in ("factory", "spark_udfs") and folder in STAGES:
        assert stages <= {folder, "models"}
    elif package == "spark_udfs" or folder in ("lake", "lake_spark", "spark"):
        assert not stages


def test_the_charts_of_a_stage_know_no_other_stages() -> None:
    folder = ROOT / "factory" / "orchestration" / "table" / "charts"
    for path in folder.glob("*.py"):
        if path.stem in STAGES:
            imported = {name for name in imports(path) if ".table.charts." in name}
            assert {name.split(".charts.")[1].split(".")[0] for name in imported} <= {"counting", "totals"}


FACES = (
    "lake/schemas",
    "orchestration/chain",
    "orchestration/declare",
    "orchestration/table/charts",
    "explain/stages",
)
FILES_TO_TOUCH = {  # besides a stage's own, as CONTRIBUTING counts them
    "factory/lake/names.py",
    "factory/orchestration/chain/refine.py",
    "factory/orchestration/declare/registry.py",
    "factory/orchestration/table/charts/registry.py",
    "factory/explain/stages/registry.py",
}


@pytest.mark.invariant(
    "A stage with options costs nine files of its own and five edits, and registers itself: one made of a"
    " single file is declared in a datasets file, and seen by trace, sample, diff, export, summary, report"
    " and Dagster's charts."
)
def test_a_stage_is_named_in_five_files_besides_its_own() -> None:
    own = {f"factory/{face}/depsort.py" for face in FACES}
    naming = files_naming(re.compile(r"\bdepsort\b"))
    besides = {
        path for path in naming - own if not path.startswith(("factory/depsort/", "spark_udfs/depsort/"))
    }
    assert besides == FILES_TO_TOUCH
    folders = ("factory/depsort", "spark_udfs/depsort", "tests/depsort", "bench/depsort")
    assert len(own) + len(folders) == 9
    assert all((ROOT / path).exists() for path in (*own, *folders))


def test_a_kind_of_model_has_four_files_and_touches_three() -> None:
    """Counted at `onnx`, the youngest kind; CONTRIBUTING.md tells what each holds."""
    own = {
        *("factory/filters/rules/onnx_score.py", "factory/models/onnx_model.py"),
        *("factory/orchestration/chain/models/onnx.py", "spark_udfs/models/onnx_model.py"),
    }
    embedders = {  # which may be ONNX models too
        *("factory/models/embedders.py", "factory/models/embedder_spec.py"),
        *("spark_udfs/models/embedders.py", "factory/lake/schemas/clusters.py"),
        "factory/clusters/options.py",
    }
    assert files_naming(re.compile("onnx", re.IGNORECASE)) - own - embedders == {
        "factory/lake/schemas/models.py",
        "factory/orchestration/table/charts/models.py",
        "factory/orchestration/declare/models.py",
    }


@pytest.mark.parametrize("face", FACES)
def test_every_face_of_a_stage_has_the_name_of_one(face: str) -> None:
    shared = {  # modules of a face that several stages use
        "lake/schemas": {"base"},
        "orchestration/chain": {"link", "texts", "refine"},
        "orchestration/declare": {"part", "registry", "located_yaml", "blend"},
        "orchestration/table/charts": {"counting", "totals", "registry"},
        "explain/stages": {
            "stage",
            "removals",
            "document_trace",
            "verdicts",
            "rounds",
            "serving",
            "registry",
        },
    }
    entries = {path.stem for path in (ROOT / "factory" / face).iterdir()} - shared[face]
    modules = {name for name in entries if not name.startswith("__")}
    assert {name.partition("_")[0] for name in modules} == STAGES - (
        {"models"} if face == "explain/stages" else set()
    )


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
            assert not names.intersection(string for string in strings if isinstance(string, str)), path


@pytest.mark.invariant("Loading the definitions starts no JVM and opens no connection.")
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
