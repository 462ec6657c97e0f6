"""Files of a web server, by HTTP: each address is one file, because a server lists none.

Names and passwords come from `~/.netrc`, or the file that NETRC names. A server without ranges is read from
the begin to the end.
"""

from __future__ import annotations

import netrc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import NoReturn

import httpx

from factory.errors import ConfigurationError
from spark_udfs.ingest.remote.objects import Interrupted, ObjectChanged, ObjectState, persistent

_PARTIAL, _NOT_FOUND, _GONE, _CHANGED = 206, 404, 410, 412
_NO_ACCESS = (401, 403, 407)
_NO_HEAD = (400, 403, 405, 501)  # of servers that serve the same address to GET
_BUSY = (408, 425, 429)


@dataclass(frozen=True)
class WebObjects:
    """The files of a server at `root`, such as `https://data.example`; names have their query.

    A request with `headers` of its own asks for no password. `remedy` is for refused access.
    """

    root: str
    headers: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    remedy: str = "Give the name and password of its server in ~/.netrc, or correct the address."

    @cached_property
    def _client(self) -> httpx.Client:
        try:
            auth = httpx.NetRCAuth(os.environ.get("NETRC"))
        except (FileNotFoundError, netrc.NetrcParseError):
            auth = None
        return httpx.Client(
            auth=None if self.headers else auth,
            headers={"Accept-Encoding": "identity", **self.headers},  # a compressed answer has another length
            follow_redirects=True,
            timeout=httpx.Timeout(60, connect=10),
        )

    def address(self, name: str) -> str:
        """Return the address of a file."""
        return f"{self.root}/{name}"

    def state(self, name: str) -> ObjectState | None:
        """Return the state of a file, None if there is none."""
        return persistent(lambda: self._state(name), self.address(name))

    def _state(self, name: str) -> ObjectState | None:
        address = self.address(name)
        with self._answer("HEAD", address, {}) as answer:
            if answer.status_code not in _NO_HEAD:
                return self._state_of(answer, address)
        with self._answer("GET", address, {"Range": "bytes=0-0"}) as answer:
            return self._state_of(answer, address)

    def below(self, prefix: str) -> Iterator[tuple[str, ObjectState]]:
        """Raise ConfigurationError: a web server lists no files."""
        self._refuse_listing(prefix)

    def folder(self, prefix: str) -> list[str]:
        """Raise ConfigurationError: a web server lists no files."""
        self._refuse_listing(prefix)

    def obstacle(self, name: str) -> None:
        """Return None: every address can be asked for."""

    def pieces(self, name: str, begin: int, end: int, state: ObjectState) -> Iterator[bytes]:
        """Yield the bytes from `begin` to `end` of a file with that state."""
        address = self.address(name)
        headers = {} if not state.has_ranges else {"Range": f"bytes={begin}-{end - 1}"}
        with self._answer("GET", address, headers) as answer:
            if answer.status_code in (_NOT_FOUND, _GONE):
                raise FileNotFoundError(2, "The file is gone", address)
            now = self._state_of(answer, address)
            if now is None or now.is_other_than(state):
                raise ObjectChanged
            n_before = 0 if answer.status_code == _PARTIAL else begin
            for piece in answer.iter_raw():
                if n_before >= len(piece):
                    n_before -= len(piece)
                else:
                    yield piece[n_before:]
                    n_before = 0

    @contextmanager
    def _answer(self, method: str, address: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
        try:
            with self._client.stream(method, address, headers=headers) as answer:
                if answer.status_code >= 500 or answer.status_code in _BUSY:
                    pause_s = answer.headers.get("retry-after", "")
                    raise Interrupted(
                        f"status {answer.status_code}", int(pause_s) if pause_s.isdecimal() else 0
                    )
                yield answer
        except httpx.TooManyRedirects:
            raise ConfigurationError(f"`{address}` redirects in a circle. Correct the address.") from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL):
            raise _no_server(address) from None
        except httpx.HTTPError as error:
            if isinstance(error.__context__, httpx.InvalidURL):  # of a redirect; its text has the address
                raise _no_server(address) from None
            is_ours = isinstance(
                error, httpx.LocalProtocolError
            )  # about our headers, which may hold a password
            cause = "" if is_ours else str(error)
            raise Interrupted(cause or type(error).__name__) from None

    def _state_of(self, answer: httpx.Response, address: str) -> ObjectState | None:
        status = answer.status_code
        if status in (_NOT_FOUND, _GONE):
            return None
        if status in _NO_ACCESS:
            raise ConfigurationError(
                f"The server refuses access to `{address}` (status {status}). {self.remedy}"
            )
        if status >= 400:
            raise ConfigurationError(
                f"The server refuses `{address}` (status {status}). Correct the address."
            )
        n_bytes = _size(answer)
        if n_bytes is None:
            raise ConfigurationError(
                f"The server does not tell the length of `{address}`, so nobody would see that it breaks "
                "off. Download it, and name the file."
            )
        has_ranges = status == _PARTIAL or answer.headers.get("accept-ranges", "").lower() == "bytes"
        return ObjectState(n_bytes, answer.headers.get("etag"), _modified_ns(answer), has_ranges)

    def _refuse_listing(self, prefix: str) -> NoReturn:
        raise ConfigurationError(
            f"`{self.address(prefix)}` is the address of a web server, which lists no files. Name each file."
        )


def _no_server(address: str) -> ConfigurationError:
    """Return the error of an address that is, or redirects to, none of a web server.

    The text of the library's error is left out: it may quote the address of a redirect with its password.
    """
    return ConfigurationError(
        f"`{address}` leads to no web server: it, or the address that it redirects to, is invalid. Correct "
        "the address."
    )


def _size(answer: httpx.Response) -> int | None:
    """Return the size of the whole file, None if the server does not tell."""
    text = answer.headers.get("content-length", "")
    if answer.status_code == _PARTIAL:
        text = answer.headers.get("content-range", "").rpartition("/")[2]
    return int(text) if text.isdecimal() else None


def _modified_ns(answer: httpx.Response) -> int:
    try:
        return int(parsedate_to_datetime(answer.headers["last-modified"]).timestamp() * 1e9)
    except (KeyError, ValueError):
        return 0
