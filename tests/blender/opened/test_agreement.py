"""Sources of one blend have one tokenizer, and rows of one length unless it says that it pads.

Validation stands beside training only where its source says so.
"""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from blender.call_context import CallContext
from blender.catalog.blends import Blends, open_blends
from blender.errors import InvalidBlend, InvalidRequest, SourceGone
from blender.records import Schedule, Source
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.spec.step_range import StepRange
from blender.trainer.client import BlenderClient
from blender.trainer.local import LocalBlender
from factory.cli import main, root
from factory.lake.schemas.packing import N_TOKENS, SEQUENCE_LENGTH, TOKENIZER_ID, VOCABULARY_SIZE
from factory.settings import Settings
from tests.blender.lakes import (
    CODE,
    PROSE,
    append_rows,
    current_snapshot,
    load_table,
    packed_rows,
    write_table,
)

LONG = "packed.long"
ONE, OTHER = "1" * 32, "2" * 32
UPSTREAM = "factory.upstream"


def write(lake: Settings, table: str, n_rows: int, tokenizer: str | None, length: int = 8) -> None:
    """Write a packed table whose snapshot declares its tokens and, if known, their tokenizer."""
    name = table.removeprefix("packed.")
    rows = packed_rows(name, n_rows)
    declared = {SEQUENCE_LENGTH: str(length), N_TOKENS: str(sum(rows["n_tokens"].to_pylist()))}
    if tokenizer is not None:
        upstream = f'{{"models.t{tokenizer[0]}": 1, "tokenized.{name}": 2}}'
        declared |= {TOKENIZER_ID: tokenizer, VOCABULARY_SIZE: "30000", UPSTREAM: upstream}
    write_table(lake, table, rows, snapshot_properties=declared)


def source(table: str, weight: int = 1, **fields: object) -> Source:
    return Source(table=table, weight=weight, **fields)


def server_of(lake: Settings) -> BlenderServer:
    return BlenderServer(blend_services(open_blends(lake)))


@pytest.fixture
def mixed(lake: Settings) -> Settings:
    """The lake with `packed.code` and `packed.prose` of two tokenizers."""
    write(lake, CODE, 40, ONE)
    write(lake, PROSE, 300, OTHER)
    return lake


TWO = (
    r"Source `packed\.code` \(at snapshot \d+\) has tokenizer 111111111111 \(models\.t1\), and `prose` "
    r"\(packed\.prose at snapshot \d+\) has 222222222222 \(models\.t2\): the same number is another token"
)


