"""Tiny datasets in one datasets file, through the whole chain in one run: each text is accounted for."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from factory.lake import names
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.tiny_datasets import TinyDataset, write_tiny_datasets

# The run has a time limit of its own, which grows with the datasets.
pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.timeout(0)]
PATIENCE_S = 120  # for each dataset
THRESHOLD = 0.8
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class TinyLake:
    """The lake of one run, and the datasets that it was made of."""

    lake: Lake
    datasets: list[TinyDataset]

    def groups(self) -> Mapping[str, list[TinyDataset]]:
        groups: defaultdict[str, list[TinyDataset]] = defaultdict(list)
        for dataset in self.datasets:
            groups[dataset.group].append(dataset)
        return groups


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, n_tiny_datasets: int, tiny_seed: int) -> TinyLake:
    folder = tmp_path_factory.mktemp("tiny")
    datasets = write_tiny_datasets(folder, n_tiny_datasets, tiny_seed)
    settings = Settings(
        home=folder / "lake", spark_master="local[2]", spark_driver_memory="2g", spark_shuffle_partitions=3
    )
    patience = str(PATIENCE_S * n_tiny_datasets)
    run = subprocess.run(
        ["timeout", "-k", "5", patience, sys.executable, "-m", "factory.cli.main", "materialize", "*"],
        env=os.environ | settings.environment() | {"FACTORY_DATASETS": str(folder / "datasets.yaml")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-5000:]
    return TinyLake(Lake(settings), datasets)


def test_every_record_is_a_document_or_a_rejection(tiny: TinyLake) -> None:
    for dataset in tiny.datasets:
        documents = tiny.lake.read(names.raw(dataset.name), ["key"])["key"].to_pylist()
        assert sorted(documents) == sorted(dataset.texts), dataset.name
        assert tiny.lake.published(names.rejected(dataset.name)).rows == dataset.n_bad, dataset.name


def test_every_document_stays_or_leaves_for_a_reason(tiny: TinyLake) -> None:
    for group, datasets in tiny.groups().items():
        decisions = _decisions(tiny.lake, group)
        for dataset in datasets:
            documents = set(tiny.lake.read(names.raw(dataset.name), ["doc_id"])["doc_id"].to_pylist())
            verdicts = tiny.lake.read(names.filtered(dataset.name)).to_pylist()
            assert {row["doc_id"] for row in verdicts} == documents
            assert all(row["kept"] == (not row["rejections"]) for row in verdicts)
            kept = {row["doc_id"] for row in verdicts if row["kept"]}
            assert {key for key, row in decisions.items() if row["dataset"] == dataset.name} == kept
            staying = {doc_id for doc_id in kept if decisions[doc_id]["kept"]}
            for table in (names.deduplicated, names.tokenized, names.placements):
                rows = tiny.lake.read(table(dataset.name), ["doc_id"])["doc_id"].to_pylist()
                assert set(rows) == staying, table(dataset.name)


def test_removed_copies_have_the_similarity_that_counting_gives(tiny: TinyLake) -> None:
    n_removed = 0
    for group, datasets in tiny.groups().items():
        words = _words_of_prose if datasets[0].kind == "prose" else _words_of_code
        texts = {
            row["doc_id"]: dataset.texts[row["key"]]
            for dataset in datasets
            for row in tiny.lake.read(names.raw(dataset.name), ["doc_id", "key"]).to_pylist()
        }
        decisions = _decisions(tiny.lake, group)
        bags = {doc_id: Counter(words(texts[doc_id])) for doc_id in decisions}
        weights = _weights(bags)
        kept = [doc_id for doc_id, row in decisions.items() if row["kept"]]
        assert max(Counter(texts[doc_id] for doc_id in kept).values(), default=0) <= 1
        kept_bags = Counter(frozenset(bags[doc_id].items()) for doc_id in kept if bags[doc_id])
        assert max(kept_bags.values(), default=0) <= 1  # the same words in another order are one text
        for doc_id, row in decisions.items():
            if row["kept"]:
                continue
            n_removed += 1
            partner = row["duplicate_of"]
            assert decisions[row["kept_document"]]["kept"]
            if row["reason"] == "exact_copy":
                assert (texts[partner], row["similarity"]) == (texts[doc_id], 1.0)
            else:
                assert row["kept_document"] == partner
            if row["similarity"] is None:
                assert row["reason"] == "connected"
            else:
                similarity = _similarity(weights[doc_id], weights[partner])
                assert row["similarity"] == pytest.approx(similarity)
                assert similarity >= THRESHOLD - 1e-9
    assert n_removed


def test_sequences_hold_the_texts_that_stay(tiny: TinyLake) -> None:
    (trained,) = tiny.lake.read(names.model("tokenizer"), ["tokenizer"])["tokenizer"].to_pylist()
    tokenizer = Tokenizer.from_str(trained)
    for dataset in tiny.datasets:
        keys = tiny.lake.read(names.raw(dataset.name), ["doc_id", "key"]).to_pylist()
        texts = {row["doc_id"]: dataset.texts[row["key"]] for row in keys}
        pieces: dict[str, dict[int, bytes]] = defaultdict(dict)
        for row in tiny.lake.read(names.packed(dataset.name)).to_pylist():
            start = 0
            for segment in row["segments"]:
                end = start + 2 * segment["length"]
                pieces[segment["doc_id"]][segment["doc_offset"]] = row["tokens"][start:end]
                start = end
            assert start == len(row["tokens"])
        stored = tiny.lake.read(names.tokenized(dataset.name), ["doc_id"])["doc_id"].to_pylist()
        assert set(pieces) == set(stored)
        for doc_id, parts in pieces.items():
            tokens = b"".join(part for _, part in sorted(parts.items()))
            decoded = tokenizer.decode(np.frombuffer(tokens, "<u2").tolist(), skip_special_tokens=True)
            assert decoded == texts[doc_id]


def test_files_of_a_repository_have_places_without_a_gap(tiny: TinyLake) -> None:
    for dataset in tiny.datasets:
        if dataset.kind == "code":
            positions = tiny.lake.read(names.sorted_table(dataset.name), ["position"])["position"].to_pylist()
            assert sorted(positions) == list(range(len(positions)))


def _decisions(lake: Lake, group: str) -> dict[str, dict[str, Any]]:
    return {row["doc_id"]: row for row in lake.read(names.dedup(group, "decisions")).to_pylist()}


def _words_of_prose(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _words_of_code(text: str) -> list[str]:
    return _WORD.findall(text)


def _weights(bags: Mapping[str, Counter[str]]) -> dict[str, dict[str, float]]:
    """The weight (1 + ln tf) ln(1 + N / df) of each word of each text, as docs/deduplication.md says."""
    frequency = Counter(word for bag in bags.values() for word in bag)
    return {
        doc_id: {
            word: (1 + math.log(count)) * math.log(1 + len(bags) / frequency[word])
            for word, count in bag.items()
        }
        for doc_id, bag in bags.items()
    }


def _similarity(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    """The weighted Jaccard of two texts; a text without words is similar to its copies alone."""
    if not left and not right:
        return 1.0
    words = left.keys() | right.keys()
    shared = sum(min(left.get(word, 0.0), right.get(word, 0.0)) for word in words)
    return shared / sum(max(left.get(word, 0.0), right.get(word, 0.0)) for word in words)
