"""Pictures reach the ranks that the plan names, as patches that equal those of a plain decoder."""

from __future__ import annotations

import importlib
import logging
import re
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image

from blender.arrays import as_numpy
from blender.catalog.blends import open_blends
from blender.errors import InvalidRequest, InvalidStrategy
from blender.global_batches.namespace import create_namespace
from blender.global_batches.policies import Naive
from blender.global_batches.producer import Producer
from blender.global_batches.reader import BatchReader
from blender.loading import serve
from blender.loading.columns import StepColumns
from blender.loading.costs import Backbone, Encoder
from blender.loading.durable import PlannedProduction, planned_step
from blender.loading.embedded import open_loading
from blender.loading.graph import DGraph
from blender.loading.handle import LoadingHandle
from blender.loading.image_graph import ImageGraph
from blender.loading.image_input import ImageInput
from blender.loading.loader import Loader
from blender.loading.pictures.patches import patches_of
from blender.loading.pictures.rules import PictureRules
from blender.loading.pictures.transforms import PictureTransform
from blender.loading.plan import Plan
from blender.loading.planner import open_planner
from blender.loading.spec import LoadingSpec
from blender.loading.step import LoadedStep
from blender.loading.torch import LoadingDataset, pixels, step_tensors
from blender.loading.tree import ClientPlaceTree
from blender.records import Source
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from blender.trainer.torch import BlendLoader
from factory.errors import ConfigurationError
from factory.settings import Settings, settings
from tests.blender.lakes import PROSE, ROOT, packed_rows, write_table
from tests.blender.picture_tables import (
    LENGTH,
    PICTURE_TOKEN,
    PICTURES,
    Document,
    Drawn,
    documents,
    draw,
    write_pictures,
)

INPUT = ImageInput(patch=4, merge=2, most_patches=64)
DOCUMENTS = documents(24)
ROW = 56  # tokens of a whole_rows row


