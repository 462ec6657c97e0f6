"""The sizes of pictures are known by row in any order, mended where damaged, and read without a pixel."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from blender.catalog.blends import Blends, open_blends
from blender.errors import InvalidRequest
from blender.loading.columns import Buffer
from blender.loading.image_index import ImageIndex, has_images, is_made, pictures
from blender.loading.image_input import ImageInput
from blender.loading.indexing import Indexing
from blender.records import Source
from blender.rows.counts import BYTES, COUNTS
from blender.spec.row_order import Origins
from factory.settings import Settings, settings
from tests.blender.image_lakes import STAMPS, image_rows, sizes_of, write_stamps
from tests.blender.lakes import CODE, PROSE, ROOT, open_reader, write_table

SIZES = sizes_of(60)


@pytest.fixture
def stamps(lake: Settings) -> Settings:
    write_stamps(lake, SIZES)
    return lake


def origins_of(ordinals: list[int]) -> Origins:
    none = np.zeros(len(ordinals), dtype=np.int64)
    return Origins(none, none, np.array(ordinals))


def test_pictures_of_rows_in_any_order_are_those_of_the_table(stamps: Settings) -> None:
    reader = open_reader(stamps, STAMPS)
    ordinals = [41, 3, 3, 59, 0, 17]
    images = pictures({0: ImageIndex(reader)}, origins_of(ordinals))
    of_table = [
        (place, number, *size)
        for place, ordinal in enumerate(ordinals)
        for number, size in enumerate(SIZES[ordinal])
    ]
    assert (
        list(
            zip(
                images.row,
                images.number,
                images.width,
                images.height,
                strict=True,
            )
        )
        == of_table
    )


def test_no_byte_of_a_picture_is_read(lake: Settings) -> None:
    write_stamps(lake, SIZES, n_bytes=4_000)
    reader = open_reader(lake, STAMPS)
    before = COUNTS.sums().get((BYTES, STAMPS), 0)
    pictures({0: ImageIndex(reader)}, origins_of(list(range(60))))
    assert 0 < COUNTS.sums()[BYTES, STAMPS] - before < 8_000
    pages_read = {
        leaf: sum(group.index.read_so_far[0] for group in reader.column(leaf).groups)
        for leaf in reader.leaves(["images"])
    }
    assert pages_read["images.list.element.content"] == 0
    assert {leaf.rpartition(".")[2] for leaf, pages in pages_read.items() if pages} == {"width", "height"}


@pytest.mark.parametrize("name", ["images", "image-sizes"])
def test_every_flipped_bit_of_a_record_is_noticed_and_mended(stamps: Settings, name: str) -> None:
    reader = open_reader(stamps, STAMPS)
    index = ImageIndex(reader)
    path = index.path.parent / index.path.name.replace("images", name)
    content, whole = path.read_bytes(), pictures({0: index}, origins_of([0, 1, 2, 3]))
    for bit in range(16 * 8):
        content_now = bytearray(content)
        content_now[16 * 3 + bit // 8] ^= 1 << bit % 8
        path.write_bytes(content_now)
        again = pictures({0: ImageIndex(reader)}, origins_of([0, 1, 2, 3]))
        assert again.width.tolist() == whole.width.tolist()
        assert path.read_bytes() == content


def test_files_cut_short_are_not_taken_for_whole(stamps: Settings) -> None:
    reader = open_reader(stamps, STAMPS)
    index = ImageIndex(reader)
    for path in (index.path, index.path.parent / index.path.name.replace("images", "image-sizes")):
        content = path.read_bytes()
        path.write_bytes(content[:-16])
        assert not is_made(reader)
        ImageIndex(reader)
        assert path.read_bytes() == content


def test_a_picture_without_an_extent_is_refused_with_its_row(lake: Settings) -> None:
    write_table(lake, STAMPS, image_rows([[(3, 4)], [(5, 0)]]))
    with pytest.raises(InvalidRequest, match=r"a picture of 5 x 0 pixels in the row of ordinal 1\. Ingest"):
        ImageIndex(open_reader(lake, STAMPS))


def test_rows_have_the_lengths_that_a_model_sees(stamps: Settings) -> None:
    blends = open_blends(stamps)
    blend = blends.create([Source(STAMPS, 6, columns=("tokens", "images")), Source(PROSE, 4)], pad=True)
    image_input = ImageInput(patch=14, merge=2, most_patches=256)
    step = Buffer(blends.open(blend.id), image_input).step(2)
    as_text = Buffer(blends.open(blend.id)).step(2)
    assert step.images is not None
    assert as_text.images is None
    for row in range(len(step)):
        sizes = SIZES[step.ordinal[row]] if step.sources[step.source[row]] == STAMPS else []
        width, height = np.array(sizes, dtype=np.int64).reshape(-1, 2).T
        text = int(as_text.facts["n_tokens"][row])
        n_tokens = text - len(sizes) + int(image_input.n_tokens(width, height).sum())
        facts = {name: int(values[row]) for name, values in step.facts.items()}
        assert facts == {
            "n_tokens": n_tokens,
            "squared_lengths": n_tokens**2 if sizes else as_text.facts["squared_lengths"][row],
            "n_images": len(sizes),
            "n_patches": int(image_input.n_patches(width, height).sum()),
            "n_pixels": int((width * height).sum()),
        }


def test_a_blend_without_pictures_pays_nothing_and_is_refused_for_a_spec_with_them(
    stamps: Settings, blends: Blends
) -> None:
    text = blends.open(blends.create([Source(CODE, 4), Source(STAMPS, 4)], pad=True).id)
    assert [has_images(source.reader) for source in text.sources] == [False, True]
    Buffer(text).step(0)
    list(Indexing(text).run())
    assert not is_made(text.sources[1].reader)
    with pytest.raises(InvalidRequest, match=r"no source of blend \w+ delivers them.*columns: \[tokens, im"):
        Buffer(text, ImageInput())


def test_a_row_of_several_documents_with_a_picture_is_refused(lake: Settings, blends: Blends) -> None:
    rows = image_rows([[(30, 40)]] * 8)
    halves = [[{"doc_id": "a", "doc_offset": 0, "length": n} for n in (2, 2)]] * 8
    place, field = rows.schema.get_field_index("segments"), rows.schema.field("segments")
    write_table(lake, STAMPS, rows.set_column(place, field, pa.array(halves, field.type)))
    blend = blends.open(blends.create([Source(STAMPS, 4, columns=("tokens", "images"))]).id)
    with pytest.raises(InvalidRequest, match=r"`packed.stamps` has 1 pictures, and is not one document"):
        Buffer(blend, ImageInput()).step(0)


def test_both_indexes_are_made_ahead_with_progress(stamps: Settings, blends: Blends) -> None:
    blend = blends.create([Source(STAMPS, 4, columns=("tokens", "images")), Source(CODE, 4)], pad=True)
    work, read = Indexing(blends.open(blend.id)), []
    sources = list(work.run(read.append))
    n_pictures = sum(map(len, SIZES))
    assert [(source.rows, source.bytes) for source in sources] == [
        (60, 16 * (120 + n_pictures)),
        (40, 640),
    ]
    assert sum(read) == work.rows == 160


def test_the_module_of_the_page_plans_two_modules(
    stamps: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall("```python\n(.*?)```", (ROOT / "docs/loading.md").read_text(), re.DOTALL)
    (module,) = [block for block in blocks if "by_pictures" in block]
    (tmp_path / "my_modules.py").write_text(module)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("FACTORY_HOME", str(stamps.home))
    settings.cache_clear()
    sources = [Source(STAMPS, 24, columns=("tokens", "images")), Source(PROSE, 8)]
    blend = open_blends(stamps).create(sources, pad=True).id
    try:
        plan_of = importlib.import_module("my_modules").plan_of
        own = plan_of(blend, 1, strategy="my_modules:by_pictures", loader_do_plan="my_modules:mask_even")
        levels = {
            level: plan_of(blend, 1, strategy="vlm", encoder_level=level) for level in ("intra", "inter")
        }
    finally:
        monkeypatch.undo()
        settings.cache_clear()
    for plan in (own, *levels.values()):
        assert plan.images is not None
        assert len(plan.images.node) == len(plan.step.images) > 0
        assert plan.images.nodes == 4
    assert levels["intra"].image_figures["step"].after >= levels["inter"].image_figures["step"].after
