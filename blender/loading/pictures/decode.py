"""Any picture as RGB of a planned size, in memory that its header bounds.

    pixels_of(content, PlannedSize(width=280, height=196), background=(255, 255, 255))   # uint8 [196, 280, 3]

Transparent pixels show the background: palettes, gray and colors with alpha, and a single transparent color.
A rotation in EXIF is applied. Of an animation the first frame is taken. Sixteen bits become the upper eight.
CMYK and YCCK are converted without a profile, and the ICC profile of any picture is ignored: colors are as
stored.

A picture of too many pixels is refused from its header. A large JPEG is decoded at a half, a quarter or an
eighth of its size where that is still at least twice the planned one.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from factory.errors import first_line

Pixels = npt.NDArray[np.uint8]
Color = tuple[int, int, int]

MOST_PIXELS = 89_478_485
"""The most pixels of a picture, Pillow's own bound: 341 MiB with alpha."""

FORMATS = ("PNG", "JPEG", "MPO", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000", "TGA", "QOI")
"""Formats of pixels; others run programs, such as EPS, or hold pictures of sizes that no header tells."""

_ORIENTATION = 0x0112  # tag of EXIF
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_ALPHA = ("RGBA", "LA", "PA", "RGBa", "La")
_DIRECT = ("RGB", "L", "1", "P", "CMYK", "YCbCr", "HSV", "RGBX")
_GAP = 2  # how many times larger than planned a JPEG is decoded at least; below, resizing would alias


class PictureProblem(Exception):
    """A picture cannot be shown; the text says why, to follow `its picture`."""


@dataclass(frozen=True)
class PlannedSize:
    """The planned picture, and the size that its table names, in pixels."""

    width: int
    height: int
    of_width: int
    of_height: int


def pixels_of(
    content: bytes | memoryview, target: PlannedSize, background: Color, most_pixels: int = MOST_PIXELS
) -> Pixels:
    """The picture in its planned size; shape [height, width, 3]. Raises PictureProblem."""
    if not len(content):
        raise PictureProblem("is empty")
    try:
        with Image.open(BytesIO(content), formats=_formats()) as image:
            return _resized(image, target, background, most_pixels)
    except PictureProblem:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise PictureProblem(f"has too many pixels ({first_line(error)})") from error
    except UnidentifiedImageError as error:  # its own text has an address of memory
        raise PictureProblem("does not decode (no known format)") from error
    except (OSError, SyntaxError, ValueError, struct.error, zlib.error, EOFError) as error:
        raise PictureProblem(f"does not decode ({type(error).__name__}: {first_line(error)})") from error
    except (ArithmeticError, LookupError, TypeError, AttributeError, MemoryError) as error:
        # what decoders of Pillow raise over a file that was made to break them
        raise PictureProblem(f"does not decode ({type(error).__name__}: {first_line(error)})") from error


def _formats() -> list[str]:
    Image.init()
    return [name for name in FORMATS if name in Image.OPEN]  # a build of Pillow may lack some


def _resized(image: Image.Image, target: PlannedSize, background: Color, most_pixels: int) -> Pixels:
    width, height = image.size
    if width * height > most_pixels:
        raise PictureProblem(f"has {width:,} x {height:,} pixels, more than {most_pixels:,}")
    turn = _turn_of(image)
    is_on_side = turn is not None and turn in (_TURNS[number] for number in (5, 6, 7, 8))
    shown_size = (height, width) if is_on_side else (width, height)
    if shown_size != (target.of_width, target.of_height):
        raise PictureProblem(
            f"has {shown_size[0]:,} x {shown_size[1]:,} pixels, and its table says {target.of_width:,} x "
            f"{target.of_height:,}"
        )
    size = (target.height, target.width) if is_on_side else (target.width, target.height)
    image.draft(None, (size[0] * _GAP, size[1] * _GAP))  # of JPEG alone; its scale is 1, 1/2, 1/4 or 1/8
    image.load()
    rgb = _flattened(image, background)
    if rgb.size != size:
        rgb = rgb.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0)
    if turn is not None:
        rgb = rgb.transpose(turn)
    return np.array(rgb, dtype=np.uint8)


def _turn_of(image: Image.Image) -> Image.Transpose | None:
    """How the picture is turned to be shown; None also where its EXIF is damaged, as browsers do.

    EXIF behind the pixels does not count, as in the reader that measured the picture: a PNG's own `getexif`
    decodes all pixels to look behind them. Pillow turns a TIFF by itself.
    """
    if image.format == "TIFF":
        return None
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _TURNS.get(int(Image.Image.getexif(image).get(_ORIENTATION, 1)))
    return None


def _flattened(image: Image.Image, background: Color) -> Image.Image:
    """The picture without alpha, over the background."""
    mode = image.mode
    if mode.startswith("I"):
        return Image.fromarray(_upper_bits(image)).convert("RGB")
    if mode in _ALPHA or "transparency" in image.info:
        own = image.convert("LA") if mode == "La" else image
        rgba = own if own.mode == "RGBA" else own.convert("RGBA")
        base = Image.new("RGB", rgba.size, background)
        base.paste(rgba, mask=rgba.getchannel("A"))
        return base
    if mode not in _DIRECT:
        raise PictureProblem(f"has pixels of mode {mode}, which have no fixed range")
    return image if mode == "RGB" else image.convert("RGB")


def _upper_bits(image: Image.Image) -> npt.NDArray[Any]:
    """The upper eight of sixteen bits; Pillow reads some files of sixteen as 32."""
    values = np.asarray(image)
    if values.dtype.itemsize > 2:
        values = np.clip(values, 0, 0xFFFF)
    return (values >> 8).astype(np.uint8)
