"""Tensors for PyTorch: one sequence of steps for any ranks, workers and restarts; documents kept apart."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.utils.data import DataLoader

from blender import BlenderClient, Source
from blender.batch import Batch
from blender.errors import EndOfData, InvalidRequest, UnknownLength
from blender.records import Schedule
from blender.trainer.dataloader import JoinedSteps
from blender.trainer.local import LocalBlender
from blender.trainer.reader import BlendHandle
from blender.trainer.torch import BlendDataset, BlendLoader, block_diagonal, map_tensors, tensors
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE, append_rows, packed_rows, serving, write_table
from tests.blender.programs import end_workers
from tests.ports import free_ports

SOURCES = [Source(CODE, 18, oversample=True, shuffle="row"), Source(PROSE, 6)]  # 24 rows: 50 steps


@pytest.fixture(scope="module")
def local(shared_lake: Settings) -> BlendHandle:
    """A blend read in this process."""
    blender = LocalBlender(shared_lake)
    return blender.open(blender.create(SOURCES, seed=7).id)


@pytest.fixture(scope="module")
def served(shared_lake: Settings, local: BlendHandle) -> Iterator[BlendHandle]:
    """The same blend from a server."""
    with serving(shared_lake.home) as server, BlenderClient(server.address) as client:
        yield client.open(local.id)


@pytest.fixture(params=["local", "served"])
def blend(request: pytest.FixtureRequest) -> BlendHandle:
    return request.getfixturevalue(request.param)


def plain(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value.tolist() if torch.is_tensor(value) else value for name, value in item.items()}


def steps(blend: BlendHandle, offset: int, stop: int) -> list[dict[str, Any]]:
    """What every way of reading must give, in order."""
    return [plain(tensors(batch)) for batch in blend.fetch(offset, stop - offset)]


def test_a_dataset_gives_the_steps_as_tensors_over_the_memory_of_the_batch(blend: BlendHandle) -> None:
    items = list(BlendDataset(blend, offset=3, stop=9))
    assert [plain(step) for step in items] == steps(blend, 3, 9)
    assert [step["offset"] for step in items] == list(range(3, 9))
    assert (items[0]["tokens"].shape, items[0]["tokens"].dtype) == ((24, 8), torch.int32)
    assert items[0]["targets"].dtype == torch.int64
    batch = next(blend.fetch(3))
    fields = ("tokens", "source", "ordinal", "epoch", "n_tokens", "document_ids")
    for name, tensor in tensors(batch, fields).items():
        if name != "offset":
            assert tensor.data_ptr() == getattr(batch, name).ctypes.data


def test_tokens_of_four_bytes_come_to_torch_without_a_copy() -> None:
    metadata = {"factory.token-bytes": "4", "factory.sequence-length": "2"}
    schema = pa.schema([pa.field("tokens", pa.binary(), metadata=metadata)])
    rows = pa.RecordBatch.from_arrays(
        [pa.array([np.array([number, -1], "<i4").tobytes() for number in range(3)], pa.binary())],
        schema=schema,
    )
    tokens = tensors(Batch(0, 1, rows), ("tokens",))["tokens"]
    assert tokens.data_ptr() == rows.column("tokens").buffers()[2].address
    assert tokens.tolist() == [[0, -1], [1, -1], [2, -1]]


@pytest.mark.invariant(
    "The number of ranks and workers may change at any step without changing the sequence of rows. A "
    "state is valid in its blend and in updates made at its step or later, and in no other blend."
)
@pytest.mark.parametrize("name, context, workers", [("local", "spawn", 1), ("served", "fork", 2)])
def test_workers_change_no_step_and_no_state(
    name: str, context: str, workers: int, request: pytest.FixtureRequest
) -> None:
    blend: BlendHandle = request.getfixturevalue(name)
    expected = steps(blend, 3, 16)
    reading = blend.fetch(0)  # a thread is at work while the workers start
    next(reading)
    loader = BlendLoader(BlendDataset(blend, offset=3, stop=16), workers=workers, context=context)
    found = []
    for item in loader:
        found.append(plain(item))
        assert loader.state_dict() == {"blend": blend.id, "offset": item["offset"] + 1}
    assert found == expected
    reading.close()


def test_a_fork_that_could_only_hang_is_refused(local: BlendHandle) -> None:
    loader = BlendLoader(BlendDataset(local), workers=1, context="fork")
    with pytest.raises(InvalidRequest, match="was forked after its parent had opened the lake"):
        next(iter(loader))
    end_workers()


def test_a_plain_dataloader_has_the_order_and_its_unknown_state_is_refused(served: BlendHandle) -> None:
    dataset = BlendDataset(served, offset=3, stop=16)
    loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")
    assert [plain(step) for step in loader] == steps(served, 3, 16)
    with pytest.raises(InvalidRequest, match="Iterate over `BlendLoader"):
        dataset.state_dict()
    dataset.load_state_dict({"blend": served.id, "offset": 5})
    assert dataset.state_dict() == {"blend": served.id, "offset": 5}
    single = DataLoader(dataset, batch_size=None)
    assert [step["offset"] for step in single] == list(range(5, 16))
    assert dataset.state_dict() == {"blend": served.id, "offset": 16}


def read(blend: BlendHandle, state: dict[str, Any], ranks: int, n: int) -> tuple[list[Any], dict[str, Any]]:
    """The rows of `n` steps as `ranks` ranks read them from a state on, and the state they all end with."""
    shares, states = [], []
    for rank in range(ranks):
        dataset = BlendDataset(
            blend, rank=rank, ranks=ranks, tensors=partial(tensors, fields=("tokens", "source", "ordinal"))
        )
        dataset.load_state_dict(state)
        loader = BlendLoader(dataset)
        items = iter(loader)
        shares.append([next(items) for _ in range(n)])
        states.append(loader.state_dict())
    assert all(one == states[0] for one in states)
    rows = [
        (step[0]["offset"], *row)
        for step in zip(*shares, strict=True)
        for share in step
        for row in zip(*(share[name].tolist() for name in ("tokens", "source", "ordinal")), strict=True)
    ]
    return rows, states[0]


@pytest.mark.invariant(
    "The number of ranks and workers may change at any step without changing the sequence of rows. A "
    "state is valid in its blend and in updates made at its step or later, and in no other blend."
)
@pytest.mark.parametrize("mixture", ["fixed", "scheduled"])
def test_the_number_of_ranks_may_change_at_any_step(
    blend: BlendHandle, local: BlendHandle, mixture: str
) -> None:
    if mixture == "scheduled":
        sources = [Source(CODE, oversample=True, shuffle="row"), Source(PROSE, oversample=True)]
        fading = Schedule(24, ((0, {CODE: 9, PROSE: 1}), (30, {CODE: 1, PROSE: 5})), "cosine")
        blend = BlendHandle(blend.blender, local.blender.create(sources, 7, fading).id)
    expected, _ = read(blend, {"blend": blend.id, "offset": 0}, 1, 40)
    assert {row[2] for row in expected} == {0, 1}
    state: dict[str, Any] = {"blend": blend.id, "offset": 0}
    found: list[Any] = []
    for ranks, n in ((8, 7), (6, 13), (2, 11), (24, 1), (1, 8)):
        state = pickle.loads(pickle.dumps(state))
        rows, state = read(blend, state, ranks, n)
        found += rows
    assert found == expected
    assert state == {"blend": blend.id, "offset": 40}


@pytest.mark.parametrize("name", ["local", "served"])
def test_the_number_of_ranks_may_change_while_a_live_source_grows(
    shared_lake: Settings, name: str, request: pytest.FixtureRequest
) -> None:
    live = f"packed.live_{name}"
    write_table(shared_lake, live, packed_rows("live", 100))
    sources = [Source(live, 12, live=True), Source(CODE, 12, oversample=True, shuffle="row")]
    blender = LocalBlender(shared_lake)
    blend = BlendHandle(request.getfixturevalue(name).blender, blender.create(sources, seed=7).id)
    state: dict[str, Any] = {"blend": blend.id, "offset": 0}
    found: list[Any] = []
    for ranks, n, n_rows, more in ((8, 8, 100, 110), (6, 9, 210, 90), (2, 7, 300, 0)):
        rows, state = read(blend, state, ranks, n)
        found += rows
        if more:
            append_rows(shared_lake, live, n_rows, n_rows + more)
    expected, _ = read(BlendHandle(blender, blend.id), {"blend": blend.id, "offset": 0}, 1, 24)
    assert found == expected
    assert sorted(row[3] for row in found if row[2] == 0) == list(range(12 * 24))


@pytest.mark.invariant(
    "The number of ranks and workers may change at any step without changing the sequence of rows. A "
    "state is valid in its blend and in updates made at its step or later, and in no other blend."
)
def test_a_state_continues_only_in_updates_made_at_its_step_or_later(local: BlendHandle) -> None:
    blender = local.blender
    child = blender.open(blender.update(local.id, 20, {CODE: 6}).id)
    grandchild = blender.open(blender.update(child.id, 30, {PROSE: 18}).id)
    stranger = blender.open(blender.create(SOURCES, seed=99).id)
    for offset in (0, 20):
        for one in (child, grandchild):
            dataset = BlendDataset(one, rank=0, ranks=1)
            dataset.load_state_dict({"blend": local.id, "offset": offset})
            assert next(iter(dataset))["offset"] == offset
    dataset = BlendDataset(grandchild)
    dataset.load_state_dict({"blend": child.id, "offset": 30})
    for state, sentence in (
        ({"blend": local.id, "offset": 21}, f"differs from step 20 on. Update {local.id} at step 21"),
        ({"blend": child.id, "offset": 31}, "differs from step 30 on"),
        ({"blend": stranger.id, "offset": 0}, "is not an update of it. Open the blend of the state"),
    ):
        with pytest.raises(InvalidRequest, match=sentence):
            dataset.load_state_dict(state)
    with pytest.raises(InvalidRequest, match="is not an update of it"):
        BlendDataset(local).load_state_dict({"blend": child.id, "offset": 0})


def test_the_rank_is_that_of_the_launcher_unless_given(
    local: BlendHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert (BlendDataset(local).rank, BlendDataset(local).ranks) == (3, 4)
    assert (BlendDataset(local, rank=0, ranks=2).rank, BlendDataset(local, rank=0, ranks=2).ranks) == (0, 2)
    with pytest.raises(InvalidRequest, match="belong together"):
        BlendDataset(local, rank=1)
    for rank, ranks in ((4, 4), (0, 0)):
        with pytest.raises(InvalidRequest, match=f"Rank {rank} of {ranks}"):
            BlendDataset(local, rank=rank, ranks=ranks)


def test_a_trainer_does_not_notice_a_server_that_is_killed_and_comes_back(
    shared_lake: Settings, local: BlendHandle
) -> None:
    wide = [Source(CODE, 40_000, oversample=True, shuffle="row")]  # a step of ours is more than a block
    blend = local.blender.open(local.blender.create(wide, seed=7).id)
    (port,) = free_ports(1)
    with (
        serving(shared_lake.home, port=port) as server,
        BlenderClient(server.address, prefetch_bytes=1) as client,
    ):
        dataset = BlendDataset(client.open(blend.id), rank=1, ranks=2, stop=12, tensors=tensors)
        loader = BlendLoader(dataset, prefetch=1)
        items = iter(loader)
        found = [next(items)["tokens"]]
        server.kill()
        with serving(shared_lake.home, port=port):
            found += [step["tokens"] for step in items]
    expected = [batch.tokens for batch in blend.fetch(0, 12, rank=1, ranks=2)]
    assert len(found) == 12
    assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))
    assert loader.state_dict() == {"blend": blend.id, "offset": 12}


def test_the_end_of_data_comes_after_the_last_step(blend: BlendHandle) -> None:
    assert [step["offset"] for step in BlendLoader(BlendDataset(blend, offset=47))] == [47, 48, 49]
    loader = BlendLoader(BlendDataset(blend, offset=47, stop=60))
    items = iter(loader)
    assert [next(items)["offset"] for _ in range(3)] == [47, 48, 49]
    with pytest.raises(EndOfData, match="ends after 50 steps"):
        next(items)
    assert loader.state_dict()["offset"] == 50


def test_the_earlier_name_of_tensors_is_refused_with_the_new_one(local: BlendHandle) -> None:
    with pytest.raises(InvalidRequest, match="`BlendDataset` takes `tensors`"):
        BlendDataset(local, rank=0, ranks=1, transform=tensors)
    with pytest.raises(TypeError, match="unexpected keyword argument 'tensor'"):
        BlendDataset(local, rank=0, ranks=1, tensor=tensors)


def test_a_transform_is_the_last_mile_and_its_error_the_trainer_s(local: BlendHandle) -> None:
    def last_mile(batch: Batch) -> tuple[torch.Tensor, list[int]]:
        if batch.offset == 5:
            raise ZeroDivisionError("step 5")
        return torch.from_dlpack(batch.tokens).long() + 1, batch.arrow.column("epoch").to_pylist()

    loader = BlendLoader(BlendDataset(local, offset=3, stop=8, tensors=last_mile), device="cpu")
    items = iter(loader)
    tokens, epochs = next(items)
    assert tokens.tolist() == (next(local.fetch(3)).tokens + 1).tolist()
    assert (tokens.dtype, len(epochs)) == (torch.int64, 24)
    next(items)
    with pytest.raises(ZeroDivisionError, match="step 5"):
        next(items)
    assert loader.state_dict()["offset"] == 5  # it comes again, not the one after it


def test_tensors_are_found_wherever_an_item_has_them() -> None:
    one = torch.zeros(2)
    moved = map_tensors({"a": one, "b": [(one, 3), "text"], "c": {"d": one}}, lambda it: it + 1)
    assert moved["b"][0][1] == 3
    assert [moved["a"][0], moved["b"][0][0][0], moved["c"]["d"][0]] == [1, 1, 1]
    assert moved["b"][1] == "text"


class Attending(nn.Module):
    """One layer of causal attention with learned positions: small, and it sees whatever it is let."""

    def __init__(self, vocabulary: int, length: int, width: int = 16) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.mix = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden = self.token(tokens) + self.position(positions)
        q, k, v = self.mix(hidden).unsqueeze(1).chunk(3, dim=-1)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(hidden + seen.squeeze(1))


@pytest.mark.invariant("The loss over packed rows equals the loss over their documents one by one.")
def test_the_loss_of_packed_rows_is_the_loss_of_every_document_by_itself(local: BlendHandle) -> None:
    torch.manual_seed(3)
    model = Attending(1 << 15, 8).double()
    batch = next(local.fetch(4))
    item = tensors(batch, ("tokens", "targets", "position_ids", "document_ids", "cu_seqlens"))
    mask = block_diagonal(item["document_ids"])
    logits = model(item["tokens"], item["position_ids"], mask)
    cross_entropy = partial(nn.functional.cross_entropy, reduction="sum")
    packed = cross_entropy(logits.flatten(0, 1), item["targets"].flatten())

    alone, n = torch.zeros((), dtype=torch.float64), 0
    for row in batch.arrow.to_pylist():
        tokens = torch.from_numpy(np.frombuffer(row["tokens"], "<u2").astype(np.int64))
        for document in tokens.split(row["segment_lengths"]):
            length = len(document)
            causal = torch.ones(length, length, dtype=torch.bool).tril()[None, None]
            logits = model(document[None], torch.arange(length)[None], causal)
            alone = alone + cross_entropy(logits[0, :-1], document[1:])
            n += length - 1
    assert n == int((item["targets"] != -100).sum())
    assert torch.allclose(packed, alone, rtol=1e-12)
    everything = torch.ones_like(mask).tril()
    leaking = model(item["tokens"], item["position_ids"], everything)
    assert not torch.allclose(cross_entropy(leaking.flatten(0, 1), item["targets"].flatten()), alone)


def test_the_mask_is_that_of_cu_seqlens(local: BlendHandle) -> None:
    item = tensors(next(local.fetch(1)), ("document_ids", "cu_seqlens"))
    expected = torch.zeros(24 * 8, 24 * 8, dtype=torch.bool)
    for start, stop in item["cu_seqlens"].unfold(0, 2, 1).tolist():
        expected[start:stop, start:stop] = torch.ones(stop - start, stop - start).tril().bool()
    mask = block_diagonal(item["document_ids"])
    for row in range(24):
        assert mask[row, 0].equal(expected[8 * row : 8 * row + 8, 8 * row : 8 * row + 8])
    assert int(mask.sum()) == int(expected.sum())


@pytest.mark.parametrize(
    "workers, options, transform",
    [
        (0, {}, tensors),
        (0, {"batch_size": 4}, lambda batch: batch),
        (0, {"batch_size": 4, "drop_last": True}, lambda batch: torch.from_dlpack(batch.tokens)),
        (2, {}, tensors),
        (2, {"batch_size": 4, "drop_last": True}, lambda batch: (batch.offset, batch.tokens)),
    ],
)
def test_a_dataloader_that_joins_steps_is_refused_in_one_sentence(
    served: BlendHandle, workers: int, options: dict[str, Any], transform: Any
) -> None:
    context = "fork" if workers else None
    dataset = BlendDataset(served, stop=8, tensors=transform)
    loader = DataLoader(dataset, num_workers=workers, multiprocessing_context=context, **options)
    with pytest.raises(JoinedSteps) as raised:
        next(iter(loader))
    end_workers()
    assert str(raised.value) == (
        "This DataLoader joins steps into batches, and every step is a batch already. Give it "
        "`batch_size=None`, or use `BlendLoader(dataset)`; weights of sources set the rows of a step."
    )


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [0, 1]}, {"batch_sampler": [[0, 1]]}])
def test_torch_itself_refuses_another_order(local: BlendHandle, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="DataLoader with IterableDataset: expected unspecified"):
        DataLoader(BlendDataset(local), **options)
    with pytest.raises(ValueError, match="mutually exclusive"):
        DataLoader(BlendDataset(local), batch_size=None, drop_last=True)


def test_a_collate_fn_of_the_user_may_join_steps(local: BlendHandle) -> None:
    loader = DataLoader(BlendDataset(local, stop=5), batch_size=2, collate_fn=list)
    assert [[step["offset"] for step in items] for items in loader] == [[0, 1], [2, 3], [4]]


def test_an_error_of_a_loader_s_worker_is_its_sentence(served: BlendHandle) -> None:
    loader = BlendLoader(BlendDataset(served, offset=48, stop=60), workers=1)
    items = iter(loader)
    assert [next(items)["offset"] for _ in range(2)] == [48, 49]
    with pytest.raises(
        EndOfData, match=r"^Source `packed\.prose` has 300 rows at snapshot \d+, step 50 needs"
    ):
        next(items)
    end_workers()


OFFSET_OF_BLEND = 3


@pytest.mark.parametrize(
    "state, sentence",
    [
        ("{blend}", "of a blend: it is of type `str`. Load what `state_dict` returned"),
        (None, "of a blend: it is of type `NoneType`"),
        ({}, "of a blend: it has nothing, and no `blend`, `offset`"),
        ({"epoch": 1, "step": 7}, "it has `epoch`, `step`, and no `blend`, `offset`"),
        ({"blend": "{blend}"}, "it has `blend`, and no `offset`"),
        ({"blend": 7, "offset": 3}, "its `blend` is of type `int`"),
        ({"blend": "{blend}", "offset": -1}, "`offset` is -1. Give a whole number, 0 or more"),
        ({"blend": "{blend}", "offset": "3"}, "`offset` is 3. Give a whole number"),
        ({"blend": "{blend}", "offset": 3.0}, "`offset` is 3.0. Give a whole number"),
        (
            {"blend": "{blend}", "offset": 3, "version": 2},
            "has `version` besides `blend`, `offset`, which this",
        ),
        (
            {"model": {}, "data": {"blend": "{blend}", "offset": 3}},
            "Load that part: `load_state_dict(state['data'])`",
        ),
        (
            {"namespace": "x", "step": 3, "content": "0"},
            "is not the state of a reader of a blend, but of durable batches",
        ),
        ({"blend": "f" * 32, "offset": 3}, "belongs to blend f{32}, and blend .* is not an update of it"),
    ],
)
def test_a_foreign_state_is_refused_in_a_sentence(blend: BlendHandle, state: Any, sentence: str) -> None:
    state = "x" if isinstance(state, str) else state
    if isinstance(state, dict) and state.get("blend") == "{blend}":
        state = state | {"blend": blend.id}
    loader = BlendLoader(BlendDataset(blend, offset=OFFSET_OF_BLEND))
    with pytest.raises(
        InvalidRequest, match=sentence.replace("(", r"\(").replace(")", r"\)").replace("[", r"\[")
    ):
        loader.load_state_dict(state)
    assert loader.state_dict() == {"blend": blend.id, "offset": OFFSET_OF_BLEND}


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_is_loaded_between_iterations_only(local: BlendHandle, workers: int) -> None:
    loader = BlendLoader(BlendDataset(local, stop=30), workers=workers)
    state = {"blend": local.id, "offset": 20}
    items = iter(loader)
    assert next(items)["offset"] == 0
    with pytest.raises(InvalidRequest, match=r"An iteration is under way, at step 1, .* begin a new"):
        loader.load_state_dict(state)
    assert next(items)["offset"] == 1
    assert loader.state_dict() == {"blend": local.id, "offset": 2}
    items.close()
    loader.load_state_dict(state)
    assert loader.state_dict() == state
    assert [step["offset"] for step in loader] == list(range(20, 30))
    loader.load_state_dict(state)  # after the last step
    items = iter(loader)
    loader.load_state_dict({"blend": local.id, "offset": 25})  # nothing is prefetched before the first step
    assert next(items)["offset"] == 25


def test_a_state_is_loaded_after_a_loop_that_was_left_or_failed(local: BlendHandle) -> None:
    loader = BlendLoader(BlendDataset(local, stop=30))
    state = {"blend": local.id, "offset": 20}
    for _ in loader:
        break
    loader.load_state_dict(state)

    def train() -> None:
        for number, _ in enumerate(loader):
            raise FloatingPointError(f"loss of step {number}")

    with pytest.raises(FloatingPointError) as raised:  # which holds the frames of the loop
        train()
    loader.load_state_dict(state)
    assert next(iter(loader))["offset"] == 20
    assert raised.value.__traceback__ is not None


def test_a_dataset_refuses_a_state_while_a_plain_loop_reads_it(local: BlendHandle) -> None:
    dataset = BlendDataset(local, stop=30)
    state = {"blend": local.id, "offset": 20}
    items = iter(DataLoader(dataset, batch_size=None))
    assert next(items)["offset"] == 0
    with pytest.raises(InvalidRequest, match="An iteration is under way"):
        dataset.load_state_dict(state)
    copied = pickle.loads(pickle.dumps(dataset))
    copied.load_state_dict(state)
    assert [step["offset"] for step in copied] == list(range(20, 30))
    del items
    dataset.load_state_dict(state)
    assert dataset.state_dict() == state


def test_a_stop_before_the_offset_is_refused(blend: BlendHandle) -> None:
    with pytest.raises(
        InvalidRequest, match="`stop` is step 3 and `offset` step 5, so there is no step to read"
    ):
        BlendDataset(blend, offset=5, stop=3)
    assert list(BlendDataset(blend, offset=5, stop=5)) == []  # as after the last step of a run


def test_len_is_the_number_of_steps_from_the_first_on_wherever_a_loop_is(blend: BlendHandle) -> None:
    for ranks in (1, 4):
        dataset = BlendDataset(blend, offset=40, rank=ranks - 1, ranks=ranks)
        loader = BlendLoader(dataset)
        assert len(dataset) == len(loader) == 10
        assert len(DataLoader(dataset, batch_size=None)) == 10
        next(iter(loader))
        assert len(list(loader)) == 9
        assert len(loader) == 10
        assert loader
        assert dataset
    assert len(BlendDataset(blend, offset=3, stop=7)) == 4


def test_a_state_behind_the_stop_is_refused(blend: BlendHandle) -> None:
    dataset = BlendDataset(blend, stop=7)
    dataset.load_state_dict({"blend": blend.id, "offset": 7})
    assert list(dataset) == []
    with pytest.raises(InvalidRequest, match=r"at step 9, and the dataset ends before step 7. Give a later"):
        dataset.load_state_dict({"blend": blend.id, "offset": 9})


def test_the_length_of_a_blend_without_an_end_is_said_to_be_unknown(local: BlendHandle) -> None:
    endless = local.blender.open(local.blender.create([Source(CODE, 4, oversample=True)]).id)
    dataset = BlendDataset(endless)
    for counted in (dataset, BlendLoader(dataset), DataLoader(dataset, batch_size=None)):
        with pytest.raises(
            TypeError, match=r"has no last step: all its sources are read again .* Give .* `stop`"
        ):
            len(counted)
    assert dataset
    assert issubclass(UnknownLength, InvalidRequest)
    assert len(BlendDataset(endless, offset=2, stop=1_000_000)) == 999_998


@pytest.mark.parametrize(
    "options", [{"offset": "3"}, {"offset": -1}, {"stop": "1000"}, {"stop": 1.5}, {"stop": -5}]
)
def test_a_range_of_other_types_is_refused_where_it_is_given(
    local: BlendHandle, options: dict[str, Any]
) -> None:
    ((name, number),) = options.items()
    with pytest.raises(InvalidRequest, match=f"`{name}` is {number}. Give a whole number, 0 or more"):
        BlendDataset(local, **options)
