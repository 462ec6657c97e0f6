"""A linear classifier of texts, trained on the driver on a bounded sample: CLASSIFIER and EXAMPLES.

The features are hashed words and pairs of words (`factory.models.hashing`), the model is a logistic
regression, and one of several classes is told from all others. Documents are split *by source*: a classifier
learns the furniture of a site, its footers and dates, and would look better than it is on other pages of that
site. Probabilities are calibrated on scores of models that have not seen a document's source, and checked on
sources that no model has seen (`factory.models.calibration`).

    examples   doc_id, class, source, key, text
    train(examples, classes=["advert", "other"], holdout=0.2)
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from factory import _native
from factory.errors import ConfigurationError
from factory.lake.schemas.models import CLASSIFIER, EXAMPLES
from factory.models.calibration import Calibration, Floats, calibration_error, fit_calibration, reliability

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression

Booleans = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

BITS = 18  # 2^18 float32 weights are a megabyte, which stays in a core's cache
FOLDS = 5  # of sources, for the scores that calibrate
LEAST_EXAMPLES = 20  # of each class
LEAST_TOKENS = 50  # of a text with a probability; below, it means nothing
REGULARIZATION = 30.0  # scikit-learn's C; features are small, because a text's have length one together
_SHOWN = 20  # n-grams and documents in the metadata of a materialization
_SCANNED = 2_000  # texts from which heavy n-grams are spelled

Split = float | Sequence[str]
"""What is held out: a share of the sources, or the sources that match a glob."""


@dataclass(frozen=True)
class Trained:
    """Rows of CLASSIFIER and EXAMPLES, and facts for a person to look at."""

    classifier: pa.Table
    examples: pa.Table
    facts: dict[str, str | int]


def train(
    examples: pa.Table,
    classes: Sequence[str],
    holdout: Split = 0.2,
    bits: int = BITS,
    *,
    first_alone: bool = False,
) -> Trained:
    """Train on examples (doc_id, class, source, key, text) of at least two classes.

    With `first_alone` only the first class gets a row, because all others together have the remaining
    probability. Raises ConfigurationError if a class has too few examples.
    """
    require_scikit_learn()
    examples = _long_enough(examples)
    labels = np.array([classes.index(name) for name in examples["class"].to_pylist()])
    sources = np.array(examples["source"].to_pylist(), dtype=object)
    _require_examples(classes, labels)
    held_out, by_source = _held_out(sources, labels, holdout)
    features = feature_matrix(examples["text"].combine_chunks(), bits)
    rows, probabilities = [], np.zeros(len(labels))
    for number in range(1 if first_alone else len(classes)):
        model = _OneClass.fit(features, labels == number, sources, held_out)
        row = model.row(classes[number], labels == number, held_out)
        n_sources = len(set(sources[held_out])) if by_source else 0
        rows.append(row | {"bits": bits, "n_held_out_sources": n_sources, "partition": None})
        members = labels == number
        probabilities[members] = model.probabilities[members]
        if first_alone:
            probabilities[~members] = 1 - model.probabilities[~members]
    table = pa.Table.from_pylist(rows, schema=CLASSIFIER.columns)
    columns = {name: examples[name] for name in ("doc_id", "class", "source")}
    columns |= {"held_out": pa.array(held_out), "probability": pa.array(probabilities)}
    rows_of_examples = pa.table({**columns, "partition": pa.nulls(len(labels), pa.string())})
    facts = _facts(examples, table, probabilities, held_out)
    return Trained(table, rows_of_examples.cast(EXAMPLES.columns), facts)


@dataclass(frozen=True)
class _OneClass:
    """A model that tells one class from all others, with the probability of every example."""

    weights: npt.NDArray[np.float32]
    intercept: float
    calibration: Calibration
    probabilities: Floats
    """Of the class, by models that have not seen the example's source."""

    @classmethod
    def fit(
        cls, features: csr_matrix, members: Booleans, sources: npt.NDArray[np.object_], held_out: Booleans
    ) -> _OneClass:
        training = np.flatnonzero(~held_out)
        scores = np.empty(len(members))
        for fitting, unseen in _folds(members[training], sources[training]):
            model = _logistic(features[training[fitting]], members[training[fitting]])
            scores[training[unseen]] = model.decision_function(features[training[unseen]])
        model = _logistic(features[training], members[training])
        if held_out.any():
            scores[held_out] = model.decision_function(features[np.flatnonzero(held_out)])
        calibration = fit_calibration(scores[training], members[training])
        weights = model.coef_[0].astype(np.float32)
        return cls(weights, float(model.intercept_[0]), calibration, calibration.probability(scores))

    def row(self, name: str, members: Booleans, held_out: Booleans) -> dict[str, Any]:
        """Return the columns of CLASSIFIER that follow from one class."""
        probabilities, unseen = self.probabilities[held_out], members[held_out]
        comparable = bool(unseen.any() and not unseen.all())
        bins = reliability(probabilities, unseen) if len(unseen) else []
        return {
            "class": name,
            "weights": self.weights.astype("<f4").tobytes(),
            "intercept": self.intercept,
            "knot_scores": self.calibration.scores.tolist(),
            "knot_logits": self.calibration.logits.tolist(),
            "end_slope": self.calibration.end_slope,
            "n_trained": int((~held_out).sum()),
            "n_held_out": int(held_out.sum()),
            "auc": _auc(probabilities, unseen) if comparable else None,
            "calibration_error": calibration_error(probabilities, unseen) if len(unseen) else None,
            "rejected_own": float((self.probabilities[members] < 0.5).mean()),
            "reliability": [{"probability": probability, "share": share} for _, probability, share in bins],
        }


