"""Classifiers on sources and advertisers that they have not seen, beside floret, and their speed.

Real text: what installed packages say of themselves, in two ways that only style tells apart, split by
package (`bench/classifiers/corpus.py`). Adverts: generated ones of trades that the classifier has not seen,
beside real text of packages that it has not seen; the rule set `advertising` judges the same.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from bench.classifiers.adverts import SEEN, UNSEEN, adverts
from bench.classifiers.corpus import CLASSES, examples
from bench.harness import Report, Row, at_least, at_most, table
from bench.peers import FLORET
from factory import _native
from factory.filters.limits import bounds
from factory.filters.sets import RULE_SETS
from factory.models.arrow_stream import arrow_stream_of
from factory.models.calibration import calibration_error
from factory.models.classifier import BITS, LEAST_TOKENS, feature_matrix, train
from spark_udfs.filters import verdicts
from spark_udfs.models import classifier as udf

HOLDOUT = 0.3  # of the packages
N_ADVERTS = 300  # of a trade
MB = 1e6
AIM_MB, AIM_ERROR, AIM_EQUAL = 50, 0.03, 1e-6
SPEED_MB = 40
CAVEATS = [
    "Real text: at most forty pieces of 1,500 characters a package and class; a package is wholly trained "
    "on or wholly held out.",
    "floret: words and pairs, 16 dimensions, 2^18 buckets, trained on four fifths of the packages that ours "
    "is trained on; its probabilities are shown as they are, and after isotonic regression on the rest.",
    "Adverts are generated from templates, so their figures compare the rules with the classifier and say "
    "little about the web. No template of a judged trade was seen.",
    "`as many false`: the limit at which the classifier removes as much real text as the rules of which one "
    "fails; else its limit is .5.",
    "Speed: native scores of texts in memory, CPU seconds of one thread, the best of three.",
]

Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def measure(progress: Console) -> Report:
    """Measure quality beside floret, adverts beside rules, and speed. Raises WrongAnswer for other scores."""
    progress.print("gathering text of installed packages")
    real = examples()
    n_sources = len(real["source"].unique())
    report = Report(CAVEATS, f"{len(real):,} pieces of {n_sources} packages, {_mb(real['text']):,.1f} MB")
    _add_equality(report, real)
    _add_quality(report, real, progress)
    _add_adverts(report, real, progress)
    _add_speed(report, real, progress)
    return report


def _add_equality(report: Report, real: pa.Table) -> None:
    """Check that native scores are scikit-learn's."""
    features = feature_matrix(real["text"].combine_chunks(), BITS)
    members = np.array(real["class"].to_pylist()) == CLASSES[0]
    model = LogisticRegression(C=30, max_iter=1_000).fit(features, members)
    native = _native.LinearModels(
        BITS, [model.coef_[0].astype("<f4").tobytes()], [float(model.intercept_[0])]
    )
    scores = native.scores(real["text"].combine_chunks(), 1).column(0).to_numpy()
    distance = float(np.abs(scores - model.decision_function(features)).max())
    report.check(f"native scores are scikit-learn's within {AIM_EQUAL:g}", distance <= AIM_EQUAL)
    report.rows.append(at_most("classifiers.distance", distance, "log-odds", AIM_EQUAL))


def _add_quality(report: Report, real: pa.Table, progress: Console) -> None:
    progress.print("training ours")
    began = time.process_time()
    training_result = train(real, list(CLASSES), HOLDOUT, first_alone=True)
    fit_s = time.process_time() - began
    rows = real.sort_by("doc_id").join(
        training_result.examples.select(["doc_id", "held_out"]), "doc_id", join_type="inner"
    )
    rows = rows.sort_by("doc_id")
    held_out = np.array(rows["held_out"].to_pylist())
    members = np.array(rows["class"].to_pylist()) == CLASSES[0]
    sources = np.array(rows["source"].to_pylist(), dtype=object)
    calibrates = ~held_out & np.isin(sources, sorted(set(sources[~held_out]))[::5])
    ours = _probabilities(training_result.classifier, rows["text"])
    progress.print("training floret")
    with tempfile.TemporaryDirectory(prefix="bench-classifiers-") as folder:
        file = Path(folder) / "examples.json"
        trains = ~held_out & ~calibrates
        file.write_text(
            json.dumps(
                [
                    {"text": text, "class": kind, "trains": bool(flag)}
                    for text, kind, flag in zip(
                        rows["text"].to_pylist(), rows["class"].to_pylist(), trains, strict=True
                    )
                ]
            )
        )
        answer = FLORET.answer("bench.classifiers.peer", file, CLASSES[0], console=progress)
    floret = np.array(answer["probabilities"])
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(floret[calibrates], members[calibrates])
    n_held_out = len(set(sources[held_out]))
    quality = table(
        f"{CLASSES[0]} or {CLASSES[1]}, on {held_out.sum():,} pieces of {n_held_out} packages held out",
        " | AUC | calibration error | fit s",
    )
    for name, probabilities, seconds in (
        ("ours", ours, fit_s),
        ("floret, as it is", floret, answer["fit_s"]),
        ("floret, after isotonic regression", isotonic.predict(floret), answer["fit_s"]),
    ):
        auc = float(roc_auc_score(members[held_out], probabilities[held_out]))
        error = calibration_error(probabilities[held_out], members[held_out])
        quality.add_row(name, f"{auc:.4f}", f"{error:.4f}", f"{seconds:.1f}")
        label = name.replace(",", "").replace(" ", "_")
        report.rows.append(Row(f"classifiers.{label}.auc", round(auc, 4), "area"))
        if name == "ours":
            report.rows.append(
                at_most("classifiers.ours.calibration_error", round(error, 4), "share", AIM_ERROR)
            )
        else:
            report.rows.append(Row(f"classifiers.{label}.calibration_error", round(error, 4), "share"))
    floor = _error_by_chance(ours[held_out])
    quality.add_row("right probabilities, by chance alone", "", f"{floor:.4f}", "")
    report.rows.append(Row("classifiers.chance.calibration_error", round(floor, 4), "share"))
    report.tables.append(quality)


