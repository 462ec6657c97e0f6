"""Documents with heavy-tailed topics and lengths, without texts: topic, bytes, partition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N_TOPICS = 300
EXPONENT = 1.1  # of Zipf's law
MEAN_LOG, SIGMA_LOG = 7.7, 1.2  # of bytes; the mean varies by topic
SIGMA_TOPIC = 0.7
SEED = 48


def write_corpus(path: Path, n_documents: int, first: int = 0, partition: str = "old") -> pa.Table:
    """Write and return documents (doc_id, source, n_bytes, partition); `source` is the topic.

    Each partition also has a topic that no other one has, with a hundredth of the documents.
    """
    chance = np.random.default_rng([SEED, first])
    weights = np.arange(1, N_TOPICS + 1) ** -EXPONENT
    topics = chance.choice(N_TOPICS, n_documents, p=weights / weights.sum())
    topics[chance.random(n_documents) < 0.01] = N_TOPICS
    means = MEAN_LOG + SIGMA_TOPIC * np.random.default_rng(SEED).standard_normal(N_TOPICS + 1)
    n_bytes = np.maximum(1, chance.lognormal(means[topics], SIGMA_LOG)).astype(np.int64)
    names = [f"topic{number:03}" for number in range(N_TOPICS)] + [f"only_{partition}"]
    documents = pa.table(
        {
            "doc_id": [f"d{number:08}" for number in range(first, first + n_documents)],
            "source": pa.DictionaryArray.from_arrays(pa.array(topics), pa.array(names)).cast(pa.string()),
            "n_bytes": n_bytes,
            "partition": pa.array([partition] * n_documents),
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(documents, path, row_group_size=1 << 17)
    return documents
