"""The documents of a dataset in one file, with the decision on each, written in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from factory.atomic_file import replacing
from factory.explain.dataset_version import DatasetVersion
from factory.explain.export_file import writer
from factory.explain.outcomes import Outcome, Outcomes, every_outcome, exceptions
from factory.lake.files.stream import stream
from factory.lake.schemas.filters import FILTERED
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake

_DECISION = pa.schema(
    [
        ("kept", pa.bool_()),
        ("reason", pa.string()),
        ("duplicate_of", pa.string()),
        ("duplicate_of_key", pa.string()),
        ("similarity", pa.float64()),
        ("kept_document", pa.string()),
        ("kept_document_key", pa.string()),
        FILTERED.columns.field("rejections"),
    ]
)
_FIRST = ("doc_id", "source", "key")
_LEFT_OUT = ("content", "partition", "text")  # binary content, a storage column; the text comes last


@dataclass(frozen=True)
class Exported:
    """The result of an export: documents by reason, and the size of the file."""

    version: DatasetVersion
    reasons: Counter[str]
    kept: int
    n_bytes: int


@dataclass(frozen=True)
class Export:
    """The documents and columns of a dataset that a file gets.

    Without `removed` the file has the kept documents only, without `text` every column but the texts.
    """

    lake: Lake
    version: DatasetVersion
    removed: bool
    text: bool

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file: the document, the decision on it, its text."""
        about = [field for field in RAW.columns if field.name not in (*_FIRST, *_LEFT_OUT)]
        text = [RAW.columns.field("text")] if self.text else []
        return pa.schema([*map(RAW.columns.field, _FIRST), *_DECISION, *about, *text])

    @property
    def n_rows(self) -> int:
        """Rows to read, over all tables."""
        own = self.version
        if not self.removed:
            return own.decisions.rows + own.kept.rows
        beside = sum(table.rows for table in (*own.verdicts, *own.compared))
        return 2 * own.decisions.rows + beside + own.raw.rows  # those that stay are read, then those that go

    def write(self, file: Path, advance: Callable[[int], None]) -> Exported:
        """Write `file` as a whole, in place of an older one; `advance` gets numbers of rows read.

        The suffix chooses the format. Meanwhile the folder has scratch of the size of the decisions.
        Raises ConfigurationError for another suffix.
        """
        reasons: Counter[str] = Counter()
        kept = 0
        with replacing(file) as temporary:
            with writer(file, temporary, self.schema) as write:
                for batch in self._batches(temporary.parent, advance):
                    write(batch)
                    reasons.update(batch["reason"].to_pylist())
                    kept += batch["kept"].true_count
                    advance(batch.num_rows)
            n_bytes = temporary.stat().st_size
        return Exported(self.version, reasons, kept, n_bytes)

    def _batches(self, folder: Path, advance: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        read = self.version.read(self.lake, advance)
        outcomes = (
            every_outcome(read, self.version.compared, folder) if self.removed else exceptions(read, folder)
        )
        try:
            documents = self.version.raw if self.removed else self.version.kept
            columns = pa.schema([RAW.columns.field(name) for name in self.schema.names if name in RAW.names])
            for batch in stream(self.lake.table(documents.table), documents.snapshot_id, columns):
                yield self._with_outcomes(batch, outcomes)
        finally:
            outcomes.close()

    def _with_outcomes(self, batch: pa.RecordBatch, outcomes: Outcomes) -> pa.RecordBatch:
        by_field = zip(*outcomes.look_up(batch["doc_id"].to_pylist()), strict=True)
        decision = {
            name: pa.array(list(values), _DECISION.field(name).type)
            for name, values in zip(Outcome._fields, by_field, strict=True)
        }
        columns = [decision[name] if name in decision else batch[name] for name in self.schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
