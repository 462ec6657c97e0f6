"""Start the two servers of the platform: Blender and the Dagster UI."""

from __future__ import annotations

import os
import socket
import sys

from factory.errors import MachineError
from factory.orchestration.instance import prepare_home
from factory.settings import Settings


def require_free_port(port: int, option: str = "--port") -> None:
    """Raise MachineError when something listens on `port` of this machine already."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise MachineError(
                f"Port {port} is in use ({error.strerror}). Stop what listens there, or choose another with {option}."
            ) from error


def open_ui(settings: Settings, port: int) -> None:
    """Replace this process by Dagster's webserver and daemon on the lake."""
    require_free_port(port)
    prepare_home(settings)
    os.environ["FACTORY_HOME"] = str(settings.home)
    os.environ["FACTORY_CACHE"] = str(settings.cache)
    arguments = ["-m", "jobs.definitions", "-h", "127.0.0.1", "-p", str(port)]
    os.execv(sys.executable, [sys.executable, "-m", "dagster", "dev", *arguments])
