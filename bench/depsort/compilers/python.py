"""The true dependency edges of a Python repository, by the interpreter's own parser and rules of import.

`ast` parses every module. An import depends on the modules it names, as `importlib` would load them (without
the packages on the way); a name taken from a module, and every chain `module.name` in the text, depends on
the file that defines it, through all re-exports. Names that a function binds hide those of the module
(`symtable`). Types of objects are not inferred, so a method call on an object adds no edge. Files that do not
parse have no edges.
"""

from __future__ import annotations

import ast
import symtable
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import resolve_name
from pathlib import Path

_HOPS = 50


@dataclass
class _Module:
    """One parsed file: the names it defines, the names it imports, the modules it star-imports."""

    path: str
    name: str
    tree: ast.Module
    symbols: symtable.SymbolTable
    made: set[str] = field(default_factory=set)
    bound: dict[str, tuple[str, str | None]] = field(default_factory=dict)  # name -> (module, name in it)
    stars: list[str] = field(default_factory=list)

    @property
    def package(self) -> str:
        """The package to which relative imports are relative."""
        return self.name if self.path.endswith("__init__.py") else self.name.rpartition(".")[0]


def edges(repository: Path) -> set[tuple[str, str]]:
    """(dependent, dependency) as paths relative to `repository`."""
    modules = {module.name: module for module in _modules(repository)}
    for module in modules.values():
        _read(module)
    found = set()
    for module in modules.values():
        found |= {(module.path, target) for target in _targets(module, modules) if target != module.path}
    return found


def _modules(repository: Path) -> Iterator[_Module]:
    names = set()
    for path in sorted(repository.rglob("*.py")):
        top = [folder for folder in path.parents if (folder / "__init__.py").exists()]
        inside = [folder for folder in top if folder.is_relative_to(repository) and folder != repository]
        root = inside[-1].parent if inside else path.parent
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name in names:  # the second script of a name cannot be imported
            name = path.relative_to(repository).as_posix()
        try:
            text = path.read_bytes()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
                symbols = symtable.symtable(text.decode("utf-8"), str(path), "exec")
        except (SyntaxError, ValueError, RecursionError):
            continue
        names.add(name)
        yield _Module(path.relative_to(repository).as_posix(), name, tree, symbols)


def _read(module: _Module) -> None:
    """Fill in the names that the module defines and imports at its top level, also inside `if` and `try`."""
    pending: list[ast.AST] = [module.tree]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            module.made.add(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            module.made.add(node.id)
        for name, target in _bindings(node, module):
            module.bound[name] = target
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            module.stars.append(_from(node, module))
        pending.extend(ast.iter_child_nodes(node))


def _bindings(node: ast.AST, module: _Module) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """The names that an import statement binds, with their module and name."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            yield (alias.asname, (alias.name, None)) if alias.asname else (first, (first, None))
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            if alias.name != "*":
                yield alias.asname or alias.name, (_from(node, module), alias.name)


def _from(node: ast.ImportFrom, module: _Module) -> str:
    try:
        return resolve_name("." * node.level + (node.module or ""), module.package)
    except ImportError:
        return ""


def _targets(module: _Module, modules: dict[str, _Module]) -> Iterator[str]:
    """The files a module depends on, some more than once."""
    bound = dict(module.bound)
    for node in ast.walk(module.tree):
        bound.update({name: target for name, target in _bindings(node, module) if name not in bound})
        named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            above = _from(node, module)
            named = [above, *(f"{above}.{alias.name}" for alias in node.names)]
            for alias in node.names:
                yield from _meaning(above, alias.name, modules, 0)[:1]
        yield from (modules[name].path for name in named if name in modules)
    free = _free(module.symbols)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute):
            chain = _chain(node)
            if chain and chain[0] in bound and chain[0] in free:
                yield from _follow(bound[chain[0]], chain[1:], modules)
        elif isinstance(node, ast.Name) and node.id in free and node.id not in module.made:
            if node.id not in bound:
                for above in module.stars:
                    yield from _meaning(above, node.id, modules, 0)[:1]
            elif bound[node.id][1] is not None:
                yield from _follow(bound[node.id], (), modules)


def _free(table: symtable.SymbolTable) -> set[str]:
    """Names that a scope reads from the module."""
    found, pending = set(), [table]
    while pending:
        scope = pending.pop()
        found |= {
            symbol.get_name()
            for symbol in scope.get_symbols()
            if symbol.is_global() or scope.get_type() == "module"
        }
        found |= {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_imported()}
        pending.extend(scope.get_children())
    return found


def _chain(node: ast.expr) -> tuple[str, ...]:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (*([node.id] if isinstance(node, ast.Name) else []), *reversed(parts))


def _follow(target: tuple[str, str | None], rest: tuple[str, ...], modules: dict[str, _Module]) -> list[str]:
    """The file that defines an imported name and the attributes after it."""
    name, taken = target
    names = (taken, *rest) if taken is not None else rest
    while names and f"{name}.{names[0]}" in modules:
        if name in modules and names[0] in modules[name].made:
            break
        name, names = f"{name}.{names[0]}", names[1:]
    if not names:
        return [modules[name].path] if name in modules and taken is not None else []
    return _meaning(name, names[0], modules, 0)[:1]


def _meaning(above: str, name: str, modules: dict[str, _Module], hops: int) -> list[str]:
    """The file that defines `name` of module `above`: a definition, a re-export, a submodule."""
    module = modules.get(above)
    if hops > _HOPS or module is None:
        return []
    if name in module.made:
        return [module.path]
    if name in module.bound:
        source, taken = module.bound[name]
        if taken is None:
            return [modules[source].path] if source in modules else []
        return _meaning(source, taken, modules, hops + 1) or (
            [modules[f"{source}.{taken}"].path] if f"{source}.{taken}" in modules else []
        )
    for star in module.stars:
        if found := _meaning(star, name, modules, hops + 1):
            return found
    return [modules[f"{above}.{name}"].path] if f"{above}.{name}" in modules else []
