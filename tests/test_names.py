"""Names that say what they stand for: no two public classes share one, and few say nothing."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRODUCT = ("factory", "spark_udfs", "assets", "jobs", "blender")


def sources(*folders: str) -> list[Path]:
    paths = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return [path for path in paths if "proto" not in path.parts]


def public_names(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the public classes and the aliases of types of a module, and whether each is a class."""
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        else:
            continue
        if name[:1].isupper() and not name.isupper():
            yield name, isinstance(node, ast.ClassDef)


def test_no_two_public_classes_share_a_name() -> None:
    modules: dict[str, list[str]] = defaultdict(list)
    classes = set()
    for path in sources(*PRODUCT):
        for name, is_class in public_names(path):
            modules[name].append(path.relative_to(ROOT).as_posix())
            classes |= {name} if is_class else set()
    shared = {name: modules[name] for name in classes if len(modules[name]) > 1}
    assert shared == {}


# Pronouns and bare participles stand for no thing. The product with its bench, and the tests, bind such names
# so many times; each count may only fall.
EMPTY = {"found", "it", "of", "said", "given", "held", "at", "one"}
PARTICIPLE = re.compile(
    "(?!seed$|embed$|feed$|speed$|need$|bed$)[a-z]+ed|begun|broken|built|chosen|dealt|drawn|gone|grown|hidden|kept|known|"
    "left|lent|lost|made|meant|met|seen|sent|shown|spent|swept|taken|written"
)
GENERIC = {"result", "data", "value", "item", "obj", "tmp"}
MOST_BOUND = {
    (*PRODUCT, "bench"): {"empty": 657, "participles": 1482, "generic": 184},
    ("tests",): {"empty": 811, "participles": 1801, "generic": 198},
}


def bound_names(path: Path) -> Iterator[str]:
    """Yield the name of every variable, parameter, function, class and import alias that a file binds."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.alias(asname=str(name)):
                yield name
            case (
                ast.FunctionDef(name=str(name))
                | ast.AsyncFunctionDef(name=str(name))
                | ast.ClassDef(name=str(name))
                | ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield name


@pytest.mark.parametrize("folders", MOST_BOUND)
def test_fewer_names_stand_for_nothing(folders: tuple[str, ...]) -> None:
    names = [name for path in sources(*folders) for name in bound_names(path)]
    bound = {
        "empty": sum(name in EMPTY for name in names),
        "participles": sum(PARTICIPLE.fullmatch(name) is not None for name in names),
        "generic": sum(name in GENERIC for name in names),
    }
    assert bound == MOST_BOUND[folders], "Bind nouns. If a count fell, lower it in MOST_BOUND."
