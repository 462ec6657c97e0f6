"""The probe of a store, on a folder; its refusals are tested with a real store in `tests/engines`."""

from __future__ import annotations

import json
from pathlib import Path

from blender.global_batches.protocol.operations import list_names
from blender.global_batches.store.namespace_store import open_store
from blender.global_batches.store.probe import StoreFacts, probe


def test_a_folder_passes_and_is_left_empty(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "run"))
    facts = probe(store)
    assert 0 < facts.loser_s < 30
    assert 0 < facts.winner_s < 30
    assert store.run(list_names("")) == []


def test_facts_survive_json() -> None:
    facts = StoreFacts(winner_s=0.25, loser_s=1 / 3)
    assert StoreFacts.from_json(json.loads(json.dumps(facts.to_json()))) == facts
