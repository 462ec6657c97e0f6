"""The true dependency edges of a Ruby library, by the interpreter.

`ruby.rb` in this folder does the work and defines what counts. It needs `ruby`; the libraries that the
measured ones load come from Debian, unpacked once below FACTORY_CACHE.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from bench.depsort.debian import unpack
from bench.depsort.tools import printed_edges, require
from factory.settings import settings

LIBRARIES = (  # rubocop loads these; the other libraries need only the standard library
    "ruby-ast=2.4.1-1",
    "ruby-parallel=1.22.1-2",
    "ruby-progressbar=1.11.0-1",
    "ruby-rainbow=3.1.1-1",
    "ruby-regexp-parser=2.6.1-1",
    "ruby-rubocop-ast=1.24.0-2",
    "ruby-unicode-display-width=1.6.1-1",
    "ruby-whitequark-parser=3.1.3.0-1",
)
_PROGRAM = Path(__file__).with_suffix(".rb")


def edges(repository: Path) -> set[tuple[str, str]]:
    """(dependent, dependency) paths of Ruby files, relative to `repository`.

    Raises CalledProcessError if a library cannot be fetched or loaded.
    """
    require("ruby", "ruby")
    root = _libraries()
    gems = root.glob("usr/share/rubygems-integration/all/gems/*/lib")
    return edges_with(repository, [*sorted(gems), root / "usr/lib/ruby/vendor_ruby"])


def edges_with(repository: Path, libraries: Sequence[Path]) -> set[tuple[str, str]]:
    """The edges of a repository that loads libraries from these folders."""
    variables = {"RUBYLIB": os.pathsep.join(map(str, libraries))}
    return printed_edges("ruby", str(_PROGRAM), str(repository), variables=variables)


def _libraries() -> Path:
    home = settings().cache.absolute() / "bench" / "ruby-libraries"
    stamp = home / "packages"
    if not stamp.exists() or stamp.read_text() != "\n".join(LIBRARIES):
        shutil.rmtree(home, ignore_errors=True)
        root = unpack(LIBRARIES, home)
        # The library looks for its data below the machine's `/usr/share`, then below its own root.
        shutil.copytree(root / "usr/share/ruby-unicode-display-width", root / "usr/lib/ruby/data")
        stamp.write_text("\n".join(LIBRARIES))
    return home / "root"
