"""Made-up repositories that share texts, and what becomes of them by brute force."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from factory.dedup.components import components
from factory.dedup.config import DedupConfig
from factory.dedup.repository_config import RepositoryConfig
from factory.lake.repository import repository_id
from factory.lake.schemas.dedup import EDGES, SIGNATURES
from factory.lake.schemas.ingest import RAW
from factory.lake_spark.audit import spark_schema

CONFIG = DedupConfig(kind="code")
Pair = tuple[str, str]


@dataclass
class Corpus:
    """Documents, of which those with equal `content_hash` are copies, and the edges between their texts."""

    documents: list[dict[str, object]] = field(default_factory=list)
    edges: dict[Pair, float] = field(default_factory=dict)  # by content_hash, the lesser first

    def add(self, repository: str | None, *texts: str, **fields: object) -> None:
        """Documents of a repository, one a text; one whose name begins with `nothing` has no tokens."""
        for text in texts:
            number = len(self.documents)
            row = {
                "doc_id": f"d{number:05}",
                "dataset": "code",
                "source": "test",
                "key": str(number),
                "content_hash": text,
                "n_bytes": 100,
                "media_type": "text/plain",
                "repository": repository,
                "created_at": datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=number),
            }
            self.documents.append(row | fields)

    def add_edge(self, left: str, right: str, similarity: float = 0.9) -> None:
        """A verified edge between two texts."""
        self.edges[min(left, right), max(left, right)] = similarity

    @property
    def first(self) -> dict[str, str]:
        """The document that stands for each text in the tables."""
        return {
            str(document["content_hash"]): str(document["doc_id"]) for document in reversed(self.documents)
        }

    def frames(self, spark: SparkSession, config: DedupConfig = CONFIG) -> tuple[DataFrame, ...]:
        """Documents, signatures, edges and components."""
        fields = [
            pa.field(column.name, column.type) for column in (*RAW.columns, pa.field("dataset", pa.string()))
        ]
        first = self.first
        signed = [
            {
                **dict.fromkeys(("copies", "n_tokens", "n_distinct"), 1),
                "doc_id": name,
                "dataset": "code",
                "content_hash": text,
                "signature": None if text.startswith("nothing") else b"signed",
                "version": "1",
            }
            for text, name in first.items()
        ]
        joined = []
        for (left, right), similarity in self.edges.items():
            ends = sorted((first[left], first[right]))
            joined.append(
                {"left": ends[0], "right": ends[1], "estimate": similarity, "similarity": similarity}
            )
        documents = spark.createDataFrame(pa.Table.from_pylist(self.documents, schema=pa.schema(fields)))
        signatures = spark.createDataFrame(
            pa.Table.from_pylist(signed, schema=SIGNATURES.columns), spark_schema(SIGNATURES)
        )
        edges = spark.createDataFrame(pa.Table.from_pylist(joined, schema=EDGES.columns), spark_schema(EDGES))
        return documents, signatures, edges, components(edges, signatures, config.threshold)


def random_corpus(seed: int, n: int = 24) -> Corpus:
    """Repositories of all ages that share files: forks, revisions, skeletons, licenses and near copies."""
    drawn, made = random.Random(seed), Corpus()
    held: dict[str, list[str]] = {}
    for number in range(n):
        texts = [f"own{number}_{i}" for i in range(drawn.randrange(1, 6))]
        if held and drawn.random() < 0.7:
            source = held[drawn.choice(sorted(held))]
            texts = drawn.sample(source, drawn.randrange(len(source) // 2, len(source)) + 1) + texts[:1]
        texts += [f"common{drawn.randrange(3)}"] * (drawn.random() < 0.6)
        texts += ["nothing"] * (drawn.random() < 0.3)
        name, revision = f"r{drawn.randrange(n // 2)}", drawn.choice([None, "1.9", "1.10"])
        fork = {"fork_of": "x"} if drawn.random() < 0.3 else {}
        made.add(
            name,
            *texts,
            **fork,
            revision=revision,
            stars=drawn.randrange(40),
            n_bytes=drawn.randrange(1, 300),
        )
        held[f"{name}@{revision}"] = texts
    made.add(None, *drawn.sample(sorted(made.first), 4))
    texts = [text for text in sorted(made.first) if text != "nothing"]
    for _ in range(n):
        made.add_edge(*drawn.sample(texts, 2), drawn.choice([0.8, 0.85, 0.99]))
    return made


def rank(document: dict[str, Any]) -> tuple[object, ...]:
    """What the priority says of a document; creation times are all different."""
    stars = int(document.get("stars") or 0)
    forked = document.get("fork_of") is not None
    return forked, -(stars + 1).bit_length(), -document["created_at"].timestamp()


class Oracle:
    """The same by sets: who holds what, what is shared, and who goes, one repository after the other."""

    def __init__(
        self, corpus: Corpus, chosen: RepositoryConfig, topics: dict[str, str] | None, limits: tuple[int, int]
    ) -> None:
        self.chosen, (self.most, self.best) = chosen, limits
        self.documents: dict[str, list[dict[str, object]]] = defaultdict(list)
        for row in corpus.documents:
            name = repository_id("code", row["repository"], row.get("revision"))  # type: ignore[arg-type]
            if name is not None:
                self.documents[name].append(row)
        self.topic = {
            name: (topics or {}).get(str(of[0]["repository"])) for name, of in self.documents.items()
        }
        self.like: dict[str, set[str]] = defaultdict(set)
        for left, right in corpus.edges:
            self.like[left].add(right)
            self.like[right].add(left)
        self.order = sorted(self.documents, key=self.rank)

    def rank(self, name: str) -> tuple[object, ...]:
        """What the priority says of a repository; creation times are all different."""
        of = self.documents[name]
        stars = max(int(str(document.get("stars") or 0)) for document in of)
        created = max(document["created_at"] for document in of)  # type: ignore[type-var]
        fork = any(document.get("fork_of") for document in of)
        return not self.pinned(name), fork, -(stars + 1).bit_length(), -created.timestamp()  # type: ignore[attr-defined]

    def pinned(self, name: str) -> bool:
        own = name.removeprefix("code/")
        return bool({own, own.partition("@")[0]} & set(self.chosen.pinned))

    def compared(self, name: str) -> list[dict[str, object]]:
        return [
            document
            for document in self.documents[name]
            if not str(document["content_hash"]).startswith("nothing")
        ]

    def around(self, text: str) -> set[str]:
        return {text, *self.like[text]}

    def holders(self, text: str) -> list[str]:
        return [
            repository
            for repository in self.order
            if any(of["content_hash"] == text for of in self.compared(repository))
        ]

    def shared(self, name: str, others: list[str]) -> tuple[int, int, float]:
        """Documents and bytes of a repository that one of `others` holds or nearly holds, and the share."""
        held = {document["content_hash"] for other in others for document in self.compared(other)}
        mine = self.compared(name)
        common = [document for document in mine if self.around(str(document["content_hash"])) & held]
        count, size = len(common), sum(int(str(document["n_bytes"])) for document in common)
        total = sum(int(str(document["n_bytes"])) for document in mine)
        return count, size, min(count / len(mine), size / total) if mine else 0.0

    def pairs(self) -> dict[Pair, tuple[object, ...]]:
        """The rows of the table of pairs: those that meet, and of which one shares enough."""
        met = {tuple(sorted(pair)) for text in self.like.keys() | self.texts() for pair in self._meet(text)}
        found = {}
        for left, right in combinations(sorted(self.documents), 2):
            of_left, of_right = self.shared(left, [right]), self.shared(right, [left])
            if (left, right) in met and max(of_left[2], of_right[2]) >= self.chosen.share:
                found[left, right] = tuple(
                    document for both in zip(of_left, of_right, strict=True) for document in both
                )
        return found

    def texts(self) -> set[str]:
        return {str(document["content_hash"]) for name in self.documents for document in self.compared(name)}

    def _meet(self, text: str) -> list[Pair]:
        holders = [holder for other in self.around(text) for holder in self.holders(other)]
        reached = sorted(set(holders), key=self.order.index)
        if len(holders) > self.most:
            reached = reached[: self.best]
        return [(of, within) for of in self.holders(text) for within in reached if of != within]

    def common(self, name: str) -> list[dict[str, object]]:
        """The documents of a repository whose text is too common for all its pairs to meet."""

        def holders(text: str) -> int:
            return sum(len(self.holders(text_near)) for text_near in self.around(text))

        return [
            document for document in self.compared(name) if holders(str(document["content_hash"])) > self.most
        ]

    def decided(
        self, pairs: dict[Pair, tuple[object, ...]]
    ) -> dict[str, tuple[str, str | None, float | None]]:
        """(reason, duplicate_of, share) of each repository, by the pairs that were found."""
        share_in: dict[Pair, float] = {}
        for (left, right), values in pairs.items():
            share_in[left, right], share_in[right, left] = values[4:]  # type: ignore[assignment]
        found: dict[str, tuple[str, str | None, float | None]] = {}
        kept: list[str] = []
        for name in self.order:
            if self.pinned(name):
                found[name] = ("pinned", None, None)
            elif self.topic[name] in self.chosen.dropped_topics:
                found[name] = ("topic", None, None)
                continue
            else:
                better = [
                    (share_in[name, it], -kept.index(it), it)
                    for it in kept
                    if share_in.get((name, it), 0) >= self.chosen.share and self.topic[it] == self.topic[name]
                ]
                share, _, source = max(better, default=(None, None, None))
                found[name] = ("duplicate", source, share) if source else ("kept", None, None)
            if found[name][0] != "duplicate":
                kept.append(name)
        return found
