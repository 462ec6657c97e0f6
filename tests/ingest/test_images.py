"""Pictures and the captions beside them: documents with placeholders, and every reason for a rejected one."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from factory.errors import ConfigurationError
from factory.ingest import images_extra
from factory.ingest.image_items import image_work
from factory.ingest.listing import as_table
from factory.lake.schemas.images import PLACEHOLDER
from spark_udfs import pictures
from spark_udfs.ingest import image_document
from spark_udfs.ingest.image_document import ImageOptions, SourcePicture, image_documents
from spark_udfs.ingest.images import images_file
from spark_udfs.ingest.rows import BadRecord
from spark_udfs.ingest.work import read_work
from tests.ingest.inputs import ORIGIN, Rows, picture, source


def rows_of(folder: Path, options: ImageOptions | None = None, **files: bytes) -> Rows:
    """The rows of files in a folder; `cat_png` is the file `cat.png`."""
    options = options or ImageOptions()
    for name, content in files.items():
        (folder / ".".join(name.rsplit("_", 1))).write_bytes(content)
    work = as_table(image_work(str(folder), ORIGIN, options))
    return [row for batch in read_work(work.to_batches(), options) for row in batch.to_pylist()]


def reasons(rows: Rows) -> dict[str, str]:
    return {row["key"]: row["reason"] for row in rows if row.get("reason") is not None}


def test_a_picture_and_the_caption_beside_it_are_a_document(tmp_path: Path) -> None:
    [row] = rows_of(tmp_path, cat_png=picture(size=(30, 20)), cat_txt=b" A cat.\nIt sits.\n")
    assert (row["key"], row["path"], row["text"]) == ("cat.png", "cat.png", f"{PLACEHOLDER}A cat.\nIt sits.")
    [image] = row["images"]
    assert (image["name"], image["media_type"]) == ("cat.png", "image/png")
    assert (image["width"], image["height"], image["patches"]) == (30, 20, 3 * 2)
    assert image["content"] == picture(size=(30, 20))


MODES = [
    *(("PNG", mode) for mode in ("RGB", "RGBA", "P", "LA", "L", "1", "I;16")),
    *(("JPEG", mode) for mode in ("RGB", "L", "CMYK")),
    *(("WEBP", mode) for mode in ("RGB", "RGBA")),
    *(("GIF", mode) for mode in ("P", "L")),
    *(("BMP", "RGB"), ("TIFF", "CMYK")),
]


@pytest.mark.parametrize("format, mode", MODES)
def test_pictures_of_every_mode_are_read_by_their_content(tmp_path: Path, format: str, mode: str) -> None:
    [row] = rows_of(tmp_path, cat_jpg=picture(format, mode, (31, 17)), cat_txt=b"A cat.")
    [image] = row["images"]
    assert (image["media_type"], image["width"], image["height"]) == (f"image/{format.lower()}", 31, 17)
    assert pictures.fault_of(image["content"]) is None


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_size_is_that_of_the_picture_as_it_is_shown(format: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    header = pictures.header_of(picture(format, size=(30, 20), exif=exif))
    assert (header.width, header.height) == ((20, 30) if orientation > 4 else (30, 20))


def test_lossless_and_extended_webp_tell_their_size_before_they_are_opened() -> None:
    frames = [Image.new("RGB", (30, 20), color) for color in ("red", "blue")]
    animation = io.BytesIO()
    frames[0].save(animation, "WEBP", save_all=True, append_images=frames[1:])
    for content in (
        picture("WEBP"),
        picture("WEBP", lossless=True),
        picture("WEBP", "RGBA", exif=b"Exif\0\0"),
        animation.getvalue(),
    ):
        assert pictures._webp_size(content) == (30, 20)


def test_a_jpeg_of_very_many_segments_is_refused_before_it_is_opened() -> None:
    content = picture("JPEG")
    n_own = sum(content[: content.index(b"\xff\xda")].count(bytes([0xFF, code])) for code in range(1, 255))
    exif = b"\xff\xe1" + (2 + 10).to_bytes(2, "big") + b"Exif\0\0MM\0*"
    most = pictures.MAX_SEGMENTS - n_own
    assert pictures.header_of(content[:2] + exif * most + content[2:]).width == 30
    for padding in (b"", b"\0\xff\xff\0"):
        with pytest.raises(pictures.BadPicture, match=r"^The file has more than 1,000 segments .*\.$") as bad:
            pictures.header_of(content[:2] + (exif + padding) * (most + 1) + content[2:])
        assert bad.value.reason == "not_a_picture"


@pytest.mark.parametrize("n_marks, reason", [(0, "fewer_placeholders"), (2, "more_placeholders")])
def test_no_document_has_another_number_of_placeholders_than_pictures(n_marks: int, reason: str) -> None:
    one_picture = [SourcePicture("a.png", picture())]
    with pytest.raises(BadRecord) as bad:
        list(image_documents(ORIGIN, "a", f"{PLACEHOLDER * n_marks}A cat.", one_picture, ImageOptions()))
    assert bad.value.reason == reason


def test_endings_of_pictures_may_begin_with_a_capital(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, a_Png=picture(), a_txt=b"A.", b_JPG=picture("JPEG"), b_txt=b"B.")
    assert [row["text"] for row in rows] == [f"{PLACEHOLDER}A.", f"{PLACEHOLDER}B."]


def test_every_file_is_a_document_or_a_rejected_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "MAX_PIXELS", 1_000)
    monkeypatch.setattr(image_document, "MAX_PICTURE_BYTES", 2_000)
    rows = rows_of(
        tmp_path,
        good_png=picture(),
        good_txt=b"A cat.",
        alone_png=picture(),
        blank_png=picture(),
        blank_txt=b"\n ",
        lost_txt=b"A caption without a picture.",
        empty_png=b"",
        empty_txt=b"Nothing.",
        text_png=b"not a picture",
        text_txt=b"A text.",
        cut_png=picture()[:20],
        cut_txt=b"Half a header.",
        bomb_png=picture(size=(40, 40)),
        bomb_txt=b"Too many pixels.",
        webp_webp=picture("WEBP", size=(40, 40)),
        webp_txt=b"Too many pixels.",
        large_png=picture() + bytes(2_000),
        large_txt=b"Too many bytes.",
        latin_png=picture(),
        latin_txt=b"caf\xe9",
        nul_png=picture(),
        nul_txt=b"a\0b",
    )
    assert [row["key"] for row in rows if row["reason"] is None] == ["good.png"]
    assert reasons(rows) == {
        "alone.png": "no_caption",
        "blank.png": "no_caption",
        "lost.txt": "no_picture",
        "empty.png": "empty_picture",
        "text.png": "not_a_picture",
        "cut.png": "not_a_picture",
        "bomb.png": "too_many_pixels",
        "webp.webp": "too_many_pixels",
        "large.png": "too_large",
        "latin.png": "not_utf8",
        "nul.png": "nul_byte",
    }
    assert all(row["detail"].endswith(".") for row in rows if row["reason"])


def test_a_caption_may_be_optional(tmp_path: Path) -> None:
    [row] = rows_of(tmp_path, ImageOptions(captions="optional"), cat_png=picture())
    assert row["text"] == PLACEHOLDER


def test_a_caption_is_one_of_its_lines(tmp_path: Path) -> None:
    files = {"cat_png": picture(), "cat_txt": b"A cat.\nde.utf8=Eine Katze.\nfr.utf8=Un chat.\n"}
    for options, caption in (
        (ImageOptions(caption_lines="first"), "A cat."),
        (ImageOptions(caption_prefix="de.utf8="), "Eine Katze."),
    ):
        [row] = rows_of(tmp_path, options, **files)
        assert row["text"] == PLACEHOLDER + caption
    assert reasons(rows_of(tmp_path, ImageOptions(caption_prefix="nl.utf8="))) == {"cat.png": "no_caption"}


@pytest.mark.parametrize("ending", [".en.txt", "_caption.txt"])
def test_a_caption_that_a_picture_has_is_no_caption_alone(tmp_path: Path, ending: str) -> None:
    (tmp_path / "cat.png").write_bytes(picture())
    for stem in ("cat", "dog"):
        (tmp_path / f"{stem}{ending}").write_text("A cat.")
    rows = rows_of(tmp_path, ImageOptions(caption_ending=ending))
    assert [row["text"] for row in rows if row["reason"] is None] == [f"{PLACEHOLDER}A cat."]
    assert reasons(rows) == {f"dog{ending}": "no_picture"}


def test_pictures_of_one_caption_are_no_copies(tmp_path: Path) -> None:
    files = {"a_png": picture(), "b_png": picture(size=(9, 9)), "c_png": picture()}
    files |= {f"{name}_txt": b"A cat." for name in "abc"}
    first, other, again = (row["content_hash"] for row in rows_of(tmp_path, **files))
    assert first != other
    assert first == again


def test_two_pictures_of_one_name_share_their_caption(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, cat_png=picture(), cat_jpg=picture("JPEG"), cat_txt=b"A cat.")
    assert [(row["key"], row["reason"]) for row in rows] == [("cat.jpg", None), ("cat.png", None)]


def test_without_pillow_a_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images_extra, "find_spec", lambda _: None)
    with pytest.raises(
        ConfigurationError, match=r"needs Pillow. Install it: pip install 'corpus-factory\[images\]'."
    ):
        images_extra.require_images()


@given(content=st.binary(max_size=400), format=st.sampled_from(["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"]))
def test_any_bytes_are_a_document_or_one_rejected_record(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, format: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "a.txt").write_text("A caption.")
    good = picture(format)
    for variant in (content, good[: len(content)], good[:30] + content + good[30 + len(content) :]):
        (folder / "a.png").write_bytes(variant)
        [row] = images_file(source(folder, "a.png"), ImageOptions())
        assert ("reason" in row) != ("images" in row)
        if "images" in row:
            pictures.fault_of(variant)
