"""Debian packages, downloaded and unpacked below FACTORY_CACHE; nothing is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from factory.errors import ConfigurationError
from factory.settings import settings


def folder_of(package: str) -> Path:
    """Return the folder of a package's files; download the package first if it is missing.

    Raises ConfigurationError on a system without Debian's packages.
    """
    folder = settings().cache.absolute() / "bench" / "debian" / package
    if (folder / "usr").is_dir():
        return folder
    if shutil.which("apt-get") is None:
        raise ConfigurationError(
            "This bench reads Debian's packages, and there is no apt-get. Run it on Debian."
        )
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "download", package], cwd=folder, check=True, capture_output=True)
    for archive in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", archive, folder], check=True)
        archive.unlink()
    return folder
