"""Write files that no reader ever sees in part."""

from __future__ import annotations

import os
import re
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil


def write_atomically(path: Path, content: str | bytes | memoryview) -> None:
    """Write `content` to a temporary file beside `path`, then rename it; threads may write the same path."""
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which takes its name at the end; an error leaves `path` alone.

    If `path` is a link, its target is replaced.
    """
    target = path.resolve()
    owner = f"{socket.gethostname()}-{os.getpid()}"
    temporary = target.with_name(f".{target.name}.{owner}.{uuid.uuid4().hex}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def drop_abandoned(folder: Path) -> None:
    """Delete the temporary files in `folder` of this machine's dead processes."""
    ours = re.compile(rf"\..+\.{re.escape(socket.gethostname())}-(\d+)\.[0-9a-f]{{32}}")
    for file in folder.iterdir():
        found = ours.fullmatch(file.name)
        if found and not psutil.pid_exists(int(found[1])):
            with suppress(PermissionError):  # in a shared folder, a file of another user
                file.unlink(missing_ok=True)
