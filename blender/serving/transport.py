"""Limits on HTTP/2 connections and their number, which apply before any of the server's own code runs."""

from __future__ import annotations

import contextlib
import resource

from blender.serving.request_bytes import MAX_REQUEST_BYTES
from blender.wire import keepalive

# Per call; gRPC enforces it only on clients that confirmed the server's settings.
MAX_METADATA_BYTES = 16 << 10
MAX_CONNECTIONS = 4096  # an idle one occupies some 20 KB

_READABLE_BYTES = 64 << 10  # a request that exceeds the limit by less than this gets our own error
_IDENTITY_ONLY = 1  # bit of no compression: half a megabyte of gzip can inflate to 900 MB
_SPARE_STREAMS = 100  # for calls to refuse, and for health
_HANDSHAKE_MS = 10_000  # 2 minutes by default
_SETTINGS_MS = 10_000  # for a client to confirm the server's settings; until then no limit here binds it
_IDLE_MS = 300_000  # a client reconnects with its next call; unlimited by default


def raise_file_limit() -> None:
    """Raise the limit of open files to the user's maximum: connections count as files, as the lake's do."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS reports "infinity" and accepts less; the limit then stays.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def options(calls: int, shared: bool) -> list[tuple[str, int]]:
    """Options of a server that answers `calls` at once on a port that other processes may share."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The other half of the files is for the lake.
    half = MAX_CONNECTIONS if files == resource.RLIM_INFINITY else files // 2
    return [
        ("grpc.so_reuseport", int(shared)),  # by default gRPC shares a port silently
        ("grpc.max_receive_message_length", MAX_REQUEST_BYTES + _READABLE_BYTES),
        # Blocks are bounded in bytes, except for a row larger than a block.
        ("grpc.max_send_message_length", -1),
        ("grpc.compression_enabled_algorithms_bitset", _IDENTITY_ONLY),
        ("grpc.per_message_decompression", 0),
        ("grpc.http2.bdp_probe", 0),  # else every stream may push megabytes ahead of its reader
        ("grpc.max_concurrent_streams", calls + _SPARE_STREAMS),
        ("grpc.max_allowed_incoming_connections", min(MAX_CONNECTIONS, half)),
        ("grpc.max_connection_idle_ms", _IDLE_MS),
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
        ("grpc.http2.settings_timeout", _SETTINGS_MS),
        ("grpc.max_metadata_size", MAX_METADATA_BYTES),  # else gRPC refuses some calls from 80 % of it on
        ("grpc.absolute_max_metadata_size", MAX_METADATA_BYTES),
        *keepalive.SERVER_OPTIONS,
    ]
