"""How long a client retries while no Blender answers, and the one line that says so meanwhile."""

from __future__ import annotations

import logging
import random
import threading
import time
from types import TracebackType

import grpc

from blender.wire.credentials import Tls
from blender.wire.diagnosis import accepts_connections, misdirection, proxy_clause
from blender.wire.status import SERVE, is_transient, to_error
from factory.errors import FactoryError

NOTICE_S = 2.0
"""Seconds without an answer after which a warning is logged."""

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 2.0

_LOG = logging.getLogger("blender.client")


class Endpoint:
    """The server of a client, as the client knows it; `command` starts one."""

    def __init__(self, address: str, tls: Tls | None, command: str = SERVE) -> None:
        self.address = address
        self.tls = tls
        self.command = command
        self.has_answered = False
        """Whether a call of this client was ever answered."""

    def error(self, failure: grpc.RpcError) -> FactoryError:
        """The error to raise for a failed call."""
        return to_error(failure, self.address, self.tls, self.command)


class Patience:
    """Decides whether to retry: for `seconds` after the first failure, with growing, jittered waits.

    A failure that no further try mends, such as TLS to a server of plaintext, ends it at once until the
    server has answered for the first time. A warning is logged once NOTICE_S have passed; as a context it
    also logs one for a first call that hangs.
    """

    def __init__(self, endpoint: Endpoint, seconds: float) -> None:
        self._endpoint = endpoint
        self._seconds = seconds
        self._changed = threading.Condition()  # its lock is reentrant: `__del__` may call `give_up`
        self._given_up = False
        self._timer: threading.Timer | None = None
        self._failed_at: float | None = None
        self._wait = _FIRST_WAIT_S
        self._noticed = False

    def __enter__(self) -> Patience:
        if not self._endpoint.has_answered and self._seconds > NOTICE_S:
            self._timer = threading.Timer(NOTICE_S, self._notice_silence)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def restart(self) -> None:
        """Start over after an answer."""
        self._endpoint.has_answered = True
        self._failed_at, self._wait, self._noticed = None, _FIRST_WAIT_S, False

    def give_up(self) -> None:
        """End the current wait, which another thread is in, and every later one."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()

    def again(self, error: grpc.RpcError) -> bool:
        """Return whether to retry after `error`; waits before it returns True."""
        now = time.monotonic()
        self._failed_at = now if self._failed_at is None else self._failed_at
        if not is_transient(error) or now + self._wait > self._failed_at + self._seconds:
            return False
        if not self._endpoint.has_answered and self._is_misdirected(error):
            return False
        wait = self._wait * random.uniform(0.5, 1.0)  # many readers return to one restarted server
        self._wait = min(2 * self._wait, _LONGEST_WAIT_S)
        before_notice = max(0.0, self._failed_at + NOTICE_S - now)
        if before_notice < wait:
            if not self._passed(before_notice):
                return False
            self._notice(error)
            wait -= before_notice
        return self._passed(wait)

    def _passed(self, seconds: float) -> bool:
        """Wait for `seconds`; False if patience is given up meanwhile."""
        with self._changed:
            return not self._changed.wait_for(lambda: self._given_up, seconds)

    def _is_misdirected(self, error: grpc.RpcError) -> bool:
        endpoint = self._endpoint
        return (
            misdirection(error.details() or "", endpoint.address, endpoint.tls, endpoint.command) is not None
        )

    def _notice_silence(self) -> None:
        """Log the warning if the first call waits for a connection, not for the answer of a server."""
        if accepts_connections(self._endpoint.address) is False:
            self._notice()

    def _notice(self, error: grpc.RpcError | None = None) -> None:
        with self._changed:
            if self._noticed:
                return
            self._noticed = True
        address, seconds = self._endpoint.address, self._seconds
        if error is not None and error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
            _LOG.warning("Blender at %s is busy; trying for %g s.", address, seconds)
            return
        _LOG.warning(
            "No Blender answers at %s yet; trying for %g s. `%s` starts one.%s",
            address,
            seconds,
            self._endpoint.command,
            proxy_clause(address),
        )
