"""The Blender process, or several, from the command line to the exit code.

    factory serve --port 0 --address-file blender.address --processes 4

prints the address it listens on as its one line of output, for programs, and to stderr, for people, which
lake it serves and how to stop it. SIGTERM lets the calls under way finish, up to a
limit, and ends with exit code 0; a second one ends the process at once. It serves the lake of the settings
(`FACTORY_HOME`, ...).
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NoReturn

from blender.catalog.blends import DEFAULT_MEMORY_BYTES, Blends, open_blends
from blender.catalog.store import open_store
from blender.serving.access_log import DEFAULT_LEVEL, LEVELS, configure, level_name
from blender.serving.calls import Limits
from blender.serving.metrics import SampleFile, Samples, samples, serve_metrics, summed_samples
from blender.serving.option_parser import OptionParser
from blender.serving.ports import port_number, reserve
from blender.serving.processes import Processes
from blender.serving.security import ServerSecurity
from blender.serving.server import BlenderServer, Service
from blender.serving.service import blend_services
from blender.serving.shutdown import GRACE_S, ForcedExit, ShutdownSignal
from blender.serving.transport import raise_file_limit
from factory.atomic_file import write_atomically
from factory.counted import counted
from factory.errors import ConfigurationError, FactoryError
from factory.lake.servers import require_servers
from factory.settings import Settings, settings


def run() -> NoReturn:
    """Serve as the command line says and end the process."""
    exit_now(main())


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return until_stopped(lambda shutdown: _serve(given, shutdown))


def until_stopped(serve: Callable[[ShutdownSignal], int]) -> int:
    """The exit code of `serve`, which returns when its signal is set; an error is a sentence on stderr."""
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s", stream=sys.stderr)
    shutdown = ShutdownSignal()
    shutdown.install(signal.SIGTERM, signal.SIGINT)
    try:
        return serve(shutdown)
    except FactoryError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except ForcedExit as signalled:
        return 128 + signalled.number


def serve_on_port(
    services: Sequence[Service], options: argparse.Namespace, shutdown: ShutdownSignal, greeting: str
) -> int:
    """Answer on the port of `options` until `shutdown`; return the exit code."""
    server = _server(services, options)
    with _scraped(options, partial(samples, server.calls)):
        server.start()
        _announce(server.address, options, greeting)
        shutdown.wait()
        server.stop(options.grace_s)
    return 0


def _serve(given: list[str], shutdown: ShutdownSignal) -> int:
    options = _parser().parse_args(given)
    if options.processes > 1 and options.child_of is None:
        return _serve_in_processes(options, given, shutdown)
    services = blend_services(open_lake(options))
    if options.child_of is not None:
        return _serve_as_child(_server(services, options, shared=True), options, shutdown)
    return serve_on_port(services, options, shutdown, _greeting(settings()))


def open_lake(options: argparse.Namespace) -> Blends:
    """The blends of the settings' lake, with the memory and the access log of `options`."""
    configure(options.log_level, options.log_file)
    require_servers(settings())
    raise_file_limit()
    return open_blends(settings(), options.memory_mib << 20)


def _server(
    services: Sequence[Service], options: argparse.Namespace, *, shared: bool = False
) -> BlenderServer:
    return BlenderServer(
        services,
        host=options.host,
        port=options.port,
        limits=Limits(options.workers, options.workers_per_client, options.max_steps, options.wait_s),
        security=ServerSecurity(options.tls_cert, options.tls_key, options.tls_client_ca, options.token_file),
        allow_remote=options.allow_remote,
        shared=shared,
    )


def _serve_as_child(server: BlenderServer, options: argparse.Namespace, shutdown: ShutdownSignal) -> int:
    threading.Thread(target=_stop_with_parent, args=(shutdown,), daemon=True).start()
    sample_file = SampleFile(options.child_of / f"{os.getpid()}.samples", server.calls)
    server.start()
    write_atomically(options.child_of / f"{os.getpid()}.address", f"{server.address}\n")
    shutdown.wait()
    server.stop(options.grace_s)
    sample_file.close()
    return 0


