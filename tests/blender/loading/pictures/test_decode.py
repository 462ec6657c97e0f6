"""Every mode of a picture becomes RGB of the planned size, and hostile files become a problem."""

from __future__ import annotations

import contextlib
import struct
import warnings
import zlib
from io import BytesIO

import numpy as np
import pytest
from PIL import Image, ImageCms

from blender.loading.pictures.decode import MOST_PIXELS, PictureProblem, PlannedSize, pixels_of
from spark_udfs.pictures import header_of
from tests.blender.picture_tables import draw, file_of

WHITE, BLUE = (255, 255, 255), (0, 0, 255)


def colors_of(content: bytes, width: int = 2, height: int = 1, background: tuple[int, int, int] = WHITE):
    """The pixels of a picture in its own size, as lists."""
    return pixels_of(content, PlannedSize(width, height, width, height), background).tolist()


def pair(mode: str, first: object, second: object) -> Image.Image:
    """A picture of two pixels."""
    image = Image.new(mode, (2, 1))
    image.putpixel((0, 0), first)
    image.putpixel((1, 0), second)
    return image


def palette(transparent: bytes | int | None = None) -> bytes:
    """Two pixels of a palette, red and green; the entries of `transparent` have its alpha."""
    image = Image.new("P", (2, 1))
    image.putpalette([255, 0, 0, 0, 255, 0])
    image.putdata([0, 1])
    return file_of(image, **({} if transparent is None else {"transparency": transparent}))


RED, GREEN = [255, 0, 0], [0, 255, 0]
MODES = {
    "RGB": (file_of(pair("RGB", (255, 0, 0), (0, 255, 0))), [RED, GREEN]),
    "gray": (file_of(pair("L", 0, 128)), [[0, 0, 0], [128, 128, 128]]),
    "one bit": (file_of(pair("1", 0, 1)), [[0, 0, 0], [255, 255, 255]]),
    "palette": (palette(), [RED, GREEN]),
    "palette with a transparent color": (palette(0), [[0, 0, 255], GREEN]),
    "palette with alpha": (palette(bytes([128, 255])), [[128, 0, 127], GREEN]),
    "alpha": (file_of(pair("RGBA", (255, 0, 0, 0), (0, 255, 0, 255))), [[0, 0, 255], GREEN]),
    "gray with alpha": (file_of(pair("LA", (0, 255), (255, 0))), [[0, 0, 0], [0, 0, 255]]),
    "a transparent color": (
        file_of(pair("RGB", (1, 2, 3), (0, 255, 0)), transparency=(1, 2, 3)),
        [[0, 0, 255], GREEN],
    ),
    "a transparent gray": (file_of(pair("L", 9, 128), transparency=9), [[0, 0, 255], [128, 128, 128]]),
    "sixteen bits": (
        file_of(Image.fromarray(np.array([[0x1234, 0xFFFF]], dtype=np.uint16))),
        [[0x12] * 3, [0xFF] * 3],
    ),
}


@pytest.mark.parametrize("name", MODES)
def test_each_mode_is_shown_over_the_background(name: str) -> None:
    content, colors = MODES[name]
    assert colors_of(content, background=BLUE) == [colors]


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr"])
def test_jpeg_of_four_inks_and_of_luma_have_their_colors(mode: str) -> None:
    image = Image.new("RGB", (16, 16), (200, 40, 90)).convert(mode)
    pixels = np.array(colors_of(file_of(image, "JPEG", quality=95), 16, 16))
    assert abs(pixels - np.array([200, 40, 90])).max() < 8


def png_with_late_exif(image: Image.Image, exif: Image.Exif) -> bytes:
    """A PNG whose EXIF is behind its pixels."""
    content = file_of(image)
    chunk = b"eXIf" + exif.tobytes().removeprefix(b"Exif\0\0")
    late = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return content[:-12] + late + content[-12:]


