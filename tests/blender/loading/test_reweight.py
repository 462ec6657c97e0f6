"""New weights in mid-run: readers go over to them at one step, and the run stays a function of its offset."""

from __future__ import annotations

import copy
import multiprocessing
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from multiprocessing.synchronize import Event
from typing import Any

import pytest

from blender.catalog.blends import open_blends
from blender.errors import BlendNotFound, FactoryError, InvalidBlend, InvalidRequest
from blender.loading.client import LoadingClient
from blender.loading.costs import Backbone
from blender.loading.embedded import open_loading
from blender.loading.handle import LoadingHandle
from blender.loading.loaders import Loaders
from blender.loading.service import loading_service, served_loader
from blender.loading.spec import LoadingSpec
from blender.loading.step import LoadedStep
from blender.loading.torch import LoadingDataset
from blender.opened.blend import Blend
from blender.records import Source
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from blender.trainer.torch import BlendLoader
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE

HALF = {CODE: 16, PROSE: 16}


@pytest.fixture(scope="module")
def blend(shared_lake: Settings) -> str:
    """24 rows of code and 8 of prose in a step, without an end."""
    sources = [Source(CODE, 24, oversample=True, shuffle="row"), Source(PROSE, 8, oversample=True)]
    return open_blends(shared_lake).create(sources, seed=7).id


def spec_of(blend: str) -> LoadingSpec:
    return LoadingSpec(blend=blend, mesh=Mesh(dp=2), model=Backbone(hidden=16, layers=2), microbatches=2)


def steps_of(loading: LoadingHandle, steps: StepRange, rank: int = 0) -> Iterator[LoadedStep]:
    return loading.read(steps, rank)


def rows(steps: Iterator[LoadedStep]) -> list[tuple[Any, ...]]:
    """What a rank read: the step, and its rows in order."""
    names = ("source", "epoch", "ordinal", "microbatch", "tokens")
    return [(step.offset, *(tuple(step.arrow.column(name).to_pylist()) for name in names)) for step in steps]


def fresh(lake: Settings, spec: LoadingSpec, offset: int, steps: int, rank: int = 0) -> list[Any]:
    """The rows of a run that was never changed."""
    loading = open_loading(spec, lake)
    read = rows(loading.read(StepRange(offset, steps), rank))
    loading.close()
    return read


