"""Documents with pictures: a text with a placeholder a picture, and the bytes and sizes of its pictures.

    text "\\ufffcA purple flower."    images [{name "flower.png", width 640, height 480, ..., content}]

Only headers are read here; the stage `images` decodes whole pictures. The hash of such a document covers its
text and the hashes of its pictures, so two pictures of one caption are different documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from factory.lake.identity import content_hash
from factory.lake.schemas.images import IMAGES, PLACEHOLDER
from spark_udfs.ingest.bounds import MAX_BYTES_OF_PICTURES, MAX_PICTURE_BYTES, MAX_PICTURES, MAX_TEXT_BYTES
from spark_udfs.ingest.file_types import PLAIN
from spark_udfs.ingest.rows import BadRecord, Origin, Row, document, rejection
from spark_udfs.pictures import PICTURE_ENDINGS, BadPicture, header_of

CAPTION_ENDING = ".txt"
LEFT_OUT = "pictures_left_out"  # the fact that counts the pictures that a document lost

ImageLayout = Literal["captions", "webdataset", "parquet", "pages"]


@dataclass(frozen=True)
class ImageOptions:
    """How pictures and their texts are found, and which documents are accepted.

    `layout` says where the text of a picture is: in a file of its name with `caption_ending`, in a member of
    the same name, in a column of the row, or around it on a page of HTML. `caption` and `image` are fields of
    records. A caption may be the `first` of its lines, or the first line that begins with `caption_prefix`,
    without that prefix. `placeholder` is the mark of a picture in texts that have one, such as `<image>`;
    other texts follow their pictures. If one of several pictures is bad, `bad_pictures` says whether the
    document is rejected or loses it.
    """

    layout: ImageLayout = "captions"
    caption: str = "caption"
    image: str = "image"
    key: str | None = None
    caption_ending: str = CAPTION_ENDING
    caption_lines: Literal["all", "first"] = "all"
    caption_prefix: str | None = None
    captions: Literal["required", "optional"] = "required"
    placeholder: str | None = None
    bad_pictures: Literal["reject", "leave_out"] = "reject"
    metadata: Sequence[str] = ()
    language: str | None = None
    max_bytes: int = MAX_TEXT_BYTES


@dataclass(frozen=True)
class SourcePicture:
    """A picture of a document: its bytes, or why there are none."""

    name: str
    content: bytes = b""
    trouble: BadRecord | None = None


def is_picture(name: str) -> bool:
    """Whether a file of this name is a picture, by its ending."""
    return name.lower().endswith(tuple(f".{ending}" for ending in PICTURE_ENDINGS))


def caption_of(text: str, options: ImageOptions) -> str:
    """Return the part of a text that is the caption, without blanks around it; empty without one."""
    if options.caption_prefix is not None:
        lines = (line for line in text.splitlines() if line.startswith(options.caption_prefix))
        return next(lines, options.caption_prefix).removeprefix(options.caption_prefix).strip()
    if options.caption_lines == "first":
        return text.strip().partition("\n")[0].strip()
    return text.strip()


def with_placeholders(caption: str, n_pictures: int, options: ImageOptions) -> str:
    """Return a caption with a placeholder for each picture: in place of its marks, or else in front of it.

    Raises BadRecord `no_caption`, `more_placeholders` and `fewer_placeholders`.
    """
    text = caption if options.placeholder is None else caption.replace(options.placeholder, PLACEHOLDER)
    if not text.replace(PLACEHOLDER, "").strip() and options.captions == "required":
        remedy = "`captions: optional` takes pictures without one"
        raise BadRecord("no_caption", f"The picture has no caption; {remedy}.")
    if PLACEHOLDER not in text:
        return PLACEHOLDER * n_pictures + text
    _refuse_other_number(text, n_pictures, options.placeholder or "U+FFFC")
    return text


def _refuse_other_number(text: str, n_pictures: int, mark: str = "U+FFFC") -> None:
    n_marks = text.count(PLACEHOLDER)
    detail = f"The text has {n_marks:,} placeholders `{mark}` of {n_pictures:,} pictures."
    if n_marks > n_pictures:
        raise BadRecord("more_placeholders", detail)
    if n_marks < n_pictures:
        raise BadRecord("fewer_placeholders", detail)


def refuse_large(n_pictures: int, n_bytes: int) -> None:
    """Raise BadRecord `too_many_pictures` or `too_large` for the pictures of one document."""
    if n_pictures > MAX_PICTURES:
        detail = f"The document has {n_pictures:,} pictures, the limit is {MAX_PICTURES:,}."
        raise BadRecord("too_many_pictures", detail)
    if n_bytes > MAX_BYTES_OF_PICTURES:
        detail = (
            f"The pictures of the document have {n_bytes:,} bytes, the limit is {MAX_BYTES_OF_PICTURES:,}."
        )
        raise BadRecord("too_large", detail)


def image_documents(
    origin: Origin,
    key: str,
    text: str,
    pictures: Sequence[SourcePicture],
    options: ImageOptions,
    **columns: Any,
) -> Iterator[Row]:
    """Yield the document of a text with a placeholder a picture, and a row for each picture left out.

    Raises BadRecord as `document` does, `too_long`, `too_many_pictures`, `too_large`, `more_placeholders`,
    `fewer_placeholders`, for a bad picture that is not left out, and `no_picture` where none is left of a
    layout that needs one.
    """
    refuse_large(len(pictures), sum(len(picture.content) for picture in pictures))
    _refuse_other_number(text, len(pictures))
    images, troubles = _images(pictures, options)
    if pictures and not images and options.layout != "pages":
        raise BadRecord("no_picture", "None of the pictures of the document can be read.")
    if troubles:
        text = _without(text, set(troubles))
        columns["metadata"] = {**columns.get("metadata", {}), LEFT_OUT: str(len(troubles))}
    columns.setdefault("language", options.language or origin.language)
    row = document(origin, key, text, media_type=PLAIN.media_type, **columns)
    if row["n_bytes"] > options.max_bytes:
        raise BadRecord("too_long", f"The text is longer than {options.max_bytes:,} bytes.")
    hashes = [image["content_hash"].encode() for image in images]
    yield {**row, "content_hash": content_hash(b"\0".join([text.encode(), *hashes])), IMAGES: images}
    for number, bad in troubles.items():
        left_out = BadRecord(
            bad.reason, f"The document is kept without its picture. {bad.detail}", bad.location
        )
        content = pictures[number].content
        yield rejection(origin, f"{key}#picture {number}", left_out, len(content), content)


def _images(
    pictures: Sequence[SourcePicture], options: ImageOptions
) -> tuple[list[dict[str, Any]], dict[int, BadRecord]]:
    """Return the good pictures as cells of `images`, and the trouble of the others by their number."""
    images: list[dict[str, Any]] = []
    troubles: dict[int, BadRecord] = {}
    for number, picture in enumerate(pictures):
        try:
            images.append(_image(picture))
        except BadRecord as bad:
            if len(pictures) == 1 and options.layout != "pages":
                raise
            trouble = BadRecord(bad.reason, f"Picture {number}, `{picture.name}`: {bad.detail}", bad.location)
            if options.bad_pictures == "reject":
                raise trouble from None
            troubles[number] = trouble
    return images, troubles


def _image(picture: SourcePicture) -> dict[str, Any]:
    """Return a picture as a cell of `images`; raises BadRecord."""
    if picture.trouble is not None:
        raise picture.trouble
    if len(picture.content) > MAX_PICTURE_BYTES:
        raise BadRecord("too_large", f"The picture is longer than {MAX_PICTURE_BYTES:,} bytes.")
    try:
        header = header_of(picture.content)
    except BadPicture as bad:
        raise BadRecord(bad.reason, bad.detail) from None
    return {
        "name": picture.name,
        "media_type": header.media_type,
        "width": header.width,
        "height": header.height,
        "patches": header.patches,
        "content_hash": content_hash(picture.content),
        "content": picture.content,
    }


def _without(text: str, numbers: set[int]) -> str:
    """Return a text without the placeholders of some pictures."""
    first, *rest = text.split(PLACEHOLDER)
    return first + "".join(
        piece if number in numbers else PLACEHOLDER + piece for number, piece in enumerate(rest)
    )
