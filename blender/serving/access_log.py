"""The access log: a JSON line for each call that a server of blends ends, and one for each that lasts.

    {"time": "2026-11-27T12:03:31.201Z", "event": "end", "peer": "ipv4:10.0.0.7:53412", "method": "Fetch",
     "client": "ipv4:10.0.0.7", "blend": "4f1c...", "offset": 500, "rank": 0, "ranks": 8, "status": "OK",
     "next_offset": 600, "rows": 800, "bytes": 1310720, "seconds": 2.113}

Its logger is `blender.access`, which does nothing until `configure` gives it a level and a place. A line has
no secret: a client is the hash of its token, its certificate or its address.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import grpc

from blender.serving.client_identity import ClientOf
from factory.errors import ConfigurationError

LEVELS = {"off": logging.CRITICAL + 1, "errors": logging.WARNING, "calls": logging.INFO}
DEFAULT_LEVEL = "errors"

LONG_S = 10.0
"""How long a stream lasts before a line says that it is open."""

_NO_ERRORS = ("OK", "CANCELLED")  # a client that leaves cancels its call
_BLEND_FIELDS = ("blend", "id", "parent")  # of requests
_RANGE_FIELDS = ("offset", "rank")
_SIZE_FIELDS = ("steps", "stride", "ranks")  # zero if the client left them out
_MOST_CHARACTERS = 80
_TOKEN_CHARACTERS = len("token ") + 12
_EVERY_S = 1.0

_LOG = logging.getLogger("blender.access")
_LOG.propagate = False
_LOG.addHandler(logging.NullHandler())


def level_name(text: str) -> str:
    """`text`, if it is a level; raises ConfigurationError."""
    if text not in LEVELS:
        raise ConfigurationError(f"Unknown level `{text}` of the access log. Use one of {', '.join(LEVELS)}.")
    return text


def configure(level: str, file: Path | None) -> None:
    """Write lines of a level of LEVELS to `file`, by default to standard error.

    A file that was moved away, as by logrotate, is reopened. Raises ConfigurationError for one that cannot be
    written.
    """
    try:
        handler = logging.StreamHandler(sys.stderr) if file is None else WatchedFileHandler(file)
    except OSError as error:
        raise ConfigurationError(
            f"The access log {file} cannot be written ({error.strerror}). Name another file, or correct its "
            "permissions."
        ) from error
    handler.setFormatter(logging.Formatter("%(message)s"))
    _LOG.addHandler(handler)
    _LOG.setLevel(LEVELS[level])


class LoggedCall:
    """A call of one method, and what its client was sent."""

    def __init__(self, method: str, context: grpc.ServicerContext, client_of: ClientOf, request: Any) -> None:
        self._request = request
        self._began = time.monotonic()
        self._created = ""
        self._amounts: dict[str, int] = {}
        self._is_announced = False
        self._caller: dict[str, Any] = {}
        if _LOG.isEnabledFor(logging.WARNING):  # gRPC forgets the peer of a call that has ended
            client = client_of(context)
            client = client[: _TOKEN_CHARACTERS if client.startswith("token ") else _MOST_CHARACTERS]
            self._caller = {"peer": _peer(context), "method": method, "client": client}

    def count(self, next_offset: int, **amounts: int) -> None:
        """Count `rows` and `bytes` that the client has taken, before step `next_offset`."""
        self._amounts["next_offset"] = next_offset
        for name, amount in amounts.items():
            self._amounts[name] = self._amounts.get(name, 0) + amount

    def note_creation(self, answer: Any) -> None:
        """Note the blend with which the call was answered, if it was one."""
        self._created = str(getattr(answer, "id", ""))

    def announce(self) -> None:
        """Write once that the call is open, if it has lasted long."""
        if not self._is_announced and time.monotonic() - self._began >= LONG_S:
            self._is_announced = True
            self._write(logging.INFO, "open")

    def end(self, status: str, sentence: str = "") -> None:
        """Write that the call has ended."""
        self._is_announced = True
        level = logging.INFO if status in _NO_ERRORS else logging.WARNING
        self._write(level, "end", status=status, **({"message": sentence} if sentence else {}))

    def _write(self, level: int, event: str, **outcome: str) -> None:
        if _LOG.isEnabledFor(level):
            seconds = {"seconds": round(time.monotonic() - self._began, 3)}
            _write_line(level, event, self._caller | self._target() | outcome | self._amounts | seconds)

    def _target(self) -> dict[str, Any]:
        """The blend and the range that the request names."""
        blends = (getattr(self._request, name, "") for name in _BLEND_FIELDS)
        blend = self._created or next(filter(None, blends), "")
        target = {"blend": blend[:_MOST_CHARACTERS]} if blend else {}
        for name in _RANGE_FIELDS:
            if hasattr(self._request, name) and not _is_left_out(self._request, name):
                target[name] = getattr(self._request, name)
        return target | {name: size for name in _SIZE_FIELDS if (size := getattr(self._request, name, 0))}


def _is_left_out(request: Any, name: str) -> bool:
    """Whether a request has no value for a field that may be left out."""
    return request.DESCRIPTOR.fields_by_name[name].has_presence and not request.HasField(name)


class RefusedCalls:
    """Calls that are refused at their headers, perhaps in a flood: at most one line a second for all."""

    def __init__(self, status: str, sentence: str) -> None:
        self._status, self._sentence = status, sentence
        self._lock = threading.Lock()
        self._written_at = float("-inf")
        self._unwritten = 0

    def add(self, context: grpc.ServicerContext) -> None:
        """Count a call, and write how many there were since the last line if that is long enough ago."""
        with self._lock:
            self._unwritten += 1
            if time.monotonic() - self._written_at < _EVERY_S or not _LOG.isEnabledFor(logging.WARNING):
                return
            calls, self._unwritten, self._written_at = self._unwritten, 0, time.monotonic()
        outcome = {"status": self._status, "message": self._sentence, "calls": calls}
        fields = {"peer": _peer(context), **outcome}
        _write_line(logging.WARNING, "refused", fields)


def _write_line(level: int, event: str, fields: Mapping[str, Any]) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    _LOG.log(level, "%s", json.dumps({"time": now, "event": event, **fields}))


def _peer(context: grpc.ServicerContext) -> str:
    """The address of a client, without gRPC's escapes of an IPv6 one."""
    return unquote(str(context.peer()))
