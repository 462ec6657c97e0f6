"""Tiny datasets of every format, with many kinds of copies, and the texts that each of them holds.

    write_tiny_datasets(folder, 10, seed=1)     # folder/datasets.yaml and the files that it names

Copies have the same words in the same or another order, one word more, other capitals, other blanks, or their
text twice. Groups of one to four datasets are deduplicated together, so a copy may be in another dataset.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

Kind = Literal["prose", "code"]
Copy = Callable[[list[str], random.Random], str]

MOST_TEXTS = 40
MOST_WORDS = 60
MOST_OF_A_GROUP = 4
SEQUENCE_LENGTHS = (32, 256, 2_048)

_WORDS = [
    f"{first}{second}" for first in ("lo", "mi", "sa", "te", "ru") for second in ("ka", "ni", "po", "zu")
]
_NUMBERED = [f"{word}{number}" for word in _WORDS for number in range(20)]

_COPIES: tuple[Copy, ...] = (
    lambda words, _: " ".join(words),
    lambda words, draw: " ".join(draw.sample(words, len(words))),
    lambda words, draw: " ".join([*words, draw.choice(_NUMBERED)]),
    lambda words, draw: " ".join([*words[1:], draw.choice(_NUMBERED)]),
    lambda words, _: " ".join(words).upper(),
    lambda words, _: "\n".join(words),
    lambda words, _: " ".join(words + words),
    lambda _, draw: draw.choice(["... --- ...", "!?", "(((", "%"]),  # a text without a token
)


@dataclass
class TinyDataset:
    """A dataset: its texts by key, and the records that its reader must reject."""

    name: str
    kind: Kind
    group: str
    format: Literal["jsonl", "parquet", "files", "repositories"]
    texts: dict[str, str] = field(default_factory=dict)
    n_bad: int = 0


def write_tiny_datasets(folder: Path, n: int, seed: int) -> list[TinyDataset]:
    """Write `n` datasets of 1 to 40 texts below `folder`, with their datasets.yaml; the seed decides all."""
    draw = random.Random(seed)
    datasets: list[TinyDataset] = []
    while len(datasets) < n:
        datasets += _draw_group(draw, len(datasets), min(draw.randint(1, MOST_OF_A_GROUP), n - len(datasets)))
    entries = [_write(folder, dataset) | _settings(dataset, draw) for dataset in datasets]
    declared = {
        "datasets": entries,
        "tokenizers": {"tokenizer": {"vocabulary": 320}},
        "blend": {"pad": True},  # lengths of sequences are drawn
    }
    (folder / "datasets.yaml").write_text(yaml.safe_dump(declared))
    return datasets


def _draw_group(draw: random.Random, first: int, n: int) -> list[TinyDataset]:
    kind: Kind = draw.choice(["prose", "prose", "code"])
    bags: list[list[str]] = []
    datasets = []
    for number in range(first, first + n):
        formats = ["repositories"] if kind == "code" else ["jsonl", "parquet", "files"]
        dataset = TinyDataset(f"tiny{number}", kind, f"group{first}", draw.choice(formats))  # type: ignore[arg-type]
        for text in range(draw.randint(1, MOST_TEXTS)):
            if not bags or draw.random() < 0.4:
                bags.append(draw.choices(_NUMBERED, k=draw.randint(1, MOST_WORDS)))
            words = draw.choice(bags)
            copy = draw.choice(_COPIES) if draw.random() < 0.6 else _COPIES[0]
            dataset.texts[f"text{text:02}.{'py' if kind == 'code' else 'txt'}"] = copy(words, draw)
        dataset.n_bad = draw.choice([0, 0, 1, min(3, len(dataset.texts))])
        datasets.append(dataset)
    return datasets


def _settings(dataset: TinyDataset, draw: random.Random) -> dict[str, object]:
    entry: dict[str, object] = {
        "name": dataset.name,
        "kind": dataset.kind,
        "group": dataset.group,
        "max_rejected": 1.0,
        "packing": {"sequence_length": draw.choice(SEQUENCE_LENGTHS)},
    }
    if draw.random() < 0.7:  # else the rules of its kind, which reject most texts or all of them
        entry |= {"rules": ["word_count"], "limits": {"word_count": {"at_least": draw.choice([0, 3])}}}
    return entry


def _write(folder: Path, dataset: TinyDataset) -> dict[str, object]:
    # A document's id is made of its source and its key, and keys are the same in all datasets.
    place = folder / dataset.name
    place.mkdir(parents=True)
    records = {"key": "id", "source": dataset.name}
    match dataset.format:
        case "jsonl":
            lines = [json.dumps({"id": key, "text": text}) for key, text in dataset.texts.items()]
            bad = [f"{{not json {number}" for number in range(dataset.n_bad)]
            (place / "records.jsonl").write_text("".join(f"{line}\n" for line in lines + bad))
            return records | {"format": "jsonl", "paths": f"{dataset.name}/records.jsonl"}
        case "parquet":
            keys = [*dataset.texts, *(f"bad{number}" for number in range(dataset.n_bad))]
            texts = [*dataset.texts.values(), *[None] * dataset.n_bad]
            table = pa.table({"id": keys, "text": pa.array(texts, pa.string())})
            pq.write_table(table, place / "records.parquet", row_group_size=7, compression="none")
            return records | {"format": "parquet", "paths": f"{dataset.name}/records.parquet"}
        case "files" | "repositories":
            below = place / f"repository-{dataset.name}" if dataset.format == "repositories" else place
            below.mkdir(exist_ok=True)
            for key, text in dataset.texts.items():
                (below / key).write_text(text)
            for number in range(dataset.n_bad):
                (below / f"bad{number}.txt").write_bytes(b"caf\xe9")
            return {"format": dataset.format, "paths": dataset.name}
