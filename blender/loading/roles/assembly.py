"""The rows of a bucket as its ranks read them: samples joined into rows, and pictures with their two maps.

    assembly = Assembly(blend, spec)
    assembly.assemble(plan, bucket=0, rows=rows, handover=None)       # Assembled(rows=RecordBatch, ...)

Where a picture goes follows from the plan alone, also in the rows of other buckets: first fit over the
lengths that the plan knows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_numpy, binary_integers
from blender.batch import Block
from blender.chunks.layout import ends_of
from blender.errors import InvalidRequest
from blender.loading.joined_rows import Placeholders, Slots, join_samples
from blender.loading.pictures.delivered import (
    PICTURE,
    PatchFacts,
    int32,
    with_pictures,
    with_placeholders,
)
from blender.loading.pictures.encoders import Encoding, encoding_of, picture_index
from blender.loading.pictures.handover import PictureHandover, column
from blender.loading.pictures.preparing import document_of
from blender.loading.plan import Plan
from blender.loading.spec import LoadingSpec
from blender.opened.blend import Blend
from factory.lake.schemas.images import IMAGE_TOKEN, IMAGES

Ints = npt.NDArray[np.int64]

_NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Assembled:
    """The rows of a bucket, before they are cut for its ranks."""

    rows: pa.RecordBatch
    pictures: pa.StructArray | None = None
    """All that ranks of the bucket encode, in the order of nodes' microbatches."""
    facts: PatchFacts | None = None

    def of_nodes(self, nodes: tuple[int, ...]) -> pa.StructArray:
        """The pictures that some nodes encode, by microbatch."""
        assert self.pictures is not None
        indices = np.flatnonzero(np.isin(as_numpy(self.pictures.field("node")), nodes))
        return self.pictures.take(pa.array(indices.tolist(), pa.int64()))

    def with_pictures(self, rows: pa.RecordBatch, nodes: tuple[int, ...]) -> pa.RecordBatch:
        """Rows of the bucket, perhaps cut, with the pictures of some nodes."""
        if self.facts is None:
            return rows
        return with_pictures(rows, self.of_nodes(nodes), self.facts)


