"""Indexes are made ahead of a run: once a snapshot, counted, and as a planner makes them."""

from __future__ import annotations

import numpy as np
import pytest

from blender.catalog.blends import Blends, open_blends
from blender.errors import InvalidRequest
from blender.loading.cost_index import CostIndex
from blender.loading.indexing import Indexing
from blender.records import Source
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE


def test_every_row_is_read_once_and_a_second_run_reads_none(lake: Settings, blends: Blends) -> None:
    blend = blends.open(blends.create([Source(CODE, 4), Source(PROSE, 4)]).id)
    work, read = Indexing(blend), []
    sources = list(work.run(read.append))
    assert [(source.source, source.rows, source.bytes) for source in sources] == [
        (CODE, 40, 640),
        (PROSE, 300, 4_800),
    ]
    assert sum(read) == work.rows == 340
    assert all(source.seconds > 0 for source in sources)
    again, read = Indexing(open_blends(lake).open(blend.id)), []
    assert (again.rows, [source.seconds for source in again.run(read.append)], read) == (0, [0, 0], [])


def test_a_snapshot_of_two_sources_and_of_another_blend_has_one_index(blends: Blends) -> None:
    twice = [Source(PROSE, 4, name="a"), Source(PROSE, 4, name="b")]
    work = Indexing(blends.open(blends.create(twice).id))
    assert work.rows == 300
    assert [source.rows for source in work.run()] == [300, 300]
    assert Indexing(blends.open(blends.create([Source(PROSE, 2)]).id)).rows == 0


def test_a_run_that_ended_goes_on_at_its_snapshot(blends: Blends) -> None:
    blend = blends.open(blends.create([Source(CODE, 4), Source(PROSE, 4)]).id)
    next(Indexing(blend).run())
    later = Indexing(blend)
    assert later.rows == 300
    assert [source.seconds > 0 for source in later.run()] == [False, True]
    lengths = CostIndex(blend.sources[1].reader).of(np.arange(4))
    assert lengths["n_tokens"].tolist() == [8, 8, 8, 6]


def test_a_live_source_is_refused(blends: Blends) -> None:
    live = blends.open(blends.create([Source(PROSE, 4, live=True)]).id)
    with pytest.raises(InvalidRequest, match=r"Source `packed.prose` of blend \w+ is live"):
        Indexing(live)
