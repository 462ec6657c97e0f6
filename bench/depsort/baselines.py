"""Orders to compare with ours: by imports that regular expressions find, and folder by folder.

The first is the best simple order: one expression per language finds import lines, a name means the files
whose paths end with it (the nearest of several), and files are ordered by strongly connected components,
Eades-Lin-Smyth and sifting, as in ours. The second keeps each folder together.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from spark_udfs.depsort.order import break_cycles, order_repository, strongly_connected

_SCRIPT = re.compile(r"""(?:\bfrom|\bimport|\brequire\s*\(|\bimport\s*\()\s*["']([^"'\n]+)["']""")
_INCLUDE = re.compile(r"""^\s*#\s*include\s*["<]([^">\n]+)[">]""", re.MULTILINE)
_IMPORTS = {
    "python": re.compile(
        r"^[ \t]*(?:from[ \t]+(\S+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]+))", re.MULTILINE
    ),
    "javascript": _SCRIPT,
    "typescript": _SCRIPT,
    "java": re.compile(r"^\s*import\s+(?:static\s+)?([\w.]+)", re.MULTILINE),
    "go": re.compile(r"""^\s*(?:import\s+)?(?:[\w.]+\s+)?"([\w./-]+)"\s*$""", re.MULTILINE),
    "c": _INCLUDE,
    "cpp": _INCLUDE,
    "csharp": re.compile(r"^\s*using\s+(?:static\s+)?(?:\w+\s*=\s*)?([\w.]+)\s*;", re.MULTILINE),
    "kotlin": re.compile(r"^\s*import\s+([\w.]+)", re.MULTILINE),
    "php": re.compile(r"^\s*use\s+(?:function\s+|const\s+)?([\w\\]+)", re.MULTILINE),
    "ruby": re.compile(r"""\b(?:require_relative|require|autoload)\b[^"'\n]*["']([^"'\n]+)["']"""),
    "rust": re.compile(
        r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:mod\s+(\w+)\s*;|use\s+([\w:]+?)(?:::\{([^;]*)\}[^;]*|::\*|\s+as\s+\w+)?;)",
        re.MULTILINE,
    ),
}
_SUFFIXES = (
    *("", ".py", "/__init__.py", ".java", ".kt", ".php", ".rb", ".rs", "/mod.rs"),
    *(".ts", ".tsx", ".d.ts", ".js", ".mjs", ".cjs", "/index.ts", "/index.js"),
)


def by_regex(language: str, texts: Mapping[str, str]) -> list[str]:
    """The paths of `texts`, ordered by the imports that a regular expression finds."""
    paths = sorted(texts)
    number = {path: index for index, path in enumerate(paths)}
    ends: dict[str, list[str]] = {}  # the last parts of a path, without its suffix -> paths
    for path in paths:
        for name in _names(language, path):
            parts = name.split("/")
            for start in range(len(parts)):
                ends.setdefault("/".join(parts[start:]), []).append(path)
    dependencies: list[dict[int, float]] = []
    for path in paths:
        found: dict[int, float] = {}
        for match in _IMPORTS[language].finditer(texts[path]):
            for name in _written(language, match):
                for target in _targets(language, name, path, ends):
                    if target != path:
                        found[number[target]] = 1.0
        dependencies.append(found)
    return [
        paths[file]
        for component in strongly_connected(dependencies)
        for file in break_cycles(component, dependencies)
    ]


def _written(language: str, match: re.Match[str]) -> Iterator[str]:
    """The modules that an import line names or may name."""
    if language == "rust":
        module, above, names = match.groups()
        if module:
            yield f"self::{module}"
        else:
            yield from (f"{above}::{name}" for name in re.findall(r"[\w:]+", names or "") or [""])
        return
    if language != "python":
        yield match[1]
        return
    above, names, modules = match.groups()
    for name in re.findall(r"([\w.]+)(?:\s+as\s+\w+)?", names or modules):
        if above:
            yield f"{above}{name}" if above.endswith(".") else f"{above}.{name}"
        else:
            yield name
    if above:
        yield above


def _names(language: str, path: str) -> Iterator[str]:
    """The names under which an import may refer to a file, as paths."""
    if language in ("go", "csharp"):
        yield posixpath.dirname(path)
        return
    for suffix in _SUFFIXES:
        if path.endswith(suffix):
            yield path.removesuffix(suffix)


def _targets(language: str, name: str, path: str, ends: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """The files that `name`, imported by `path`, may mean."""
    folder = posixpath.dirname(path)
    if language == "python":
        below = name.lstrip(".")
        for _ in range(len(name) - len(below) - 1):
            folder = posixpath.dirname(folder)
        relative = len(name) > len(below)
        name = posixpath.join(folder if relative else "", below.replace(".", "/"))
    elif language in ("java", "kotlin"):
        name = name.replace(".", "/")
        name = name if name in ends else posixpath.dirname(name)  # a static import names a member
    elif language == "rust":
        name = _rust_module(name, path, ends)
    elif language == "ruby":
        name = (
            posixpath.normpath(posixpath.join(folder, name))
            if name.startswith(".")
            else name.removesuffix(".rb")
        )
    elif name.startswith("."):
        name = posixpath.normpath(posixpath.join(folder, name))
        name = name if name in ends else re.sub(r"\.[cm]?jsx?$", "", name)  # `./x.js` is written in `x.ts`
    elif language in ("go", "csharp", "php"):
        parts = re.split(r"[/\\.]" if language != "go" else "/", name)
        return next((f for n in range(len(parts)) if (f := ends.get("/".join(parts[n:])))), ())
    found = [it for it in ends.get(name, ()) if it != path]
    return sorted(found, key=lambda it: (-len(posixpath.commonprefix([it, path])), it))[:1]


def _rust_module(name: str, path: str, ends: Mapping[str, Sequence[str]]) -> str:
    """The longest prefix of a module path that is a file, as a path."""
    stem = re.sub(r"(/mod|^src/lib|^src/main|/lib|/main)?\.rs$", "", path)
    first, *rest = [part for part in name.split("::") if part]
    around = {"crate": "", "self": stem, "super": posixpath.dirname(stem)}
    parts = [*around[first].split("/"), *rest] if first in around else [first, *rest]
    parts = [part for part in parts if part]
    return next((found for n in range(len(parts), 0, -1) if (found := "/".join(parts[:n])) in ends), "")


def by_folders(paths: Sequence[str], edges: Set[tuple[str, str]]) -> list[str]:
    """The sorted `paths`, reordered folder by folder; `edges` lie between them.

    Folders are ordered by the number of edges between them, files inside a folder by their own.
    """
    folder = {path: path.rpartition("/")[0] for path in paths}
    inside: dict[str, list[str]] = {}
    for path in paths:
        inside.setdefault(folder[path], []).append(path)
    names = sorted(inside)
    between: Counter[tuple[str, str]] = Counter()
    within: dict[str, Counter[tuple[str, str]]] = {name: Counter() for name in names}
    for one, other in edges:
        if folder[one] == folder[other]:
            within[folder[one]][one, other] += 1
        else:
            between[folder[one], folder[other]] += 1
    return [path for name in ordered(names, between) for path in ordered(inside[name], within[name])]


def ordered(names: Sequence[str], weights: Mapping[tuple[str, str], int]) -> list[str]:
    """The sorted `names` in the order that we give a graph of (dependent, dependency) weights."""
    number = {name: index for index, name in enumerate(names)}
    dependencies: list[dict[int, float]] = [{} for _ in names]
    for (one, other), weight in sorted(weights.items()):
        dependencies[number[one]][number[other]] = weight
    return [names[index] for index in order_repository(names, dependencies).files]
