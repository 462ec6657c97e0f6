"""The process of a constructor, from the command line to the exit code: `factory loading serve`.

    factory loading serve BLEND --mesh dp=2,cp=2 --model hidden=2048,layers=24 --microbatches 8 --buckets 0-3

It prints its address as its one line of output. One process serves a port: ranks of a bucket that reached
different processes would each have a copy of their own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn, get_args

from blender.errors import InvalidRequest
from blender.loading.options import add_spec_options, buckets_of, spec_of
from blender.loading.pictures.rules import Decode
from blender.loading.roles.shared import MEMORY_BYTES
from blender.loading.service import loading_service, served_loader
from blender.serving.option_parser import OptionParser
from blender.serving.serve import exit_now, open_lake, positive, serve_on_port, server_options, until_stopped
from blender.serving.service import blend_services
from blender.serving.shutdown import ShutdownSignal

PORT = 50052


def run() -> NoReturn:
    """Serve as the command line says and end the process."""
    exit_now(main())


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return until_stopped(lambda shutdown: _serve(given, shutdown))


def _serve(given: list[str], shutdown: ShutdownSignal) -> int:
    options = _parser().parse_args(given)
    blends = open_lake(options)
    blend = blends.open(options.blend)
    spec = spec_of(
        blend,
        mesh=options.mesh,
        order=options.order,
        model=options.model,
        broadcast=options.broadcast,
        strategy=options.strategy,
        tree=options.tree,
        microbatches=options.microbatches,
        barrier=options.barrier,
        limit=options.limit,
        equal_counts=not options.ragged,
        group_size=options.group_size,
        chunking=options.chunking,
        file=options.spec,
    )
    loader = served_loader(
        blend,
        spec,
        buckets_of(options.buckets),
        ahead=options.ahead,
        loaders=options.loaders,
        memory_bytes=options.batch_mib << 20,
        decode=options.decode,
    )
    if len(loader.ranks) > options.workers:
        raise InvalidRequest(
            f"{len(loader.ranks)} ranks read here, and --workers admits {options.workers} streams at once. "
            "Raise --workers, or serve fewer --buckets."
        )
    buckets = f"{len(loader.buckets)} of {loader.first_plan.buckets} buckets of mesh {spec.mesh}"
    greeting = f"Blender loads spec {spec.id} of blend {blend.id} at {{address}}: {buckets}."
    services = [*blend_services(blends), loading_service(loader, blends)]
    return serve_on_port(services, options, shutdown, greeting)


def _parser() -> argparse.ArgumentParser:
    """The options of `factory loading serve`, which are declared here alone."""
    parser = OptionParser(
        "factory loading serve", "Serve the planned steps of a blend to the ranks of a mesh."
    )
    parser.add_argument("blend", help="the id of a blend")
    add = server_options(parser, PORT)
    add_spec_options(add, positive)
    parser.add_argument("--ragged", action="store_true", help="microbatches of different numbers of rows")
    add("--buckets", "buckets to serve, 0-3,6; by default all")
    add("--loaders", "source loaders, among which the sources are dealt", 1, positive)
    add("--ahead", "steps that are made before a rank asks for them", 1, positive)
    add("--batch-mib", "memory for batches that some rank has not taken yet", MEMORY_BYTES >> 20, positive)
    add("--decode", "where pictures become patches: loader, or constructor for fewer bytes", "loader", _place)
    return parser


def _place(text: str) -> str:
    """The role that decodes pictures; raises InvalidRequest for another word."""
    if text not in get_args(Decode):
        raise InvalidRequest(f"`{text}` decodes no pictures. Give `--decode loader` or `constructor`.")
    return text
