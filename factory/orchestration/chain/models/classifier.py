"""The assets of classifiers, and the rules that read them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from factory.errors import ConfigurationError
from factory.filters.examples import Examples, collect_examples
from factory.filters.limits import Limit
from factory.filters.metadata import METADATA
from factory.lake.schemas.ingest import RAW
from factory.lake.schemas.models import CLASSIFIER, EXAMPLES
from factory.models.classifier import Split, train
from factory.orchestration.chain.models.classifier_rule import classifier_rule
from factory.orchestration.chain.models.rule import RuleModel
from factory.orchestration.groups import MODELS
from factory.orchestration.table.checks import alarm
from factory.orchestration.table.declaration import Tables
from factory.orchestration.table.table_asset import table_asset
from factory.suggestions import unknown_name

LEAST_AUC = 0.8  # on held-out sources; below, a classifier is not worth a rule
MOST_CALIBRATION_ERROR = 0.1
MOST_REJECTED = 0.2  # share of a class's own examples that the classifier does not recognize


_CHECKS = (
    alarm(
        "holds_out_sources",
        "count_if(n_held_out_sources = 0)",
        "Held-out documents come from sources that the classifier was not trained on.",
        "n_held_out_sources",
    ),
    alarm(
        "separates_held_out_sources",
        "max(1 - auc)",
        f"On held-out documents the area under the ROC curve is at least {LEAST_AUC}.",
        "auc",
        limit=1 - LEAST_AUC,
    ),
    alarm(
        "probabilities_hold",
        "max(calibration_error)",
        "On held-out documents, predicted probabilities match the observed shares.",
        "calibration_error",
        limit=MOST_CALIBRATION_ERROR,
    ),
    alarm(
        "recognizes_its_own",
        "max(rejected_own)",
        "Few of a class's own examples have a probability below .5, by models that did not see their source.",
        "rejected_own",
        limit=MOST_REJECTED,
    ),
)


def classifier(
    name: str,
    positives: Examples | str | None = None,
    negatives: Examples | str | None = None,
    *,
    classes: Mapping[str, Examples | str] | None = None,
    holdout: Split = 0.2,
    source: str | None = None,
    limit: Limit | None = None,
) -> RuleModel:
    """Declare a classifier that tells `positives` from `negatives`, or several `classes` from each other.

    `models.<name>` is trained on the driver, on a bounded sample, and lasts: it is trained again if its
    examples are declared otherwise, or by a run that selects it without its documents. Training leaves out
    the share `holdout` of the sources, or the sources that match its globs (`source` is a field; by default
    repository, host or folder). Without a `limit` positives stay, except adverts and abuse. Raises
    ConfigurationError unless there are two classes or more, and for a `source` that is not a field.
    """
    if source is not None and source not in RAW.names and not source.startswith(METADATA):
        raise ConfigurationError(
            unknown_name("field of a document:", source, [*RAW.names, f"{METADATA}site"])
        )
    examples_of = _classes(name, positives, negatives, classes)
    tables = sorted({table for examples in examples_of.values() for table in examples.tables})
    arguments = {f"{table.namespace}_{table.name}": table for table in tables}

    @table_asset(
        namespace="models",
        name=name,
        asset_group=MODELS,
        schema=CLASSIFIER,
        side_tables={"examples": EXAMPLES},
        upstream=arguments,
        description=f"A classifier of {' and '.join(f'`{kind}`' for kind in examples_of)}, trained on "
        f"examples of {', '.join(f'`{table}`' for table in tables)}.",
        config={
            "classes": {kind: repr(examples) for kind, examples in examples_of.items()},
            "holdout": holdout if isinstance(holdout, float) else list(holdout),
            "source": source,
        },
        checks=list(_CHECKS),
        lasting=True,
    )
    def model(**upstream: DataFrame) -> Tables:
        frames = {table: upstream[argument] for argument, table in arguments.items()}
        trained_model = train(
            collect_examples(examples_of, frames, source),
            list(examples_of),
            holdout,
            first_alone=classes is None,
        )
        [session] = {frame.sparkSession for frame in frames.values()}
        return Tables(
            session.createDataFrame(trained_model.classifier),
            {"examples": session.createDataFrame(trained_model.examples)},
            facts=trained_model.facts,
        )

    return RuleModel(model, classifier_rule(name, limit, tuple(classes or ())))


def _classes(
    name: str,
    positives: Examples | str | None,
    negatives: Examples | str | None,
    classes: Mapping[str, Examples | str] | None,
) -> dict[str, Examples]:
    """Return the examples of each class; of two classes the positives are first."""
    examples_of = dict(classes or {})
    if positives is not None and negatives is not None and classes is None:
        examples_of = {name: positives, f"not_{name}": negatives}
    if len(examples_of) < 2 or (classes is not None and (positives or negatives)):
        raise ConfigurationError(
            f"The classifier `{name}` needs `positives` and `negatives`, or two or more `classes`."
        )
    return {kind: Examples.model_validate(examples) for kind, examples in examples_of.items()}
