"""The collector of cycles rests while a block runs, and is afterwards as it was."""

from __future__ import annotations

import gc

import pytest

from spark_udfs.collector import paused


@pytest.mark.parametrize("enabled", [True, False])
def test_a_pause_ends_as_it_began_even_after_an_error(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(KeyError), paused():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
