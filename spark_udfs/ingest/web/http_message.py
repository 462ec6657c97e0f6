"""An HTTP response as an archive stores it: status, headers, and the body without its codings.

Crawlers differ. Some store the body as it came, with its transfer and content codings; some store it decoded
with the headers of the encoded body. So a body of plain markup is taken unchanged. Many truncate a long body
at a limit. The decodable part of such a body is used.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Callable
from typing import NamedTuple

import brotli
import zstandard

from spark_udfs.ingest.bounds import MAX_TEXT_BYTES
from spark_udfs.ingest.decoders import CHUNK_BYTES, Decoder, GzipMember, ZstandardFrame
from spark_udfs.ingest.rows import BadRecord
from spark_udfs.ingest.web.headers import MAX_HEADER_BYTES, Headers, header_end

_STATUS = re.compile(rb"HTTP/\d(?:\.\d)? +(\d{3})\b", re.IGNORECASE)
_CHUNK = re.compile(rb"[0-9a-fA-F]{1,8}[ \t]*(?:;[^\r\n]{0,1000})?\r\n")
_CUT_CHUNK = re.compile(rb"(?:[0-9a-fA-F]{1,8}[ \t]*(?:;[^\r\n]{0,1000})?\r?)?")  # what is left of a size
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE_FRAME = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")  # RFC 8878, section 3.1.2
_SKIPPABLE_HEADER_BYTES = 8
_FIRST_BYTES = 512  # of a stream that its decoder gets, then twice as many each time
_MARKUP = re.compile(rb"<[!?a-zA-Z]")


class Body(NamedTuple):
    """The content of a body without its codings; of a truncated body, its beginning."""

    content: bytes
    is_whole: bool


def status_of(message: bytes) -> tuple[int, Headers, bytes]:
    """Return status, headers and the encoded body of a response; raises BadRecord `not_http`."""
    match = _STATUS.match(message)
    if not match:
        raise BadRecord("not_http", "The record of a response does not begin with a status line of HTTP.")
    end = header_end(message)
    block, rest = (message[: end[0]], message[end[1] :]) if end else (message[:MAX_HEADER_BYTES], b"")
    return int(match[1]), Headers.parse(block.partition(b"\n")[2]), rest


def body_of(headers: Headers, body: bytes, max_bytes: int) -> Body:
    """Return the body without transfer and content codings.

    Raises BadRecord `wrong_coding` for a body that is not in the coding that the headers name, or breaks off
    before it says anything, `unknown_coding` for one that is not supported, and `too_large` beyond
    `max_bytes`.
    """
    is_whole = True
    if "chunked" in headers.get("transfer-encoding").lower() and _CHUNK.match(body):
        body, is_whole = _joined_chunks(body)
    codings = [coding.strip().lower() for coding in headers.get("content-encoding").split(",")]
    for coding in reversed([coding for coding in codings if coding not in ("", "identity", "none")]):
        if not body or is_markup(body):  # stored decoded beside the header, or the header names no coding
            continue
        if coding not in _DECODERS:
            raise BadRecord("unknown_coding", f"The content coding `{coding[:40]}` of the body is not known.")
        try:
            body, has_end = _DECODERS[coding](body, max_bytes)
            is_whole = is_whole and has_end
        except (zlib.error, brotli.error, zstandard.ZstdError):
            detail = f"The body is not {coding}, as its header says."
            raise BadRecord("wrong_coding", detail) from None
        if not body and not has_end:
            detail = (
                f"The body is not {coding}, as its header says, or it breaks off before its first letter."
            )
            raise BadRecord("wrong_coding", detail)
        if len(body) > max_bytes:
            raise BadRecord("too_large", f"The body expands to more than {max_bytes:,} bytes.")
    return Body(body, is_whole)


def is_markup(body: bytes) -> bool:
    """Whether a body begins with a tag, a comment or a declaration."""
    return _MARKUP.match(body.lstrip().removeprefix(codecs.BOM_UTF8).lstrip()) is not None


def _joined_chunks(body: bytes) -> Body:
    parts: list[bytes] = []
    begin = 0
    while match := _CHUNK.match(body, begin):
        size = int(match[0].partition(b";")[0], 16)
        if not size:
            return Body(b"".join(parts), is_whole=True)
        parts.append(body[match.end() : match.end() + size])
        begin = match.end() + size + 2
    if _CUT_CHUNK.fullmatch(body, begin):
        return Body(b"".join(parts), is_whole=False)
    raise BadRecord("wrong_coding", "The lengths of the chunks of the body are wrong.")


def _inflated(body: bytes, max_bytes: int) -> Body:
    """Gzip members, zlib, or a raw deflate stream, which some servers send as `deflate`."""
    if body.startswith(_GZIP_MAGIC):
        return _joined_streams(body, max_bytes, _GZIP_MAGIC, GzipMember)
    try:
        return _one_stream(zlib.decompressobj(), body, max_bytes)
    except zlib.error:
        raw = _one_stream(zlib.decompressobj(-zlib.MAX_WBITS), body, max_bytes)
        if not raw.is_whole:  # it has no mark, so that any bytes may look like the beginning of one
            raise
        return raw


def _one_stream(stream: zlib._Decompress, body: bytes, max_bytes: int) -> Body:
    content = stream.decompress(body, max_bytes + 1)
    return Body(content, stream.eof or len(content) > max_bytes)


def _brotli(body: bytes, max_bytes: int) -> Body:
    stream = brotli.Decompressor()
    content = bytearray(stream.process(body, output_buffer_limit=1 << 20))
    while not stream.is_finished() and len(content) <= max_bytes:
        piece = stream.process(b"", output_buffer_limit=1 << 20)
        if not piece and stream.can_accept_more_data():
            return Body(bytes(content), is_whole=False)
        content += piece
    return Body(bytes(content), is_whole=True)


def _zstd(body: bytes, max_bytes: int) -> Body:
    if not _SKIPPABLE_FRAME.match(body) and not body.startswith(_ZSTD_MAGIC[: len(body)]):
        raise zstandard.ZstdError("no frame begins here")
    return _joined_streams(body, max_bytes, _ZSTD_MAGIC, ZstandardFrame)


def _joined_streams(body: bytes, max_bytes: int, magic: bytes, new: Callable[[], Decoder]) -> Body:
    """All gzip members or Zstandard frames; other bytes behind them are left out.

    A body may consist of a million of them, so the pieces that a decoder gets and may hand back begin short.
    """
    content, position = bytearray(), 0
    while position < len(body):
        head = body[position : position + _SKIPPABLE_HEADER_BYTES]
        if magic == _ZSTD_MAGIC and _SKIPPABLE_FRAME.match(head):
            position += _SKIPPABLE_HEADER_BYTES + int.from_bytes(head[4:], "little")
            if len(head) < _SKIPPABLE_HEADER_BYTES or position > len(body):
                return Body(bytes(content), is_whole=False)
            continue
        if not head.startswith(magic):
            return Body(bytes(content), is_whole=not magic.startswith(head))
        decoder, n_bytes = new(), _FIRST_BYTES
        while not decoder.eof:
            piece = body[position : position + n_bytes]
            if not piece:
                return Body(bytes(content), is_whole=False)
            position += len(piece)
            n_bytes = min(2 * n_bytes, CHUNK_BYTES)
            for part in decoder.feed(piece):
                content += part
                if len(content) > max_bytes:
                    return Body(bytes(content), is_whole=True)
        position -= len(decoder.unused_data)
    return Body(bytes(content), is_whole=True)


_DECODERS: dict[str, Callable[[bytes, int], Body]] = {
    "gzip": _inflated,
    "x-gzip": _inflated,
    "deflate": _inflated,
    "br": _brotli,
    "zstd": _zstd,
}


def page_of_record(content: bytes) -> tuple[bytes, str | None]:
    """Return the decoded body of a record of an archive, with its header, and its charset.

    Raises BadRecord for other bytes.
    """
    end = header_end(content)
    if end is None:
        raise BadRecord("not_warc", "No header of a WARC record is there.")
    own = Headers.parse(content[: end[0]].partition(b"\n")[2])
    block = content[end[1] :].removesuffix(b"\r\n\r\n")
    if not _STATUS.match(block):
        return block, own.charset
    _, headers, body = status_of(block)
    return body_of(headers, body, MAX_TEXT_BYTES).content, headers.charset
