"""Context parallel chunks of packed rows: the tokens that one rank computes, at 2 bytes a token on the wire.

    rows = cut(rows, Piece(rank=0, of=2))        # next to the data, once for each rank
    chunk = Chunk(rows)                          # at the trainer, from the received rows alone
    chunk.tokens, chunk.targets, chunk.position_ids

A row of 8 places and its 7 tokens, documents a-e and f-g, for two ranks. Every rank computes an early and a
late run, so that causal attention costs all ranks the same:

    tokens                 a b c d e f g 0
    row       rank 0       a b         g 0        next tokens c -
              rank 1           c d e f            next tokens e g

    tokens, padded         a b c d e 0 0 0 | f g 0 0
    document  rank 0       a b         0 0 | f     0        next tokens c - g -
              rank 1           c d e 0     |   g 0          next tokens e - - -
    cu_seqlens             0 5 7
    cu_seqlens_padded      0 8 12

`row` divides whole rows, padded to a multiple of 2 pieces a rank (Llama 3; Megatron without packing; flex
attention over gathered keys). `document` divides each document, padded to such a multiple, as the packed
attention of TransformerEngine does. A single rank gets rows and documents without this padding.

Padding never travels. Targets, positions and documents are computed at the trainer: from the tokens of the
piece, the token after each of its runs, and the `segment_lengths` of the whole rows.
"""

from blender.chunks.chunk import Chunk
from blender.chunks.cutting import cut, is_cut, without_tokens
from blender.chunks.piece import Chunking, Piece

__all__ = ["Chunk", "Chunking", "Piece", "cut", "is_cut", "without_tokens"]
