"""The view of pictures: which ones a document has, and how many of a dataset decode."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from factory.explain.pictures import picture_phrase
from factory.explain.stages.document_trace import DocumentTrace
from factory.explain.stages.removals import Read
from factory.explain.stages.stage import Figure, Section, StageView, SummaryScope
from factory.lake import names
from factory.lake.names import IMAGES
from factory.lake.schemas.images import IMAGE_FACTS


class ImagesView(StageView):
    """The pictures of documents."""

    stage = IMAGES
    sections = (Section("images", "Pictures", "dataset"),)

    def follow(self, read: Read, traces: Mapping[str, DocumentTrace]) -> Collection[str]:
        assert read.dataset is not None
        table = names.images(read.dataset)
        columns = ("doc_id", "number", "name", "media_type", "width", "height", "n_bytes")
        pictures: dict[str, list[tuple[int, str]]] = {}
        for batch in read.batches(table, IMAGE_FACTS, columns, pa.array(traces, pa.string())):
            for row in batch.to_pylist():
                pictures.setdefault(row["doc_id"], []).append((row["number"], picture_phrase(row)))
        for doc_id, phrases in pictures.items():
            traces[doc_id].about["pictures"] = ", ".join(phrase for _, phrase in sorted(phrases))
            traces[doc_id].note(table, read.snapshot(table))
        return ()

    def figures(self, scope: SummaryScope) -> Iterator[Figure]:
        for dataset in scope.datasets:
            table = names.images(dataset)
            if table in scope.tables and dataset == names.base(dataset):
                rows = scope.lake.read(table, ["is_readable", "patches", "n_bytes"])
                n_unreadable = rows.num_rows - int(pc.sum(rows["is_readable"]).as_py() or 0)
                totals = {
                    "pictures": rows.num_rows,
                    "unreadable": n_unreadable,
                    "patches": int(pc.sum(rows["patches"]).as_py() or 0),
                    "bytes": int(pc.sum(rows["n_bytes"]).as_py() or 0),
                }
                line = ", ".join(f"{name} {n:,}" for name, n in totals.items())
                yield Figure("images", dataset, totals, [line])


VIEW = ImagesView()
