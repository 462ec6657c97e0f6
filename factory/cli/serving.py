"""Start Blender, in place of this process or below it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from blender.serving.ports import port_number
from blender.serving.processes import end_in_order
from blender.serving.shutdown import GRACE_S
from factory.errors import MachineError
from factory.settings import Settings


def require_free_port(port: int, option: str = "--port") -> None:
    """Raise MachineError if something listens on `port`, ConfigurationError for a number above 65,535."""
    port_number(str(port))
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise MachineError(
                f"Port {port} is in use. Stop what listens there, or choose another port with {option}."
            ) from error


def serve_blends(settings: Settings, arguments: Sequence[str], package: str = "blender.serving") -> None:
    """Replace this process by a server on the lake; module `serve` of `package` declares the arguments."""
    os.environ |= settings.environment()
    os.execv(sys.executable, [sys.executable, "-m", package, *arguments])


@contextmanager
def blender_process(settings: Settings, wait_s: float = 60) -> Iterator[str]:
    """Run a Blender in a process of its own, on any free port; yield its address and stop it at the end.

    Raises MachineError with the output of a server that does not start.
    """
    address = settings.files.blender_address
    address.unlink(missing_ok=True)
    log = settings.files.blender_log
    with log.open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "blender.serving", "--port", "0", "--address-file", str(address)],
            stdout=subprocess.DEVNULL,
            stderr=output,
            env=os.environ | settings.environment(),
        )
    try:
        deadline = time.monotonic() + wait_s
        while not address.exists():
            if server.poll() is not None or time.monotonic() > deadline:
                raise MachineError(f"Blender did not start: {log.read_text().strip() or 'it said nothing'}")
            time.sleep(0.05)
        yield address.read_text().strip()
    finally:
        end_in_order([server], GRACE_S)
        address.unlink(missing_ok=True)
