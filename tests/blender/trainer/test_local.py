"""A blend read in the trainer's own process has the bytes that a server sends."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from blender import BlenderClient, Source
from blender.errors import BlendNotFound, EndOfData, InvalidBlend, InvalidRequest
from blender.ipc import to_ipc
from blender.spec.ranks import RankSlice
from blender.spec.step_range import StepRange
from blender.trainer.local import LocalBlender, open_blend
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE, SHUFFLES, serving


@pytest.fixture(scope="module")
def served(shared_lake: Settings) -> Iterator[BlenderClient]:
    """A client of a Blender in a process of its own."""
    with serving(shared_lake.home) as server, BlenderClient(server.address) as client:
        yield client


@pytest.fixture(scope="module")
def local(shared_lake: Settings) -> LocalBlender:
    return LocalBlender(shared_lake)


@pytest.mark.invariant(
    "A blend read in the trainer's process has the bytes that a server sends, and a client generated from"
    " the proto file alone receives the same bytes."
)
@pytest.mark.parametrize("shuffle", SHUFFLES, ids=lambda one: str(one["shuffle"]))
def test_the_rows_are_the_server_s_bytes(
    served: BlenderClient, local: LocalBlender, shuffle: dict[str, object]
) -> None:
    sources = [
        Source(CODE, 6, oversample=True, columns=("tokens", "segments", "chunk"), **shuffle),
        Source(PROSE, 2),
    ]
    blend = served.create(sources, seed=7)
    assert local.create(sources, seed=7) == blend
    for ranks, stride, steps in ((1, 1, 40), (4, 1, 12), (2, 3, 30)):
        for rank in range(ranks):
            theirs = list(served.fetch(blend.id, 3, steps, rank, ranks, stride))
            ours = list(local.fetch(blend.id, 3, steps, rank, ranks, stride))
            assert len(ours) == -(-steps // stride)
            for one, other in zip(ours, theirs, strict=True):
                assert (one.offset, one.next_offset) == (other.offset, other.next_offset)
                assert b"".join(to_ipc(one.arrow)) == b"".join(to_ipc(other.arrow))


def test_a_fractional_weight_is_refused(shared_lake: Settings) -> None:
    for blender in (LocalBlender(shared_lake), BlenderClient("127.0.0.1:1", patience_s=0)):
        said = "The weight of `packed.code` is 0.5. Weights are whole rows per step, such as 1 and 4."
        with pytest.raises(InvalidBlend) as created:
            blender.create([Source(CODE, weight=0.5)])  # type: ignore[arg-type]
        with pytest.raises(InvalidBlend) as updated:
            blender.update("0" * 32, 5, {CODE: 0.5})  # type: ignore[dict-item]
        with pytest.raises(InvalidBlend) as added:
            blender.update("0" * 32, 5, add=[Source(CODE, weight=0.5)])  # type: ignore[arg-type]
        assert {str(blend_status.value) for blend_status in (created, updated, added)} == {said}
        with pytest.raises(InvalidBlend, match=r"`packed\.code` is '1'"):
            blender.create([Source(CODE, weight="1")])  # type: ignore[arg-type]


def test_it_answers_as_the_server_does(served: BlenderClient, local: LocalBlender) -> None:
    blend = local.create([Source(CODE, 6, oversample=True, shuffle="row"), Source(PROSE, 2)], seed=8)
    child = local.update(blend.id, 10, {CODE: 2}, [Source(CODE, 4, name="again", shuffle="row")])
    assert served.get(child.id) == child
    assert local.get(child.id) == child
    assert local.describe(child.id) == served.describe(child.id)
    for offset in (9, 10):
        assert local.explain(child.id, offset) == served.explain(child.id, offset)
    assert local.list() == served.list()
    assert local.retire(child.id).retired
    assert local.list(with_retired=True) == served.list(with_retired=True)


def test_a_blend_is_opened_by_its_id_in_one_call_and_travels_by_pickle(
    shared_lake: Settings, local: LocalBlender
) -> None:
    record = local.create([Source(PROSE, 2, shuffle="row")], seed=9)
    blend = open_blend(record.id, shared_lake)
    expected = [batch.arrow for batch in blend.fetch(5, 3)]
    assert expected == [batch.arrow for batch in local.fetch(record.id, 5, 3)]
    assert [batch.arrow for batch in pickle.loads(pickle.dumps(blend)).fetch(5, 3)] == expected
    assert blend.describe().steps == 150
    with pytest.raises(BlendNotFound, match="no blend 0000"):
        open_blend("0" * 32, shared_lake)


def test_ranks_without_a_rank_are_refused(served: BlenderClient, local: LocalBlender) -> None:
    blend = local.create([Source(PROSE, 4)], seed=11).id
    for blender in (served, local):
        for fetch in (blender.open(blend).fetch, partial(blender.fetch, blend)):
            with pytest.raises(InvalidRequest, match=r"`rank` and `ranks` belong together\. Give both"):
                fetch(steps=1, ranks=2)
            (whole,) = fetch(steps=1)
            for share in ({"rank": 0}, {"ranks": 1}, {"rank": 0, "ranks": 1}):
                assert [batch.arrow for batch in fetch(steps=1, **share)] == [whole.arrow]
            assert [batch.arrow for batch in fetch(steps=1, rank=1, ranks=2)] == [whole.arrow.slice(2)]


@pytest.mark.parametrize(
    "numbers, sentence",
    [
        ({"steps": -1}, "`steps` is -1. Give a whole number, 0 or more."),
        ({"steps": 1.5}, "`steps` is 1.5. Give a whole number, 0 or more."),
        ({"offset": -5}, "`offset` is -5. Give a whole number, 0 or more."),
        ({"stride": 0}, "`stride` is 0. Give a whole number, 1 or more."),
    ],
)
def test_a_range_of_no_steps_is_refused_at_the_call(
    served: BlenderClient, local: LocalBlender, numbers: dict[str, Any], sentence: str
) -> None:
    blend = local.create([Source(PROSE, 4)], seed=11).id
    for blender in (served, local):
        handle, steps = blender.open(blend), StepRange(**numbers)
        for call in (
            lambda: blender.fetch(blend, **numbers),  # noqa: B023
            lambda: handle.fetch(**numbers),  # noqa: B023
            lambda: handle.read(steps, RankSlice()),  # noqa: B023
        ):
            with pytest.raises(InvalidRequest) as raised:
                call()
            assert str(raised.value) == sentence


def test_errors_have_the_same_words(served: BlenderClient, local: LocalBlender) -> None:
    blend = local.create([Source(CODE, 6, oversample=True, shuffle="row"), Source(PROSE, 2)], seed=7)
    for blender in (served, local):
        with pytest.raises(InvalidRequest, match="cannot be shared evenly by 3 ranks"):
            next(blender.fetch(blend.id, rank=0, ranks=3))
        with pytest.raises(InvalidBlend, match="`weight` is -1"):
            blender.create([Source(CODE, -1)])
        last = blender.fetch(blend.id, 148, steps=5)
        assert [next(last).offset, next(last).offset] == [148, 149]
        with pytest.raises(EndOfData, match="ends after 150 steps"):
            next(last)
        assert [batch.offset for batch in blender.fetch(blend.id, 148)] == [148, 149]
        assert list(blender.fetch(blend.id, 148, steps=0)) == []
