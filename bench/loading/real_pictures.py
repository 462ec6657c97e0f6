"""Real pictures with their texts, from three Debian packages that a bench unpacks below FACTORY_CACHE.

stamps         drawings and photographs, each with a caption in up to a hundred languages
pages          a manual: pages of text with figures between the paragraphs
wallpapers     large pictures without a text
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path

from PIL import Image, ImageOps

from bench.debian import folder_of
from bench.packing.lengths import BYTES_PER_TOKEN
from factory.lake.schemas.images import PATCH

STAMPS, PAGES, WALLPAPERS = "tuxpaint-stamps-default", "gimp-help-en", "gnome-backgrounds"
_PICTURES = {".png", ".jpg", ".jpeg", ".webp", ".gif"}
_UNSEEN = {"script", "style", "head"}


@dataclass(frozen=True)
class Picture:
    """A picture in a file."""

    path: Path

    @cached_property
    def size(self) -> tuple[int, int]:
        """Its width and height as it is shown, in pixels."""
        with Image.open(self.path) as image:
            return ImageOps.exif_transpose(image).size

    @property
    def patches(self) -> int:
        """Its patches of 14 pixels a side, cut ones included."""
        width, height = self.size
        return -(-width // PATCH) * -(-height // PATCH)


@dataclass(frozen=True)
class Sample:
    """A text with its pictures; `n_tokens` are estimated from bytes, as `bench packing` does."""

    n_tokens: int
    pictures: tuple[Picture, ...]


def samples() -> dict[str, list[Sample]]:
    """The samples of each source."""
    return {"stamps": list(_stamps()), "pages": list(_pages()), "wallpapers": list(_wallpapers())}


def _stamps() -> Iterator[Sample]:
    for path in sorted(folder_of(STAMPS).rglob("*.png")):
        caption = path.with_suffix(".txt")
        if caption.is_file():
            yield Sample(_tokens(caption.read_bytes().partition(b"\n")[0]), (Picture(path),))


def _pages() -> Iterator[Sample]:
    for path in sorted(folder_of(PAGES).rglob("*.html")):
        page = _Page()
        page.feed(path.read_text("utf-8", "replace"))
        figures = (path.parent / source for source in page.sources)
        pictures = tuple(Picture(figure) for figure in figures if _is_picture(figure))
        if pictures:
            yield Sample(_tokens("".join(page.texts).encode()), pictures)


def _wallpapers() -> Iterator[Sample]:
    for path in sorted(folder_of(WALLPAPERS).rglob("*")):
        if _is_picture(path):
            yield Sample(0, (Picture(path),))


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in _PICTURES and path.is_file() and not path.is_symlink()


def _tokens(text: bytes) -> int:
    return max(1, len(text) // BYTES_PER_TOKEN)


class _Page(HTMLParser):
    """The texts of a page, and the addresses of its pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.sources: list[str] = []
        self._n_unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._n_unseen += tag in _UNSEEN
        source = dict(attrs).get("src") if tag == "img" else None
        if source:
            self.sources.append(source)

    def handle_endtag(self, tag: str) -> None:
        self._n_unseen -= tag in _UNSEEN

    def handle_data(self, text: str) -> None:
        if not self._n_unseen:
            self.texts.append(" ".join(text.split()))
