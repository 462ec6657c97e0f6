"""Documents from the samples of a WebDataset: members of a tar archive that share a name up to its first dot.

    0001.jpg 0001.txt 0001.json | 0002.left.png 0002.right.png 0002.txt | ...

Members of a sample follow each other, so one sample is held at a time. The ending of a member is all behind
that dot, in any letters: `.en.txt` is not `.txt`. The text is the member with the ending of captions, or else
a field of the member `.json`. Members of other endings are named in the metadata, and two members of one
ending reject their sample.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from factory.counted import conjunction
from spark_udfs.ingest.archive import NESTED
from spark_udfs.ingest.bounds import (
    MAX_BYTES_OF_PICTURES,
    MAX_MEMBERS,
    MAX_NESTING,
    MAX_PICTURE_BYTES,
    MAX_SAMPLE_MEMBERS,
)
from spark_udfs.ingest.compression import content
from spark_udfs.ingest.files import Input, decode_utf8, key_of, opened
from spark_udfs.ingest.image_document import (
    ImageOptions,
    SourcePicture,
    caption_of,
    image_documents,
    is_picture,
    with_placeholders,
)
from spark_udfs.ingest.place import size_of
from spark_udfs.ingest.records import as_text
from spark_udfs.ingest.rows import BadRecord, Row, rejection
from spark_udfs.ingest.tar import TarMember, tar_members

OTHERS = "other_members"  # the fact that lists the endings of members that are neither picture nor text
_JSON = "json"


@dataclass
class _Sample:
    """The members of one name: pictures, texts by ending, and the first reason to reject the sample."""

    name: str
    pictures: list[SourcePicture] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    endings: set[str] = field(default_factory=set)
    trouble: BadRecord | None = None
    n_members: int = 0
    n_bytes: int = 0

    def add(self, member: TarMember, options: ImageOptions) -> None:
        """Add a member; beyond the bounds of a sample its bytes are dropped, and the sample is rejected."""
        self.n_members += 1
        self.n_bytes += member.n_bytes
        ending = _split(member.name)[1]
        is_text = ending in (_caption_ending(options), _JSON)
        if self.n_members > MAX_SAMPLE_MEMBERS:
            self._reject("too_many_members", f"The sample has more than {MAX_SAMPLE_MEMBERS:,} members.")
        elif self.n_bytes > MAX_BYTES_OF_PICTURES + options.max_bytes:
            self._reject("too_large", f"The members of the sample have {self.n_bytes:,} bytes or more.")
        elif ending in self.endings:
            self._reject("name_taken", f"The sample has two members of the ending `.{ending}`. Rename one.")
        elif member.trouble is not None and (is_text or not is_picture(member.name)):
            self.trouble = self.trouble or member.trouble
        elif is_text and member.n_bytes > options.max_bytes:
            self._reject("too_long", f"Member `{ending}` is longer than {options.max_bytes:,} bytes.")
        elif is_text:
            self.texts[ending] = member.data
        elif is_picture(member.name):
            trouble = member.trouble
            if member.n_bytes > MAX_PICTURE_BYTES:
                trouble = BadRecord("too_large", f"The picture is longer than {MAX_PICTURE_BYTES:,} bytes.")
            self.pictures.append(SourcePicture(member.name.rpartition("/")[2], member.data, trouble))
        else:
            self.others.append(ending)
        self.endings.add(ending)

    def _reject(self, reason: str, detail: str) -> None:
        self.trouble = self.trouble or BadRecord(reason, detail)
        self.pictures, self.texts = [], {}


def shard_rows(source: Input, options: ImageOptions) -> Iterator[Row]:
    """Yield a row per sample of a tar archive, one per picture left out, and one for a damaged rest."""
    n_bytes = 0
    keys: set[bytes] = set()
    sample: _Sample | None = None
    try:
        with opened(source) as file:
            n_bytes = size_of(file)
            most_bytes = max(MAX_PICTURE_BYTES, options.max_bytes)
            for member in tar_members(content(file, source.shown, source.first_bytes), most_bytes, NESTED):
                name = _split(member.name)[0]
                if sample is None or name != sample.name:
                    if sample is not None:
                        yield from _documents(source, sample, keys, options)
                    sample = _Sample(name)
                sample.add(member, options)
            if sample is None:
                raise BadRecord("empty", "The archive holds no file.")
            complete, sample = sample, None
            yield from _documents(source, complete, keys, options)
    except BadRecord as bad:
        if sample is not None:  # the archive broke off within it
            yield rejection(source.origin, f"{source.key}!/{key_of(sample.name)}", bad, sample.n_bytes)
        yield rejection(source.origin, source.key, bad, n_bytes)


def _split(name: str) -> tuple[str, str]:
    """Return the name of a sample and the whole ending of a member in small letters."""
    folder, slash, base = name.rpartition("/")
    stem, _, endings = base.partition(".")
    return folder + slash + stem, endings.lower()


def _caption_ending(options: ImageOptions) -> str:
    return options.caption_ending.lower().removeprefix(".")


def _documents(source: Input, sample: _Sample, keys: set[bytes], options: ImageOptions) -> Iterator[Row]:
    """Yield the document of a sample, or why it is rejected, and the pictures that are left out."""
    key = f"{source.key}!/{key_of(sample.name)}"
    digest = blake2b(key.encode(), digest_size=16).digest()
    try:
        if digest in keys:
            key = f"{key}#{len(keys)}"
            raise BadRecord("name_taken", "An earlier sample of the archive has this name.")
        if len(keys) == MAX_MEMBERS:
            raise BadRecord("too_many_members", f"The archive holds more than {MAX_MEMBERS:,} samples.")
        keys.add(digest)
        if sample.trouble is not None:
            raise sample.trouble
        if not sample.pictures:
            raise BadRecord("no_picture", "The sample has no member that is a picture.")
        _refuse_other_texts(sample, options)
        fields = _fields(sample)
        caption = caption_of(_caption(sample, fields, options), options)
        text = with_placeholders(caption, len(sample.pictures), options)
        facts = {name: as_text(fields[name]) for name in options.metadata if fields.get(name) is not None}
        if sample.others:
            facts[OTHERS] = ",".join(sorted(set(sample.others)))
        yield from image_documents(
            source.origin, key, text, sample.pictures, options, metadata=facts, path=sample.name
        )
    except BadRecord as bad:
        yield rejection(source.origin, key, bad, sample.n_bytes)


def _refuse_other_texts(sample: _Sample, options: ImageOptions) -> None:
    """Raise BadRecord `no_caption` for texts of other endings where one of them should be the caption.

    Several pictures with such texts may be several samples with a dot in their names: `v1.0_1` and `v1.0_2`.
    """
    caption = _caption_ending(options)
    last_endings = (caption.rpartition(".")[2], _JSON)
    others = [ending for ending in sample.others if ending.rpartition(".")[2] in last_endings]
    if sample.texts or not others or (options.captions == "optional" and len(sample.pictures) == 1):
        return
    detail = (
        f"The sample has no text `.{caption}`, only {conjunction([f'`.{other}`' for other in others])}: its "
        "name ends at its first dot. Name one as `caption_ending`, or rename names with a dot."
    )
    raise BadRecord("no_caption", detail)


def _fields(sample: _Sample) -> dict[str, Any]:
    """Return the object of the member `.json`, empty without one; raises BadRecord `not_json`."""
    member_bytes = sample.texts.get(_JSON)
    if member_bytes is None:
        return {}
    text = decode_utf8(member_bytes)
    if max(text.count("["), text.count("{")) > MAX_NESTING and _depth(text) > MAX_NESTING:
        raise BadRecord("too_complex", f"The member `.json` is nested deeper than {MAX_NESTING} levels.")
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRecord("not_json", f"The member `.json` is not JSON: {error}.") from None
    if not isinstance(fields, dict):
        raise BadRecord("not_json", f"The member `.json` holds {type(fields).__name__}, not an object.")
    return fields


def _depth(text: str) -> int:
    """Return at least the depth of a text of JSON; brackets within its strings count too."""
    depth = most = 0
    for letter in text:
        depth += (letter in "[{") - (letter in "]}")
        most = max(most, depth)
    return most


def _caption(sample: _Sample, fields: dict[str, Any], options: ImageOptions) -> str:
    member_bytes = sample.texts.get(_caption_ending(options))
    if member_bytes is not None:
        return decode_utf8(member_bytes)
    caption = fields.get(options.caption)
    if caption is not None and not isinstance(caption, str):
        detail = f"Field `{options.caption}` holds {type(caption).__name__}, not text."
        raise BadRecord("text_not_a_string", detail)
    return caption or ""
