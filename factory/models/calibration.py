"""From the scores of a classifier to probabilities that hold.

A score ranks documents well long before the probability that a logistic model derives from it is right, above
all on sources that it has not seen. So the probabilities are fitted to scores of documents from unseen
sources: isotonic regression (Zadrozny & Elkan, "Transforming Classifier Scores into Accurate Multiclass
Probability Estimates", 2002), with lines in log-odds that join the centers of its steps. So no two scores
have one probability, and the order of documents stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ENOUGH = 200  # examples of the rarer class; below, a step of the regression would be a handful of documents
_N_BINS = 15


@dataclass(frozen=True)
class Calibration:
    """Log-odds as a rising function of scores: lines between knots, and one slope outside them."""

    scores: Floats
    logits: Floats
    end_slope: float

    def logit(self, scores: Floats) -> Floats:
        """Return the calibrated log-odds of scores; NaN stays NaN."""
        inside = np.interp(scores, self.scores, self.logits)
        below = np.minimum(scores - self.scores[0], 0) * self.end_slope
        above = np.maximum(scores - self.scores[-1], 0) * self.end_slope
        return inside + below + above

    def probability(self, scores: Floats) -> Floats:
        """Return the calibrated probabilities of scores."""
        return 1 / (1 + np.exp(-self.logit(scores)))


def fit_calibration(scores: Floats, members: npt.NDArray[np.bool_]) -> Calibration:
    """Fit a calibration to the scores of documents and to whether they are members of the class."""
    slope, intercept = _line(scores, members)
    if min(members.sum(), (~members).sum()) < ENOUGH:
        return Calibration(np.array([0.0]), np.array([intercept]), slope)
    centers, shares, sizes = _steps(scores, members)
    # A step without or with nothing but members is as sure as its size allows (Laplace's rule).
    shares = np.clip(shares, 1 / (sizes + 2), 1 - 1 / (sizes + 2))
    logits = np.log(shares / (1 - shares))
    if len(logits) > 1:  # a first or last step of few documents is no surer than its neighbor, and moves none
        logits[0], logits[-1] = min(logits[0], logits[1]), max(logits[-1], logits[-2])
    rising = np.concatenate([[True], np.diff(logits) > 0])
    return Calibration(centers[rising], logits[rising], slope)


def calibration_error(probabilities: Floats, members: npt.NDArray[np.bool_]) -> float:
    """Return the expected calibration error: mean distance of probability and share of members.

    Over bins of equal numbers of documents (Naeini et al., 2015).
    """
    bins = reliability(probabilities, members)
    return float(sum(n * abs(probability - share) for n, probability, share in bins) / len(members))


def reliability(probabilities: Floats, members: npt.NDArray[np.bool_]) -> list[tuple[int, float, float]]:
    """Return (documents, mean probability, share of members) of bins of equal numbers of documents."""
    order = np.argsort(probabilities, kind="stable")
    bins = [part for part in np.array_split(order, _N_BINS) if len(part)]
    return [(len(part), float(probabilities[part].mean()), float(members[part].mean())) for part in bins]


def _line(scores: Floats, members: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return slope and intercept of the log-odds as a line (Platt, 1999); the slope rises."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1e3).fit(scores[:, None], members)
    return max(float(model.coef_[0, 0]), 1e-3), float(model.intercept_[0])


def _steps(scores: Floats, members: npt.NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Return the mean score, the share of members and the documents of each step."""
    from sklearn.isotonic import IsotonicRegression

    order = np.argsort(scores, kind="stable")
    levels = IsotonicRegression().fit_transform(scores[order], members[order].astype(np.float64))
    _, first, sizes = np.unique(levels, return_index=True, return_counts=True)
    centers = np.add.reduceat(scores[order], first) / sizes
    return centers, levels[first], sizes.astype(np.float64)
