"""The code behind a function of a user's file: functions, classes and constants of the file that it names.

A change of one makes the function's table stale, as a change of the function does. Comments and layout do not
count, nor does the code of other files.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path


def helpers(path: Path, source: str) -> str:
    """Return the statements of the file at `path` that the function with `source` needs, by name.

    Empty if the file is gone or is not Python any more.
    """
    try:
        statements = dict(_statements(ast.parse(path.read_bytes())))
        names = _names(ast.parse(textwrap.dedent(source)))
    except (OSError, SyntaxError):
        return ""
    needs: dict[str, ast.stmt] = {}
    while further := sorted((names & statements.keys()) - needs.keys()):
        needs |= {name: statements[name] for name in further}
        names = {name for statement in needs.values() for name in _names(statement)}
    return "\n".join(f"{name}: {ast.unparse(statement)}" for name, statement in sorted(needs.items()))


def _statements(module: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the definitions and assignments of a file by name."""
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement.name, statement
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id, statement


def _names(tree: ast.AST) -> set[str]:
    return {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
