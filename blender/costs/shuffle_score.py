"""How well an order mixes: the variance of topic counts per batch, relative to a perfect shuffle.

A topic is a run of consecutive ordinals, since sources are sorted by date, repository or crawl. A perfect
shuffle puts B p rows of a topic with the share p of n rows into a batch of B rows on average, with a variance
of B p (1 - p) (n - B) / (n - 1). The score is the sum of the squared deviations over the sum of these
variances, chi2/df: 1 is perfect, B means batches of a single topic, and below 1 batches are stratified. It is
measured on the order itself, with an error of about sqrt(2 / (batches x topics)).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

TOPICS = 64
_MAX_BATCHES = 256  # an error of 1.1 % at 64 topics
_MAX_ROWS = 1 << 20  # rows looked up for a score
_FEWEST_BATCHES = 16


def shuffle_score(ordinals: Ints, n_rows: int, topics: int = TOPICS) -> float:
    """The score of batches of ordinals out of 0 .. n_rows-1; `ordinals` has shape (batches, rows)."""
    batches, rows = ordinals.shape
    topics = min(topics, n_rows)
    topic_rows = np.diff(np.arange(topics + 1) * n_rows // topics)
    topic = np.searchsorted(np.cumsum(topic_rows), ordinals, side="right")
    counted = np.bincount(
        (np.arange(batches)[:, None] * topics + topic).reshape(-1), minlength=batches * topics
    )
    share = topic_rows / n_rows
    deviations = np.square(counted.reshape(batches, topics) - rows * share).sum()
    variance = rows * (share * (1 - share)).sum() * (n_rows - rows) / max(1, n_rows - 1)
    return float(deviations / (batches * variance)) if variance else 1.0


def epoch_score(order: Callable[[Ints], Ints], n_rows: int, batch_rows: int) -> float:
    """The score of the batches of an epoch: all of them, or up to 256 spread evenly.

    `order` returns the ordinal at each position. A batch of all rows scores 1.
    """
    batch_rows = min(batch_rows, n_rows)
    wanted = max(_FEWEST_BATCHES, min(_MAX_BATCHES, _MAX_ROWS // batch_rows))
    n_batches = min(n_rows // batch_rows, wanted)
    starts = np.linspace(0, n_rows // batch_rows - 1, n_batches).astype(np.int64) * batch_rows
    positions = starts[:, None] + np.arange(batch_rows)
    ordinals = order(positions.reshape(-1)).reshape(positions.shape)
    return shuffle_score(ordinals, n_rows)
