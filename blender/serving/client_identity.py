"""The client of a call, for limits per client."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import grpc

from blender.wire.credentials import AUTHORIZATION

ClientOf = Callable[[grpc.ServicerContext], str]


def by_token(context: grpc.ServicerContext) -> str:
    """The call's token, else its client's certificate, else its address; for servers that check tokens."""
    for key, value in context.invocation_metadata() or ():
        if key == AUTHORIZATION:
            return f"token {hashlib.sha256(str(value).encode()).hexdigest()}"  # keeps no secret
    return by_origin(context)


def by_origin(context: grpc.ServicerContext) -> str:
    """The certificate of the call's client, else its address without the port.

    Without checks of tokens, a client could bring another token with every call and look like many clients.
    """
    shown = context.peer_identities()
    if shown:
        return f"certificate {b' '.join(shown).decode(errors='replace')}"
    return str(context.peer()).rsplit(":", 1)[0]
