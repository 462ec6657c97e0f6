"""Pictures of a blend's rows: their own bytes, in this process and from a server, mixed with plain texts."""

from __future__ import annotations

import numpy as np
import pytest

from blender import BlenderClient
from blender.catalog.blends import open_blends
from blender.records import Source
from blender.rows.counts import BYTES, COUNTS
from blender.spec.step_range import StepRange
from factory.settings import Settings
from tests.blender.lakes import CODE, make_lake, packed_rows, serving
from tests.blender.picture_tables import PICTURE_TOKEN, PICTURES, Document, Drawn, documents, write_pictures

N = 30
LARGE = 30 << 20  # bytes of a picture, near the most that a reader of pictures takes
DOCUMENTS = [
    *documents(N - 1, seed=5),
    Document([PICTURE_TOKEN], [Drawn(np.random.default_rng(1).bytes(LARGE), 9_000, 9_000)]),
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = make_lake(tmp_path_factory.mktemp("lake"), code=40)
    write_pictures(settings, DOCUMENTS)
    return settings


def blend_of(lake: Settings, *columns: str) -> str:
    """Rows of pictures in order, and as many of text, which have no column `images`."""
    sources = [Source(PICTURES, 2, columns=columns), Source(CODE, 2)]
    return open_blends(lake).create(sources, seed=1, pad=True).id


@pytest.mark.invariant(
    "A blend delivers the pictures of a row with their bytes, in the trainer's process and from a server; a "
    "blend without the column `images` reads no byte of one."
)
def test_rows_have_their_own_pictures_and_rows_of_text_have_none(lake: Settings) -> None:
    blend = open_blends(lake).open(blend_of(lake, "tokens", "images"))
    blocks = [block.batch for block in blend.fetch(StepRange(0, N // 2, 1))]
    assert max(batch.num_rows for batch in blocks) <= 16  # the largest pictures of so many rows fit a message
    rows = [row for batch in blocks for row in batch.to_pylist()]
    texts = packed_rows("code", 40).to_pylist()
    for row in rows:
        if row["source"] == 1:
            assert row["images"] is None
            assert row["tokens"] == texts[row["ordinal"]]["tokens"]
            continue
        document = DOCUMENTS[row["ordinal"]]
        assert [image["content"] for image in row["images"]] == [
            picture.content for picture in document.pictures
        ]
        places = np.flatnonzero(np.frombuffer(row["tokens"], "<u2") == PICTURE_TOKEN)
        assert [image["position"] for image in row["images"]] == places.tolist()
    assert sum(row["source"] == 0 for row in rows) == N


def test_a_blend_of_tokens_reads_no_picture(lake: Settings) -> None:
    blend = open_blends(lake).open(blend_of(lake, "tokens"))
    n_before = COUNTS.sums().get((BYTES, PICTURES), 0)
    for _ in blend.fetch(StepRange(0, N // 2, 1)):
        pass
    assert COUNTS.sums()[BYTES, PICTURES] - n_before < 20_000  # the largest picture alone has thirty million


def test_a_picture_of_30_megabytes_arrives_from_a_server(lake: Settings) -> None:
    name = blend_of(lake, "tokens", "images")
    local = open_blends(lake).open(name)
    with serving(lake.home) as server, BlenderClient(server.address) as client:
        for batch in client.fetch(name, offset=0, steps=N // 2):
            assert batch.arrow.equals(local.step(batch.offset))
