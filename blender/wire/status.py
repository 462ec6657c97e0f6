"""One table from error class to gRPC status, and back.

The status tells a generic client how to react. The class travels in the trailing metadata, so that our client
raises the same error as the core.
"""

from __future__ import annotations

import grpc

from blender.errors import (
    BlenderFailure,
    BlenderUnavailable,
    BlendNotFound,
    BrokenBlend,
    Busy,
    CallCancelled,
    CorruptPage,
    EndOfData,
    InvalidBlend,
    InvalidRequest,
    InvalidStrategy,
    PlanChanged,
    ServerStopping,
    SourceGone,
    Stalled,
    StoreUnavailable,
    Unauthenticated,
    UnsupportedPageLayout,
)
from blender.wire.credentials import Tls
from blender.wire.diagnosis import misdirection, proxy_clause
from factory.errors import (
    ConfigurationError,
    DamagedFile,
    FactoryError,
    LakeMoved,
    MachineError,
    NotFound,
    TableNotFound,
)

ERROR_KEY = "factory-error"
SERVE = "factory serve"  # the command that starts a Blender

STATUS: tuple[tuple[type[FactoryError], grpc.StatusCode], ...] = (  # the first matching class counts
    (BlendNotFound, grpc.StatusCode.NOT_FOUND),
    (BrokenBlend, grpc.StatusCode.DATA_LOSS),
    (InvalidBlend, grpc.StatusCode.INVALID_ARGUMENT),
    (InvalidStrategy, grpc.StatusCode.INVALID_ARGUMENT),
    (InvalidRequest, grpc.StatusCode.INVALID_ARGUMENT),
    (PlanChanged, grpc.StatusCode.FAILED_PRECONDITION),
    (Busy, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (Stalled, grpc.StatusCode.DEADLINE_EXCEEDED),
    (ServerStopping, grpc.StatusCode.UNAVAILABLE),
    (CallCancelled, grpc.StatusCode.CANCELLED),
    (Unauthenticated, grpc.StatusCode.UNAUTHENTICATED),
    (EndOfData, grpc.StatusCode.OUT_OF_RANGE),
    (CorruptPage, grpc.StatusCode.DATA_LOSS),
    (StoreUnavailable, grpc.StatusCode.UNAVAILABLE),
    (UnsupportedPageLayout, grpc.StatusCode.FAILED_PRECONDITION),
    (SourceGone, grpc.StatusCode.FAILED_PRECONDITION),
    (TableNotFound, grpc.StatusCode.FAILED_PRECONDITION),
    (DamagedFile, grpc.StatusCode.DATA_LOSS),
    (LakeMoved, grpc.StatusCode.FAILED_PRECONDITION),
    (ConfigurationError, grpc.StatusCode.INVALID_ARGUMENT),
    (NotFound, grpc.StatusCode.NOT_FOUND),
    (MachineError, grpc.StatusCode.FAILED_PRECONDITION),  # asking again cannot help, as it can UNAVAILABLE
)

_CLASS = {kind.__name__: kind for kind, _ in STATUS}

TRANSIENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)  # worth retrying

# How gRPC reports a connection that broke where it is not UNAVAILABLE: no server answers like this.
_BROKEN = ("RST_STREAM", "Stream removed", "GOAWAY")

_NOT_CONNECTED = "Failed to connect to remote host: "  # with the addresses before it, and the reason behind

# gRPC's words for a message and for metadata; it sends the status of a busy server.
_TOO_LARGE = ("message larger than max", "metadata size exceeds")

# The end of a call that the server cancelled while it waited on the client (`blender.serving.waiting_room`);
# gRPC adds no reason.
_EVICTED = (grpc.StatusCode.CANCELLED, "CANCELLED")

# The end of a connection whose client has a missing or unknown certificate: the client's side of TLS 1.3
# completes before the server checks the certificate.
_CERTIFICATE_REFUSED = ("failed to connect", "Socket closed")


def to_status(error: FactoryError) -> tuple[grpc.StatusCode, str]:
    """The status for an error, and the name of its class."""
    for kind, code in STATUS:
        if isinstance(error, kind):
            return code, kind.__name__
    return grpc.StatusCode.INTERNAL, BlenderFailure.__name__


def is_transient(error: grpc.RpcError) -> bool:
    """Whether the same call may succeed a moment later."""
    if error.code() in TRANSIENT:
        return not any(words in (error.details() or "") for words in _TOO_LARGE)
    if any(entry.key == ERROR_KEY for entry in error.trailing_metadata() or ()):
        return False
    evicted = (error.code(), error.details()) == _EVICTED
    return evicted or any(sign in (error.details() or "") for sign in _BROKEN)


def to_error(
    error: grpc.RpcError, address: str, tls: Tls | None = None, command: str = SERVE
) -> FactoryError:
    """The error to raise for a failed call of a client that connects with `tls`.

    `command` starts a server of the kind that was called.
    """
    code, details = error.code(), error.details() or ""
    named = next(
        (str(entry.value) for entry in error.trailing_metadata() or () if entry.key == ERROR_KEY), ""
    )
    if named in _CLASS:
        return _CLASS[named](details)
    if code is grpc.StatusCode.UNAVAILABLE and (sentence := misdirection(details, address, tls, command)):
        return BlenderUnavailable(sentence)
    if tls is not None and all(sign in details for sign in _CERTIFICATE_REFUSED):
        shown = "this client shows none" if tls.certificate is None else f"it may not trust {tls.certificate}"
        return BlenderUnavailable(
            f"Blender at {address} closed the connection after the TLS handshake ({details}). It may require "
            f"a certificate, and {shown}: give the client `Tls(certificate=..., key=...)` with one signed by "
            "an authority of the server's `--tls-client-ca`."
        )
    if "certificate" in details.lower() or "handshak" in details.lower():
        return BlenderUnavailable(
            f"Blender at {address} and this client do not accept each other's certificate ({details}). "
            "Check the files of `tls`."
        )
    if any(words in details for words in _TOO_LARGE):
        return InvalidRequest(f"A call is too large for Blender at {address} ({details}). Send less.")
    if (code, details) == _EVICTED:
        return BlenderUnavailable(
            f"Blender at {address} cancelled a call while it waited for this client to send or to read. Find "
            "out what slows the client or its connection down, and ask again."
        )
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return InvalidRequest(
            f"Blender at {address} does not know this call ({details}). Start it from this client's version; "
            "planned steps come from `factory loading serve`."
        )
    if code in TRANSIENT:
        return BlenderUnavailable(
            f"Blender at {address} does not answer ({details.rpartition(_NOT_CONNECTED)[2]}). Start it with "
            f"`{command}`, or correct the address.{proxy_clause(address)}"
        )
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return BlenderUnavailable(
            f"Blender at {address} did not answer in time. Raise `timeout_s`, or look at its log."
        )
    return BlenderFailure(f"Blender at {address} failed with {code.name}: {details}")
