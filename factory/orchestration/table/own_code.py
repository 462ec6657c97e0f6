"""The code behind a function of a user's file: functions, classes and constants of the file that it names,
with every statement outside functions that changes them.

A change of one makes the function's table stale, as a change of the function does. Comments and layout do not
count, nor does the code of other files.
"""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path


def helpers(path: Path, source: str) -> str:
    """Return the statements of the file at `path` that the function with `source` needs, by name.

    Empty if the file is gone or is not Python any more.
    """
    try:
        statements = _statements(ast.parse(path.read_bytes()))
        names = _names(ast.parse(textwrap.dedent(source)))
    except (OSError, SyntaxError):
        return ""
    needs: dict[str, list[ast.stmt]] = {}
    while further := sorted((names & statements.keys()) - needs.keys()):
        needs |= {name: statements[name] for name in further}
        names = {name for group in needs.values() for statement in group for name in _names(statement)}
    return "\n".join(
        f"{name}: {ast.unparse(statement)}" for name, group in sorted(needs.items()) for statement in group
    )


def _statements(module: ast.Module) -> dict[str, list[ast.stmt]]:
    """Return the statements outside functions that define or change each name, in order.

    A compound statement (`if`, `try`, `with`, a loop) counts as a whole.
    """
    by_name: dict[str, list[ast.stmt]] = {}
    for statement in module.body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            for name in sorted(_changes(statement)):
                by_name.setdefault(name, []).append(statement)
    return by_name


def _changes(statement: ast.stmt) -> set[str]:
    """Return the names that a statement defines, assigns or may change: `x["a"] += 1`, `x.add(1)`."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names: set[str] = set()
    is_assignment = isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign)
    within = list(ast.iter_child_nodes(statement))
    while within:
        node = within.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            names.add(node.id)
        elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            names.add(_root(node))
        elif isinstance(node, ast.Call) and not is_assignment:
            method = [node.func] if isinstance(node.func, ast.Attribute) else []
            names |= {_root(part) for part in (*node.args, *method)}
        within += ast.iter_child_nodes(node)
    return names - {""}


def _root(node: ast.expr) -> str:
    """Return `a` of `a.b["c"].d`, empty without a name."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _names(tree: ast.AST) -> set[str]:
    return {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
