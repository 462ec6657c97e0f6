"""The true dependencies of a repository, from its language's own compiler or parser, cached."""

from __future__ import annotations

import json
import os
import subprocess
from hashlib import blake2b
from importlib import import_module
from pathlib import Path

from rich.console import Console

from bench.depsort.sources import Source
from bench.depsort.tools import require
from bench.peers import CLANG
from factory.errors import CheckFailed

COMPILERS = Path(__file__).with_name("compilers")
_SHARED = {"c": "c", "cpp": "c", "javascript": "typescript"}  # the others have their own programs
_COMMANDS = {  # the command of a program, with its Debian package; the others check by themselves
    "c": ("gcc", "gcc"),
    "go": ("go", "golang-go"),
    "java": ("java", "default-jdk"),
    "rust": ("cargo", "cargo"),
    "typescript": ("node", "nodejs"),
}


class TruthFailed(CheckFailed):
    """A program that finds true dependencies ended with an error."""


def truth(source: Source, folder: Path, progress: Console) -> set[tuple[str, str]]:
    """The true edges of a repository, kept next to it until the program that finds them changes.

    Raises ToolMissing if the machine lacks a tool that the program needs, TruthFailed if the program fails.
    """
    name = _SHARED.get(source.language, source.language)
    programs = sorted(COMPILERS.glob(f"{name}.*"))
    key = blake2b(b"".join(program.read_bytes() for program in programs), digest_size=6).hexdigest()
    kept = folder.parent / f"truth-{name}-{key}.json"
    if not kept.exists():
        progress.print(f"true dependencies of {source.name} ({source.language})")
        if name in _COMMANDS:
            require(*_COMMANDS[name])
        try:
            edges = sorted(_edges(name, folder, progress))
        except subprocess.CalledProcessError as error:
            last = (str(error.stderr or "").strip() or "it printed nothing").splitlines()[-1]
            raise TruthFailed(
                f"No true dependencies of {source.name}: `{error.cmd[0]}` ended with {error.returncode}: "
                f"{last} Check that its registry answers, or run the program by hand."
            ) from error
        written = kept.with_suffix(f".{os.getpid()}")
        written.write_text(json.dumps(edges))
        written.replace(kept)  # atomic: several benches share the folder
    return {(dependent, dependency) for dependent, dependency in json.loads(kept.read_text())}


def _edges(name: str, folder: Path, progress: Console) -> set[tuple[str, str]]:
    if name == "c":  # it needs libclang, in an environment of its own
        pairs = CLANG.answer("bench.depsort.compilers.c", folder, console=progress)
        return {(one, other) for one, other in pairs}
    found: set[tuple[str, str]] = import_module(f"bench.depsort.compilers.{name}").edges(folder)
    return found