@pytest.mark.invariant(
    "New weights in mid-run begin at one step for every reader: after `reweight` a run reads as a run "
    "of the updated blend, and continues from a state before, at and after the change."
)
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_readers_under_way_go_over_at_the_step(
    open_handle: Any, shared_lake: Settings, blend: str, stride: int
) -> None:
    loading, n_code = open_handle(spec_of(blend)), Counter[int]()
    for rank in range(2):
        under_way = steps_of(loading, StepRange(0, 15, stride), rank)
        before = rows(islice(under_way, 1 + 2 // stride))
        update = loading.reweight(7, HALF)
        after = rows(under_way)
        whole = fresh(shared_lake, spec_of(update), 0, 15, rank)
        assert before + after == [step for step in whole if step[0] % stride == 0]
        assert [step for step in whole if step[0] < 7] == fresh(shared_lake, spec_of(blend), 0, 7, rank)
        n_code += Counter({step[0]: step[1].count(0) for step in whole})
    assert [n_code[step] for step in range(15)] == [24] * 7 + [16] * 8
    assert (loading.id, loading.spec) == (update, spec_of(update).id)


def test_a_run_goes_on_from_a_state_before_at_and_after_the_change(
    open_handle: Any, shared_lake: Settings, blend: str
) -> None:
    loading = open_handle(spec_of(blend))
    dataset = LoadingDataset(loading, stop=6, rank=0)
    loop, states = iter(dataset), [dataset.state_dict()]
    update = loading.reweight(3, HALF)
    for _ in loop:
        states.append(dataset.state_dict())
    assert [state["blend"] for state in states] == [blend] + [update] * 6  # a decision is kept at once
    whole = fresh(shared_lake, spec_of(update), 0, 6)
    for offset, state in enumerate(states):
        again = open_loading(spec_of(update), shared_lake)
        assert again.offset_of(state) == offset
        assert rows(again.read(StepRange(offset, 6 - offset), 0)) == whole[offset:]
        again.close()
    late = open_loading(spec_of(blend), shared_lake)
    with pytest.raises(InvalidRequest, match=f"blend {blend} is not an update of it"):
        late.offset_of(states[4])
    assert late.reweight(3, HALF) == update  # the loop of the trainer asks again
    assert late.offset_of(states[4]) == 4
    late.close()


def test_a_run_changes_its_weights_many_times(open_handle: Any, shared_lake: Settings, blend: str) -> None:
    loading = open_handle(spec_of(blend))
    under_way, read = steps_of(loading, StepRange()), []
    for number in range(1, 13):
        loading.reweight(2 * number, {CODE: number, PROSE: 32 - number})
        read += rows(islice(under_way, 2))
    assert read == fresh(shared_lake, spec_of(loading.id), 0, 24)


def test_the_same_call_again_changes_nothing(open_handle: Any, blend: str) -> None:
    loading = open_handle(spec_of(blend))
    update = loading.reweight(2, HALF)
    rows(loading.read(StepRange(0, 4), 0))
    assert loading.reweight(2, dict(HALF)) == update


def test_a_wrong_change_is_refused_and_changes_nothing(
    open_handle: Any, shared_lake: Settings, blend: str
) -> None:
    loading = open_handle(spec_of(blend))
    under_way = steps_of(loading, StepRange())
    before = rows(islice(under_way, 5))
    wrong: list[tuple[Any, dict[str, Any], type[FactoryError], str]] = [
        (4, HALF, InvalidRequest, "New weights from step 4 on are in the past: steps up to 4 are read"),
        (-1, HALF, InvalidRequest, "`offset` is -1"),
        (6.5, HALF, InvalidRequest, "`offset` is 6.5"),
        (6, {CODE: 17, PROSE: 16}, InvalidRequest, "Step 6 has 33 rows, which 2 buckets of 2 microbatches"),
        (6, {"packed.nonesuch": 1}, InvalidBlend, "packed.nonesuch"),
        (6, {CODE: 0.5}, InvalidBlend, "Weights are whole rows per step"),
        (6, {CODE: 0, PROSE: 0}, InvalidBlend, "The weights sum to 0 rows"),
    ]
    for offset, weights, error, sentence in wrong:
        with pytest.raises(error, match=sentence):
            loading.reweight(offset, weights)
    assert (loading.id, loading.spec) == (blend, spec_of(blend).id)
    assert before + rows(islice(under_way, 4)) == fresh(shared_lake, spec_of(blend), 0, 9)
    loading.reweight(9, HALF)
    with pytest.raises(InvalidRequest, match="New weights from step 9 on are in the past"):
        loading.reweight(9, {CODE: 8, PROSE: 24})


def test_steps_read_ahead_of_the_loop_count_as_read(open_handle: Any, blend: str) -> None:
    loading = open_handle(spec_of(blend))
    loader = BlendLoader(LoadingDataset(loading, stop=40, rank=0), prefetch=4)
    loop = iter(loader)
    assert next(loop)["offset"] == 0
    with pytest.raises(InvalidRequest, match="some of them ahead"):
        loading.reweight(1, HALF)
    loading.reweight(30, HALF)
    assert [step["offset"] for step in loop] == list(range(1, 40))


def read_in_child(loading: LoadingHandle, begins: Event, changes: Event) -> None:
    begins.wait(60)
    read = loading.read(StepRange(0, 2), 0)
    try:
        next(read)
        changes.set()
        next(read)
    except InvalidRequest as error:
        os._exit(3 if "was forked from" in str(error) else 1)
    os._exit(0)


@pytest.mark.parametrize("changes_first", [True, False])
def test_a_loader_that_forks_read_is_not_reweighted_beside_them(
    shared_lake: Settings, blend: str, changes_first: bool
) -> None:
    blends, spec = open_blends(shared_lake), spec_of(blend)
    fork = multiprocessing.get_context("fork")
    begins, changes = fork.Event(), fork.Event()
    with BlenderServer(
        [*blend_services(blends), loading_service(served_loader(blends.open(blend), spec), blends)]
    ) as server:
        loading = LoadingClient(server.address).open()
        child = fork.Process(target=read_in_child, args=(loading, begins, changes))
        child.start()
        if changes_first:
            loading.reweight(1, HALF)
            begins.set()
        else:
            begins.set()
            assert changes.wait(60)
            with pytest.raises(InvalidRequest, match="was copied into other processes"):
                loading.reweight(1, HALF)
        child.join(60)
        assert child.exitcode == (3 if changes_first else 0)


def test_a_loader_that_was_copied_is_reweighted_in_the_copy_alone(
    open_handle: Any, shared_lake: Settings, blend: str
) -> None:
    parent = open_handle(spec_of(blend))
    update = copy.deepcopy(parent).reweight(1, HALF)
    assert update != blend
    with pytest.raises(InvalidRequest, match="was copied into other processes"):
        parent.reweight(1, HALF)


def test_two_threads_that_reweight_one_loader_make_one_chain(
    open_handle: Any, shared_lake: Settings, blend: str
) -> None:
    loading = open_handle(spec_of(blend))
    ready = threading.Barrier(4)

    def reweight(number: int) -> None:
        ready.wait()
        with suppress(InvalidRequest):  # a later step was faster
            loading.reweight(10 * number, {CODE: 32 - number, PROSE: number})

    threads = [threading.Thread(target=reweight, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(loading.read(StepRange(0, 45), 0)) == fresh(shared_lake, spec_of(loading.id), 0, 45)


def test_a_loader_is_read_while_the_loader_of_an_update_is_opened(shared_lake: Settings, blend: str) -> None:
    blends = open_blends(shared_lake)
    update = blends.update(blend, 3, HALF).id
    opening, go_on = threading.Event(), threading.Event()

    def open_slowly(name: str) -> Blend:
        opening.set()
        go_on.wait(60)
        return blends.open(name)

    first = served_loader(blends.open(blend), spec_of(blend))
    loaders = Loaders(first, open_slowly)
    opened_blends: list[str] = []

    def use_update() -> None:
        with loaders.over(update) as loader:
            opened_blends.append(loader.blend.id)

    threads = [threading.Thread(target=use_update) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert opening.wait(60)
    with loaders.over(blend) as loader:
        assert len(list(loader.batches(StepRange(0, 2), 0))) == 2
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert opened_blends == [update] * 2
    loaders.close()


def test_a_blend_that_cannot_be_opened_is_asked_for_again(shared_lake: Settings, blend: str) -> None:
    blends = open_blends(shared_lake)
    update = blends.update(blend, 3, HALF).id
    answers = [BlendNotFound("not yet"), blends.open(update)]

    def open_later(_: str) -> Blend:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    loaders = Loaders(served_loader(blends.open(blend), spec_of(blend)), open_later)
    with pytest.raises(BlendNotFound, match="not yet"), loaders.over(update):
        pass
    with loaders.over(update) as loader:
        assert loader.blend.id == update
    loaders.close()


def test_an_open_range_ends_with_the_data_behind_a_change(open_handle: Any, shared_lake: Settings) -> None:
    ends = open_blends(shared_lake).create([Source(CODE, 5, oversample=True), Source(PROSE, 27)]).id
    assert open_blends(shared_lake).open(ends).steps == 11
    loading = open_handle(spec_of(ends))
    under_way = steps_of(loading, StepRange(0, None, 3))
    read = rows(islice(under_way, 2))
    loading.reweight(10, {CODE: 2, PROSE: 30})
    assert [step[0] for step in read + rows(under_way)] == [0, 3, 6, 9]


def test_constructors_that_were_replaced_go_on_with_the_new_weights(
    shared_lake: Settings, blend: str
) -> None:
    spec = spec_of(blend)

    def server() -> BlenderServer:
        blends = open_blends(shared_lake)
        loader = served_loader(blends.open(blend), spec)
        return BlenderServer([*blend_services(blends), loading_service(loader, blends)])

    with server() as first, server() as second:
        client = LoadingClient([first.address, second.address], patience_s=5)
        loading = client.open()
        under_way = steps_of(loading, StepRange(0, 400))
        read = rows(islice(under_way, 3))
        update = loading.reweight(300, HALF)
        first.stop(0)
        read += rows(under_way)
        assert read == fresh(shared_lake, spec_of(update), 0, 400)
        later = LoadingClient(second.address).open(blend=update)
        assert rows(later.read(StepRange(350, 5), 0)) == read[350:355]
        stranger = open_blends(shared_lake).create([Source(CODE, 32, oversample=True)]).id
        with pytest.raises(InvalidRequest, match=f"{stranger} is no update of blend {blend}"):
            LoadingClient(second.address).open(blend=stranger)
        client.close()
