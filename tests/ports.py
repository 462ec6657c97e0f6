"""Ports for the servers that tests start."""

from __future__ import annotations

import itertools
import os
import random
import socket

# Below the ephemeral range (from 32768 on Linux), so that no connection takes a port between its choice and
# the start of its server. Each test process draws from its own span.
_FIRST, _SPAN = 12_000, 1_000
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 20
_NEXT = itertools.count(random.SystemRandom().randrange(_SPAN))


def free_ports(n: int) -> list[int]:
    """Return `n` different free ports, none of them among the last 1,000 returned."""
    ports = (_FIRST + _WORKER * _SPAN + number % _SPAN for number in itertools.islice(_NEXT, _SPAN))
    found = list(itertools.islice(filter(_is_free, ports), n))
    assert len(found) == n, "all ports of the tests are taken"
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
