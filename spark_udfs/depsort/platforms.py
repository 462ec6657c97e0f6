"""The operating systems that a path names: `src/unix/linux.c`, `foo_windows.rs`.

Two files for systems that exclude each other are never in one build. Many words of paths are ambiguous
(`posix` is also a layer on Windows, `mac` a message authentication code), so only words that always mean a
system count.
"""

from __future__ import annotations

import re

_APPLE, _BSD = frozenset({"apple"}), frozenset({"freebsd", "openbsd", "netbsd", "dragonfly"})
_OTHER_UNIX = frozenset({"linux", "android", "solaris", "aix"})
_WINDOWS = frozenset({"windows"})
_NAMES = {
    _WINDOWS: "windows win32 win64 win winnt mingw msvc w32",
    _APPLE: "darwin macos macosx osx ios",
    frozenset({"linux", "android"}): "linux",
    frozenset({"android"}): "android",
    _BSD: "bsd",
    frozenset({"freebsd"}): "freebsd",
    frozenset({"openbsd"}): "openbsd",
    frozenset({"netbsd"}): "netbsd",
    frozenset({"dragonfly"}): "dragonfly dragonflybsd",
    frozenset({"solaris"}): "solaris sunos illumos",
    frozenset({"aix"}): "aix",
    _APPLE | _BSD | _OTHER_UNIX: "unix",
    frozenset({"wasm"}): "wasm wasm32 wasi emscripten",
}
_SYSTEMS = {word: systems for systems, words in _NAMES.items() for word in words.split()}
_BETWEEN = re.compile(r"[-_.]")


def systems_of(path: str) -> frozenset[str] | None:
    """The systems that a file is for; None where its path names none or contradicts itself."""
    intersection: frozenset[str] | None = None
    *folders, name = path.lower().split("/")
    stem = name.rpartition(".")[0] or name
    words = _BETWEEN.split(stem)
    for word in (*folders, words[0], words[-1], stem):
        systems = _SYSTEMS.get(word)
        if systems is not None:
            intersection = systems if intersection is None else intersection & systems
    return intersection or None


def exclude_each_other(systems: frozenset[str] | None, other: frozenset[str] | None) -> bool:
    """Whether two files name the systems they are for, and none in common."""
    return systems is not None and other is not None and not systems & other
