"""Define blends of packed tables, and read their steps through a server or in the trainer's own process.

    from blender import BlenderClient, BlendDataset, BlendLoader, Schedule, Source, Tls, open_blend

Each name loads its module on first use: a client needs neither an engine nor PyTorch. Errors are in
`blender.errors`; pages of anybody's Parquet files are in `blender.pages`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blender.batch import Batch as Batch
    from blender.client import BlenderClient as BlenderClient
    from blender.local import LocalBlender as LocalBlender
    from blender.local import open_blend as open_blend
    from blender.protocol.credentials import Tls as Tls
    from blender.reader import BlendHandle as BlendHandle
    from blender.records import BlendRecord as BlendRecord
    from blender.records import Description as Description
    from blender.records import ExplainedRow as ExplainedRow
    from blender.records import Schedule as Schedule
    from blender.records import Source as Source
    from blender.torch import BlendDataset as BlendDataset
    from blender.torch import BlendLoader as BlendLoader
    from blender.torch import block_diagonal as block_diagonal
    from blender.torch import tensors as tensors
else:
    _MODULES = {
        "BlenderClient": "client",
        "Tls": "protocol.credentials",
        "LocalBlender": "local",
        "open_blend": "local",
        "BlendHandle": "reader",
        "Source": "records",
        "Schedule": "records",
        "BlendRecord": "records",
        "Description": "records",
        "ExplainedRow": "records",
        "Batch": "batch",
        "BlendDataset": "torch",
        "BlendLoader": "torch",
        "tensors": "torch",
        "block_diagonal": "torch",
    }
    __all__ = list(_MODULES)

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module `blender` has no attribute `{name}`")
        globals()[name] = found = getattr(import_module(f"blender.{_MODULES[name]}"), name)
        return found

    def __dir__():
        return sorted([*globals(), *_MODULES])
