"""Secrets in addresses, which would get into tables, logs and messages.

    https://user:password@host/f      https://host/f?X-Amz-Signature=...      https://host/f#access_token=...

Only names tell a secret from another parameter. They may stand anywhere behind the first `?` or `#`, also
encoded, or within the value of another parameter.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from factory.errors import ConfigurationError

_NAME = re.compile(r"([^&;?#~=]+)=")
_WORDS = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])")
_SECRET_WORD = re.compile(
    r"sig|sign|pass(code|key|phrase)?|pwd|jwt|hmac|key|creds?|bearer|hdn(ts|ea|tl)|googleaccessid"
    r"|(x|o|pre|basic)?auth(n|z|code|key|2|orization|entication)?"
    r"|\w*(token|(signature|secret|password|passwd|credential)s?)(id|key|value)?"
    r"|\w*(api|access|auth|private|shared|signing|session|account|client|license|subscription|storage)key(id)?"
)
_PASSWORD_INSIDE = re.compile(r"//(?:[^/?#&;]*|[^&]*:[^&]*)@")  # in an address that is a parameter
_MOST_ENCODINGS = 5  # of a parameter, one within the other


def refuse_secrets(rest: str, *, is_web: bool) -> None:
    """Raise ConfigurationError, which does not repeat it, if an address without its scheme holds a secret."""
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if _has_password(rest, host):
        # A password may hold an `@` or a slash, so only one `@` tells where the host is.
        hint = "" if "@" in host else " Write `%40` for an `@` that is part of a name."
        host = host.partition("@")[2] if rest.count("@") == 1 else ""
    elif not _has_secret_parameter(rest, is_web=is_web):
        return
    else:
        hint = ""
    raise ConfigurationError(
        f"An address of {host or 'a server'} in `paths` holds a password or a signature, "
        f"which would get into tables and logs. Give it in ~/.netrc or in the environment.{hint}"
    )


def _has_password(rest: str, host: str) -> bool:
    """Whether a name or password may stand before the host; one of digits up to a slash looks like a port."""
    if "@" in host:
        return True
    if host.startswith("[") or ":" not in host:
        return False
    path = re.split(r"[?#]", rest, maxsplit=1)[0]
    port = host.rpartition(":")[2]
    return bool(port and not port.isdecimal()) or "@" in (path if "/" in path else rest)


def _has_secret_parameter(rest: str, *, is_web: bool) -> bool:
    """Whether a parameter is named like a secret; objects of a bucket may have `?` and folders `key=1`."""
    parameters = rest[len(re.split(r"[?#]", rest, maxsplit=1)[0]) :]
    for _ in range(_MOST_ENCODINGS):
        names = [name for name in _NAME.findall(parameters) if is_web or "/" not in name]
        if any(map(_is_secret, names)) or _PASSWORD_INSIDE.search(parameters):
            return True
        parameters, text = unquote(parameters), parameters
        if text == parameters:
            return False
    return True


def _is_secret(name: str) -> bool:
    words = [word.lower() for word in _WORDS.split(name)]
    return any(map(_SECRET_WORD.fullmatch, words))