def _serve_in_processes(options: argparse.Namespace, given: list[str], shutdown: ShutdownSignal) -> int:
    with tempfile.TemporaryDirectory(prefix="blender-") as name, reserve(options.host, options.port) as port:
        folder, number = Path(name), port.getsockname()[1]
        share = max(1, options.memory_mib // options.processes)
        own = ["--port", str(number), "--memory-mib", str(share), "--child-of", name]
        processes = Processes(["blender.serving", *given, *own], options.processes, folder)
        try:
            with _scraped(options, partial(summed_samples, folder, processes.alive)):
                code = processes.start(shutdown)
                if code is not None:
                    return code
                if not shutdown.is_set():
                    _announce(f"{options.host}:{number}", options, _greeting(settings()))
                processes.watch(shutdown)
                processes.stop(options.grace_s)
        finally:
            processes.kill()
    return 0


@contextmanager
def _scraped(options: argparse.Namespace, read: Callable[[], Samples]) -> Iterator[None]:
    """Answer scrapes with `read` inside, if a port for them was given."""
    if options.metrics_port is None:
        yield
        return
    server = serve_metrics(options.metrics_host, options.metrics_port, read)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def _announce(address: str, options: argparse.Namespace, greeting: str) -> None:
    """Print the address for programs, and a greeting with the served lake for people."""
    if options.address_file is not None:
        write_atomically(options.address_file, f"{address}\n")
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    sys.stderr.write(
        f"{greeting.format(address=address)}\n"
        f"Ctrl-C or SIGTERM stops it; running calls then have {options.grace_s:g} s to end.\n"
    )


def _greeting(lake: Settings) -> str:
    n = sum(1 for _ in open_store(lake).ids())
    blends = f"{counted(n, 'blend')} on record (`factory blend list --retired`)" if n else "no blend yet"
    place = lake.warehouse or lake.home
    return f"Blender serves the lake {place} at {{address}}: {blends}."


def _stop_with_parent(shutdown: ShutdownSignal) -> None:
    sys.stdin.buffer.read()
    shutdown.set()


def _parser() -> argparse.ArgumentParser:
    """The options of `factory serve`, which are declared here alone."""
    parser = OptionParser("factory serve", "Serve the lake's blends over gRPC.")
    add = server_options(parser)
    add("--processes", "processes that share the port; each uses one core", 1, positive)
    parser.add_argument("--child-of", type=Path, help=argparse.SUPPRESS)  # a folder, given by the parent
    return parser


def server_options(parser: argparse.ArgumentParser, port: int = 50051) -> Callable[..., None]:
    """Add the options of every server; returns a function that adds one more."""

    def add(
        name: str, help: str, default: object = None, kind: Callable[[str], object] | None = None
    ) -> None:
        shown = "" if default is None else " (default %(default)s)"
        of_default = str if default is None else type(default)
        parser.add_argument(name, type=kind or of_default, default=default, help=help + shown)

    limits = Limits()
    add("--host", "address to listen on", "127.0.0.1")
    add("--port", "port to listen on, 0 for any free one", port, port_number)
    add("--address-file", "file to write the address into", kind=Path)
    add("--tls-cert", "PEM file of the server's certificate", kind=Path)
    add("--tls-key", "PEM file of its key, which only its owner may open", kind=Path)
    add("--tls-client-ca", "PEM file of the authority that must sign clients' certificates", kind=Path)
    add("--token-file", "file of tokens, one per line; every call must bring one", kind=Path)
    parser.add_argument("--allow-remote", action="store_true", help="speak plaintext to other machines")
    add("--workers", "calls at once, per process; a stream counts as one", limits.calls, positive)
    add("--workers-per-client", "calls at once per client, per process", kind=positive)
    add("--max-steps", "steps per fetch", kind=positive)
    add("--wait-s", "seconds to wait for rows if a call has no deadline", limits.wait_s)
    add("--memory-mib", "memory for pages, shared by all processes", DEFAULT_MEMORY_BYTES >> 20, positive)
    add("--grace-s", "seconds to wait for calls on SIGTERM", GRACE_S)
    add("--log-level", f"calls in the access log: {', '.join(LEVELS)}", DEFAULT_LEVEL, level_name)
    add("--log-file", "file of the access log; by default standard error", kind=Path)
    add("--metrics-port", "port to answer Prometheus on", kind=port_number)
    add("--metrics-host", "address to answer Prometheus on", "127.0.0.1")
    return add


def positive(text: str) -> int:
    """A whole number of at least 1; raises ConfigurationError."""
    if not text.isdecimal() or int(text) < 1:
        raise ConfigurationError(f"`{text}` is not a whole number of at least 1. Correct the option.")
    return int(text)


def exit_now(code: int) -> NoReturn:
    """Exit without joining threads.

    A regular exit joins every thread, also of a call or of a store's client that may never end.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # a further one would raise here
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
