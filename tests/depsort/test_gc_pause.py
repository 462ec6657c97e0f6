"""The cycle collector pauses while a block runs and is restored afterwards."""

from __future__ import annotations

import gc

import pytest

from spark_udfs.depsort.gc_pause import gc_paused


def fail_in_a_pause(seen: list[bool]) -> None:
    with gc_paused():
        seen.append(gc.isenabled())
        raise KeyError


@pytest.mark.parametrize("enabled", [True, False])
def test_a_pause_ends_as_it_began_even_after_an_error(enabled: bool) -> None:
    before = gc.isenabled()
    seen: list[bool] = []
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(KeyError):
            fail_in_a_pause(seen)
        assert (seen, gc.isenabled()) == ([False], enabled)
    finally:
        (gc.enable if before else gc.disable)()