def feature_matrix(texts: pa.Array, bits: int) -> csr_matrix:
    """Return the features of texts (strings without nulls) as a matrix of texts by 2^`bits` buckets."""
    from scipy.sparse import csr_matrix

    lists = _native.hashed_features(texts, bits)
    offsets = lists.offsets.to_numpy()
    lengths = np.diff(offsets)
    values = np.repeat(1 / np.sqrt(np.maximum(lengths, 1)), lengths)
    return csr_matrix((values, lists.values.to_numpy(), offsets), shape=(len(texts), 1 << bits))


def contributions(text: str, weights: bytes, bits: int) -> list[tuple[str, float]]:
    """Return the n-grams of a text, each with its contribution to the score, the largest first."""
    table = np.frombuffer(weights, "<f4")
    ngrams = _native.hashed_ngrams(text, bits)
    utf8, scale = text.encode(), 1 / np.sqrt(max(1, len(ngrams)))
    pairs = [
        (utf8[begin:end].decode().lower(), float(table[bucket] * scale)) for bucket, begin, end in ngrams
    ]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


def require_scikit_learn() -> None:
    """Raise ConfigurationError if the extra that trains is not installed."""
    if importlib.util.find_spec("sklearn") is None:
        raise ConfigurationError(
            "Training a classifier needs scikit-learn. Install it: pip install 'corpus-factory[classifiers]'."
        )


def _logistic(features: csr_matrix, members: Booleans) -> LogisticRegression:
    from sklearn.linear_model import LogisticRegression

    # The dual of a text problem has fewer variables than its buckets: a tenth of the time of lbfgs.
    model = LogisticRegression(
        C=REGULARIZATION, solver="liblinear", dual=True, random_state=0, max_iter=1_000
    )
    return model.fit(features, members)


def _auc(probabilities: Floats, members: Booleans) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(members, probabilities))


