"""The first documents that the limits of a dataset would remove, as sentences of `factory check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from factory.counted import conjunction
from factory.filters.trial import Trial, try_rounds
from factory.orchestration.datasets.formats import Repositories
from factory.orchestration.declare.filters import FilterFields
from factory.orchestration.declare.ingest_dataset import Dataset
from factory.suggestions import quoted
from spark_udfs.ingest.files import Input
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.rows import Origin, Row

N_DOCUMENTS = 200
_MOST_BYTES = 16 << 20  # of their texts
_RULES_SHOWN = 3
_MAJORITY = 0.5
_REMEDY = "Change `limits` or `rules` if they belong to the dataset (docs/filters.md of the repository)."


@dataclass(frozen=True)
class LimitsTrial:
    """A sentence on the removed documents, empty without any, and whether they are the majority."""

    sentence: str = ""
    is_majority: bool = False


def limits_trial(
    entry: Dataset, files: Sequence[tuple[Place, bytes]], first_rows: Sequence[Row]
) -> LimitsTrial:
    """Try the limits of a dataset on its first documents.

    `first_rows` come from a preview. A dataset of single files reads some more; a dataset of pages is not
    tried, because extracting the main text takes long.
    """
    if entry.reader.of_pages:
        return LimitsTrial()
    rows = iter(first_rows) if entry.reader.many_records else _rows_of_files(entry, files)
    documents = list(islice(_first_texts(rows), N_DOCUMENTS))
    assert isinstance(entry, FilterFields)
    trial = try_rounds([filters.build() for filters in entry.in_rounds()], documents)
    if not trial.n_removed:
        return LimitsTrial()
    is_majority = trial.n_removed > _MAJORITY * trial.n_documents
    return LimitsTrial(_sentence(entry, trial, is_majority=is_majority), is_majority)


def _sentence(entry: Dataset, trial: Trial, *, is_majority: bool) -> str:
    counts = [f"{n:,} by {rule}" for rule, n in trial.n_by_rule.items()]
    further = len(counts) - _RULES_SHOWN
    if further > 0:
        counts[_RULES_SHOWN:] = [
            "some by another rule" if further == 1 else f"some by {further:,} other rules"
        ]
    share = f"{trial.n_removed:,} of the first {trial.n_documents:,} documents"
    documents = share if trial.n_documents > 1 else "the first document"
    fact = f"The limits of `{entry.name}` remove {documents}: {conjunction(counts)}."
    others = f"Not tried: {quoted(trial.not_tried)}." if trial.not_tried else ""
    return " ".join(filter(None, [fact, others, _REMEDY if is_majority else ""]))


def _first_texts(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the documents among the rows, up to a bound of bytes."""
    n_bytes = 0
    for row in rows:
        if "reason" in row:
            continue
        yield row
        n_bytes += row["n_bytes"]
        if n_bytes >= _MOST_BYTES:
            return


def _rows_of_files(entry: Dataset, files: Sequence[tuple[Place, bytes]]) -> Iterator[Row]:
    """Yield the rows of single files, from the first to the last at even distances."""
    step = max(1, len(files) // N_DOCUMENTS)
    for place, name in files[::step]:
        repository = place.name if isinstance(entry, Repositories) else getattr(entry, "repository", None)
        origin = Origin(entry.name, repository, license=entry.license)
        yield from entry.reader.rows_of(Input(origin, place, name, _MOST_BYTES), entry.options)
