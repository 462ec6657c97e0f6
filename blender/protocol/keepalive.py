"""How both ends of a connection find out that the other is gone: HTTP/2 pings that nobody answers.

A machine that loses its power or its network closes no connection, and a process that hangs leaves its
connections to the kernel, which keeps them. Whoever waits on one sends a ping where nothing came for a while,
and takes the connection to be broken where no answer comes either. Waiting for a live source is not silence
in this sense: the server answers pings while it waits for rows.

A server ends a connection with GOAWAY, `too_many_pings`, where pings come more often than it permits, so what
a client may ask for and what a server permits are both said here.
"""

from __future__ import annotations

from blender.errors import InvalidRequest

SILENCE_S = 30.0
"""Of a client: so soon a fetch goes on elsewhere, and no pause of a loaded server is so long."""
SHORTEST_SILENCE_S = 10.0

_PERMITTED_S = 5.0  # between two pings of a client
_UNANSWERED_SHARE = 1 / 3  # of the silence that is waited for the answer to a ping

Options = list[tuple[str, int]]


def pinging(silence_s: float) -> Options:
    """Of a client that takes a connection to be broken on which nothing came for `silence_s` during a call.

    Raises InvalidRequest for less than servers permit.
    """
    if silence_s < SHORTEST_SILENCE_S:
        raise InvalidRequest(
            f"A silence of {silence_s:g} s was asked for, and servers refuse pings that are so frequent. "
            f"Use at least {SHORTEST_SILENCE_S:g} s."
        )
    answer_ms = int(1000 * silence_s * _UNANSWERED_SHARE)
    asked_ms = int(1000 * silence_s) - answer_ms
    return _asking(asked_ms, answer_ms)


def _asking(asked_ms: int, answer_ms: int) -> Options:
    return [
        ("grpc.keepalive_time_ms", asked_ms),
        ("grpc.keepalive_timeout_ms", answer_ms),  # for the other machine to take the bytes
        ("grpc.http2.ping_timeout_ms", answer_ms),  # for its process to answer: 60 s by default
        ("grpc.http2.max_pings_without_data", 0),  # by default two, then one a minute
    ]


SERVER: Options = [
    *_asking(30_000, 20_000),  # a reader whose machine vanished leaves its place within a minute
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", int(1000 * _PERMITTED_S)),  # 5 minutes by default
]
"""Of a server, which looks after its readers as well."""
