"""What a table's code version covers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from factory import _native
from factory.lake.names import STAGE_OF_NAMESPACE
from factory.orchestration.table.code_version import kernels, sources

ROOT = Path(_native.__file__).parents[1]
STAGES = sorted(set(STAGE_OF_NAMESPACE.values()))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "factory/depsort/stage.py": "from spark_udfs.depsort import graph\n",
        "factory/lake_spark/read.py": "import spark_udfs.regroup\n",
        "factory/dedup/stage.py": "from spark_udfs.dedup.bags import make\n",
        "spark_udfs/__init__.py": "",
        "spark_udfs/regroup.py": "",
        "spark_udfs/alone.py": "",
        "spark_udfs/depsort/__init__.py": "",
        "spark_udfs/depsort/graph.py": "def late():\n    from spark_udfs.depsort.registry import KNOWN\n",
        "spark_udfs/depsort/registry.py": "KNOWN = ['spark_udfs.depsort.languages.go.symbols']\n",
        "spark_udfs/depsort/languages/go/symbols.py": "",
        "spark_udfs/depsort/languages/go/query.scm": "(call)",
        "spark_udfs/depsort/languages/go/.query.scm.swp": "",
        "spark_udfs/depsort/languages/ada/symbols.py": "",
        "spark_udfs/dedup/bags.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_worker_modules_are_followed_to_any_depth_with_their_data(tree: Path) -> None:
    assert {path.relative_to(tree).as_posix() for path in sources(tree, "depsort")} == {
        "factory/depsort/stage.py",
        "factory/lake_spark/read.py",
        "spark_udfs/__init__.py",
        "spark_udfs/regroup.py",
        "spark_udfs/depsort/__init__.py",
        "spark_udfs/depsort/graph.py",
        "spark_udfs/depsort/registry.py",
        "spark_udfs/depsort/languages/go/symbols.py",
        "spark_udfs/depsort/languages/go/query.scm",
    }


def test_every_worker_module_counts_for_some_stage() -> None:
    reached = set().union(*(sources(ROOT, stage) for stage in STAGES))
    assert set((ROOT / "spark_udfs").rglob("*.py")) - reached == set()


@pytest.mark.parametrize(
    "text",
    [
        "from factory import _native\n_native.decide\n",
        "from factory import _native as kernels\nkernels.decide\n",
        "from factory._native import decide as rule\n",
        "import factory._native\nfactory._native.decide\n",
        "from factory import _native\ngetattr(_native, 'decide')\n",
    ],
)
def test_a_kernel_is_found_however_a_file_names_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "module.py").write_text(text)
    assert kernels([tmp_path / "module.py"]) == {"decide"}


def test_a_name_counts_as_a_kernel_only_beside_the_native_module(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("import rules\nrules.decide\n")
    assert kernels([tmp_path / "module.py"]) == set()


@pytest.fixture(scope="module")
def build_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    script = tmp_path_factory.mktemp("native") / "build_script"
    subprocess.run(["rustc", "--edition=2024", "-o", script, ROOT / "native/build.rs"], check=True)
    return script


def source_hashes(build_script: Path, crate: Path) -> dict[str, str]:
    """The hash of each folder of the crate's sources, by the crate's own build script."""
    output = subprocess.run([build_script], cwd=crate, capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"FACTORY_SOURCES_(\w+)=(\w+)", output))


def stale(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """The stages that call a kernel whose hash differs between `before` and `after`."""
    changed = {old for folder, old in before.items() if after[folder] != old}
    return {
        stage
        for stage in STAGES
        if changed & {_native.__source_hashes__[kernel] for kernel in kernels(sources(ROOT, stage))}
    }


@pytest.mark.invariant(
    "The folders of `native/src` do not call each other, and only the kernels that its stage calls make a"
    " table stale."
)
@pytest.mark.parametrize(
    "file, stages",
    [
        ("src/pages/read/reader.rs", set()),
        ("src/blend/feistel.rs", set()),
        ("src/dedup/keep_rule.rs", {"dedup"}),
        ("src/filters/text_signals/words.rs", {"filters"}),
        ("src/depsort/c_text/outline.rs", {"depsort"}),
        ("src/packing/runs.rs", {"packing"}),
        ("src/lake/fingerprint.rs", set(STAGES)),
        ("Cargo.toml", set(STAGES)),
    ],
)
def test_a_change_to_a_kernel_makes_the_stages_stale_that_call_it(
    tmp_path: Path, build_script: Path, file: str, stages: set[str]
) -> None:
    crate = Path(
        shutil.copytree(ROOT / "native", tmp_path / "native", ignore=shutil.ignore_patterns("target"))
    )
    before = source_hashes(build_script, crate)
    built = set(_native.__source_hashes__.values())
    assert set(before.values()) == built, "The native module is older than its sources. Run `make setup`."
    with (crate / file).open("a") as changed:
        changed.write("\n")
    assert stale(before, source_hashes(build_script, crate)) == stages


@pytest.mark.invariant(
    "The folders of `native/src` do not call each other, and only the kernels that its stage calls make a"
    " table stale."
)
@pytest.mark.parametrize("path", sorted((ROOT / "native/src").glob("*/**/*.rs")), ids=lambda it: it.stem)
def test_a_kernel_reaches_no_code_outside_its_folder(path: Path) -> None:
    folder = path.relative_to(ROOT / "native/src").parts[0]
    text = path.read_text()
    assert set(re.findall(r"\bcrate::(\w*)", text)) <= {folder}
    assert not re.search(r"include!|include_str!|include_bytes!|#\[path", text)
    if path.parent.name == folder and path.name == "mod.rs":
        assert re.findall(r"^ *pub\b.*", text, re.MULTILINE) == [
            "pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {"
        ]  # all else is private to the folder, so `super::super` leads nowhere either
