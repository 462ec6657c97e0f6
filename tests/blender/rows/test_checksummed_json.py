"""JSON that proves itself: any other byte is found."""

from __future__ import annotations

import pytest

from blender.rows.checksummed_json import verified_content, with_checksum


@pytest.mark.parametrize("content", [b'{"a":1}', b"{}", b"[1]", b"[]"])
def test_every_flipped_byte_is_found(content: bytes) -> None:
    written = with_checksum(content)
    assert verified_content(written) == content
    for place in range(len(written)):
        for flip in range(1, 256):
            damaged = bytearray(written)
            damaged[place] ^= flip
            with pytest.raises(ValueError, match="checksum"):
                verified_content(bytes(damaged))


def test_only_where_it_is_optional_a_checksum_may_be_missing() -> None:
    assert verified_content(b'{"a":1}', optional=True) == b'{"a":1}'
    with pytest.raises(ValueError, match="it has no checksum"):
        verified_content(b'{"a":1}')
