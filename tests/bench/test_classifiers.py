"""The bench of classifiers: adverts of unseen trades share no sentence, and examples have sources."""

from __future__ import annotations

import pyarrow.compute as pc

from bench.classifiers.adverts import SEEN, UNSEEN, adverts
from bench.classifiers.corpus import CLASSES, MOST_CHUNKS
from bench.classifiers.corpus import examples as gather
from bench.classifiers.measure import _by_rules, _failures


def test_adverts_are_the_same_every_time_and_unseen_trades_share_no_sentence() -> None:
    assert adverts(SEEN, 5, 1).equals(adverts(SEEN, 5, 1))
    assert SEEN.keys().isdisjoint(UNSEEN)
    sentences = [sentence for families in (SEEN, UNSEEN) for trade in families.values() for sentence in trade]
    assert len(sentences) == len(set(sentences))
    assert not any("{" in text for text in adverts(UNSEEN, 20, 2)["text"].to_pylist())


def test_weak_labels_are_what_the_rules_say() -> None:
    rows = adverts(SEEN, 20, 1)
    rows = rows.add_column(1, "class", pc.cast(rows["source"], "string"))
    labelled = _by_rules(rows, 1)
    failures = dict(zip(rows["doc_id"].to_pylist(), _failures(rows["text"]).tolist(), strict=True))
    for row in labelled.to_pylist():
        assert (row["class"] == "advert") == (failures[row["doc_id"]] >= 1)


def test_examples_are_pieces_of_packages_in_two_classes() -> None:
    names = {"hypothesis", "networkx", "pluggy", "psutil"}
    rows = gather(names)
    assert set(rows["source"].to_pylist()) == names
    assert set(rows["class"].to_pylist()) == set(CLASSES)
    counts = rows.group_by(["source", "class"]).aggregate([("doc_id", "count")])
    assert max(counts["doc_id_count"].to_pylist()) == MOST_CHUNKS
    assert len(set(rows["doc_id"].to_pylist())) == len(rows)