def _folds(members: Booleans, sources: npt.NDArray[np.object_]) -> Iterator[tuple[Integers, Integers]]:
    """Yield (training, unseen) positions: by source if each class has two of them, else by document."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    n_sources = min(len(set(sources[members])), len(set(sources[~members])))
    if n_sources >= 2:
        splitter = StratifiedGroupKFold(min(FOLDS, n_sources), shuffle=True, random_state=0)
        folds = list(splitter.split(members, members, sources))
        if all(0 < members[fitting].sum() < len(fitting) for fitting, _ in folds):
            yield from folds
            return
    n_documents = int(min(members.sum(), (~members).sum()))
    yield from StratifiedKFold(min(FOLDS, n_documents), shuffle=True, random_state=0).split(members, members)


def _held_out(sources: npt.NDArray[np.object_], labels: Integers, holdout: Split) -> tuple[Booleans, bool]:
    """Return which examples are held out, and whether whole sources are.

    Sources are taken in the order of a hash until each class has its share, and none takes more than half
    of a class. Where that leaves a class without a held-out example, documents are held out instead. Raises
    ConfigurationError if a class has then no example on one of the sides.
    """
    if not isinstance(holdout, float | int):
        names = {source for source in set(sources) if any(fnmatchcase(source, glob) for glob in holdout)}
        held_out = np.isin(sources, list(names))
        _require_split(labels, held_out, holdout)
        return held_out, True
    held_out = np.zeros(len(labels), dtype=bool)
    totals = np.bincount(labels)
    for source in sorted(set(sources), key=_hash):
        members = sources == source
        n_taken = np.bincount(labels[held_out], minlength=len(totals))
        more = np.bincount(labels[members], minlength=len(totals))
        lacking = (more > 0) & (n_taken < holdout * totals)
        if lacking.any() and (n_taken + more <= totals / 2).all():
            held_out |= members
    if (np.bincount(labels[held_out], minlength=len(totals)) > 0).all():
        return held_out, True
    numbers = np.array([_hash(f"{number}") % 1_000 for number in range(len(labels))])
    held_out = numbers < 1_000 * holdout
    _require_split(labels, held_out, holdout)
    return held_out, False


def _require_split(labels: Integers, held_out: Booleans, holdout: Split) -> None:
    for side, of_side in (("held out", labels[held_out]), ("left to train on", labels[~held_out])):
        if len(set(of_side)) < len(set(labels)):
            raise ConfigurationError(
                f"With `holdout: {holdout}` a class has no example {side}. Name sources that all classes "
                "have, or a share nearer to a half."
            )


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def _long_enough(examples: pa.Table) -> pa.Table:
    """Return the examples with enough tokens, in the order of their ids, each document of one class once."""
    tokens = np.array([len(_native.token_hashes(text)) for text in examples["text"].to_pylist()])
    return examples.filter(pa.array(tokens >= LEAST_TOKENS)).sort_by("doc_id")


def _require_examples(classes: Sequence[str], labels: Integers) -> None:
    for number, name in enumerate(classes):
        n_examples = int((labels == number).sum())
        if n_examples < LEAST_EXAMPLES:
            raise ConfigurationError(
                f"The class `{name}` has {n_examples} examples of at least {LEAST_TOKENS} words among the "
                f"documents looked at, and a classifier needs {LEAST_EXAMPLES} of each class. Point it at "
                "more documents, or select them by predicates, for which all are looked at."
            )


def _facts(
    examples: pa.Table, classifier: pa.Table, probabilities: Floats, held_out: Booleans
) -> dict[str, str | int]:
    """Return the heaviest n-grams of each class, and the keys of the documents that are hardest to tell."""
    facts: dict[str, str | int] = {"documents trained on": int((~held_out).sum())}
    texts = examples["text"].to_pylist()[:_SCANNED]
    for row in classifier.select(["class", "weights", "bits"]).to_pylist():
        heaviest = _heaviest(texts, np.frombuffer(row["weights"], "<f4"), row["bits"])
        facts[f"speaks for {row['class']}"] = heaviest[0]
        facts[f"speaks against {row['class']}"] = heaviest[1]
    nearest = np.argsort(np.abs(probabilities - 0.5), kind="stable")[:_SHOWN]
    keys = examples["key"].take(pa.array(nearest)).to_pylist()
    facts["nearest to the limit"] = "; ".join(
        f"{key} ({probabilities[number]:.2f})" for key, number in zip(keys, nearest, strict=True)
    )
    return facts


def _heaviest(texts: Sequence[str], weights: npt.NDArray[np.float32], bits: int) -> tuple[str, str]:
    """Return the n-grams of most and of least weight, as `texts` spell them."""
    order = np.argsort(weights, kind="stable")
    heavy = {*order[:_SHOWN].tolist(), *order[-_SHOWN:].tolist()}
    spellings: dict[int, Counter[str]] = defaultdict(Counter)
    for text in texts:
        utf8 = text.encode()
        for bucket, begin, end in _native.hashed_ngrams(text, bits):
            if bucket in heavy:
                spellings[bucket][utf8[begin:end].decode().lower()] += 1

    def spell(buckets: Sequence[int]) -> str:
        return ", ".join(
            f"{spellings[bucket].most_common(1)[0][0]} {weights[bucket]:+.1f}"
            for bucket in buckets
            if spellings[bucket]
        )

    return spell(order[::-1][:_SHOWN].tolist()), spell(order[:_SHOWN].tolist())
