"""The bench of balance: rows filled by lengths, padding, and a corpus that is the same in any run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from bench.balance.corpus import write_corpus
from bench.balance.padding import SEQUENCE_LENGTH, packings


def test_rows_of_fitting_halves_are_full_and_cut_nothing() -> None:
    halves = packings(np.full(64, SEQUENCE_LENGTH // 2 * 4))
    assert (halves.fill_planned, halves.fill_in_order, halves.padding, halves.cut) == (1, 1, 0, 0)


def test_a_long_document_is_cut_and_pads_the_others() -> None:
    mixture = packings(np.array([2 * SEQUENCE_LENGTH * 4, *([4] * 31)]))
    assert mixture.n_tokens == 2 * SEQUENCE_LENGTH + 31
    assert mixture.cut == pytest.approx(SEQUENCE_LENGTH / mixture.n_tokens)
    assert mixture.padding == pytest.approx(1 - (SEQUENCE_LENGTH + 31) / (32 * SEQUENCE_LENGTH))
    assert mixture.fill_in_order == pytest.approx(mixture.n_tokens / (3 * SEQUENCE_LENGTH))


def test_the_corpus_is_the_same_in_any_run_and_a_partition_has_a_topic_alone(tmp_path: Path) -> None:
    old, again = (write_corpus(tmp_path / name, 2_000) for name in ("old", "again"))
    later = write_corpus(tmp_path / "later", 2_000, 2_000, "later")
    assert old.equals(again)
    topics = [set(documents["source"].to_pylist()) for documents in (old, later)]
    assert {"only_old"} == topics[0] & {"only_old", "only_later"}
    assert not pc.any(pc.is_in(later["doc_id"], old["doc_id"].combine_chunks())).as_py()
