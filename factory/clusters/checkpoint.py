"""A checkpoint as the proxy of clusters, `transformers:FOLDER`, and its row of PROXY.

The row has no weights: it names the folder, and has a hash of the files in it. A checkpoint has seen none of
the documents, so all of them may be scored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from factory.clusters.options import CHECKPOINT, ClusterOptions
from factory.errors import ConfigurationError
from factory.lake.schemas.clusters import PROXY
from factory.models.model_files import existing_path, files_below, hash_of_files
from spark_udfs.clusters.checkpoint import CheckpointProxy, open_checkpoint

LEARNING_RATE = 3e-4
_OF_TOKENIZERS = ("tokenizer.json", "tokenizer_config.json")


@dataclass(frozen=True)
class Checkpoint:
    """The folder of a causal language model, and the size of the steps that continue it."""

    reference: str
    path: Path
    learning_rate: float = LEARNING_RATE

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that it consists of, in the order of their names."""
        return files_below(self.path)

    @property
    def source(self) -> str:
        """A hash of its files and their names below its folder; it reads them completely."""
        return hash_of_files(self.path)


def parse_checkpoint(options: ClusterOptions, folder: Path) -> Checkpoint | None:
    """Return the checkpoint that `options` name, relative to `folder`; None if a table trains the proxy.

    Raises ConfigurationError for a folder that does not have a model and a tokenizer, and for a learning rate
    without a checkpoint.
    """
    if options.proxy is None or not options.has_checkpoint:
        if options.learning_rate is not None:
            raise ConfigurationError(
                f"`learning_rate` is for a proxy `{CHECKPOINT}FOLDER`: n-grams are counted. Leave it out."
            )
        return None
    place = options.proxy.removeprefix(CHECKPOINT)
    if not place:
        raise ConfigurationError(f"The proxy `{options.proxy}` is not complete. Write `{CHECKPOINT}FOLDER`.")
    path = existing_path(place, folder, "folder")
    if not (path / "config.json").is_file() or not [*path.glob("*.safetensors")]:
        raise ConfigurationError(f"The folder `{place}` has no model. Save one there with `save_pretrained`.")
    if not any((path / name).is_file() for name in _OF_TOKENIZERS):
        raise ConfigurationError(
            f"The folder `{place}` has no tokenizer. Save the model's there with `save_pretrained`."
        )
    return Checkpoint(options.proxy, path, options.learning_rate or LEARNING_RATE)


def checkpoint_table(spark: SparkSession, checkpoint: Checkpoint) -> DataFrame:
    """The row of PROXY; raises ConfigurationError if the folder has no causal model with its tokenizer."""
    source = checkpoint.source
    proxy = open_checkpoint(str(checkpoint.path), source, checkpoint.learning_rate)
    parameters = {
        "context": proxy.context,
        "files": source,
        "learning_rate": checkpoint.learning_rate,
        "optimizer": "adam",
    }
    row = {
        "kind": "transformers",
        "source": checkpoint.reference,
        "parameters": json.dumps(parameters, sort_keys=True),
        "merges": [],
        "ngrams": [],
        "counts": [],
        "trained_below": 0.0,
        "n_documents": 0,
        "n_bytes": 0,
        "partition": None,
    }
    return spark.createDataFrame(pa.Table.from_pylist([row], schema=PROXY.columns))


def unchanged_checkpoint(
    checkpoint: Checkpoint | None, row: Mapping[str, Any]
) -> Callable[[], CheckpointProxy]:
    """Return a function that opens the checkpoint of a row of PROXY, with the learning rate of the row.

    Raises ConfigurationError if the files have changed since, or if the checkpoint is another one.
    """
    parameters = json.loads(row["parameters"])
    if checkpoint is None:
        raise ConfigurationError(
            f"The proxy is `{row['source']}`, and its files are not named. Name them in the datasets file, "
            "or make the proxy again."
        )
    if checkpoint.source != parameters["files"]:
        raise ConfigurationError(
            f"The files of the proxy `{checkpoint.reference}` have changed since its table was made. Restore "
            "them, or make the table again, and all verdicts with it."
        )
    return partial(open_checkpoint, str(checkpoint.path), parameters["files"], parameters["learning_rate"])
