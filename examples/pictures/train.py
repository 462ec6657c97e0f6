"""A tiny vision-language model on a mesh: ranks encode pictures of each other's rows and exchange the tokens.

    factory loading serve BLEND --strategy vlm --spec spec.yaml --mesh dp=2 --microbatches 2 --ragged
    torchrun --nproc-per-node 2 examples/pictures/train.py 127.0.0.1:50052 100

The last argument is the step to stop at, and `spec.yaml` is

    images: {patch: 14, merge: 2, most_patches: 1024}
    encoder: {hidden: 32, layers: 1}
    encoder_level: interleaved
    row_tokens: 2048

Each rank encodes the pictures that the plan gives it, of any rank's rows, and sends their tokens to the ranks
that have these rows. Both sides know the order from the plan, so nothing but tokens travels, and gradients go
back the same way. A step has one loss for any number of data parallel ranks, the only axis here.
"""

import os
import sys
from functools import partial

import torch
from torch import distributed
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from blender import BlendLoader
from blender.loading import LoadingClient, LoadingDataset
from blender.loading.torch import pixels, step_tensors

PATCH, MERGE, WIDTH = 14, 2, 32  # the first two as in the spec
FIELDS = ("tokens", "targets", "position_ids", "document_ids")
PLACES = ("row", "position", "tokens", "node", "bin", "index")


class Encoder(torch.nn.Module):
    """One layer of attention over the patches of a picture; each square of patches becomes a token."""

    def __init__(self):
        super().__init__()
        self.patch, self.mix = torch.nn.Linear(3 * PATCH**2, WIDTH), torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.merge = torch.nn.Linear(MERGE**2 * WIDTH, WIDTH)

    def forward(self, images):
        """The tokens of each picture, [tokens, width], in a list."""
        hidden = self.patch(pixels(images))
        outputs = []
        for own in hidden.split(images["cu_patches"].diff().tolist()):
            query, key, value = self.mix(own)[None].chunk(3, dim=-1)
            own = own + scaled_dot_product_attention(query, key, value)[0]
            outputs.append(self.merge(own.reshape(-1, MERGE**2 * WIDTH)))
        return outputs


class Backbone(torch.nn.Module):
    """One layer of causal attention within samples, between embeddings and logits."""

    def __init__(self, vocabulary):
        super().__init__()
        self.token, self.out = torch.nn.Embedding(vocabulary, WIDTH), torch.nn.Linear(WIDTH, vocabulary)
        self.mix = torch.nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, batch, of_pictures):
        """The sum of the losses of the rows; `of_pictures` [n, width] take the places of image tokens."""
        hidden = self.token(batch["tokens"]) + waves(batch["position_ids"])
        hidden = hidden.masked_scatter(batch["image_mask"][..., None], of_pictures)
        query, key, value = self.mix(hidden).chunk(3, dim=-1)
        document = batch["document_ids"]
        is_seen = (document[:, :, None] == document[:, None, :]).tril()
        hidden = hidden + scaled_dot_product_attention(query, key, value, attn_mask=is_seen)
        return cross_entropy(self.out(hidden).flatten(0, 1), batch["targets"].flatten(), reduction="sum")


class Exchange(torch.autograd.Function):
    """The tokens [n, width] that other ranks sent to this one, for tokens in the order of their receivers."""

    @staticmethod
    def forward(context, tokens, n_sent, n_received):
        """Send and receive; both counts are by rank."""
        context.counts = n_sent, n_received
        received = tokens.new_empty(sum(n_received), tokens.shape[1])
        all_to_all(received, tokens.contiguous(), n_received, n_sent)
        return received

    @staticmethod
    def backward(context, gradient):
        """Send the gradients back."""
        n_sent, n_received = context.counts
        returned = gradient.new_empty(sum(n_sent), gradient.shape[1])
        all_to_all(returned, gradient.contiguous(), n_sent, n_received)
        return returned, None, None


def all_to_all(received, sent, n_received, n_sent):
    """Exchange rows between all ranks; a rank alone keeps its own."""
    if len(n_sent) == 1:
        received.copy_(sent)
    else:
        distributed.all_to_all_single(received, sent, n_received, n_sent)


def waves(positions):
    """Sines of the positions, [rows, L, width]."""
    angles = positions[..., None] / 10_000 ** (torch.arange(WIDTH // 2) * 2 / WIDTH)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def tokens_of_rows(encoder, step, ranks):
    """The tokens of the pictures in the rows of each microbatch, in the order of their places."""
    images = step["images"]
    outputs = [tokens for pictures in images if len(pictures["grid"]) for tokens in encoder(pictures)]
    bucket = torch.cat([pictures["to_bucket"] for pictures in images])
    n_tokens = torch.cat([pictures["to_tokens"] for pictures in images])
    by_receiver = bucket.argsort(stable=True).tolist()
    none = encoder.merge.bias[None][:0]  # with a gradient, so that ranks without pictures take part
    tokens = torch.cat([none, *(outputs[number] for number in by_receiver)])
    places = [
        dict(zip(PLACES, values, strict=True)) | {"microbatch": number}
        for number, microbatch in enumerate(step["microbatches"])
        for values in zip(*(microbatch["placeholders"][name].tolist() for name in PLACES), strict=True)
    ]
    arrivals = sorted(places, key=lambda place: (place["node"], place["bin"], place["index"]))
    received = Exchange.apply(
        tokens,
        [int(n_tokens[bucket == rank].sum()) for rank in range(ranks)],
        [sum(place["tokens"] for place in places if place["node"] == rank) for rank in range(ranks)],
    )
    pieces = received.split([place["tokens"] for place in arrivals])
    for place, piece in zip(arrivals, pieces, strict=True):
        place["piece"] = piece
    for number in range(len(step["microbatches"])):
        own = [place for place in places if place["microbatch"] == number]
        own.sort(key=lambda place: (place["row"], place["position"]))
        yield torch.cat([received[:0], *(place["piece"] for place in own)])


def main(address, stop):
    """Train up to step `stop`."""
    if "RANK" in os.environ:
        distributed.init_process_group("gloo")
    torch.manual_seed(0)
    tensors = partial(step_tensors, fields=FIELDS)
    dataset = LoadingDataset(LoadingClient(address).open(), stop=int(stop), tensors=tensors)
    ranks = dataset.loading.mesh.ranks
    encoder, backbone = Encoder(), Backbone(dataset.loading.blend.vocabulary)
    parameters = [*encoder.parameters(), *backbone.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-2)
    for step in BlendLoader(dataset):
        optimizer.zero_grad()
        loss = torch.zeros(())
        for microbatch, tokens in zip(
            step["microbatches"], tokens_of_rows(encoder, step, ranks), strict=True
        ):
            loss = loss + backbone(microbatch, tokens) + 0 * tokens.sum()
        loss.backward()
        n_targets = sum(int((microbatch["targets"] >= 0).sum()) for microbatch in step["microbatches"])
        n_pictures = sum(len(pictures["grid"]) for pictures in step["images"])
        totals = torch.tensor([loss.detach(), n_targets, n_pictures])
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        for shared in [totals, *(parameter.grad for parameter in parameters)]:
            if ranks > 1:
                distributed.all_reduce(shared)
        for parameter in parameters:
            parameter.grad /= totals[1]
        optimizer.step()
        if dataset.rank == 0:
            print(
                f"step {step['offset']}: loss {totals[0] / totals[1]:.6f}, {int(totals[2])} pictures",
                flush=True,
            )
    if distributed.is_initialized():
        distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