@pytest.fixture(scope="module")
def shared_lake(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A lake with 24 documents of pictures, and 32 rows of text."""
    home = tmp_path_factory.mktemp("lake")
    lake = Settings(home=home, cache=home / "cache")
    write_pictures(lake, DOCUMENTS)
    properties = {"factory.sequence-length": str(LENGTH)}
    write_table(lake, PROSE, packed_rows("prose", 32), properties=properties)
    return lake


@pytest.fixture(scope="module")
def blend(shared_lake: Settings) -> str:
    """8 documents of pictures and 4 rows of text in a step."""
    return blend_of(shared_lake)


def blend_of(settings: Settings, table: str = PICTURES, text: int = 4) -> str:
    sources = [Source(table, 12 - text, columns=("tokens", "images"), shuffle="row", oversample=True)]
    if text:
        sources.append(Source(PROSE, text, oversample=True))
    return open_blends(settings).create(sources, seed=5).id


def spec_of(blend: str, **fields: Any) -> LoadingSpec:
    model = Backbone(hidden=16, layers=2)
    fields_of_all = {"mesh": Mesh(dp=2), "model": model, "microbatches": 2, "images": INPUT} | fields
    return LoadingSpec(blend=blend, **fields_of_all)


def read(loading: LoadingHandle, rank: int, offset: int = 0, steps: int = 1) -> list[LoadedStep]:
    return list(loading.read(StepRange(offset, steps), rank))


def steps_of(settings: Settings, spec: LoadingSpec, steps: int = 1, **options: Any) -> list[LoadedStep]:
    """The steps of all ranks, embedded."""
    loading = open_loading(spec, settings, **options)
    try:
        return [step for rank in range(spec.mesh.ranks) for step in read(loading, rank, steps=steps)]
    finally:
        loading.close()


def plain(picture: Drawn, images: ImageInput = INPUT) -> Any:
    """The patches of a picture of an opaque mode, by Pillow alone."""
    across, down = (int(side[0]) for side in images.grid([picture.width], [picture.height]))
    size = across * images.patch, down * images.patch
    image = Image.open(BytesIO(picture.content)).convert("RGB").resize(size, Image.Resampling.BICUBIC)
    return patches_of(np.asarray(image), images.patch, images.merge)


def n_tokens_of(picture: Drawn) -> int:
    return int(INPUT.n_tokens([picture.width], [picture.height])[0])


def written_out(document: Document) -> list[int]:
    """The tokens of a document with those of its pictures."""
    pictures = iter(document.pictures)
    return [
        token
        for first in document.tokens
        for token in [first] * (n_tokens_of(next(pictures)) if first == PICTURE_TOKEN else 1)
    ]


def text_of(ordinal: int) -> list[int]:
    return packed_rows("prose", 32)["tokens"][ordinal].as_buffer().to_pybytes()  # type: ignore[return-value]


def tokens_of(source: int, ordinal: int) -> list[int]:
    """The tokens of a sample with those of its pictures."""
    if source == 0:
        return written_out(DOCUMENTS[ordinal])
    return np.frombuffer(text_of(ordinal), "<u2").tolist()


@pytest.mark.parametrize("row_tokens", [None, ROW])
def test_each_rank_gets_the_pictures_of_its_rows(
    open_handle: Any, blend: str, row_tokens: int | None
) -> None:
    loading = open_handle(spec_of(blend, row_tokens=row_tokens))
    for rank in range(2):
        for step in read(loading, rank, offset=1, steps=2):
            assert len(step.images) == len(step.microbatches) == 2
            for pictures, microbatch, places in zip(
                step.images, step.microbatches, step.placeholders, strict=True
            ):
                mask = microbatch.image_mask
                assert (pictures.node == rank).all()
                assert sorted(places["index"].tolist()) == list(range(len(pictures)))
                oracle = [np.empty((0, 48), np.uint8)]
                for index in range(len(pictures)):
                    source, ordinal, number = (
                        pictures._values.field(name)[index].as_py()
                        for name in ("source", "ordinal", "number")
                    )
                    assert source == 0
                    picture = DOCUMENTS[ordinal].pictures[number]
                    oracle.append(plain(picture))
                    lines, columns = pictures.grid[index]
                    assert (columns, lines) == tuple(
                        int(side[0]) for side in INPUT.grid([picture.width], [picture.height])
                    )
                    place = places["index"].tolist().index(index)
                    for name in ("row", "position", "tokens"):
                        assert pictures.to[name][index] == places[name][place]
                    row, position, n = (int(places[name][place]) for name in ("row", "position", "tokens"))
                    assert n == n_tokens_of(picture)
                    assert mask[row, position : position + (n if row_tokens else 1)].all()
                assert (pictures.patches == np.concatenate(oracle)).all()
                assert pictures.cu_patches.tolist() == np.cumsum([0, *map(len, oracle[1:])]).tolist()
                n_masked = places["tokens"].sum() if row_tokens else len(places["tokens"])
                assert mask.sum() == n_masked


def test_colors_are_normalized_at_the_rank(shared_lake: Settings, blend: str) -> None:
    rules = PictureRules(mean=(0.5, 0.25, 0), std=(0.5, 1, 2))
    (pictures, *_) = steps_of(shared_lake, spec_of(blend, pictures=rules))[0].images
    colors = pictures.patches.reshape(-1, 16, 3).astype(np.float32) / 255
    oracle = (colors - np.float32([0.5, 0.25, 0])) / np.float32([0.5, 1, 2])
    assert pictures.pixels().dtype == np.float32
    assert np.allclose(pictures.pixels().reshape(-1, 16, 3), oracle, atol=1e-6)


def first_fit_rows(samples: Sequence[tuple[int, int]], capacity: int) -> list[list[tuple[int, int]]]:
    """The samples of each row, by a plain first fit."""
    rows: list[list[tuple[int, int]]] = []
    for sample in samples:
        n = len(tokens_of(*sample))
        for row in rows:
            if sum(len(tokens_of(*other)) for other in row) + n <= capacity:
                row.append(sample)
                break
        else:
            rows.append([sample])
    return rows


@pytest.mark.invariant(
    "Samples joined at load time are the plan's: each is in one row, by first fit in the order of the plan, "
    "with the tokens of its pictures."
)
@pytest.mark.parametrize("capacity", [ROW, 70, 200])
def test_joined_rows_hold_each_sample_once(
    open_handle: Any, shared_lake: Settings, blend: str, capacity: int
) -> None:
    spec = spec_of(blend, row_tokens=capacity)
    loading, planner = open_handle(spec), open_planner(spec, shared_lake)
    for rank in range(2):
        for step in read(loading, rank, steps=3):
            plan = planner.plan(step.offset)
            for bin, microbatch in enumerate(step.microbatches):
                numbers = plan.rows_of(rank, bin)
                origins = list(
                    zip(plan.step.source[numbers].tolist(), plan.step.ordinal[numbers].tolist(), strict=True)
                )
                rows = first_fit_rows(origins, capacity)
                samples = microbatch.samples
                assert microbatch.tokens.shape == (len(rows), capacity)
                for number, row in enumerate(rows):
                    here = samples["row"] == number
                    assert (
                        list(
                            zip(
                                samples["source"][here].tolist(),
                                samples["ordinal"][here].tolist(),
                                strict=True,
                            )
                        )
                        == row
                    )
                    oracle = [token for sample in row for token in tokens_of(*sample)]
                    assert microbatch.tokens[number].tolist() == oracle + [0] * (capacity - len(oracle))
                    assert samples["length"][here].tolist() == [len(tokens_of(*sample)) for sample in row]


def test_targets_leave_out_pictures_and_never_cross_a_sample(shared_lake: Settings, blend: str) -> None:
    for step in steps_of(shared_lake, spec_of(blend, row_tokens=60), steps=2):
        for microbatch in step.microbatches:
            samples = microbatch.samples
            for row in range(len(microbatch)):
                oracle = []
                samples_of_row = np.flatnonzero(samples["row"] == row)
                for source, ordinal in zip(
                    samples["source"][samples_of_row].tolist(),
                    samples["ordinal"][samples_of_row].tolist(),
                    strict=True,
                ):
                    tokens = tokens_of(source, ordinal)
                    ends = {len(tokens)} if source == 0 else {5, len(tokens)}  # text has two documents a row
                    oracle += [
                        -100 if place + 1 in ends or tokens[place + 1] == PICTURE_TOKEN else tokens[place + 1]
                        for place in range(len(tokens))
                    ]
                oracle += [-100] * (60 - len(oracle))
                assert microbatch.targets[row].tolist() == oracle


def test_a_sample_longer_than_a_row_is_refused(shared_lake: Settings, blend: str) -> None:
    with pytest.raises(
        InvalidRequest,
        match=r"Row \d+ of source .* .document \S+. has .* tokens.*hold 16. Raise `row_tokens`",
    ):
        steps_of(shared_lake, spec_of(blend, row_tokens=16), steps=2)


def test_text_alone_is_joined_too(shared_lake: Settings) -> None:
    text = open_blends(shared_lake).create([Source(PROSE, 12)], seed=5).id
    (step, *_) = steps_of(shared_lake, spec_of(text, images=None, row_tokens=20))
    assert step.images == ()
    for microbatch in step.microbatches:
        assert microbatch.tokens.shape == (2, 20)
        assert len(microbatch.samples["row"]) == 3
        assert not microbatch.image_mask.any()
        with pytest.raises(InvalidRequest, match="`samples`"):
            microbatch.ordinal  # noqa: B018


def test_context_parallel_ranks_have_pieces_of_joined_rows(shared_lake: Settings, blend: str) -> None:
    (whole,) = steps_of(shared_lake, spec_of(blend, mesh=Mesh(), row_tokens=ROW))
    pieces = steps_of(shared_lake, spec_of(blend, mesh=Mesh(cp=2), row_tokens=ROW))
    for bin, microbatch in enumerate(whole.microbatches):
        parts = [piece.microbatches[bin] for piece in pieces]
        order = np.argsort(np.concatenate([part.places for part in parts], axis=1), axis=1)
        for name in ("tokens", "targets", "image_mask", "position_ids"):
            whole_rows = np.concatenate([getattr(part, name) for part in parts], axis=1)
            assert (np.take_along_axis(whole_rows, order, axis=1) == getattr(microbatch, name)).all()
        for piece in pieces:
            assert (piece.images[bin].patches == whole.images[bin].patches).all()
    with pytest.raises(InvalidRequest, match="`chunking` row"):
        steps_of(shared_lake, spec_of(blend, mesh=Mesh(cp=2), chunking="document"))


def test_the_first_stage_of_a_pipeline_encodes(shared_lake: Settings, blend: str) -> None:
    first, between, last = steps_of(shared_lake, spec_of(blend, mesh=Mesh(pp=3), row_tokens=ROW))
    assert sum(map(len, first.images)) > 0
    assert [sum(map(len, step.images)) for step in (between, last)] == [0, 0]
    assert last.placeholders[0]["tokens"].tolist() == first.placeholders[0]["tokens"].tolist()
    assert between.microbatches[0].cu_seqlens.tolist() == first.microbatches[0].cu_seqlens.tolist()


RANDOM = PictureRules(
    transforms=(
        PictureTransform(name="crop", parameters={"least": 0.5}),
        PictureTransform(name="flip"),
    )
)


@pytest.mark.invariant(
    "A random transform draws by blend, step, row and name alone: a picture is the same from any loader, "
    "decoded early or late, and when its step is read again."
)
def test_random_pictures_are_the_same_by_any_way(open_handle: Any, shared_lake: Settings, blend: str) -> None:
    spec = spec_of(blend, pictures=RANDOM, row_tokens=ROW)
    first = [read(open_handle(spec), rank, offset=3, steps=2) for rank in range(2)]
    ways = [
        open_handle(spec, decode=decode, ahead=ahead)
        for decode in ("loader", "constructor")
        for ahead in (1, 3)
    ]
    for loading in ways:
        for rank in range(2):
            for step, again in zip(first[rank], read(loading, rank, offset=3, steps=2), strict=True):
                assert step.arrow.equals(again.arrow)
    plainly = read(open_handle(spec_of(blend, row_tokens=ROW)), 0, offset=3)[0]
    assert any(
        (first.patches != other.patches).any()
        for first, other in zip(plainly.images, first[0][0].images, strict=True)
    )


@pytest.mark.parametrize("decode", ["loader", "constructor"])
def test_several_source_loaders_give_the_same_rows(shared_lake: Settings, blend: str, decode: Any) -> None:
    spec = spec_of(blend, pictures=RANDOM, row_tokens=ROW)
    blend_in_process = open_blends(shared_lake).open(blend)
    rows = []
    for loaders in (1, 2):
        loader = Loader(
            blend_in_process,
            spec,
            lambda rows: rows,
            lambda rows: rows.nbytes,
            loaders=loaders,
            decode=decode,
        )
        rows.append([part for _, part in loader.batches(StepRange(0, 2), 0)])
        loader.close()
    assert rows[0] == rows[1]


def test_an_update_of_the_blend_leaves_earlier_pictures_as_they_were(
    shared_lake: Settings, blend: str
) -> None:
    spec = spec_of(blend, pictures=RANDOM)
    update = open_blends(shared_lake).update(blend, 3, {PICTURES: 10, PROSE: 2})
    for first, other in zip(
        steps_of(shared_lake, spec),
        steps_of(shared_lake, spec.model_copy(update={"blend": update.id})),
        strict=True,
    ):
        assert all((a.patches == b.patches).all() for a, b in zip(first.images, other.images, strict=True))


def test_files_instead_of_patches_are_fewer_bytes_between_roles(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, cache=tmp_path / "cache")
    photographs = [Document([PICTURE_TOKEN, 1, 0], [draw(320, 240, seed, kind="JPEG")]) for seed in range(8)]
    write_pictures(settings, photographs)
    spec = spec_of(blend_of(settings, text=0), images=ImageInput(patch=14, merge=2, most_patches=1_024))
    blend_in_process = open_blends(settings).open(spec.blend)
    bytes_by_decode = {}
    for decode in ("loader", "constructor"):
        loader = Loader(
            blend_in_process, spec, lambda rows: rows, lambda rows: rows.nbytes, decode=decode, ahead=0
        )
        rows = list(loader.batches(StepRange(0, 1), 0))
        bytes_by_decode[decode] = loader.taken_bytes
        assert rows
        loader.close()
    assert bytes_by_decode["loader"] > 4 * bytes_by_decode["constructor"]


def test_serve_refuses_another_place_to_decode() -> None:
    arguments = ["0" * 32, "--mesh", "dp=1", "--model", "hidden=16,layers=2", "--decode"]
    assert serve._parser().parse_args([*arguments, "constructor"]).decode == "constructor"
    with pytest.raises(InvalidRequest, match="`nowhere` decodes no pictures"):
        serve._parser().parse_args([*arguments, "nowhere"])


def content_bytes(loader_blend: Any) -> int:
    """Bytes of pictures that were read."""
    groups = loader_blend.sources[0].reader.column("images.list.element.content").groups
    return sum(group.index.read_so_far[1] for group in groups)


@pytest.mark.invariant("A plan reads no pixel.")
def test_a_plan_reads_no_pixel(shared_lake: Settings, blend: str) -> None:
    blend_in_process = open_blends(shared_lake).open(blend)
    loader = Loader(blend_in_process, spec_of(blend), lambda rows: rows, lambda rows: rows.nbytes, ahead=0)
    for offset in range(5):
        loader.plan_hash(offset)
    assert content_bytes(blend_in_process) == 0
    next(loader.batches(StepRange(0, 1), 0))
    assert content_bytes(blend_in_process) > 0
    loader.close()


BAD = Drawn(draw(20, 20).content[:60], 20, 20)


@pytest.fixture
def with_a_bad_picture(tmp_path: Path) -> Settings:
    """A lake whose document 1 has a good picture and one that is cut off, and document 2 an empty first."""
    settings = Settings(home=tmp_path, cache=tmp_path / "cache")
    good = Document([PICTURE_TOKEN, 7, 0], [draw(20, 20)])
    write_pictures(
        settings,
        [
            good,
            Document([7, PICTURE_TOKEN, PICTURE_TOKEN, 0], [draw(20, 20), BAD]),
            Document([PICTURE_TOKEN, 0], [Drawn(b"", 9, 9)]),
            good,
        ],
    )
    return settings


def test_a_picture_that_does_not_decode_is_an_error_with_its_document(with_a_bad_picture: Settings) -> None:
    spec = spec_of(blend_of(with_a_bad_picture, text=0))
    with pytest.raises(InvalidRequest, match=r"Picture \d of document doc-[12] \(row [12] of source `packed"):
        steps_of(with_a_bad_picture, spec)


def test_a_gray_picture_is_named_counted_and_logged_once(
    with_a_bad_picture: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    spec = spec_of(blend_of(with_a_bad_picture, text=0), pictures=PictureRules(on_failure="gray"))
    blend_in_process = open_blends(with_a_bad_picture).open(spec.blend)
    loader = Loader(blend_in_process, spec, lambda rows: rows, lambda rows: rows.nbytes, ahead=0)
    with caplog.at_level(logging.WARNING, "blender.loading"):
        steps = [LoadedStep(*batch) for rank in (0, 1) for batch in loader.batches(StepRange(0, 2), rank)]
    loader.close()
    grays = [first for step in steps for pictures in step.images for first in pictures.replacements]
    assert {(first.document, first.number) for first in grays} == {("doc-1", 1), ("doc-2", 0)}
    assert {first.reason.split(" (")[0] for first in grays} == {"does not decode", "is empty"}
    assert loader.replaced_pictures == len(grays) > 2
    assert sorted(record.getMessage().split(" (")[0] for record in caplog.records) == [
        "Picture 0 of document doc-2",
        "Picture 1 of document doc-1",
    ]
    gray = next(pictures for step in steps for pictures in step.images if pictures.replacements)
    assert (gray.patches == 128).all(axis=1).any()


def test_placeholders_without_pictures_are_refused(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, cache=tmp_path / "cache")
    write_pictures(settings, [Document([PICTURE_TOKEN, PICTURE_TOKEN, 0], [draw(20, 20)])] * 4)
    with pytest.raises(
        InvalidRequest, match=r"document doc-\d. has 2 placeholders and 1 pictures\. Pack the table again"
    ):
        steps_of(settings, spec_of(blend_of(settings, text=0)))
    write_pictures(settings, [Document([7, 8, 0], [draw(20, 20)])] * 4, table="packed.none")
    with pytest.raises(InvalidRequest, match="has 0 placeholders and 1 pictures"):
        steps_of(settings, spec_of(blend_of(settings, "packed.none", text=0)))


def test_a_blend_without_pictures_is_refused(shared_lake: Settings) -> None:
    text = open_blends(shared_lake).create([Source(PROSE, 12)], seed=5).id
    with pytest.raises(InvalidRequest, match="`images`"):
        open_loading(spec_of(text), shared_lake)


def test_a_loader_without_pillow_says_so_when_it_opens(
    shared_lake: Settings, blend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ConfigurationError, match=r"corpus-factory\[images\]"):
        open_loading(spec_of(blend), shared_lake)
    text = open_blends(shared_lake).create([Source(PROSE, 12)], seed=5).id
    assert steps_of(shared_lake, spec_of(text, images=None))


VLM = {"strategy": "vlm", "encoder": Encoder(hidden=8, layers=2)}


@pytest.mark.invariant(
    "With planned pictures each picture of a step reaches one node of the encoder, and the map at the "
    "encoder and the map at the rows name the same exchange."
)
@pytest.mark.parametrize("row_tokens", [None, ROW])
@pytest.mark.parametrize(
    "fields",
    [
        {"mesh": Mesh(dp=2)},
        {"mesh": Mesh(dp=2, tp=2)},
        {"mesh": Mesh(dp=2, cp=2), "broadcast": ()},
        {"mesh": Mesh(dp=2, pp=2)},
        {"mesh": Mesh(dp=4), "encoder_level": "interleaved", "microbatches": 3},
    ],
)
def test_both_maps_name_the_same_exchange(
    open_handle: Any, shared_lake: Settings, blend: str, fields: dict[str, Any], row_tokens: int | None
) -> None:
    spec = spec_of(blend, row_tokens=row_tokens, **VLM, **fields)
    plan = open_planner(spec, shared_lake).plan(1)
    loading = open_handle(spec)
    outputs: dict[tuple[int, int, int], tuple[int, ...]] = {}
    inputs: dict[tuple[int, int, int], tuple[int, ...]] = {}
    for consumer in plan.consumers:
        (step,) = read(loading, consumer.rank, offset=1)
        for bin, pictures in enumerate(step.images):
            counts: dict[int, int] = {}
            for index, node in enumerate(pictures.node.tolist()):
                place = counts[node] = counts.get(node, -1) + 1
                to = tuple(int(numbers[index]) for numbers in pictures.to.values())
                assert outputs.setdefault((node, bin, place), to) == to
                ordinal, number = (
                    pictures._values.field(name)[index].as_py() for name in ("ordinal", "number")
                )
                first, stop = pictures.cu_patches[index : index + 2]
                assert (pictures.patches[first:stop] == plain(DOCUMENTS[ordinal].pictures[number])).all()
        if not step.has_tokens:
            continue
        for microbatch, places in enumerate(step.placeholders):
            for row, position, tokens, node, bin, place in zip(*places.values(), strict=True):
                to = (consumer.bucket, microbatch, int(row), int(position), int(tokens))
                inputs[int(node), int(bin), int(place)] = to
    assert outputs == inputs
    assert len(outputs) == len(plan.images.images)
    for node, bin in {place[:2] for place in outputs}:
        assert len([1 for place in outputs if place[:2] == (node, bin)]) == len(
            plan.images.of_node(node, bin)
        )


@pytest.mark.parametrize("row_tokens", [None, ROW])
def test_tensors_of_a_step_have_its_pictures(
    shared_lake: Settings, blend: str, row_tokens: int | None
) -> None:
    loading = open_loading(spec_of(blend, row_tokens=row_tokens), shared_lake)
    (step,) = read(loading, 1)
    (tensors,) = BlendLoader(LoadingDataset(loading, rank=1, stop=1))
    for bin, pictures in enumerate(step.images):
        images, microbatch = tensors["images"][bin], tensors["microbatches"][bin]
        assert images["patches"].dtype == torch.uint8
        assert np.allclose(pixels(images).numpy(), pictures.pixels(), atol=1e-6)
        assert images["grid"].tolist() == pictures.grid.tolist()
        assert images["to_position"].tolist() == pictures.to["position"].tolist()
        assert microbatch["placeholders"]["tokens"].tolist() == step.placeholders[bin]["tokens"].tolist()
        n_places = microbatch["placeholders"]["tokens"].sum() if row_tokens else len(pictures)
        assert microbatch["image_mask"].sum() == n_places
    loading.close()


def test_pixels_of_no_picture_are_no_pixels(shared_lake: Settings) -> None:
    text = Document([5, 6, 0])
    write_pictures(shared_lake, [text] * 7 + [Document([PICTURE_TOKEN, 0], [draw(9, 9)])], "packed.few")
    source = Source("packed.few", 8, columns=("tokens", "images"), shuffle="none")
    few = open_blends(shared_lake).create([source], seed=5).id
    sizes = [len(pictures) for step in steps_of(shared_lake, spec_of(few)) for pictures in step.images]
    assert sorted(sizes) == [0, 0, 0, 1]
    for step in steps_of(shared_lake, spec_of(few)):
        for images in step_tensors(step)["images"]:
            assert pixels(images).shape == images["patches"].shape


def test_the_module_of_the_page_reads_pictures(
    shared_lake: Settings, blend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall("```python\n(.*?)```", (ROOT / "docs/loading.md").read_text(), re.DOTALL)
    (module,) = [block for block in blocks if "my_pictures" in block]
    (tmp_path / "my_pictures.py").write_text(module)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("FACTORY_HOME", str(shared_lake.home))
    settings.cache_clear()
    try:
        shapes = importlib.import_module("my_pictures").shapes(blend, rank=1, steps=2)
    finally:
        monkeypatch.undo()
        settings.cache_clear()
    assert len(shapes) == 4
    assert {shape[1:] for shape in shapes} == {(14 * 14 * 3, 1, 512)}


def test_an_unknown_transform_is_refused_when_the_loader_opens(shared_lake: Settings, blend: str) -> None:
    rules = PictureRules(transforms=(PictureTransform(name="blur"),))
    with pytest.raises(InvalidRequest, match="no transform `blur`"):
        open_loading(spec_of(blend, pictures=rules), shared_lake)


def test_the_columns_of_a_rank_are_those_of_the_plan(shared_lake: Settings, blend: str) -> None:
    (step, _) = steps_of(shared_lake, spec_of(blend, row_tokens=ROW))
    assert isinstance(step.arrow, pa.RecordBatch)
    assert "images" not in step.arrow.schema.names
    assert (as_numpy(step.arrow.column("offset")) == 0).all()


VLM: dict[str, Any] = {"strategy": "vlm", "encoder": Encoder(hidden=8, layers=2)}


def switching_nodes(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    """Pictures over dp indexes at step 0, and over all ranks behind it."""
    graph = DGraph.of(step, tree, ("n_tokens", "squared_lengths"))
    graph.distribute("DP")
    graph.cost(spec.model)
    graph.fill(**spec.balancing)
    images = ImageGraph(graph, tree, ("n_patches",))
    images.distribute("DP" if step.offset == 0 else "WORLD")
    assert spec.encoder is not None
    images.cost(spec.encoder)
    images.balance("greedybinpacking", bins=spec.microbatches)
    graph.join(images)
    return graph.plan()


def test_pictures_on_other_nodes_than_at_step_0_are_refused(shared_lake: Settings, blend: str) -> None:
    fields = VLM | {"strategy": f"{__name__}:switching_nodes", "mesh": Mesh(dp=2, tp=2), "broadcast": ()}
    loading = open_loading(spec_of(blend, **fields), shared_lake)
    try:
        assert len(read(loading, 0)) == 1
        with pytest.raises(InvalidStrategy, match="pictures of step 1 for 4 nodes of the encoder, and those"):
            read(loading, 0, offset=1)
    finally:
        loading.close()


def test_a_row_with_tokens_outside_its_segments_has_no_place_beside_pictures(shared_lake: Settings) -> None:
    rows = packed_rows("short", 32)
    segments = pa.array([[row.as_py()[0]] for row in rows["segments"]], rows.schema.field("segments").type)
    place = rows.schema.get_field_index("segments")
    short = rows.set_column(place, rows.schema.field("segments"), segments)
    write_table(shared_lake, "packed.short", short, properties={"factory.sequence-length": str(LENGTH)})
    sources = [
        Source(PICTURES, 8, columns=("tokens", "images"), shuffle="row", oversample=True),
        Source("packed.short", 8, oversample=True),
    ]
    blend = open_blends(shared_lake).create(sources, seed=5).id
    with pytest.raises(InvalidRequest, match="tokens with those of its pictures, and its segments make 5"):
        steps_of(shared_lake, spec_of(blend, row_tokens=ROW, **VLM))


def test_a_source_that_leaves_its_pictures_out_is_named(shared_lake: Settings) -> None:
    sources = [
        Source(PICTURES, 4, columns=("tokens", "images"), shuffle="row", oversample=True),
        Source(PICTURES, 8, name="words", oversample=True),
    ]
    blend = open_blends(shared_lake).create(sources, seed=5).id
    with pytest.raises(InvalidRequest, match="source `words` does not deliver `images`"):
        steps_of(shared_lake, spec_of(blend))


@pytest.mark.parametrize("parameters", [{"least": 1.5}, {"least": -1}, {"least": 0.9, "most": 0.5}])
def test_wrong_shares_of_a_crop_are_refused_when_the_loader_opens(
    shared_lake: Settings, blend: str, parameters: dict[str, float]
) -> None:
    transform = PictureTransform(name="crop", parameters=parameters)
    with pytest.raises(InvalidRequest, match="Give shares above 0 and up to 1"):
        open_loading(spec_of(blend, pictures=PictureRules(transforms=(transform,))), shared_lake)


def test_durable_pictures_that_ranks_encode_for_each_other_need_their_mesh(
    shared_lake: Settings, tmp_path: Path
) -> None:
    source = Source(PICTURES, 8, columns=("tokens", "images"), shuffle="row")
    blend = open_blends(shared_lake).create([source], seed=5)
    spec = spec_of(blend.id, row_tokens=ROW, broadcast=(), **VLM)
    create_namespace(tmp_path, spec.mesh, lanes=1, order="assigned")
    production = PlannedProduction(open_blends(shared_lake).open(blend.id), spec)
    Producer(tmp_path, production, policy=Naive).run()
    production.close()
    reader = BatchReader(str(tmp_path), Mesh(dp=1), accumulate=2)
    with pytest.raises(InvalidRequest, match="Read it on the mesh of its spec"):
        [planned_step(part) for part in reader.read(StepRange(0, 2), 0)]


@pytest.mark.parametrize("fields", [{}, VLM])
def test_durable_batches_hold_pictures_and_joined_rows(
    shared_lake: Settings, tmp_path: Path, fields: dict[str, Any]
) -> None:
    source = Source(PICTURES, 8, columns=("tokens", "images"), shuffle="row")
    blend = open_blends(shared_lake).create([source], seed=5)
    spec = spec_of(blend.id, row_tokens=ROW, pictures=RANDOM, broadcast=(), **fields)
    create_namespace(tmp_path, spec.mesh, lanes=1, order="assigned")
    production = PlannedProduction(open_blends(shared_lake).open(blend.id), spec)
    Producer(tmp_path, production, policy=Naive).run()
    production.close()
    reader = BatchReader(str(tmp_path), spec.mesh)
    loading = open_loading(spec, shared_lake)
    for rank in range(2):
        for batch, step in zip(reader.read(StepRange(0, 3), rank), read(loading, rank, steps=3), strict=True):
            again = planned_step(batch)
            for pictures, same in zip(again.images, step.images, strict=True):
                assert (pictures.patches == same.patches).all()
                assert pictures.to["position"].tolist() == same.to["position"].tolist()
            for one_batch, other_batch in zip(again.microbatches, step.microbatches, strict=True):
                assert (one_batch.targets == other_batch.targets).all()
                assert one_batch.samples["ordinal"].tolist() == other_batch.samples["ordinal"].tolist()
    loading.close()
