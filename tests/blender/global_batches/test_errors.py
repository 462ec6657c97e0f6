"""The exit codes of the errors."""

from __future__ import annotations

import inspect

from blender.global_batches import errors
from factory.errors import FactoryError


def test_every_error_has_the_exit_code_of_its_kind() -> None:
    codes = {
        name: cls.exit_code
        for name, cls in inspect.getmembers(errors, inspect.isclass)
        if cls.__module__ == errors.__name__
    }
    assert codes == {
        "NamespaceNotFound": 8,
        "NamespaceDiffers": 2,
        "InvalidBatch": 2,
        "Fenced": 1,
        "LaneClosed": 2,
        "WriterClosed": 2,
        "UnevenLanes": 2,
        "NamespaceEnded": 2,
        "OtherHistory": 2,
        "BatchesGone": 8,
        "RunTaken": 1,
        "CheckpointDropped": 2,
        "DamagedBatch": 11,
        "DamagedLog": 11,
        "UnsafeStore": 3,
    }
    assert all(issubclass(getattr(errors, name), FactoryError) for name in codes)
