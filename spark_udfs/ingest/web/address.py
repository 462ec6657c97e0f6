"""Addresses of pages."""

from __future__ import annotations

from urllib.parse import urlsplit


def host_of(url: str) -> str:
    """Return the host of an address in lower case, empty without one."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:  # a bracket that opens no IPv6 address
        return ""
