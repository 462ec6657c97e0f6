"""The pieces of an updated blend, without reading every ancestor.

A blend names its parent, so ten thousand updates in a row are a chain of ten thousand configs. Every
BLOCK_UPDATES-th blend of a chain therefore stores a history block with its config and its pins: the pieces
planned since the previous block, oldest first. The configs say the same, so a missing block costs only time.

    0 | 1 .. 128 | 129 .. 256 | 257 .. 300    opening 300 reads configs 300 .. 257, blocks 256, 128, config 0
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from blender.spec.config import BlendConfig
from blender.spec.mixture import Mixture, MixturePiece, constant
from blender.spec.schedule import BlendSchedule

BLOCK_UPDATES = 128


class PlannedPiece(BaseModel):
    """The plan of one config, from its offset on."""

    model_config = ConfigDict(frozen=True)

    offset: int
    weights: tuple[int, ...] = ()
    schedule: BlendSchedule | None = None

    @classmethod
    def by(cls, config: BlendConfig) -> PlannedPiece:
        """The plan of `config`."""
        weights = () if config.schedule is not None else tuple(source.weight for source in config.sources)
        return cls(offset=config.offset, weights=weights, schedule=config.schedule)

    @property
    def piece(self) -> MixturePiece:
        """The piece of the mixture."""
        return self.schedule.piece(self.offset) if self.schedule is not None else constant(self.weights)


class HistoryBlock(BaseModel):
    """The plans of BLOCK_UPDATES consecutive blends, oldest first, and the blend before them."""

    model_config = ConfigDict(frozen=True)

    parent: str
    planned: tuple[PlannedPiece, ...]


class Configs(Protocol):
    """The store of configs and history blocks."""

    def config(self, blend: str) -> BlendConfig:
        """A blend's config."""

    def history_block(self, blend: str) -> HistoryBlock | None:
        """The block that ends with a blend; None if none was written."""


def history_block_of(config: BlendConfig, depth: int, configs: Configs) -> HistoryBlock | None:
    """The block that ends with a blend of `depth` ancestors; None for other depths."""
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
        block = configs.history_block(blend) if depth > 0 and depth % BLOCK_UPDATES == 0 else None
        if block is not None:
            yield from reversed(block.planned)
            blend, depth = block.parent, depth - BLOCK_UPDATES
            continue
        if blend != config.id:
            config = configs.config(blend)
        yield PlannedPiece.by(config)
        blend, depth = config.parent, depth - 1