@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_a_rotation_behind_the_pixels_of_a_png_is_left_out_as_in_its_table(orientation: int) -> None:
    image = Image.fromarray(np.arange(18, dtype=np.uint8).reshape(2, 3, 3) * 10)
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = png_with_late_exif(image, exif)
    header = header_of(content)
    assert colors_of(content, header.width, header.height) == np.array(image).tolist()


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_rotation_in_exif_is_applied(orientation: int, kind: str) -> None:
    image = Image.fromarray(np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 10)
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = file_of(image, kind, exif=exif)
    upright = np.array(image)
    by_hand = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: upright[::-1].transpose(1, 0, 2),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: upright[:, ::-1].transpose(1, 0, 2),
    }[orientation]
    height, width = by_hand.shape[:2]
    header = header_of(content)
    assert (header.width, header.height) == (width, height)
    assert colors_of(content, width, height) == by_hand.tolist()


def test_an_animation_shows_its_first_frame() -> None:
    frames = [Image.new("RGB", (2, 1), color) for color in ((255, 0, 0), (0, 255, 0))]
    content = file_of(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=10)
    assert colors_of(content) == [[RED, RED]]


def test_a_profile_leaves_the_colors_as_they_are_stored() -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    content = file_of(pair("RGB", (255, 0, 0), (0, 255, 0)), icc_profile=profile)
    assert colors_of(content) == [[RED, GREEN]]


def test_a_large_jpeg_is_decoded_at_a_part_of_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = draw(1600, 800, kind="JPEG")
    sizes = []
    load = Image.Image.load
    monkeypatch.setattr(Image.Image, "load", lambda self: (sizes.append(self.size), load(self))[1])
    pixels = pixels_of(picture.content, PlannedSize(56, 28, 1600, 800), WHITE)
    assert pixels.shape == (28, 56, 3)
    assert max(width for width, _ in sizes) <= 200
    monkeypatch.undo()
    whole = Image.open(BytesIO(picture.content)).resize((56, 28), Image.Resampling.BICUBIC)
    assert abs(pixels.astype(int) - np.array(whole).astype(int)).mean() < 2


@pytest.mark.parametrize("size", [(100_000, 1), (1, 100_000)])
def test_a_line_of_pixels_has_its_planned_size(size: tuple[int, int]) -> None:
    content = file_of(Image.new("L", size, 7))
    pixels = pixels_of(content, PlannedSize(56, 28, *size), WHITE)
    assert pixels.shape == (28, 56, 3)
    assert (pixels == 7).all()


def bomb(width: int, height: int) -> bytes:
    """The begin of a PNG whose header names this size."""
    header = struct.pack(">II", width, height) + bytes([8, 2, 0, 0, 0])
    chunk = b"IHDR" + header
    chunk_of_zeros = zlib.compress(bytes(1_000))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part))
        for part in (chunk, b"IDAT" + chunk_of_zeros)
    )


WHOLE = file_of(Image.fromarray(np.random.default_rng(1).integers(0, 255, (64, 64, 3), dtype=np.uint8)))
BROKEN = {
    "empty": (b"", "is empty"),
    "no picture": (b"<html>not a picture</html>", "does not decode"),
    "a program of a printer": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 2 1\n", "does not decode"),
    "cut off": (WHOLE[: len(WHOLE) // 2], "does not decode"),
    "header alone": (WHOLE[:33], "does not decode"),
    "a bomb": (bomb(60_000, 60_000), "pixels"),
    "a small bomb": (bomb(10_000, 9_000), "pixels, more than"),
    "another size": (file_of(Image.new("RGB", (64, 63))), "its table says 64 x 64"),
    "floating point": (file_of(Image.new("F", (64, 64)), "TIFF"), "mode F"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_picture_that_cannot_be_shown_is_a_problem_with_its_reason(name: str) -> None:
    content, reason = BROKEN[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        with pytest.raises(PictureProblem, match=reason):
            pixels_of(content, PlannedSize(28, 28, 64, 64), WHITE, min(MOST_PIXELS, 80_000_000))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
def test_damaged_files_are_problems_and_never_other_errors(kind: str) -> None:
    content = draw(40, 30, kind=kind).content
    generator = np.random.default_rng(len(content))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(60):
            content_with_errors = bytearray(content)
            for place in generator.integers(0, len(content), 8):
                content_with_errors[place] = generator.integers(0, 256)
            with contextlib.suppress(PictureProblem):
                assert pixels_of(bytes(content_with_errors), PlannedSize(28, 28, 40, 30), WHITE).shape == (
                    28,
                    28,
                    3,
                )
