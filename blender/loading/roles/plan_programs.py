"""Programs of your own that loaders and constructors run on their part of a plan.

They are the low-level interfaces of MegaScale-Data, section 4.2.

    def mask_names(plan, numbers, rows):        # `numbers`: the place of each row in the step
        return rows.set_column(...)             # a RecordBatch of the same rows, in the same order

    LoadingSpec(..., loader_do_plan="my_programs:mask_names")

A program may change what rows hold. The rows themselves, their order and their lengths are the plan's: they
decide costs, and other ranks count on them. So a program that changes these is refused.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from blender.errors import InvalidRequest
from blender.loading.plan import Plan
from blender.loading.step import MICROBATCH, PLAN
from blender.named_function import named_function
from blender.rows.snapshot_reader import TOKENS
from blender.spec.source import PROVENANCE, SEGMENT_LENGTHS
from factory.errors import FactoryError, first_line

Ints = npt.NDArray[np.int64]
Kind = Literal["loader_do_plan", "constructor_do_plan"]

_KEPT = (*PROVENANCE, SEGMENT_LENGTHS, MICROBATCH, PLAN)


class PlanProgram:
    """A program by its name, `module:function`; without a name rows pass unchanged."""

    def __init__(self, name: str, kind: Kind) -> None:
        """Raises InvalidRequest for a name that cannot be imported."""
        self.name, self.kind = name, kind
        self._function = named_function(name, kind, "a plan, numbers and rows") if name else None

    def run(self, plan: Plan, numbers: Ints, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows as the program returns them.

        Raises InvalidRequest for a program that fails, which is the cause, and for other rows, other columns
        and other lengths than it was given.
        """
        if self._function is None:
            return rows
        try:
            output = self._function(plan, numbers, rows)
        except FactoryError:
            raise
        except Exception as error:
            raise self._refusal(plan, f"failed ({type(error).__name__}: {first_line(error)})") from error
        if not isinstance(output, pa.RecordBatch) or output.schema != rows.schema:
            columns = f" of {output.schema.names}" if isinstance(output, pa.RecordBatch) else ""
            raise self._refusal(plan, f"returned a {type(output).__name__}{columns}")
        if output.num_rows != rows.num_rows:
            raise self._refusal(plan, f"returned {output.num_rows:,} of {rows.num_rows:,} rows")
        for name in _KEPT:
            if name in rows.schema.names and not output.column(name).equals(rows.column(name)):
                raise self._refusal(plan, f"changed the column `{name}`")
        if TOKENS in rows.schema.names and not _lengths(output).equals(_lengths(rows)):
            raise self._refusal(plan, "changed the number of tokens of a row")
        return output

    def _refusal(self, plan: Plan, fact: str) -> InvalidRequest:
        return InvalidRequest(
            f"`{self.kind}` `{self.name}` {fact} at step {plan.step.offset:,}. Return a RecordBatch of "
            "the same rows in the same order, with their columns and as many tokens: rows are the plan's."
        )


def _lengths(rows: pa.RecordBatch) -> pa.Array:
    tokens = rows.column(TOKENS)
    if pa.types.is_binary(tokens.type) or pa.types.is_large_binary(tokens.type):
        return pc.binary_length(tokens)
    return pc.list_value_length(tokens)