class Assembly:
    """Joins samples and pictures of buckets by a spec; safe for many threads."""

    def __init__(self, blend: Blend, spec: LoadingSpec) -> None:
        self._blend, self._spec = blend, spec
        self._row_tokens = spec.row_tokens

    def assemble(
        self, plan: Plan, bucket: int, rows: pa.RecordBatch, handover: PictureHandover | None
    ) -> Assembled:
        """The rows of a bucket, in the order of the plan, and the pictures that its ranks encode.

        Raises InvalidRequest for a sample longer than a row, and for one with other placeholders than
        pictures.
        """
        if handover is None and self._row_tokens is None:
            return Assembled(rows)
        numbers = plan.rows_of_bucket(bucket)
        sizes = _Sizes.from_handover(self._spec, handover)
        own = sizes.of_rows(numbers, len(plan.step))
        n_tokens = Block(rows).n_tokens
        if handover is not None:
            self._require_placeholders(plan, rows, numbers, own, n_tokens)
        lengths = plan.step.facts["n_tokens"].astype(np.int64)  # a copy; of this bucket the true ones follow
        true_lengths = n_tokens + np.bincount(own.sample, own.tokens - 1, len(numbers)).astype(np.int64)
        if handover is not None and self._row_tokens is not None:
            self._require_planned_lengths(plan, numbers, lengths[numbers], true_lengths)
        lengths[numbers] = true_lengths
        self._require_room(plan, numbers, lengths)
        slots = self._slots(plan, bucket, lengths, sizes)
        if self._row_tokens is not None:
            here = Slots(slots.row[numbers], slots.start[numbers])
            rows = join_samples(rows, plan.bin[numbers], here, self._row_tokens, own)
        return (
            Assembled(rows)
            if handover is None
            else self._with_maps(plan, bucket, rows, handover, sizes, slots)
        )

    def _slots(self, plan: Plan, bucket: int, lengths: Ints, sizes: _Sizes) -> Slots:
        """The places of the samples of this bucket, and of all microbatches with a picture of `sizes`."""
        row, start = (np.full(len(plan.step), -1, dtype=np.int64) for _ in range(2))
        places = plan.bucket[sizes.row] * plan.bins + plan.bin[sizes.row]
        own = bucket * plan.bins + np.arange(plan.bins)
        for place in np.union1d(places, own).tolist():
            samples = plan.rows_of(*divmod(place, plan.bins))
            if len(samples):
                fit = Slots.by_first_fit(np.zeros(len(samples), np.int64), lengths[samples], self._row_tokens)
                row[samples], start[samples] = fit.row, fit.start
        return Slots(row, start)

    def _with_maps(
        self,
        plan: Plan,
        bucket: int,
        rows: pa.RecordBatch,
        handover: PictureHandover,
        sizes: _Sizes,
        slots: Slots,
    ) -> Assembled:
        encoding = encoding_of(plan, sizes.row, sizes.number)
        position = sizes.position
        if self._row_tokens is not None:
            position = slots.start[sizes.row] + position + sizes.tokens_before()
        row = slots.row[sizes.row]
        is_own = plan.bucket[sizes.row] == bucket
        microbatch = plan.bin[sizes.row]
        first_rows = np.searchsorted(as_numpy(rows.column("microbatch")), np.arange(plan.bins))
        rows_of_pictures = first_rows[microbatch] + row
        order = np.lexsort((position, rows_of_pictures))
        order = order[is_own[order]]
        columns = {
            "position": position,
            "tokens": sizes.tokens,
            "node": encoding.node,
            "bin": encoding.bin,
            "index": encoding.index,
        }
        rows = with_placeholders(
            rows, rows_of_pictures[order], {name: numbers[order] for name, numbers in columns.items()}
        )
        facts = self._facts(encoding)
        return Assembled(rows, _structs(plan, self._spec, handover, sizes, encoding, row, position), facts)

    def _facts(self, encoding: Encoding) -> PatchFacts:
        images, rules = self._spec.images, self._spec.pictures
        assert images is not None
        return PatchFacts(images.patch, images.merge, rules.mean, rules.std, encoding.bins)

    def _require_room(self, plan: Plan, numbers: Ints, lengths: Ints) -> None:
        if self._row_tokens is None or not len(numbers):
            return
        longest = int(numbers[np.argmax(lengths[numbers])])
        if lengths[longest] > self._row_tokens:
            raise InvalidRequest(
                f"{self._row(plan, longest)} has {lengths[longest]:,} tokens, with those of its pictures, "
                f"and rows hold {self._row_tokens:,}. Raise `row_tokens`, cut documents shorter when they "
                "are packed, or lower `most_patches` of the images."
            )

    def _require_planned_lengths(self, plan: Plan, numbers: Ints, of_plan: Ints, lengths: Ints) -> None:
        """Raise InvalidRequest for a sample with other tokens than its segments say.

        Constructors of other buckets compute the places of its pictures from the segments.
        """
        wrong = np.flatnonzero(of_plan != lengths)
        if len(wrong):
            sample = int(wrong[0])
            raise InvalidRequest(
                f"{self._row(plan, int(numbers[sample]))} has {lengths[sample]:,} tokens with those of its "
                f"pictures, and its segments make {of_plan[sample]:,}. Pack its table again: segments have "
                "every token of a sample."
            )

    def _require_placeholders(
        self, plan: Plan, rows: pa.RecordBatch, numbers: Ints, own: Placeholders, n_tokens: Ints
    ) -> None:
        """Raise InvalidRequest unless the image tokens of each sample are where its pictures are."""
        metadata = rows.schema.field("tokens").metadata or {}
        if IMAGE_TOKEN.encode() not in metadata:
            raise InvalidRequest(
                f"The tables of blend {plan.step.blend} do not say their `{IMAGE_TOKEN}`. Pack the dataset "
                "of pictures again."
            )
        block = Block(rows)
        values = binary_integers(rows.column("tokens"), block.token_bytes)
        begins = ends_of(n_tokens)
        is_picture = values == int(metadata[IMAGE_TOKEN.encode()])
        n_placeholders = np.diff(ends_of(is_picture)[begins])
        n_pictures = np.bincount(own.sample, minlength=len(numbers))
        wrong = np.flatnonzero(n_placeholders != n_pictures)
        if len(wrong):
            sample = int(wrong[0])
            source = self._blend.sources[int(plan.step.source[numbers[sample]])].config
            if IMAGES not in source.columns:
                raise InvalidRequest(
                    f"{self._row(plan, int(numbers[sample]))} has {n_placeholders[sample]:,} placeholders, "
                    f"and source `{source.name}` does not deliver `{IMAGES}`. Name it in its `columns`."
                )
            raise InvalidRequest(
                f"{self._row(plan, int(numbers[sample]))} has {n_placeholders[sample]:,} placeholders and "
                f"{n_pictures[sample]:,} pictures. Pack the table again: it is damaged."
            )
        outside = (own.position < 0) | (own.position >= n_tokens[own.sample])
        places = np.where(outside, 0, begins[own.sample] + own.position)
        wrong_places = np.flatnonzero(outside | ~is_picture[places]) if len(places) else places
        if len(wrong_places):
            first = int(wrong_places[0])
            raise InvalidRequest(
                f"{self._row(plan, int(numbers[own.sample[first]]))} has a picture at token "
                f"{own.position[first]:,}, which is no placeholder. Pack the table again: it is damaged."
            )

    def _row(self, plan: Plan, row: int) -> str:
        """A row of the step in a sentence, with its document."""
        step = plan.step
        source, ordinal = int(step.source[row]), int(step.ordinal[row])
        document = document_of(self._blend, source, ordinal)
        return f"Row {ordinal:,} of source `{step.sources[source]}` (document {document})"


