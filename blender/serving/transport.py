"""What a server takes of one HTTP/2 connection, and of how many, before any of its own code runs."""

from __future__ import annotations

import contextlib
import resource

from blender.protocol import keepalive
from blender.serving.request_bytes import MAX_REQUEST_BYTES

MAX_METADATA_BYTES = 16 << 10  # of a call; gRPC holds only those to it who confirmed the server's settings
MAX_CONNECTIONS = 4096  # an idle one takes some 20 KB

_TOLD_BYTES = 64 << 10  # a request so much larger is read and told its limit in our words
_IDENTITY_ALONE = 1  # the bit of no compression: half a megabyte of gzip can be 900 MB
_STREAMS_BESIDE_CALLS = 100  # to refuse, and for health
_HANDSHAKE_MS = 10_000  # 2 minutes by default
_SETTINGS_MS = 10_000  # until a client confirms the server's settings, without which no limit here binds it
_IDLE_MS = 300_000  # a client connects anew with its next call; for ever by default


def raise_file_limit() -> None:
    """Let this process open as many files as its user may: connections are files, as those of a lake are."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS says "infinity" and takes less; what is stays then
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def options(calls: int, shared: bool) -> list[tuple[str, int]]:
    """The options of a server of so many calls at once, whose port other processes may share."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    half = MAX_CONNECTIONS if files == resource.RLIM_INFINITY else files // 2  # the rest is for the lake
    return [
        ("grpc.so_reuseport", int(shared)),  # by default it would share in silence
        ("grpc.max_receive_message_length", MAX_REQUEST_BYTES + _TOLD_BYTES),
        ("grpc.max_send_message_length", -1),  # blocks are bounded in bytes, save a row larger than one
        ("grpc.compression_enabled_algorithms_bitset", _IDENTITY_ALONE),
        ("grpc.per_message_decompression", 0),
        ("grpc.http2.bdp_probe", 0),  # else every stream may send megabytes ahead that nobody asked for
        ("grpc.max_concurrent_streams", calls + _STREAMS_BESIDE_CALLS),
        ("grpc.max_allowed_incoming_connections", min(MAX_CONNECTIONS, half)),
        ("grpc.max_connection_idle_ms", _IDLE_MS),
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
        ("grpc.http2.settings_timeout", _SETTINGS_MS),
        ("grpc.absolute_max_metadata_size", MAX_METADATA_BYTES),
        *keepalive.SERVER,
    ]
