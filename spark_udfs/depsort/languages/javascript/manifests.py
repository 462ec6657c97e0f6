"""The JSON of `package.json` and `tsconfig.json`: reading it, and matching names against its patterns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

MAX_DEPTH = 8  # depth of nested targets, and of manifests that extend each other
_DEPENDENCIES = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_LINK = re.compile(r"(?:file|link|portal):|workspace:(?=\.)")

# An unclosed string or comment extends to the end; retrying at every quote inside would take square time.
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*+(?:"|\Z))|//[^\n]*|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*+(?:"|\Z))|,(?=\s*[}\]])', re.DOTALL)


def read_manifest(text: str) -> dict[str, Any]:
    """A JSON object; like TypeScript, accepts comments and trailing commas. Empty for any other text."""
    plain = _LAST_COMMA.sub(lambda m: m[1] or "", _COMMENT.sub(lambda m: m[1] or "", text.lstrip("\ufeff")))
    try:
        manifest = json.loads(plain)
    except (ValueError, RecursionError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def targets_of(patterns: object, name: str) -> Iterator[str]:
    """The targets of `name` in a map with at most one `*` in a key; longest match first."""
    if not isinstance(patterns, dict):
        return
    matches = []
    for pattern, target in patterns.items():
        start, star, end = pattern.partition("*")
        if name == pattern:
            matches.append((-len(name) - 1, pattern, target, ""))
        elif star and name.startswith(start) and name.endswith(end) and len(name) >= len(start) + len(end):
            matches.append((-len(start), pattern, target, name[len(start) : len(name) - len(end)]))
    for _, _, target, middle in sorted(matches, key=lambda match: match[:2]):
        for text in _targets(target, 0):
            yield text.replace("*", middle)


def linked_folder(manifest: Mapping[str, Any], package: str) -> str | None:
    """The folder to which a `package.json` links a package it depends on, such as `file:../core`."""
    for kind in _DEPENDENCIES:
        dependencies = manifest.get(kind)
        version = dependencies.get(package) if isinstance(dependencies, dict) else None
        if isinstance(version, str) and (link := _LINK.match(version)):
            return version[link.end() :]
    return None


def _targets(target: object, depth: int) -> Iterator[str]:
    """Every string in a target, which may be a list or a map by condition."""
    if isinstance(target, str):
        yield target
    elif isinstance(target, (list, dict)) and depth < MAX_DEPTH:
        for part in target.values() if isinstance(target, dict) else target:
            yield from _targets(part, depth + 1)
