"""Files of this Python installation: its packages, then its standard library."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path


def installed_files() -> Iterator[Path]:
    """Every file by path, packages once."""
    for name in ("purelib", "stdlib"):
        root = Path(sysconfig.get_path(name))
        for path in sorted(root.rglob("*")):
            if "site-packages" not in path.relative_to(root).parts and path.is_file():
                yield path
