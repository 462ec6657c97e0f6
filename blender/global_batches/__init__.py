"""Durable global batches: written by any iterator, read by every rank of a mesh, each exactly once.

If a transform is not deterministic (a model, a rollout, an online packer), this package makes its batches
repeatable: it stores them, one commit gives a batch its step for all ranks, and any run reads it again. It is
a library over an object store or a folder, without a server (BatchWeave, sections 3 to 5).

    from blender import BlendLoader
    from blender.global_batches import BatchDataset, BatchReader, BatchWriter, Mesh, create_namespace, cut

    mesh = Mesh(dp=32, cp=2)
    create_namespace("s3://bucket/run7", mesh, lanes=4)         # step i is of lane i mod 4
    with BatchWriter("s3://bucket/run7", lane=0) as writer:
        for columns, row in rollouts(start=writer.offset or 0):
            writer.put(cut(columns, mesh, sequence={"tokens"}), offset=row)
        writer.finish()

A lane is a name, not a process: a process that opens it takes it over and resumes at the offset committed
with its last batch. A trainer reads from any step on while producers write:

    reader = BatchReader("s3://bucket/run7", mesh)
    for batch in BlendLoader(BatchDataset(reader)):
        train(batch["tokens"])                      # state_dict(): namespace, step, content before it

The state is loaded by other meshes, too: `BatchReader(uri, Mesh(dp=16, cp=2), accumulate=2)` reads a batch
of dp=32 in two steps.

A run holds the batches to which it may go back; `reclaim_batches` deletes the others:

    dataset = BatchDataset(reader, run="a")
    dataset.checkpointed("ckpt-120", keep=2)        # after it is written, by all ranks

    for step in reader.read(StepRange(offset=812), rank):       # without torch; TrainingRun holds batches
        train(step.tokens)

Any number of processes write the steps of a blend, without a loop of your own:

    create_namespace("s3://bucket/run8", mesh, lanes=8)
    Producer("s3://bucket/run8", BlendProduction(open_blend("4f1c...")), [0, 1]).run()

An address is a folder, or a prefix at `s3://`, `gs://` or `az://`. S3 takes the endpoint and keys of the lake
(`FACTORY_S3_ENDPOINT` and its neighbors) or of `settings`; other clouds take theirs from the environment.
Errors are in `blender.global_batches.errors`, `blender.errors` and `factory.errors`. A reader waits
for steps that are not committed yet; `with use_context(CallContext(timeout_s=600))` of `blender.call_context`
bounds the wait.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blender.global_batches.blend_production import BlendProduction as BlendProduction
    from blender.global_batches.ending import end_namespace as end_namespace
    from blender.global_batches.ending import finish_lane as finish_lane
    from blender.global_batches.format.cut import cut as cut
    from blender.global_batches.format.slices import Slices as Slices
    from blender.global_batches.namespace import Namespace as Namespace
    from blender.global_batches.namespace import create_namespace as create_namespace
    from blender.global_batches.policies import AdaptiveCommit as AdaptiveCommit
    from blender.global_batches.policies import Naive as Naive
    from blender.global_batches.producer import Producer as Producer
    from blender.global_batches.rank_slice import GlobalBatchSlice as GlobalBatchSlice
    from blender.global_batches.reader import BatchReader as BatchReader
    from blender.global_batches.reclamation import reclaim_batches as reclaim_batches
    from blender.global_batches.stored_rows import packed_rows as packed_rows
    from blender.global_batches.stored_rows import packed_slices as packed_slices
    from blender.global_batches.torch import BatchDataset as BatchDataset
    from blender.global_batches.training_run import TrainingRun as TrainingRun
    from blender.global_batches.training_run import close_run as close_run
    from blender.global_batches.writer import BatchWriter as BatchWriter
    from blender.spec.mesh import Mesh as Mesh
    from blender.spec.step_range import StepRange as StepRange
else:
    from blender.exports import exports

    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "create_namespace": "blender.global_batches.namespace",
            "end_namespace": "blender.global_batches.ending",
            "finish_lane": "blender.global_batches.ending",
            "Namespace": "blender.global_batches.namespace",
            "Mesh": "blender.spec.mesh",
            "Slices": "blender.global_batches.format.slices",
            "cut": "blender.global_batches.format.cut",
            "BatchWriter": "blender.global_batches.writer",
            "AdaptiveCommit": "blender.global_batches.policies",
            "Naive": "blender.global_batches.policies",
            "Producer": "blender.global_batches.producer",
            "BlendProduction": "blender.global_batches.blend_production",
            "packed_slices": "blender.global_batches.stored_rows",
            "packed_rows": "blender.global_batches.stored_rows",
            "BatchReader": "blender.global_batches.reader",
            "GlobalBatchSlice": "blender.global_batches.rank_slice",
            "StepRange": "blender.spec.step_range",
            "BatchDataset": "blender.global_batches.torch",
            "TrainingRun": "blender.global_batches.training_run",
            "close_run": "blender.global_batches.training_run",
            "reclaim_batches": "blender.global_batches.reclamation",
        },
    )
