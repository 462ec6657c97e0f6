"""A Blender on a port: the two services, health and reflection, in one process of many threads.

    python -m blender.server --port 0 --address-file blender.address

prints the address it listens on as its one line of output. SIGTERM lets the calls under way finish, up to
a limit, and ends the process with exit code 0. The lake is the one the settings name (`FACTORY_HOME`, ...).
"""

from __future__ import annotations

import argparse
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from blender.blends import DEFAULT_MEMORY_BYTES, Blends, open_blends
from blender.proto.blender.v1 import blender_pb2_grpc as pb_grpc
from blender.security import ServerSecurity
from blender.service import CONFIGS, DATA, BlendConfigs, BlendData, Slots
from factory.errors import ConfigurationError, FactoryError, MachineError
from factory.lake.servers import require_servers
from factory.settings import settings

MAX_REQUEST_BYTES = 4 << 20
DEFAULT_WORKERS = 64  # a stream holds a thread while it lasts; calls beyond that are refused
SPARE_THREADS = 8  # to refuse them, and to say that the server is well


class BlenderServer:
    """The services on a port of this process: `start` and `stop`, or `with BlenderServer(...) as server`."""

    def __init__(
        self,
        blends: Blends,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        workers: int = DEFAULT_WORKERS,
        security: ServerSecurity = ServerSecurity(),  # noqa: B008 - it is immutable
        allow_remote: bool = False,
    ) -> None:
        """Bind the port.

        Raises ConfigurationError for plaintext on a host others can reach and for files of `security` that
        do not serve, MachineError for a port in use.
        """
        credentials = security.credentials()
        if credentials is None and not allow_remote and not _is_loopback(host):
            raise ConfigurationError(
                f"Blender would speak plaintext and {host} can be reached from other machines. "
                "Give --tls-cert and --tls-key, bind 127.0.0.1, or allow it with --allow-remote."
            )
        self._health = health.HealthServicer()
        self._server = grpc.server(
            ThreadPoolExecutor(workers + SPARE_THREADS, thread_name_prefix="blender"),
            maximum_concurrent_rpcs=workers + SPARE_THREADS,
            interceptors=security.interceptors(),
            options=[
                ("grpc.so_reuseport", 0),  # else a second server shares the port in silence
                ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
                (
                    "grpc.max_send_message_length",
                    -1,
                ),  # blocks are bounded in bytes, save a row larger than one
            ],
        )
        slots = Slots(workers)
        pb_grpc.add_BlendConfigsServicer_to_server(BlendConfigs(blends, slots), self._server)
        self._server.add_generic_rpc_handlers((BlendData(blends, slots).handlers(),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = (CONFIGS, DATA, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)
        try:
            _probe(host, port)
            at = f"{host}:{port}"
            bound = (
                self._server.add_insecure_port(at)
                if credentials is None
                else self._server.add_secure_port(at, credentials)
            )
        except (OSError, RuntimeError) as error:
            raise MachineError(
                f"Port {port} of {host} cannot be bound ({_reason(error)}). "
                "Stop the process that has it, or choose another --port or --host."
            ) from error
        self.address = f"{host}:{bound}"

    def start(self) -> None:
        """Accept calls."""
        self._server.start()
        for name in ("", CONFIGS, DATA):
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    def stop(self, grace_s: float = 10.0) -> None:
        """Refuse new calls, wait `grace_s` for those under way, end the rest."""
        self._health.enter_graceful_shutdown()
        self._server.stop(grace_s).wait()

    def __enter__(self) -> BlenderServer:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop(grace_s=1.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; the exit code."""
    options = _options(arguments)
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s", stream=sys.stderr)
    asked_to_stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked_to_stop.set())
    try:
        require_servers(settings())
        server = BlenderServer(
            open_blends(settings(), options.memory_mib << 20),
            host=options.host,
            port=options.port,
            workers=options.workers,
            security=ServerSecurity(
                options.tls_cert, options.tls_key, options.tls_client_ca, options.token_file
            ),
            allow_remote=options.allow_remote,
        )
    except FactoryError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    server.start()
    if options.address_file:
        _write_whole(options.address_file, server.address)
    sys.stdout.write(f"{server.address}\n")
    sys.stdout.flush()
    asked_to_stop.wait()
    server.stop(options.grace_s)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="blender.server", description="Serve the blends of a lake over gRPC."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to bind (default %(default)s)")
    parser.add_argument(
        "--port", type=int, default=50051, help="port to bind, 0 for any (default %(default)s)"
    )
    parser.add_argument("--address-file", type=Path, help="write the bound address into this file")
    parser.add_argument("--tls-cert", type=Path, help="PEM file of the certificate to show")
    parser.add_argument("--tls-key", type=Path, help="PEM file of its key")
    parser.add_argument("--tls-client-ca", type=Path, help="PEM file of who must have signed clients")
    parser.add_argument("--token-file", type=Path, help="file of tokens, one a line, that calls must bring")
    parser.add_argument(
        "--allow-remote", action="store_true", help="speak plaintext where other machines can reach it"
    )
    parser.add_argument(
        "--workers", type=int, default=DEFAULT_WORKERS, help="calls at once (default %(default)s)"
    )
    parser.add_argument(
        "--memory-mib",
        type=int,
        default=DEFAULT_MEMORY_BYTES >> 20,
        help="decoded rows kept (default %(default)s)",
    )
    parser.add_argument(
        "--grace-s", type=float, default=10.0, help="wait for calls on SIGTERM (default %(default)s)"
    )
    return parser.parse_args(arguments)


def _probe(host: str, port: int) -> None:
    """Raise OSError for a port that cannot be bound: gRPC would write to stderr before it says so."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gRPC does: a port just left is free
        probe.bind((host.strip("[]"), port))


def _reason(error: OSError | RuntimeError) -> str:
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _write_whole(path: Path, text: str) -> None:
    """Write the file so that nobody ever reads a part of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(f"{text}\n")
    beside.replace(path)


if __name__ == "__main__":
    sys.exit(main())
