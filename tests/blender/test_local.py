"""A blend read in the trainer's own process: what a server would have sent, to the last byte."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from blender import BlenderClient, Source
from blender.errors import BlendNotFound, EndOfData, InvalidBlend, InvalidRequest
from blender.ipc import to_ipc
from blender.local import LocalBlender, open_blend
from factory.settings import Settings
from tests.blender.lakes import make_lake, serving

CODE, PROSE = "packed.code", "packed.prose"
SHUFFLES: list[dict[str, object]] = [
    {"shuffle": "none"},
    {"shuffle": "page", "page_rows": 8},
    {"shuffle": "page_window", "page_rows": 3, "window_pages": 5},
    {"shuffle": "row"},
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return make_lake(tmp_path_factory.mktemp("lake"), code=40, prose=300)


@pytest.fixture(scope="module")
def served(lake: Settings) -> Iterator[BlenderClient]:
    """A client of a Blender in a process of its own."""
    assert lake.home is not None
    with serving(lake.home) as server, BlenderClient(server.address) as client:
        yield client


@pytest.fixture(scope="module")
def local(lake: Settings) -> LocalBlender:
    return LocalBlender(lake)


@pytest.mark.parametrize("shuffle", SHUFFLES, ids=lambda one: str(one["shuffle"]))
def test_the_rows_are_the_server_s_bytes(
    served: BlenderClient, local: LocalBlender, shuffle: dict[str, object]
) -> None:
    sources = [
        Source(CODE, 6, oversample=True, columns=("tokens", "segments", "chunk"), **shuffle),  # type: ignore[arg-type]
        Source(PROSE, 2),
    ]
    blend = served.create(sources, seed=7)
    assert local.create(sources, seed=7) == blend
    for ranks, stride, steps in ((1, 1, 40), (4, 1, 12), (2, 3, 30)):
        for rank in range(ranks):
            theirs = list(served.fetch(blend.id, 3, steps, rank, ranks, stride))
            ours = list(local.fetch(blend.id, 3, steps, rank, ranks, stride))
            assert len(ours) == -(-steps // stride)
            assert [(one.offset, one.next_offset) for one in ours] == [
                (one.offset, one.next_offset) for one in theirs
            ]
            assert [b"".join(to_ipc(one.arrow)) for one in ours] == [
                b"".join(to_ipc(one.arrow)) for one in theirs
            ]


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
    assert [one.retired for one in local.list(with_retired=True)] == [
        one.retired for one in served.list(with_retired=True)
    ]


def test_a_blend_is_opened_by_its_id_in_one_call_and_travels_by_pickle(
    lake: Settings, local: LocalBlender
) -> None:
    made = local.create([Source(PROSE, 2, shuffle="row")], seed=9)
    blend = open_blend(made.id, lake)
    expected = [one.arrow for one in blend.fetch(5, 3)]
    assert expected == [one.arrow for one in local.fetch(made.id, 5, 3)]
    assert [one.arrow for one in pickle.loads(pickle.dumps(blend)).fetch(5, 3)] == expected
    assert blend.describe().steps == 150
    with pytest.raises(BlendNotFound, match="no blend 0000"):
        open_blend("0" * 32, lake)


def test_what_is_wrong_is_said_in_the_same_words(served: BlenderClient, local: LocalBlender) -> None:
    blend = local.create([Source(CODE, 6, oversample=True, shuffle="row"), Source(PROSE, 2)], seed=7)
    for blender in (served, local):
        with pytest.raises(InvalidRequest, match="cannot be shared evenly by 3 ranks"):
            next(blender.fetch(blend.id, ranks=3))
        with pytest.raises(InvalidBlend, match="`weight` is -1"):
            blender.create([Source(CODE, -1)])
        last = blender.fetch(blend.id, 148, steps=5)
        assert [next(last).offset, next(last).offset] == [148, 149]
        with pytest.raises(EndOfData, match="ends after 150 steps"):
            next(last)
        assert [one.offset for one in blender.fetch(blend.id, 148)] == [148, 149]
        assert list(blender.fetch(blend.id, 148, steps=0)) == []
