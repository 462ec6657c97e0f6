"""Ranks read durable batches of a real S3-compatible store, directly and by a faulty way."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest

from blender.errors import StoreUnavailable
from blender.global_batches.errors import DamagedBatch
from blender.global_batches.log.operations import delete
from blender.global_batches.namespace import create_namespace
from blender.global_batches.reader import BatchReader
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from factory.settings import Settings
from tests.blender.global_batches.store.proxy import Proxy, proxy_of
from tests.blender.global_batches.written import Lane, batch
from tests.engines.processes import ObjectStore

pytestmark = pytest.mark.process

MESH = Mesh(dp=2, cp=2)
STEPS = 12


@pytest.fixture
def uri(object_store: ObjectStore, unique: str, settings: Settings) -> str:
    """A namespace of twelve steps that has ended."""
    address = f"{object_store.bucket(unique)}/runs/a"
    create_namespace(address, MESH, lanes=1, settings=settings, order="arrival")
    lane = Lane(address, settings=settings)
    for number in range(STEPS):
        lane.put(batch(number))
    lane.close()
    return address


@pytest.fixture
def proxy(object_store: ObjectStore) -> Iterator[Proxy]:
    """A faulty way to the store."""
    with proxy_of(object_store) as way:
        yield way


def tokens(reader: BatchReader, rank: int) -> list[np.ndarray]:
    return [step.tokens for step in reader.read(StepRange(), rank)]


def test_ranks_read_their_slices_also_where_requests_are_lost(
    uri: str, settings: Settings, proxy: Proxy
) -> None:
    reader = BatchReader(uri, MESH, settings=settings.model_copy(update={"s3_endpoint": proxy.endpoint}))
    for rank in range(MESH.ranks):
        proxy.lose_requests("GET", 3)
        proxy.lose_answers("GET", 3)
        place = MESH.coordinate(rank)
        chunks = [place.cp, 3 - place.cp]
        steps = tokens(pickle.loads(pickle.dumps(reader)), rank)
        assert len(steps) == STEPS
        for number, read in enumerate(steps):
            rows = batch(number)["tokens"][2 * place.dp : 2 * place.dp + 2]
            expected = np.concatenate([np.split(rows, 4, axis=1)[chunk] for chunk in chunks], axis=1)
            np.testing.assert_array_equal(read, expected)


def test_a_store_that_goes_away_is_named_and_a_later_read_goes_on(
    uri: str, settings: Settings, proxy: Proxy
) -> None:
    reader = BatchReader(
        uri,
        settings=settings.model_copy(update={"s3_endpoint": proxy.endpoint}),
        patience_s=0.5,
        prefetch_bytes=1,
    )
    steps = reader.read(StepRange(), 0)
    assert next(steps).offset == 0
    proxy.leave()
    with pytest.raises(StoreUnavailable, match="has not answered for"):
        list(steps)
    proxy.come_back()
    assert [step.offset for step in reader.read(StepRange(1), 0)] == list(range(1, STEPS))


def test_a_missing_object_is_named(uri: str, settings: Settings) -> None:
    reader = BatchReader(uri, settings=settings)
    assert reader.steps == STEPS
    name = reader._follower.batch(3).name
    reader._store.run(delete([name]))
    steps = reader.read(StepRange(), 0)
    assert [step.offset for step in islice(steps, 3)] == [0, 1, 2]
    with pytest.raises(DamagedBatch, match=name):
        next(steps)
