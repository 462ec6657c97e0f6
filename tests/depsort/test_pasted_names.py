"""Names that macros paste: which calls make which, and the bound on their number."""

from __future__ import annotations

import pytest

from spark_udfs.depsort import pasted_names
from spark_udfs.depsort.model import FileSymbols
from spark_udfs.depsort.pasted_names import with_pasted_names

MACROS = FileSymbols(expansions={"TEST": ("run_#0", "plain"), "PAIR": ("#0_#1",)})


def test_a_call_with_a_body_defines_and_any_other_declares_and_uses() -> None:
    file = FileSymbols(calls={"TEST": ("a{", "b", ""), "PAIR": ("a,b", "a"), "OTHER": ("a",)})
    _, found = with_pasted_names([MACROS, file])
    assert found.definitions == {"run_a": 1}
    assert found.declarations == found.references == {"a_b": 1, "run_b": 1}


def test_of_one_file_a_bounded_number_of_uses_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository may have thousands of uses of a macro that thousands of files define otherwise."""
    monkeypatch.setattr(pasted_names, "MAX_TRIED", 3)
    file = FileSymbols(calls={"TEST": ("", *"abcdef")})
    _, found = with_pasted_names([MACROS, file])
    assert found.references == {"run_a": 1, "run_b": 1}