def _error_by_chance(probabilities: Floats) -> float:
    """The mean calibration error of so many documents if their probabilities were right."""
    chance = np.random.default_rng(4)
    draws = [chance.random(len(probabilities)) < probabilities for _ in range(50)]
    return float(np.mean([calibration_error(probabilities, members) for members in draws]))


def _add_adverts(report: Report, real: pa.Table, progress: Console) -> None:
    progress.print("adverts of unseen trades")
    for_training, for_judging = adverts(SEEN, N_ADVERTS, 1), adverts(UNSEEN, N_ADVERTS, 2)
    sources = sorted(real["source"].unique().to_pylist())
    held_out = pc.is_in(real["source"], pa.array(sources[::3]))
    to_train, to_judge = real.filter(pc.invert(held_out)), real.filter(held_out)
    columns = ["doc_id", "class", "source", "key", "text"]
    training = pa.concat_tables(
        [
            for_training.append_column("class", pa.repeat("advert", len(for_training))).select(columns),
            to_train.drop_columns("class")
            .append_column("class", pa.repeat("other", len(to_train)))
            .select(columns),
        ]
    )
    weak = {f"classifier, weak labels, {name}": _by_rules(training, least) for name, least in _LEAST.items()}
    texts = {"adverts": for_judging["text"], "real text": to_judge["text"]}
    judges = {
        f"rules, {name}": {key: _failures(column) >= least for key, column in texts.items()}
        for name, least in _LEAST.items()
    }
    n_allowed = float(judges["rules, one fails"]["real text"].mean())
    for name, rows in {"classifier, true labels": training, **weak}.items():
        model = train(rows, ["advert", "other"], 0.2, first_alone=True).classifier
        probabilities = {key: _probabilities(model, column) for key, column in texts.items()}
        limit = float(np.quantile(probabilities["real text"], 1 - n_allowed))
        judges[name] = {key: values > 0.5 for key, values in probabilities.items()}
        judges[f"{name}, as many false"] = {key: values > limit for key, values in probabilities.items()}
    judgements = table(
        f"Adverts of {len(UNSEEN)} unseen trades and real text of {len(sources[::3])} unseen packages",
        "judge | recall of adverts | false removals",
    )
    for name, flags in judges.items():
        recall, false = float(flags["adverts"].mean()), float(flags["real text"].mean())
        judgements.add_row(name, f"{recall:.1%}", f"{false:.2%}")
        label = name.replace(",", "").replace(" ", "_")
        report.rows += [
            Row(f"classifiers.adverts.{label}.recall", round(recall, 4), "share"),
            Row(f"classifiers.adverts.{label}.false_removals", round(false, 4), "share"),
        ]
    report.tables.append(judgements)


_LEAST = {"one fails": 1, "two fail": 2}


def _by_rules(examples: pa.Table, least: int) -> pa.Table:
    """Examples training by the rules alone: adverts fail at least so many, others none."""
    n_failures = _failures(examples["text"])
    kinds = np.where(n_failures >= least, "advert", "other")
    clear = pa.array((n_failures >= least) | (n_failures == 0))
    return examples.set_column(1, "class", pa.array(kinds)).filter(clear)


def _add_speed(report: Report, real: pa.Table, progress: Console) -> None:
    progress.print("speed")
    texts = real["text"].combine_chunks()
    texts = pa.concat_arrays([texts] * max(1, round(SPEED_MB / _mb(real["text"]))))
    chance = np.random.default_rng(3)
    weights = [chance.normal(size=1 << BITS).astype("<f4").tobytes() for _ in range(5)]
    speeds = table(f"Speed on {_mb(texts):,.0f} MB, 2^{BITS} buckets", "models in one pass | MB/CPU s")
    for n_models in (1, 5):
        models = _native.LinearModels(BITS, weights[:n_models], [0.0] * n_models)
        speed = _mb(texts) / min(_cpu_seconds(models, texts) for _ in range(3))
        speeds.add_row(str(n_models), f"{speed:,.0f}")
        report.rows.append(at_least(f"classifiers.speed.{n_models}", round(speed, 1), "MB/CPU s", AIM_MB))
    report.tables.append(speeds)


def _cpu_seconds(models: _native.LinearModels, texts: pa.Array) -> float:
    began = time.process_time()
    models.scores(texts, LEAST_TOKENS)
    return time.process_time() - began


def _probabilities(classifier: pa.Table, texts: pa.ChunkedArray) -> Floats:
    model = udf.load(arrow_stream_of(classifier))
    return model.probabilities(texts.combine_chunks(), 1)[0]


def _failures(texts: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """How many rules of the set `advertising` each text fails."""
    rules = RULE_SETS["advertising"]
    values = _native.text_signals(texts.combine_chunks(), [rule.name for rule in rules])
    limits = [verdicts.RuleLimit(rule.name, *bounds(rule.bounds)) for rule in rules]
    failures, _ = verdicts.judge(values, limits)
    return pc.list_value_length(failures).to_numpy().astype(np.int64)


def _mb(texts: pa.Array | pa.ChunkedArray) -> float:
    return float(pc.sum(pc.binary_length(texts)).as_py()) / MB
