"""Define blends of packed tables, and read their steps through a server or in the trainer's own process.

    from blender import BlenderClient, BlendDataset, BlendLoader, Schedule, Source, Tls, open_blend

Each name loads its module on first use: a client needs neither an engine nor PyTorch. Errors are in
`blender.errors`; pages of anybody's Parquet files are in `blender.pages`.
"""

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
    from blender.exports import exports

    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "BlenderClient": "blender.client",
            "Tls": "blender.protocol.credentials",
            "LocalBlender": "blender.local",
            "open_blend": "blender.local",
            "BlendHandle": "blender.reader",
            "Source": "blender.records",
            "Schedule": "blender.records",
            "BlendRecord": "blender.records",
            "Description": "blender.records",
            "ExplainedRow": "blender.records",
            "Batch": "blender.batch",
            "BlendDataset": "blender.torch",
            "BlendLoader": "blender.torch",
            "tensors": "blender.torch",
            "block_diagonal": "blender.torch",
        },
    )
