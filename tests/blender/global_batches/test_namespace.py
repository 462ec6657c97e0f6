"""Namespaces: created once, opened by those that fit, refused by a sentence otherwise."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from blender.global_batches.errors import (
    DamagedLog,
    NamespaceDiffers,
    NamespaceNotFound,
)
from blender.global_batches.namespace import create_namespace, open_namespace
from blender.global_batches.reader import BatchReader
from blender.global_batches.store.namespace_store import open_store
from blender.global_batches.writer import BatchWriter
from blender.rows.checksummed_json import with_checksum
from blender.spec.mesh import Mesh
from factory.errors import ConfigurationError

MESH = Mesh(dp=2, cp=2)


def test_a_namespace_is_created_once_and_kept(tmp_path: Path) -> None:
    uri = f"{tmp_path}/run"
    namespace = create_namespace(uri, MESH, lanes=3)
    assert (namespace.dp, namespace.cp, namespace.chunks, namespace.lanes) == (2, 2, 4, 3)
    assert namespace.store.loser_s > 0
    assert create_namespace(uri, Mesh(dp=2, cp=2, tp=4, pp=2), lanes=3) == namespace
    assert open_namespace(open_store(uri)) == namespace


def test_concurrent_creators_agree_on_one_namespace(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: create_namespace(f"{tmp_path}/run", MESH).id, range(8)))
    assert len(ids) == 1


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ({"mesh": Mesh(dp=4, cp=2)}, "made for dp=2,cp=2, and the mesh is pp=1,dp=4,cp=2,tp=1"),
        ({"mesh": MESH, "layout": "contiguous"}, "with zigzag layout, and one with contiguous layout was"),
        ({"mesh": MESH, "lanes": 2}, "with 1 lane, and one with 2 lanes was asked for"),
        ({"mesh": MESH, "order": "arrival"}, "with assigned order, and one with arrival order was asked for"),
    ],
)
def test_another_namespace_is_refused(tmp_path: Path, arguments: dict[str, object], sentence: str) -> None:
    uri = f"{tmp_path}/run"
    create_namespace(uri, MESH)
    with pytest.raises(NamespaceDiffers, match=sentence):
        create_namespace(uri, **arguments)  # type: ignore[arg-type]


def test_a_namespace_without_further_words_takes_the_writer_without_further_words(tmp_path: Path) -> None:
    namespace = create_namespace(tmp_path, Mesh())
    assert (namespace.order, namespace.lanes) == ("assigned", 1)
    with BatchWriter(tmp_path) as writer:
        writer.put([{"x": np.arange(3)}], 1)
        writer.finish()
    assert BatchReader(str(tmp_path)).end() == 1


def test_a_named_lane_is_told_which_namespace_takes_it(tmp_path: Path) -> None:
    create_namespace(tmp_path / "assigned", Mesh())
    with pytest.raises(NamespaceDiffers, match=r"deals its steps to lane `0` alone\. .* of arrival order"):
        BatchWriter(tmp_path / "assigned", "rollouts-0")
    create_namespace(tmp_path / "arrival", Mesh(), order="arrival")
    BatchWriter(tmp_path / "arrival", "rollouts-0").close()


@pytest.mark.parametrize("arguments", [{"layout": "spiral"}, {"lanes": 0}, {"lanes": "two"}])
def test_wrong_values_create_nothing(tmp_path: Path, arguments: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        create_namespace(f"{tmp_path}/run", MESH, **arguments)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_a_missing_namespace_is_named(tmp_path: Path) -> None:
    with pytest.raises(NamespaceNotFound, match=f"There is no namespace at file://{tmp_path}/nothing"):
        BatchWriter(f"{tmp_path}/nothing", "a")


def test_a_newer_format_asks_for_an_upgrade(tmp_path: Path) -> None:
    body = with_checksum(json.dumps({"format": 2, "shape": "unknown"}).encode())
    (tmp_path / "namespace.json").write_bytes(body)
    with pytest.raises(NamespaceDiffers, match="has format 2, and this version reads formats up to 1"):
        open_namespace(open_store(f"{tmp_path}"))


@pytest.mark.parametrize("body", [b"", b"{}", b'{"format":1}', b'[1,"sum 0"]'])
def test_a_damaged_namespace_is_named(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "namespace.json").write_bytes(body)
    with pytest.raises(DamagedLog, match=r"namespace\.json of file://.* is damaged"):
        open_namespace(open_store(f"{tmp_path}"))
