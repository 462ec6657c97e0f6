"""The required files of a Ruby repository.

An address is a file's path without `.rb`. `require_relative "x"`, here `./x`, starts at the importer's
folder. `require "a/b"` means a file whose path ends in `a/b`: in the importer's own `lib` first, then in any
`lib`, then in the nearest folder around the importer.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from spark_udfs.depsort.model import Modules


class RubyModules(Modules):
    """The files of one repository."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._folders = [posixpath.dirname(path) for path in paths]
        self._numbers: dict[str, int] = {}
        self._by_name: dict[str, list[str]] = {}
        for number, path in enumerate(paths):
            address = posixpath.splitext(path)[0]
            if address not in self._numbers:
                self._numbers[address] = number
                self._by_name.setdefault(posixpath.basename(address), []).append(address)

    def locate(self, module: str, importer: int) -> str | None:
        """The path without suffix of the file that `importer` requires as `./x` or `a/b`."""
        folder = self._folders[importer]
        written = posixpath.normpath(module.removesuffix(".rb"))
        if module.startswith("."):
            address = posixpath.normpath(posixpath.join(folder, written))
            return address if address in self._numbers else None
        found = [
            address
            for address in self._by_name.get(posixpath.basename(written), ())
            if address == written or address.endswith(f"/{written}")
        ]
        return min(found, key=lambda it: _rank(it[: -len(written)].rstrip("/"), folder), default=None)

    def files(self, address: str) -> Sequence[int]:
        """The file itself."""
        return (self._numbers[address],)


def _rank(root: str, folder: str) -> tuple[bool, bool, int, str]:
    around = root == "" or f"{folder}/".startswith(f"{root}/")
    return (
        not (around and root.endswith("lib")),
        not root.endswith("lib"),
        len(root) * (-1 if around else 1),
        root,
    )
