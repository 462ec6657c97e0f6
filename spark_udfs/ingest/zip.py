"""The data of a zip's member, never more than the directory claims.

The standard library cuts a member to that size only after decompressing it, so a few megabytes that claim ten
bytes could take gigabytes of memory.
"""

from __future__ import annotations

import bz2
import copy
import lzma
import zipfile
import zlib

from spark_udfs.ingest.bounds import MAX_DECODER_BYTES

_STREAMED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # here the library decompresses no more than asked
_LZMA_HEAD = 4  # a version and the size of the properties
_UNKNOWN_SIZE = b"\xff" * 8  # in the header of an `.lzma` file


def zip_data(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return the data of a member; raises what `zipfile` and the decompressors raise for damage."""
    if info.compress_type in _STREAMED:
        with archive.open(info) as member:
            data = member.read(info.file_size + 1)
    else:
        data = _decompressed(archive, info)
    if len(data) != info.file_size:
        raise zipfile.BadZipFile(f"a member of {info.file_size:,} bytes has {len(data):,}")
    return data


def _decompressed(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    packed = _packed(archive, info)
    decoder: bz2.BZ2Decompressor | lzma.LZMADecompressor
    if info.compress_type == zipfile.ZIP_BZIP2:
        decoder = bz2.BZ2Decompressor()
    elif info.compress_type == zipfile.ZIP_LZMA:
        decoder = lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=MAX_DECODER_BYTES)
        n_properties = int.from_bytes(packed[2:_LZMA_HEAD], "little")
        properties, rest = packed[_LZMA_HEAD:][:n_properties], packed[_LZMA_HEAD + n_properties :]
        packed = properties + _UNKNOWN_SIZE + rest
    else:
        raise NotImplementedError("a member is compressed by an unsupported method")
    data = decoder.decompress(packed, info.file_size + 1)
    while len(data) <= info.file_size and not decoder.eof and not decoder.needs_input:
        data += decoder.decompress(b"", info.file_size + 1 - len(data))
    if zlib.crc32(data) != info.CRC:
        raise zipfile.BadZipFile("a member has the wrong checksum")
    return data


def _packed(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.compress_size > info.file_size + (64 << 10):
        raise zipfile.BadZipFile("a member is far longer compressed than decompressed")
    stored = copy.copy(info)
    stored.compress_type, stored.file_size = zipfile.ZIP_STORED, info.compress_size
    del stored.CRC  # the checksum is of the decompressed data
    with archive.open(stored) as member:
        return member.read(info.compress_size)
