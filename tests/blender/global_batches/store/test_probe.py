"""The probe of a store; `tests/engines` has one that really overwrites."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import cast

import pytest

from blender.global_batches.errors import UnsafeStore
from blender.global_batches.log.operations import Creation, list_names
from blender.global_batches.namespace import create_namespace
from blender.global_batches.store import namespace_store
from blender.global_batches.store import probe as probe_module
from blender.global_batches.store.folder import Folder
from blender.global_batches.store.namespace_store import NamespaceStore, open_store
from blender.global_batches.store.objects import Objects
from blender.global_batches.store.probe import StoreFacts, probe
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Mesh
from factory.errors import MachineError


def test_a_folder_passes_and_is_left_empty(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "run"))
    facts = probe(store)
    assert 0 < facts.loser_s < 30
    assert 0 < facts.winner_s < 30
    assert store.run(list_names("")) == []


def test_facts_survive_json() -> None:
    facts = StoreFacts(winner_s=0.25, loser_s=1 / 3)
    assert StoreFacts.from_json(json.loads(json.dumps(facts.to_json()))) == facts


class Faulty:
    """Objects in memory that confirm the creates of some numbers, and keep `kept` of their bytes."""

    place = "The store"

    def __init__(self, confirmed: set[int], kept: Callable[[bytes], bytes]) -> None:
        self._confirmed, self._kept = confirmed, kept
        self._numbers = count(1)
        self.bodies: dict[str, bytes] = {}

    def get(self, name: str) -> bytes | None:
        return self.bodies.get(name)

    def get_all(self, names: Sequence[str]) -> list[bytes | None]:
        return [self.bodies.get(name) for name in names]

    def create(self, name: str, body: bytes) -> Creation:
        if next(self._numbers) not in self._confirmed:
            return Creation.TAKEN
        self.bodies[name] = self._kept(body)
        return Creation.STORED

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            del self.bodies[name]


@pytest.mark.parametrize(
    "faulty, sentence",
    [
        (Faulty({1}, lambda body: body[:-1]), "holds other bytes than those of the create that won"),
        (Faulty({1, 33}, bytes), "overwrites an object that a create-only put must keep"),
    ],
)
def test_a_store_that_breaks_the_rule_is_refused_and_left_empty(faulty: Faulty, sentence: str) -> None:
    with pytest.raises(UnsafeStore, match=f"^memory {sentence}"):
        probe(NamespaceStore("memory", cast("Objects", faulty), patience_s=1))
    assert faulty.bodies == {}


class Stale(Folder):
    """A folder whose reads of `least` names or more go through a cache of names that were missing."""

    def __init__(self, root: Path, least: int = 1) -> None:
        super().__init__(root)
        self._least = least
        self._missing: set[str] = set()

    def get_all(self, names: Sequence[str]) -> list[bytes | None]:
        bodies = super().get_all(names)
        if len(names) < self._least:
            return bodies
        cached, self._missing = self._missing & set(names), self._missing - set(names)
        self._missing |= {name for name, body in zip(names, bodies, strict=True) if body is None}
        return [None if name in cached else body for name, body in zip(names, bodies, strict=True)]


@pytest.mark.invariant(
    "A file is fsynced before its name becomes visible. A store that lets two processes create one name, "
    "or hides a created one, is refused."
)
def test_a_store_that_hides_what_was_created_is_refused_and_left_empty(tmp_path: Path) -> None:
    store = NamespaceStore("memory", Stale(tmp_path, least=2), patience_s=1)
    with pytest.raises(
        UnsafeStore, match=r"^memory did not show 8 of 8 objects after it had confirmed their"
    ):
        probe(store)
    assert store.run(list_names("")) == []


def test_a_writer_notices_a_cache_in_front_of_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_namespace(tmp_path, Mesh())
    monkeypatch.setattr(namespace_store, "Folder", Stale)
    with pytest.raises(UnsafeStore, match=r"does not show log/0{19}1, which was there before"):
        BatchWriter(tmp_path)


def test_a_process_that_cannot_start_all_creators_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def smaller(threads: int, **options: str) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(threads - 1, **options)

    monkeypatch.setattr(probe_module, "ThreadPoolExecutor", smaller)
    monkeypatch.setattr(probe_module, "_START_S", 0.3)
    with pytest.raises(MachineError, match="could not run 32 threads at once"):
        probe(open_store(str(tmp_path / "run")))
