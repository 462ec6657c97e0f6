"""The pieces of a blend that was updated, without reading all it was updated from.

A blend names its parent, so ten thousand updates in a row are a chain of ten thousand configs. Every
BLOCK_UPDATES-th blend of a chain therefore has a third object beside its config and its pins: the pieces since
the chapter before, in the order in which they were planned. It follows from the configs; where it is
missing they are read one by one.

    0 | 1 .. 128 | 129 .. 256 | 257 .. 300    to open 300: configs 300 .. 257, chapters 256 and 128, config 0
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from blender.spec.config import BlendConfig
from blender.spec.mixture import Mixture, Piece, constant
from blender.spec.schedule import BlendSchedule

BLOCK_UPDATES = 128


class PlannedPiece(BaseModel):
    """What a config plans from its offset on."""

    model_config = ConfigDict(frozen=True)

    offset: int
    weights: tuple[int, ...] = ()
    schedule: BlendSchedule | None = None

    @classmethod
    def by(cls, config: BlendConfig) -> PlannedPiece:
        """What `config` plans."""
        weights = () if config.schedule is not None else tuple(one.weight for one in config.sources)
        return cls(offset=config.offset, weights=weights, schedule=config.schedule)

    @property
    def piece(self) -> Piece:
        """The piece of the mixture."""
        return self.schedule.piece(self.offset) if self.schedule is not None else constant(self.weights)


class HistoryBlock(BaseModel):
    """What BLOCK_UPDATES blends in a row plan, the oldest first, and the blend before them."""

    model_config = ConfigDict(frozen=True)

    parent: str
    planned: tuple[PlannedPiece, ...]


class Configs(Protocol):
    """Where configs and chapters are kept."""

    def config(self, blend: str) -> BlendConfig:
        """A blend's config."""

    def history_block(self, blend: str) -> HistoryBlock | None:
        """The chapter that ends with a blend, where it was written."""


def history_block_of(config: BlendConfig, depth: int, configs: Configs) -> HistoryBlock | None:
    """The chapter that ends with a blend of `depth` ancestors; None where none does."""
    if depth == 0 or depth % BLOCK_UPDATES:
        return None
    planned = [PlannedPiece.by(config)]
    while len(planned) < BLOCK_UPDATES:
        config = configs.config(config.parent)
        planned.append(PlannedPiece.by(config))
    return HistoryBlock(parent=config.parent, planned=tuple(reversed(planned)))


def mixture_of(config: BlendConfig, depth: int, configs: Configs) -> Mixture:
    """The mixture of a blend with `depth` ancestors."""
    planned = list(_latest_first(config, depth, configs))[::-1]
    return Mixture([one.piece for one in planned], [one.offset for one in planned])


def _latest_first(config: BlendConfig, depth: int, configs: Configs) -> Iterator[PlannedPiece]:
    blend = config.id
    while blend:
        chapter = configs.history_block(blend) if depth > 0 and depth % BLOCK_UPDATES == 0 else None
        if chapter is not None:
            yield from reversed(chapter.planned)
            blend, depth = chapter.parent, depth - BLOCK_UPDATES
            continue
        if blend != config.id:
            config = configs.config(blend)
        yield PlannedPiece.by(config)
        blend, depth = config.parent, depth - 1
