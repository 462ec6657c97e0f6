"""A tiny language model trained on a mesh: data parallel ranks, each a ring of context parallel ones.

    factory loading serve BLEND --mesh dp=2,cp=2 --microbatches 2 --port 50052
    torchrun --nproc-per-node 4 examples/mesh/train.py 127.0.0.1:50052 planned 100 .

The third argument is the step to stop at, the last one the folder of the checkpoint, from which any other
mesh goes on. With a blend's id in place of `planned`, ranks read the blend from a Blender by `BlendDataset`:

    torchrun --nproc-per-node 2 examples/mesh/train.py 127.0.0.1:50051 BLEND 200 .

A rank computes the queries of its piece of every row and gathers the keys of its ring. Gradients are summed
over all ranks and divided by the tokens of the whole step, so a step has one loss on any mesh.
"""

import os
import pathlib
import sys

import torch
from torch import distributed
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from blender import BlendDataset, BlenderClient, BlendLoader, tensors
from blender.loading import ClientPlaceTree, LoadingClient, LoadingDataset, Mesh
from blender.loading.torch import step_tensors

FIELDS = ("tokens", "targets", "position_ids", "document_ids", "places")


class Model(torch.nn.Module):
    """One layer of attention between token embeddings and logits."""

    def __init__(self, vocabulary, length, width=32):
        super().__init__()
        self.token, self.place = torch.nn.Embedding(vocabulary, width), torch.nn.Embedding(length, width)
        self.mix, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, vocabulary)

    def forward(self, batch, ring):
        """The sum of the losses of this rank's tokens; `ring` is the group that shares its rows."""
        hidden = self.token(batch["tokens"]) + self.place(batch["position_ids"])
        query, key, value = self.mix(hidden).chunk(3, dim=-1)
        keys, values = gathered(key, ring), gathered(value, ring)
        same = batch["document_ids"][:, :, None] == gathered(batch["document_ids"], ring)[:, None, :]
        earlier = batch["places"][:, :, None] >= gathered(batch["places"], ring)[:, None, :]
        hidden = hidden + scaled_dot_product_attention(query, keys, values, attn_mask=same & earlier)
        return cross_entropy(self.out(hidden).flatten(0, 1), batch["targets"].flatten(), reduction="sum")


class Gathered(torch.autograd.Function):
    """The pieces of all ranks of a ring, [rows, L / n, ...] each, as [rows, L, ...]."""

    @staticmethod
    def forward(context, piece, ring):
        """Gather; a rank alone has no ring."""
        context.ring = ring
        if ring is None:
            return piece
        pieces = [torch.empty_like(piece) for _ in range(distributed.get_world_size(ring))]
        distributed.all_gather(pieces, piece.contiguous(), ring)
        return torch.cat(pieces, dim=1)

    @staticmethod
    def backward(context, gradient):
        """The gradient of this rank's piece, to which the queries of all ranks contribute."""
        if context.ring is None:
            return gradient, None
        distributed.all_reduce(gradient := gradient.contiguous(), group=context.ring)
        pieces = gradient.chunk(distributed.get_world_size(context.ring), dim=1)
        return pieces[distributed.get_rank(context.ring)], None


gathered = Gathered.apply


def opened(address, what, stop):
    """The dataset, its blend, and the mesh of the run."""
    if what == "planned":
        loading = LoadingClient(address).open()
        microbatch_tensors = lambda step: step_tensors(step, FIELDS)  # noqa: E731
        return LoadingDataset(loading, stop=stop, tensors=microbatch_tensors), loading.blend, loading.mesh
    blend = BlenderClient(address).open(what)
    dataset = BlendDataset(
        blend,
        stop=stop,
        tensors=lambda batch: {"offset": batch.offset, "microbatches": [tensors(batch, FIELDS)]},
    )
    return dataset, blend, Mesh(dp=dataset.ranks)


def main(address, what, stop, folder):
    """Train up to step `stop`, from the checkpoint in `folder` if there is one."""
    if "RANK" in os.environ:
        distributed.init_process_group("gloo")
    torch.manual_seed(0)
    dataset, blend, mesh = opened(address, what, int(stop))
    model = Model(blend.vocabulary, blend.sequence_length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ring = None
    for ranks in ClientPlaceTree(mesh).nodes("DP") if mesh.cp > 1 else ():
        group = distributed.new_group(list(ranks))  # every rank makes every group
        ring = group if dataset.rank in ranks else ring
    loader = BlendLoader(dataset)
    checkpoint = pathlib.Path(folder) / "checkpoint.pt"
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        for name, part in {"model": model, "optimizer": optimizer, "data": loader}.items():
            part.load_state_dict(saved[name])
    for step in loader:
        counts = torch.tensor([0.0, sum(int((one["targets"] >= 0).sum()) for one in step["microbatches"])])
        optimizer.zero_grad()
        for microbatch in step["microbatches"]:
            loss = model(microbatch, ring)
            loss.backward()
            counts[0] += loss.detach()
        for shared in [counts, *(one.grad for one in model.parameters())]:
            if mesh.ranks > 1:
                distributed.all_reduce(shared)
        for one in model.parameters():
            one.grad /= counts[1]
        optimizer.step()
        if dataset.rank == 0:
            print(f"step {step['offset']}: loss {counts[0] / counts[1]:.8f} on {mesh}", flush=True)
    if dataset.rank == 0:
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "data": loader.state_dict(),
        }
        torch.save(saved, checkpoint)
    if distributed.is_initialized():
        distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
