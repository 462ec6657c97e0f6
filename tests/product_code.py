"""The product's files as machines read them: comments and docstrings may name anything as an example."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("factory", "spark_udfs", "blender", "jobs")


def files_naming(pattern: re.Pattern[str], others: Iterable[str] = ()) -> set[str]:
    """The product's Python files, and those of `others`, whose code contains `pattern`; from the root."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    files += [ROOT / name for name in others]
    return {path.relative_to(ROOT).as_posix() for path in files if pattern.search(_code(path))}


def _code(path: Path) -> str:
    """The text of a file, for Python without comments and docstrings."""
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        return text
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = None
    return ast.unparse(tree)
