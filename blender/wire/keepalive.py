"""How each end of a connection notices that the other is gone: HTTP/2 pings that nobody answers.

A machine that loses power or network closes no connection, and a process that hangs leaves its connections
to the kernel, which keeps them open. So either end sends a ping after a period of silence and treats the
connection as broken if no answer comes. Waiting for a live source is not silence in this sense: the server
answers pings while it waits for rows.

A server closes a connection with GOAWAY, `too_many_pings`, if pings arrive more often than it permits, so
this module declares both the client's bounds and the server's.
"""

from __future__ import annotations

from blender.errors import InvalidRequest

SILENCE_S = 30.0
"""How long a client tolerates silence before it reconnects; longer than a busy server's pauses."""
SHORTEST_SILENCE_S = 10.0

_PERMITTED_S = 5.0  # shortest interval between two pings of a client
_ANSWER_SHARE = 1 / 3  # of the silence, for the answer to a ping

Options = list[tuple[str, int]]


def client_options(silence_s: float) -> Options:
    """Channel options: a connection that is silent for `silence_s` during a call counts as broken.

    Raises InvalidRequest for a shorter silence than servers permit.
    """
    if silence_s < SHORTEST_SILENCE_S:
        raise InvalidRequest(
            f"`silence_s` is {silence_s:g}, and servers refuse pings that frequent. "
            f"Use at least {SHORTEST_SILENCE_S:g} s."
        )
    answer_ms = int(1000 * silence_s * _ANSWER_SHARE)
    interval_ms = int(1000 * silence_s) - answer_ms
    return _pings(interval_ms, answer_ms)


def _pings(interval_ms: int, answer_ms: int) -> Options:
    return [
        ("grpc.keepalive_time_ms", interval_ms),
        ("grpc.keepalive_timeout_ms", answer_ms),  # for the other machine to acknowledge the bytes
        ("grpc.http2.ping_timeout_ms", answer_ms),  # for its process to answer: 60 s by default
        ("grpc.http2.max_pings_without_data", 0),  # by default two, then one a minute
    ]


SERVER_OPTIONS: Options = [
    *_pings(30_000, 20_000),  # a reader whose machine vanished is gone within a minute
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", int(1000 * _PERMITTED_S)),  # 5 minutes by default
]
"""Server options; a server watches its readers too."""
