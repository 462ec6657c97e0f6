"""Define blends of packed tables, and read their steps through a server or in the trainer's own process.

    >>> from blender import LocalBlender, Source, open_blend
    >>> record = LocalBlender(settings).create([Source("packed.web", weight=1)], seed=7)
    >>> blend = open_blend(record.id, settings)
    >>> [batch] = blend.fetch(offset=3, steps=1)
    >>> batch.offset, batch.ordinal.tolist(), batch.tokens.tolist()
    (3, [3], [[101, 101, 101, 101]])
    >>> [row] = blend.explain(3)
    >>> row.table, row.epoch, [segment.doc_id for segment in row.segments]
    ('packed.web', 0, ['e'])
    >>> blend.describe().sources[0].rows
    5

A trainer on another machine asks a server (`factory serve`) the same, with `BlenderClient("host:50051")` in
place of `LocalBlender`. `BlendDataset` and `BlendLoader` give a blend to PyTorch.

Each name loads its module on first use: a client needs neither an engine nor PyTorch. Errors are in
`blender.errors`; pages of anybody's Parquet files are in `blender.pages`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blender.batch import Batch as Batch
    from blender.records import BlendRecord as BlendRecord
    from blender.records import Description as Description
    from blender.records import ExplainedRow as ExplainedRow
    from blender.records import Schedule as Schedule
    from blender.records import Source as Source
    from blender.trainer.client import BlenderClient as BlenderClient
    from blender.trainer.local import LocalBlender as LocalBlender
    from blender.trainer.local import open_blend as open_blend
    from blender.trainer.reader import BlendHandle as BlendHandle
    from blender.trainer.torch import BlendDataset as BlendDataset
    from blender.trainer.torch import BlendLoader as BlendLoader
    from blender.trainer.torch import block_diagonal as block_diagonal
    from blender.trainer.torch import tensors as tensors
    from blender.wire.credentials import Tls as Tls
else:
    from blender.exports import exports

    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "BlenderClient": "blender.trainer.client",
            "Tls": "blender.wire.credentials",
            "LocalBlender": "blender.trainer.local",
            "open_blend": "blender.trainer.local",
            "BlendHandle": "blender.trainer.reader",
            "Source": "blender.records",
            "Schedule": "blender.records",
            "BlendRecord": "blender.records",
            "Description": "blender.records",
            "ExplainedRow": "blender.records",
            "Batch": "blender.batch",
            "BlendDataset": "blender.trainer.torch",
            "BlendLoader": "blender.trainer.torch",
            "tensors": "blender.trainer.torch",
            "block_diagonal": "blender.trainer.torch",
        },
    )
