"""Debian's packages, downloaded and unpacked below a folder; nothing is installed.

`apt-get` runs on lists of its own below FACTORY_CACHE, so it needs no rights, changes nothing on the machine
and finds the same releases everywhere. It needs `apt-get`, `dpkg-deb` and Debian's keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from bench.depsort import tools
from factory.settings import settings

_LISTS = """\
deb http://deb.debian.org/debian bookworm main
deb-src http://deb.debian.org/debian bookworm main
deb http://deb.debian.org/debian bullseye main
"""


def unpack(packages: Sequence[str], folder: Path) -> Path:
    """Unpack binary packages, each `name` or `name=version`, below `folder`; raises CalledProcessError."""
    downloads = folder / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    tools.run(*_apt(), "download", *packages, folder=downloads)
    for package in sorted(downloads.glob("*.deb")):
        tools.run("dpkg-deb", "--extract", str(package), str(folder / "root"), folder=folder)
    return folder / "root"


def unpack_source(package: str, folder: Path) -> Path:
    """Unpack the upstream release of a source package below `folder`; raises CalledProcessError."""
    tools.run(*_apt(), "--download-only", "--tar-only", "source", package, folder=folder)
    (archive,) = folder.glob("*.orig.tar.*")
    return tools.unpack(archive, folder / "sources")


@cache
def _apt() -> tuple[str, ...]:
    """apt-get with lists of its own, updated once per process."""
    home = settings().cache.absolute() / "bench" / "apt"
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    (home / "sources.list").write_text(_LISTS)
    options = {
        "Dir::State": home / "state",
        "Dir::State::status": "/dev/null",  # installed packages do not matter
        "Dir::Cache": home / "cache",
        "Dir::Etc::SourceList": home / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "APT::Sandbox::User": "",
    }
    command = (
        "apt-get",
        "-qq",
        *(part for name, option in options.items() for part in ("-o", f"{name}={option}")),
    )
    tools.run(*command, "update", folder=home)
    return command
