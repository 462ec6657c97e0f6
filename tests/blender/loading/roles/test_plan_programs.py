"""Programs of loaders and constructors change what rows hold, and never which rows there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from blender.arrays import as_numpy
from blender.catalog.blends import open_blends
from blender.errors import InvalidRequest
from blender.loading.costs import Backbone
from blender.loading.embedded import open_loading
from blender.loading.plan import Plan
from blender.loading.spec import LoadingSpec
from blender.records import Source
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE


@pytest.fixture(scope="module")
def blend(shared_lake: Settings) -> str:
    return open_blends(shared_lake).create([Source(CODE, 4), Source(PROSE, 12)], seed=3).id


def spec_of(blend: str, **programs: str) -> LoadingSpec:
    names = {kind: f"{__name__}:{function}" for kind, function in programs.items()}
    return LoadingSpec(
        blend=blend, mesh=Mesh(dp=2), model=Backbone(hidden=16, layers=2), microbatches=2, **names
    )


def with_tokens(rows: pa.RecordBatch, change: Any) -> pa.RecordBatch:
    """The rows with other tokens, in arrays of the same type."""
    place = rows.schema.get_field_index("tokens")
    tokens = [change(row).astype("<u2").tobytes() for row in tokens_of(rows)]
    return rows.set_column(place, rows.schema.field(place), pa.array(tokens, pa.binary()))


def tokens_of(rows: pa.RecordBatch) -> list[np.ndarray]:
    """The tokens of each row, of two bytes."""
    return [np.frombuffer(row, "<u2") for row in rows.column("tokens").to_pylist()]


def add_one(plan: Plan, numbers: np.ndarray, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Raise each token, after a check of what the program is given."""
    assert as_numpy(rows.column("ordinal")).tolist() == plan.step.ordinal[numbers].tolist()
    return with_tokens(rows, lambda tokens: tokens + 1)


def double(plan: Plan, numbers: np.ndarray, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Double each token in the order of microbatches."""
    assert as_numpy(rows.column("microbatch")).tolist() == plan.bin[numbers].tolist()
    return with_tokens(rows, lambda tokens: tokens * 2)


def test_a_rank_reads_the_rows_as_both_programs_leave_them(open_handle: Any, blend: str) -> None:
    plain, with_programs = (
        [list(open_handle(spec).read(StepRange(0, 2), rank)) for rank in (0, 1)]
        for spec in (spec_of(blend), spec_of(blend, loader_do_plan="add_one", constructor_do_plan="double"))
    )
    for steps, other_steps in zip(plain, with_programs, strict=True):
        for step, other in zip(steps, other_steps, strict=True):
            assert step.plan == other.plan
            for before, after in zip(tokens_of(step.arrow), tokens_of(other.arrow), strict=True):
                assert (after == (before + 1) * 2).all()


def fewer(_: Plan, __: np.ndarray, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Leave out a row."""
    return rows.slice(1)


def reversed_rows(_: Plan, __: np.ndarray, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Turn the order of rows round."""
    return rows.take(pa.array(range(len(rows)))[::-1])


def without_offset(_: Plan, __: np.ndarray, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Leave out a column."""
    return rows.drop_columns(["offset"])


def shorter(_: Plan, __: np.ndarray, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Drop the first token of each row."""
    lists = [row[2:] for row in rows.column("tokens").to_pylist()]
    place = rows.schema.get_field_index("tokens")
    return rows.set_column(place, rows.schema.field(place), pa.array(lists, rows.schema.field(place).type))


def fails(*_: Any) -> None:
    """Raise."""
    raise KeyError("nothing")


def nothing(*_: Any) -> None:
    """Return no rows."""


@pytest.mark.parametrize(
    "function, fact",
    [
        ("fewer", "returned . of . rows"),
        ("reversed_rows", "changed the column `source`|changed the column `ordinal`"),
        ("without_offset", "returned a RecordBatch of"),
        ("shorter", "changed the number of tokens of a row"),
        ("fails", r"failed \(KeyError: 'nothing'\)"),
        ("nothing", "returned a NoneType"),
    ],
)
@pytest.mark.parametrize("kind", ["loader_do_plan", "constructor_do_plan"])
def test_a_program_that_changes_the_rows_is_refused(
    shared_lake: Settings, blend: str, kind: str, function: str, fact: str
) -> None:
    loading = open_loading(spec_of(blend, **{kind: function}), shared_lake)
    with pytest.raises(InvalidRequest, match=rf"`{kind}` `.*:{function}` ({fact}).* at step 0\. Return a"):
        list(loading.read(StepRange(0, 1), 0))
    loading.close()


def test_a_program_that_cannot_be_imported_is_refused_when_the_loader_opens(
    open_handle: Any, blend: str
) -> None:
    with pytest.raises(InvalidRequest, match=r"loader_do_plan `.*:absent` cannot be imported"):
        open_handle(spec_of(blend, loader_do_plan="absent"))
