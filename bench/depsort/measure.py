"""How good the dependency order of repositories is, judged by compilers in twelve languages.

The measure is the share of a repository's true dependencies that stand before their dependents; every
dependency counts once, however often it is used. Each language's own compiler or parser finds the true ones
(`bench/depsort/compilers`), never depsort. The bench compares our order with the order by path, an order by
the imports that regular expressions find, the best order found, and a bound of all orders. The best order
found is the best of these and of our ordering of the true dependencies, a heuristic; the bound counts
edge-disjoint cycles, each of which costs every order an edge. `folders` orders our dependencies by folder,
and `beside` is the share of files that follow a file of the same folder: together they show the gain and the
price of mixing folders.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console

from bench.depsort.baselines import by_folders, by_regex, ordered
from bench.depsort.bound import most_satisfied
from bench.depsort.order import read
from bench.depsort.sources import SOURCES, Source, fetch
from bench.depsort.tools import ToolMissing
from bench.depsort.truth import truth
from bench.harness import Report, Row, at_least, cells, table
from bench.peers import ROOT
from spark_udfs.depsort.registry import language_of

LEAST_SATISFIED = 0.92  # mean over repositories
BELOW_BEST = 0.03  # largest allowed shortfall of a language's mean
LEAST_SPEED = 500  # files per CPU second, from text to order
SEEDS = ("1", "2")
YARDSTICKS = ("path", "regex", "best_found", "bound")
CAVEATS = [
    "True edges come from javac, go/types, Clang, Roslyn, rustdoc, the TypeScript and the Kotlin compiler, "
    "with uses of members (in Rust only of methods); for Python from `ast` and the rules of import, for PHP "
    "from its own parser, for Ruby from the loaded library. These three do not infer the types of objects.",
    "No truth has edges that a compiler cannot resolve without a build (missing headers, generated code).",
    "Weights and rules were tuned on other repositories, except for these lessons from the ones here: a "
    "package that its own tests require as `..`, names with an underscore behind an include, `declare "
    "module` in a module and its additions to interfaces, PHP's names of several parts, Ruby's constants by "
    "nesting, and the weight of a heavy edge in a cycle, the best of 14 formulas here.",
    "Published sources lack most tests, which a repository has and which are easy to place.",
]


@dataclass(frozen=True)
class Measured:
    """One repository: its files and true edges, and the share of them each order satisfies."""

    source: Source
    n_files: int
    n_edges: int
    found: float
    path: float
    regex: float
    ours: float
    best_found: float
    bound: float  # no order satisfies more
    folders: float  # our dependencies ordered folder by folder
    beside: float  # files that follow a file of their folder, in our order
    beside_by_folders: float
    cpu_s: float


def measure(progress: Console) -> Report:
    """Order and judge every distribution. Raises SourceNotFetched if a registry lacks one."""
    judged: list[tuple[Source, Path, set[tuple[str, str]]]] = []
    missing: dict[Source, str] = {}
    for source in SOURCES:
        try:
            folder = fetch(source, progress)
            judged.append((source, folder, truth(source, folder, progress)))
        except ToolMissing as error:
            missing[source] = str(error)
    if not judged:
        raise ToolMissing(" ".join(dict.fromkeys(missing.values())))
    progress.print("ordering all of them, twice")
    runs = [_orders([folder for _, folder, _ in judged], seed) for seed in SEEDS]
    caveats = [*CAVEATS, *(f"Not measured: {reason}" for reason in dict.fromkeys(missing.values()))]
    report = Report(
        caveats, f"{len(judged)} source distributions, fetched by pip, npm, Maven, go, cargo and apt-get"
    )
    orders = [[repository["order"] for repository in run] for run in runs]
    report.check("the order is the same under two values of PYTHONHASHSEED", orders[0] == orders[1])
    for (source, folder, _), order in zip(judged, orders[0], strict=True):
        documents = sorted(read(folder)["path"].to_pylist())
        report.check(f"the order of {source.name} holds each file once", sorted(order) == documents)
    found = [
        _measured(source, folder, edges, ours)
        for (source, folder, edges), ours in zip(judged, runs[0], strict=True)
    ]
    report.check(
        "no order satisfies more edges than the bound", all(it.best_found <= it.bound for it in found)
    )
    _show(report, found, list(missing))
    report.rows += _rows(found)
    return report


def _orders(folders: Sequence[Path], seed: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.depsort.order", *map(str, folders)],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": seed},
    )
    return list(json.loads(done.stdout))


def _measured(source: Source, folder: Path, truth: set[tuple[str, str]], ours: dict[str, Any]) -> Measured:
    documents = read(folder)
    texts = {
        path: text
        for path, text in zip(documents["path"].to_pylist(), documents["text"].to_pylist(), strict=True)
        if language_of(None, path)
    }
    paths = sorted(texts)
    edges = {(one, other) for one, other in truth if one in texts and other in texts and one != other}
    found = {(one, other) for one, other in ours["edges"] if one in texts and other in texts}
    folders_first = by_folders(paths, found)
    orders = {
        "path": paths,
        "regex": by_regex(source.language, texts),
        "ours": ours["order"],
        "folders": folders_first,
        "true_edges": ordered(paths, dict.fromkeys(edges, 1)),
    }
    shares = {name: _satisfied(order, edges) for name, order in orders.items()}
    return Measured(
        source,
        ours["n_files"],
        len(edges),
        len(edges & found) / len(edges),
        shares["path"],
        shares["regex"],
        shares["ours"],
        max(shares.values()),
        most_satisfied(edges) / len(edges),
        shares["folders"],
        _beside([path for path in ours["order"] if path in texts]),
        _beside(folders_first),
        ours["cpu_s"],
    )


def _satisfied(order: Sequence[str], edges: set[tuple[str, str]]) -> float:
    position = {path: index for index, path in enumerate(order)}
    return sum(position[dependency] < position[dependent] for dependent, dependency in edges) / len(edges)


def _beside(order: Sequence[str]) -> float:
    folders = [path.rpartition("/")[0] for path in order]
    return mean(one == other for one, other in pairwise(folders))


def _show(report: Report, found: Sequence[Measured], missing: Sequence[Source]) -> None:
    made = table(
        "Share of true dependencies that stand before their dependents",
        "repository | language | files | true edges | found | path | regex | ours | best found | bound"
        " | files/CPU s",
    )
    for it in found:
        made.add_row(
            *cells(f"{it.source.name} | {it.source.language} | {it.n_files:,} | {it.n_edges:,}"),
            *(f"{share:.3f}" for share in _shares(it)),
            f"{it.n_files / it.cpu_s:,.0f}",
        )
    for source in missing:
        made.add_row(source.name, source.language, "not measured")
    report.tables.append(made)


def _shares(it: Measured) -> tuple[float, ...]:
    return it.found, it.path, it.regex, it.ours, it.best_found, it.bound


def _rows(found: Sequence[Measured]) -> list[Row]:
    rows = []
    for language in dict.fromkeys(it.source.language for it in found):
        chosen = [it for it in found if it.source.language == language]
        value = {name: mean(getattr(it, name) for it in chosen) for name in ("ours", *YARDSTICKS)}
        for name in YARDSTICKS:
            rows.append(Row(f"depsort.{language}.{name}", value[name], "share"))
        least = max(value["regex"], value["best_found"] - BELOW_BEST)
        rows.append(at_least(f"depsort.{language}.ours", value["ours"], "share", least))
        speed = sum(it.n_files for it in chosen) / sum(it.cpu_s for it in chosen)
        rows.append(Row(f"depsort.{language}.speed", speed, "files/CPU s"))
    for name in (*YARDSTICKS, "folders", "beside", "beside_by_folders"):
        rows.append(Row(f"depsort.{name}", mean(getattr(it, name) for it in found), "share"))
    rows.append(at_least("depsort.ours", mean(it.ours for it in found), "share", LEAST_SATISFIED))
    speed = sum(it.n_files for it in found) / sum(it.cpu_s for it in found)
    rows.append(at_least("depsort.speed", speed, "files/CPU s", LEAST_SPEED))
    return rows
