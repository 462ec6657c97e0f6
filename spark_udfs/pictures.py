"""A picture's kind and size from the first bytes of a file, and whether all of it decodes.

    header_of(content)     Header("image/jpeg", 640, 480, "RGB"), without decoding a pixel
    fault_of(content)      None, or one sentence: "The picture does not decode: image file is truncated."

Pictures are hostile: a header of 30 bytes may claim terabytes, and a plugin of Pillow raises any error that
its parser meets. So sizes are compared with a bound before anything is allocated, and every error becomes a
`BadPicture`.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from factory.lake.schemas.images import PATCH

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

MAX_PIXELS = 89_478_485  # of a picture, as in Pillow; decoded it takes up to four bytes a pixel

MAX_SEGMENTS = 1_000  # of a JPEG file before its pixels; an ICC profile of 16 MB takes 256

_ENDINGS = {  # of the files of each of Pillow's formats
    "PNG": ("png",),
    "JPEG": ("jpg", "jpeg"),
    "WEBP": ("webp",),
    "GIF": ("gif",),
    "BMP": ("bmp",),
    "TIFF": ("tif", "tiff"),
}
PICTURE_ENDINGS = tuple(ending for endings in _ENDINGS.values() for ending in endings)
_MEDIA_TYPES = {format: f"image/{format.lower()}" for format in _ENDINGS} | {"MPO": "image/jpeg"}
_ORIENTATION, _TURNED = 0x0112, (5, 6, 7, 8)  # of EXIF: values that swap width and height
_JPEG_MARKER = re.compile(rb"\xff[\x01-\xfe]")
_START_OF_SCAN = 0xFFDA
_BEGINNING = 30  # bytes of a WebP file that tell its size


class Header(NamedTuple):
    """The media type of a picture, its pixels as it is shown, and Pillow's name of how they are stored."""

    media_type: str
    width: int
    height: int
    mode: str

    @property
    def patches(self) -> int:
        """Squares of `PATCH` pixels a side, cut ones included."""
        return -(-self.width // PATCH) * -(-self.height // PATCH)


class BadPicture(Exception):
    """Why a file is no picture to learn from: a word to count by, and a sentence."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


def header_of(content: bytes) -> Header:
    """Return the header of a picture's bytes, with the rotation that EXIF asks for.

    Raises BadPicture `empty_picture`, `not_a_picture` and `too_many_pixels`.
    """
    if not content:
        raise BadPicture("empty_picture", "The file of the picture is empty.")
    with _opened(content, "not_a_picture", "The header of the picture cannot be read") as image:
        width, height = image.size
        if min(width, height) < 1:
            raise BadPicture("not_a_picture", f"The picture is {width} x {height} pixels.")
        if _is_turned(image):
            width, height = height, width
        return Header(_MEDIA_TYPES[str(image.format)], width, height, image.mode)


def fault_of(content: bytes) -> str | None:
    """Return why a picture does not decode, as one sentence, or None; of several frames the first counts."""
    try:
        with _opened(content, "broken_picture", "The picture does not decode") as image:
            image.load()
    except BadPicture as bad:
        return bad.detail
    return None


@contextmanager
def _opened(content: bytes, reason: str, fact: str) -> Iterator[ImageFile]:
    """Open a picture; raises BadPicture with `reason` for an error of Pillow, also within the context."""
    from PIL import Image, UnidentifiedImageError  # an extra

    try:
        _refuse_large(*_webp_size(content))
        _refuse_many_segments(content)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # the bound below is the one that counts; other warnings are noise
            image = Image.open(io.BytesIO(content), formats=list(_ENDINGS))
            _refuse_large(*image.size)
            yield image
    except BadPicture:
        raise
    except UnidentifiedImageError:
        kinds = ", ".join(_ENDINGS)
        raise BadPicture(reason, f"The bytes are no picture of a known kind: {kinds}.") from None
    except Image.DecompressionBombError:
        raise _too_many_pixels("more than twice as many") from None
    except Exception as error:  # a damaged file makes plugins raise errors of any class
        cause = " ".join(str(error).split()) or type(error).__name__
        raise BadPicture(reason, f"{fact}: {cause.rstrip('.')}.") from None


def _refuse_large(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise _too_many_pixels(f"{width:,} x {height:,}")


def _too_many_pixels(size: str) -> BadPicture:
    return BadPicture("too_many_pixels", f"The picture has {size} pixels, the limit is {MAX_PIXELS:,}.")


def _refuse_many_segments(content: bytes) -> None:
    """Raise BadPicture for a JPEG file of very many segments: Pillow takes quadratic time to join EXIF."""
    from PIL.JpegImagePlugin import MARKER

    if not content.startswith(b"\xff\xd8\xff"):
        return
    position = n_segments = 0
    while match := _JPEG_MARKER.search(content, position):
        code = 0xFF00 | match[0][1]
        if code == _START_OF_SCAN or code not in MARKER:  # Pillow goes no further either
            return
        n_segments += 1
        if n_segments > MAX_SEGMENTS:
            detail = f"The file has more than {MAX_SEGMENTS:,} segments in front of its pixels."
            raise BadPicture("not_a_picture", detail)
        position = match.end()
        _, _, has_length = MARKER[code]
        if has_length:
            position += max(2, int.from_bytes(content[position : position + 2], "big"))


def _is_turned(image: ImageFile) -> bool:
    from PIL import Image
    from PIL.TiffImagePlugin import TiffImageFile

    if isinstance(image, TiffImageFile):  # Pillow has turned its size already
        return False
    # The method of PNG decodes all pixels in search of a chunk behind them.
    return Image.Image.getexif(image).get(_ORIENTATION) in _TURNED


def _webp_size(content: bytes) -> tuple[int, int]:
    """Return the size that a WebP file claims, zeros for other files: its decoder allocates when it opens."""
    head = content[:_BEGINNING]
    if len(head) < _BEGINNING or head[:4] != b"RIFF" or head[8:12] != b"WEBP":
        return 0, 0
    if head[12:16] == b"VP8X":
        return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
    if head[12:16] == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF
