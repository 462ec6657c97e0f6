"""A durable batch leads to its documents, and a document to the batches that hold it."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from blender.catalog.blends import open_blends
from blender.catalog.namespaces import register_namespace, registered_namespaces
from blender.errors import InvalidRequest
from blender.global_batches import BatchWriter, Mesh, create_namespace
from blender.global_batches.blend_production import BlendProduction
from blender.global_batches.namespace import OrderName
from blender.global_batches.policies import Naive
from blender.global_batches.producer import Producer
from blender.records import Source
from blender.trainer.local import open_blend
from factory.cli.trace import document_tree, show_batch
from factory.explain.batches import add_stored_steps, trace_batch
from factory.explain.steps import served_by
from factory.explain.trace import DocumentTrace, trace_documents
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import documents, pack

LANES = 2


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake with five documents, each packed by itself."""
    lake = Lake(Settings(home=tmp_path / "home", cache=tmp_path / "cache"))
    documents(lake, "code", "abcde")
    pack(lake, "code", *"abcde", run_id="one")
    return lake


@pytest.fixture
def blend(lake: Lake) -> str:
    """A blend of one document a step."""
    return (
        open_blends(lake.settings).create([Source(table="packed.code", weight=1, shuffle="row")], seed=3).id
    )


def filled(lake: Lake, blend: str, folder: Path, order: OrderName) -> str:
    """The address of a registered namespace that holds the blend; of arrival order lane 1 comes first."""
    namespace = create_namespace(folder, Mesh(), lanes=LANES, order=order)
    for lane in (1, 0):
        production = BlendProduction(open_blend(blend, lake.settings))
        Producer(folder, production, [lane], policy=Naive).run()
    register_namespace(lake.settings, namespace.id, folder, blend)
    return str(folder)


def traced(lake: Lake, letters: str = "abcde") -> list[DocumentTrace]:
    return trace_documents(lake, list(letters), served_by(lake.settings)[0])


@pytest.mark.parametrize("order", ["assigned", "arrival"])
def test_a_step_leads_to_its_documents_and_each_of_them_back(
    tmp_path: Path, lake: Lake, blend: str, order: OrderName
) -> None:
    uri = filled(lake, blend, tmp_path / "run", order)
    traces = {trace.doc_id: trace for trace in traced(lake)}
    assert add_stored_steps(lake.settings, traces.values()) == []
    for step in range(5):
        batch = trace_batch(lake.settings, uri, step)
        (doc_id,) = batch.step.documents
        (stored,) = traces[doc_id].stored
        assert (stored.step, stored.offset) == (step, batch.step.offset)
        assert stored.uri == uri
        lane = step % LANES if order == "assigned" else (1 if step < 2 else 0)
        assert (batch.batch.lane, batch.batch.step) == (f"{lane}", step)
        console = Console(file=io.StringIO(), width=400)
        show_batch(batch, console, as_json=False)
        console.print(document_tree(traces[doc_id]))
        shown = console.file.getvalue()  # type: ignore[attr-defined]
        assert f"step {step} of namespace {batch.batch.namespace} at file://" in shown
        assert f"web / page {doc_id}" in shown
        assert f"stored in {uri}: step {step}" in shown


def test_a_step_that_is_not_visible_yet_holds_no_document(tmp_path: Path, lake: Lake, blend: str) -> None:
    namespace = create_namespace(tmp_path / "run", Mesh(), lanes=LANES, order="assigned")
    Producer(tmp_path / "run", BlendProduction(open_blend(blend, lake.settings)), [0], policy=Naive).run()
    register_namespace(lake.settings, namespace.id, tmp_path / "run", blend)
    traces = traced(lake)
    add_stored_steps(lake.settings, traces)
    assert [step.step for trace in traces for step in trace.stored] == [0]  # step 1 is missing


def test_namespaces_that_are_gone_or_replaced_are_named_and_left_out(
    tmp_path: Path, lake: Lake, blend: str
) -> None:
    gone, replaced = (filled(lake, blend, tmp_path / name, "assigned") for name in ("gone", "replaced"))
    shutil.rmtree(gone)
    shutil.rmtree(replaced)
    create_namespace(replaced, Mesh(), order="arrival")
    unread = add_stored_steps(lake.settings, traced(lake))
    assert len(unread) == 2
    assert any("is left out: There is no namespace at file://" in sentence for sentence in unread)
    assert any("replaced holds another one now" in sentence for sentence in unread)


def test_a_batch_of_another_producer_says_what_its_origin_is(tmp_path: Path, lake: Lake) -> None:
    create_namespace(tmp_path / "run", Mesh(), lanes=1, order="arrival")
    with BatchWriter(tmp_path / "run", "rollouts") as writer:
        writer.put([{"tokens": np.arange(4)}], offset=1, origin={"policy": "step-812"})
        writer.finish()
    with pytest.raises(
        InvalidRequest, match=r"names no step of a blend: its origin is .'policy': 'step-812'."
    ):
        trace_batch(lake.settings, str(tmp_path / "run"), 0)


def test_the_registry_keeps_a_record_for_each_namespace_and_leaves_out_a_damaged_one(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    register_namespace(lake.settings, "1" * 32, "s3://bucket/b", "blend")
    register_namespace(lake.settings, "2" * 32, "s3://bucket/a", "blend")
    register_namespace(lake.settings, "1" * 32, "s3://bucket/b", "blend")
    assert [record.uri for record in registered_namespaces(lake.settings)] == [
        "s3://bucket/a",
        "s3://bucket/b",
    ]
    (damaged,) = Path(lake.settings.home).rglob(f"{'2' * 32}.json")
    damaged.write_bytes(damaged.read_bytes().replace(b"bucket/a", b"bucket/c"))
    assert [record.uri for record in registered_namespaces(lake.settings)] == ["s3://bucket/b"]
    assert "is damaged (its checksum does not match) and left out" in caplog.text
    assert json.loads(damaged.with_name(f"{'1' * 32}.json").read_text())["blend"] == "blend"
