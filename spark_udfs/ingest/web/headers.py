"""Header fields, of WARC records and of HTTP messages."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_HEADER_BYTES = 256 << 10
_END = re.compile(rb"\r?\n\r?\n")
_FOLD = re.compile(rb"\r?\n[ \t]+")
_SAY_NOTHING = ("unknown/unknown", "application/unknown", "application/x-unknown-content-type", "*/*")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([^\s"';,]+)""", re.IGNORECASE)


@dataclass(frozen=True)
class Headers:
    """The values of header fields by lower-case name, in order."""

    fields: dict[str, list[str]]

    @classmethod
    def parse(cls, block: bytes) -> Headers:
        """Read `name: value` lines; folded lines are joined, and lines without a name are left out."""
        fields: dict[str, list[str]] = {}
        for line in _FOLD.sub(b" ", block).splitlines():
            name, colon, content = line.partition(b":")
            if colon and name.strip():
                decoded_name = name.strip().decode("utf-8", "replace").lower()
                fields.setdefault(decoded_name, []).append(content.strip().decode("utf-8", "replace"))
        return cls(fields)

    def get(self, name: str) -> str:
        """Return the value of a field, the first of a repeated one, empty without any."""
        return self.fields.get(name, [""])[0]

    def list_of(self, name: str) -> str:
        """Return the values of a field of lists, one after the other (RFC 9110, section 5.3)."""
        return ", ".join(filter(None, self.fields.get(name, ())))

    @property
    def media_type(self) -> str:
        """The media type, of several the first; empty where none is stated, or one that says nothing."""
        name = re.split("[;,]", self.get("content-type"))[0].strip("\"' \t").lower()
        return "" if name in _SAY_NOTHING else name

    @property
    def charset(self) -> str | None:
        match = _CHARSET.search(self.get("content-type"))
        return match[1] if match else None


def header_end(block: bytes) -> tuple[int, int] | None:
    """Return where a block of headers ends and where the content begins, None without an end."""
    match = _END.search(block, 0, MAX_HEADER_BYTES)
    return match.span() if match else None