@pytest.mark.invariant(
    "All tokens of a blend come from the one tokenizer recorded in its pinned snapshots, even if others "
    "are published meanwhile. Rows of two lengths need a blend that pads."
)
def test_two_tokenizers_are_refused_wherever_a_blend_is_defined(
    mixed: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prose = Source(PROSE, 1, "prose")
    with server_of(mixed) as server, BlenderClient(server.address) as client:
        for blender in (client, LocalBlender(mixed)):
            with pytest.raises(InvalidBlend, match=TWO):
                blender.create([Source(CODE, 1), prose])
            alone = blender.create([Source(CODE, 1)])
            with pytest.raises(InvalidBlend, match=TWO):
                blender.update(alone.id, 3, add=[prose])
            assert blender.list() == [alone]
            blender.retire(alone.id)
    (tmp_path / "blend.yaml").write_text(
        "sources: [{table: packed.code, weight: 1}, {table: packed.prose, weight: 1}]"
    )
    monkeypatch.setattr(root, "lake_settings", lambda: mixed)
    for arguments in (
        ["--table", f"{CODE}=1", "--table", f"{PROSE}=1"],
        ["--file", str(tmp_path / "blend.yaml")],
    ):
        planned = CliRunner().invoke(main.app, ["blend", "plan", *arguments])
        assert (planned.exit_code, planned.stdout) == (2, "")
        assert "has tokenizer 111111111111 (models.t1)" in " ".join(planned.stderr.split())


def test_the_pinned_snapshot_counts_not_the_current_one(mixed: Settings) -> None:
    blends = open_blends(mixed)
    old = current_snapshot(mixed, PROSE)
    write(mixed, PROSE, 200, ONE)
    blends.create([source(CODE), source(PROSE)])
    with pytest.raises(InvalidBlend, match="another token"):
        blends.create([source(CODE), source(PROSE, name="prose", snapshot=old)])
    with load_table(mixed, CODE).transaction() as transaction:
        transaction.set_properties({TOKENIZER_ID: OTHER})  # as a later run sets it
    assert open_blends(mixed).create([source(CODE), source(PROSE)])


@pytest.mark.invariant(
    "All tokens of a blend come from the one tokenizer recorded in its pinned snapshots, even if others "
    "are published meanwhile. Rows of two lengths need a blend that pads."
)
def test_publishing_meanwhile_mixes_no_tokenizers(lake: Settings) -> None:
    """Tables are published one after the other, so for a moment they are of two tokenizers."""
    write(lake, CODE, 40, ONE)
    write(lake, PROSE, 60, ONE)
    created, refused, done = [], 0, threading.Event()

    def publish() -> None:
        for tokenizer in (OTHER, ONE, OTHER):
            for table, rows in ((CODE, 40), (PROSE, 60)):
                write(lake, table, rows, tokenizer)
        done.set()

    publisher = threading.Thread(target=publish)
    publisher.start()
    blends = open_blends(lake)
    seed = 0
    while not done.is_set():
        seed += 1
        try:
            created.append(blends.create([source(CODE), source(PROSE)], seed=seed))
        except InvalidBlend as error:
            refused += "another token" in str(error)  # or one whose rows are replaced at this moment
    publisher.join()
    tables = {name: load_table(lake, name) for name in (CODE, PROSE)}
    for stored in created:
        of = [
            tables[one.table].snapshot_by_id(pin).summary.additional_properties[TOKENIZER_ID]
            for one, pin in zip(stored.config.sources, stored.pins.snapshots, strict=True)
        ]
        assert len(set(of)) == 1
    assert created or refused


@pytest.mark.parametrize("first", [CODE, PROSE])
def test_an_unknown_tokenizer_blends_only_with_unknown_ones(lake: Settings, first: str) -> None:
    write(lake, CODE, 40, None)
    write(lake, PROSE, 300, None)
    blends = open_blends(lake)
    assert blends.create([source(CODE), source(PROSE)])
    write(lake, PROSE, 300, ONE)
    second = PROSE if first == CODE else CODE
    with pytest.raises(InvalidBlend, match=r"`packed\.code` .*does not say which.* Pack packed\.code again"):
        blends.create([source(first), source(second)])


def test_other_columns_have_no_tokenizer_and_no_length(mixed: Settings) -> None:
    blends = open_blends(mixed)
    write(mixed, LONG, 30, ONE, length=16)
    documents = [source(table, columns=("segments",)) for table in (CODE, PROSE, LONG)]
    assert blends.open(blends.create(documents).id).step(0).num_rows == 3
    tokens = blends.create([source(CODE), source(PROSE, columns=("segments",))])
    assert blends.open(tokens.id).step(0).num_rows == 2
    described = LocalBlender(mixed).describe(tokens.id).sources
    assert [one.tokenizer for one in described] == [ONE, None]


LENGTHS = (
    r"Rows of source `packed\.code` \(at snapshot \d+\) hold 8 tokens and rows of `packed\.long` "
    r"\(at snapshot \d+\) 32: 75% of each shorter row would be padding, .* or say `pad: true`\."
)


@pytest.fixture
def unlike(lake: Settings) -> Settings:
    """The lake with `packed.long`, which declares rows four times as long as those of `packed.code`."""
    write(lake, CODE, 40, ONE)
    write(lake, LONG, 30, ONE, length=32)
    return lake


@pytest.mark.invariant(
    "All tokens of a blend come from the one tokenizer recorded in its pinned snapshots, even if others "
    "are published meanwhile. Rows of two lengths need a blend that pads."
)
def test_rows_of_two_lengths_are_refused_unless_the_blend_pads(unlike: Settings) -> None:
    asked = [Source(LONG, 1), Source(CODE, 3)]
    with server_of(unlike) as server, BlenderClient(server.address) as client:
        for blender in (client, LocalBlender(unlike)):
            with pytest.raises(InvalidBlend, match=LENGTHS):
                blender.create(asked)
            alone = blender.create(asked[1:])
            with pytest.raises(InvalidBlend, match=LENGTHS):
                blender.update(alone.id, 3, add=asked[:1])
            padded = blender.create(asked, pad=True)
            assert (alone.pad, padded.pad, blender.get(padded.id).pad) == (False, True, True)
            assert blender.update(padded.id, 2, {CODE: 1}).pad
            assert blender.update(alone.id, 3, add=asked[:1], pad=True).pad
        (batch,) = client.fetch(padded.id, steps=1)
        assert batch.tokens.shape == (4, 32)
    blends = open_blends(unlike)
    assert blends.create([source(CODE)], pad=False).config.canonical() == {
        "format": 1,
        "sources": [
            {"table": CODE, "weight": 1, "content": blends.create([source(CODE)]).config.sources[0].content}
        ],
    }


def test_rows_of_a_length_nobody_named_are_not_padded_either(lake: Settings) -> None:
    write(lake, CODE, 40, ONE)
    write_table(lake, PROSE, packed_rows("prose", 20), snapshot_properties={TOKENIZER_ID: ONE})
    with load_table(lake, PROSE).transaction() as transaction:
        transaction.remove_properties(SEQUENCE_LENGTH)
    with pytest.raises(InvalidBlend, match=r"`packed\.prose` .*does not say how many tokens"):
        open_blends(lake).create([source(CODE), source(PROSE)], pad=True)


def test_what_is_described_is_what_is_served(unlike: Settings) -> None:
    local = LocalBlender(unlike)
    stored = local.create([Source(LONG, 1, oversample=True), Source(CODE, 3, oversample=True)], pad=True)
    described = local.describe(stored.id)
    long, code = described.sources
    assert (long.tokenizer, long.tokenizer_table, long.sequence_length) == (ONE, "models.t1", 32)
    assert (code.tokens, code.sequence_length, code.vocabulary) == (40 * 8 - 10 * 2, 8, 30_000)
    counts = np.zeros(2)
    positions = 0
    for batch in local.fetch(stored.id, steps=120):  # whole epochs of both
        counts += np.bincount(batch.source, weights=batch.n_tokens, minlength=2)
        positions += batch.tokens.size
    assert [source.token_share for source in described.sources] == pytest.approx(list(counts / counts.sum()))
    assert described.padding == pytest.approx(1 - counts.sum() / positions)
    assert code.padding == pytest.approx(1 - 7.5 / 32)
    with server_of(unlike) as server, BlenderClient(server.address) as client:
        assert client.describe(stored.id) == described
        for blender in (local, client):
            handle = blender.open(stored.id)
            assert (handle.vocabulary, handle.sequence_length) == (30_000, 32)


def test_a_blend_whose_tables_do_not_say_their_vocabulary_names_them(lake: Settings) -> None:
    local = LocalBlender(lake)
    handle = local.open(local.create([Source(CODE, 1), Source(PROSE, 1)]).id)
    assert handle.sequence_length == 8
    with pytest.raises(InvalidRequest, match=r"packed\.code, packed\.prose do not say their `vocabulary`"):
        _ = handle.vocabulary


def test_shares_are_those_of_the_last_knot_or_unknown(unlike: Settings) -> None:
    local = LocalBlender(unlike)
    asked = [Source(LONG, oversample=True), Source(CODE, oversample=True)]
    schedule = Schedule(4, ((0, {LONG: 1}), (10, {LONG: 1, CODE: 3})), "linear")
    described = local.describe(local.create(asked, 1, schedule, pad=True).id)
    long = 30 * 8 - 7 * 2
    assert described.sources[0].token_share == pytest.approx(long / 30 / (long / 30 + 3 * 7.5))
    write_table(unlike, LONG, packed_rows("long", 30), snapshot_properties={TOKENIZER_ID: ONE})
    again = local.describe(local.create([Source(LONG, 1), Source(CODE, 1)]).id)
    assert [source.token_share for source in again.sources] == [None, None]
    assert (again.sources[0].padding, again.sources[1].padding, again.padding) == (None, 1 - 7.5 / 8, None)


@pytest.fixture
def growing(lake: Settings) -> Settings:
    """The lake with `packed.live` of 10 rows and a known tokenizer."""
    write(lake, "packed.live", 10, ONE)
    return lake


def rows_of(blends: Blends, blend: str, steps: int) -> int:
    blocks = blends.open(blend).fetch(StepRange(0, steps), call=CallContext(0))
    return sum(block.batch.num_rows for block in blocks)


def test_a_live_source_goes_on_with_appends_of_its_tokenizer(growing: Settings) -> None:
    blends = open_blends(growing)
    blend = blends.create([source("packed.live", 5, live=True)]).id
    append_rows(growing, "packed.live", 10, 15, tokenizer=ONE)
    assert rows_of(blends, blend, 3) == 15


@pytest.mark.invariant(
    "All tokens of a blend come from the one tokenizer recorded in its pinned snapshots, even if others "
    "are published meanwhile. Rows of two lengths need a blend that pads."
)
@pytest.mark.parametrize(
    "declared, sentence",
    [
        ({"tokenizer": OTHER}, f"`{TOKENIZER_ID}` {ONE} .* appends has {OTHER}"),
        ({}, f"`{TOKENIZER_ID}` {ONE} .* appends has unknown"),
        ({"tokenizer": ONE, "sequence-length": "16"}, "`factory.sequence-length` 8 .* appends has 16"),
    ],
)
def test_a_live_source_stops_at_an_append_of_another_tokenizer(
    growing: Settings, declared: dict[str, str], sentence: str
) -> None:
    blends = open_blends(growing)
    blend = blends.create([source("packed.live", 5, live=True)]).id
    append_rows(growing, "packed.live", 10, 15, **declared)
    append_rows(growing, "packed.live", 15, 20, tokenizer=ONE)
    for one in (blends, open_blends(growing)):
        with pytest.raises(SourceGone, match=sentence):
            rows_of(one, blend, 3)
    documents = blends.create([source("packed.live", 5, live=True, columns=("segments",))])
    append_rows(growing, "packed.live", 20, 25, **declared)
    assert rows_of(blends, documents.id, 5) == 25


def test_a_live_source_is_of_one_tokenizer_with_the_others(growing: Settings) -> None:
    write(growing, CODE, 40, OTHER)
    with pytest.raises(InvalidBlend, match="another token"):
        open_blends(growing).create([source(CODE), source("packed.live", live=True)])


HELD_BACK = "packed.prose_validation"


@pytest.fixture
def parted(lake: Settings) -> Settings:
    """The lake with training tables and the validation part of one."""
    for table in (CODE, PROSE, HELD_BACK):
        write(lake, table, 40, ONE)
    return lake


@pytest.mark.parametrize("training", [CODE, PROSE])
def test_validation_beside_training_is_refused_unless_its_source_says_so(
    parted: Settings, training: str
) -> None:
    blends = open_blends(parted)
    refusal = f"{HELD_BACK} is the validation part of a dataset, and {training} is not"
    with pytest.raises(InvalidBlend, match=refusal):
        blends.create([source(training), source(HELD_BACK)])
    with pytest.raises(InvalidBlend, match=refusal):
        blends.considered([source(HELD_BACK, name="mine", columns=("n_tokens",)), source(training)])
    alone = blends.create([source(training)])
    with pytest.raises(InvalidBlend, match=refusal):
        blends.update(alone.id, 3, {}, [source(HELD_BACK)])
    meant = blends.create([source(training), source(HELD_BACK, validation=True)])
    assert blends.get(meant.id).config.sources[1].validation
    updated = blends.update(meant.id, 3, {}, [source(CODE if training == PROSE else PROSE)])
    assert len(updated.config.sources) == 3


def test_validation_alone_needs_no_word(parted: Settings) -> None:
    assert open_blends(parted).create([source(HELD_BACK)]).config.sources[0].table == HELD_BACK


def test_a_training_table_is_not_called_validation(parted: Settings) -> None:
    with pytest.raises(InvalidBlend, match=f"`{CODE}` says `validation`, and {CODE} holds no validation"):
        open_blends(parted).create([source(CODE, validation=True)])


def test_a_server_is_told_of_validation(parted: Settings) -> None:
    with server_of(parted) as server, BlenderClient(server.address) as client:
        with pytest.raises(InvalidBlend, match="is the validation part of a dataset"):
            client.create([source(CODE), source(HELD_BACK)])
        meant = client.create([source(CODE), source(HELD_BACK, validation=True)])
        assert [source.validation for source in meant.sources] == [False, True]