@dataclass(frozen=True)
class _Sizes:
    """The pictures with known places, by row and number; shapes are [pictures]."""

    row: Ints
    number: Ints
    position: Ints
    tokens: Ints

    @classmethod
    def from_handover(cls, spec: LoadingSpec, handover: PictureHandover | None) -> _Sizes:
        if handover is None or spec.images is None:
            return cls(_NOTHING, _NOTHING, _NOTHING, _NOTHING)
        row, number, position, width, height = (
            column(handover.sizes, name) for name in handover.sizes.schema.names
        )
        return cls(row, number, position, spec.images.n_tokens(width, height))

    def of_rows(self, numbers: Ints, n: int) -> Placeholders:
        """The pictures of rows, named by their place among them."""
        place = np.full(n, -1, dtype=np.int64)
        place[numbers] = np.arange(len(numbers))
        indices = np.flatnonzero(place[self.row] >= 0)
        return Placeholders(place[self.row[indices]], self.position[indices], self.tokens[indices])

    def tokens_before(self) -> Ints:
        """How far the tokens of earlier pictures of its row move each picture."""
        before = ends_of(self.tokens - 1)[:-1]
        return before - before[np.searchsorted(self.row, self.row)]


def _structs(
    plan: Plan,
    spec: LoadingSpec,
    handover: PictureHandover,
    sizes: _Sizes,
    encoding: Encoding,
    row: Ints,
    position: Ints,
) -> pa.StructArray:
    """The pictures of a bucket's nodes, by microbatch, node and index."""
    assert spec.images is not None
    pictures = handover.pictures
    places = picture_index(sizes.row, sizes.number, column(pictures, "row"), column(pictures, "number"))
    order = np.lexsort((encoding.index[places], encoding.node[places], encoding.bin[places]))
    pictures, places = pictures.take(pa.array(order.tolist(), pa.int64())), places[order]
    across, down = spec.images.grid(column(pictures, "width"), column(pictures, "height"))
    samples = sizes.row[places]
    numbers = {
        "node": encoding.node[places],
        "bin": encoding.bin[places],
        "index": encoding.index[places],
        "bucket": plan.bucket[samples],
        "microbatch": plan.bin[samples],
        "row": row[places],
        "position": position[places],
        "tokens": sizes.tokens[places],
        "across": across,
        "down": down,
        "source": plan.step.source[samples],
        "number": sizes.number[places],
    }
    columns = {name: int32(values) for name, values in numbers.items()}
    columns["ordinal"] = pa.array(plan.step.ordinal[samples].tolist(), pa.int64())
    columns["patches"] = pictures.column("content")
    columns |= {name: pictures.column(name) for name in ("problem", "document")}
    return pa.StructArray.from_arrays([columns[field.name] for field in PICTURE], fields=list(PICTURE))
