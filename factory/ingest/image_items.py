"""The items of work of pictures: the files that a layout reads, each picture with the caption next to it.

A caption without a picture is an item too, so that its reader records it as rejected; a caption with one is
read together with the picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from factory.ingest.items import Paths, files_of
from factory.ingest.listing import Work
from spark_udfs.ingest.image_document import ImageOptions, is_picture
from spark_udfs.ingest.images import stem_of
from spark_udfs.ingest.matching import MatchingFiles, folder_of
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.registry import RECORD_FILES
from spark_udfs.ingest.rows import Origin

HTML_PAGES = ("**/*.html", "**/*.htm", "**/*.xhtml")
_SHARDS = ("**/*.tar", "**/*.tgz", "**/*.tar.gz", "**/*.tar.bz2", "**/*.tar.xz", "**/*.tar.zst")
FORMAT = "images"


def patterns_of(options: ImageOptions) -> tuple[str, ...]:
    """Return the patterns of the files below a folder that are read in the layout of `options`."""
    return {
        "captions": RECORD_FILES[FORMAT],
        "webdataset": _SHARDS,
        "parquet": ("**/*.parquet",),
        "pages": HTML_PAGES,
    }[options.layout]


def companions_of(options: ImageOptions) -> tuple[str, ...]:
    """Return the patterns of files that are read with others: captions, or the figures of pages."""
    return {
        "captions": (f"**/*{options.caption_ending}",),
        "pages": RECORD_FILES[FORMAT],
    }.get(options.layout, ())


def state_places(places: Iterable[Place], options: ImageOptions) -> list[Place]:
    """Return the places of all files that the documents of `places` depend on.

    A caption, and a figure of a page, is a file that no pattern and no name of the dataset has to name.
    """
    if not companions_of(options):
        return list(places)
    return list(dict.fromkeys(_with_companions(place) for place in places))


def _with_companions(place: Place) -> Place:
    if isinstance(place, MatchingFiles):
        return folder_of(place)
    return place.parent if place.kind() == "file" else place


def image_work(paths: Paths, origin: Origin, options: ImageOptions) -> Iterator[Work]:
    """Yield an item per file to read, as `files_of` does, and one per caption that no picture has."""
    patterns = patterns_of(options)
    if options.layout != "captions":
        yield from files_of(FORMAT, paths, origin, patterns)
        return
    every_file = list(files_of(FORMAT, paths, origin, (*patterns, *companions_of(options))))
    ending = options.caption_ending.encode()
    pictures = {
        (files.place, stem_of(name)) for files in every_file for name in files.names if _is_picture(name)
    }
    for files in every_file:
        [name] = files.names
        if _is_picture(name) or (files.place, name.removesuffix(ending)) not in pictures:
            yield files


def _is_picture(name: bytes) -> bool:
    return is_picture(name.decode("utf-8", "surrogateescape"))
