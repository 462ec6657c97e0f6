"""Columns of bfloat16: from torch and ml_dtypes through a namespace and back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from blender.global_batches.errors import InvalidBatch, NamespaceDiffers
from blender.global_batches.format.bfloat16 import Bfloat16Array, host_array
from blender.global_batches.format.cut import cut
from blender.global_batches.format.footer import Footer
from blender.global_batches.format.slices import Slices, encode
from blender.global_batches.namespace import create_namespace
from blender.global_batches.reader import BatchReader
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange

BITS = np.array([[0x3FC0, 0xC010], [0x7F80, 0x3DCD]], np.uint16)
VALUES = np.array([[1.5, -2.25], [np.inf, 0.10009765625]], np.float32)


def test_values_are_a_float32_copy_and_the_bits_are_no_numbers() -> None:
    array = Bfloat16Array.of_bits(BITS)
    np.testing.assert_array_equal(array.float32(), VALUES)
    np.testing.assert_array_equal(array.T[:1].float32(), VALUES.T[:1])
    with pytest.raises(TypeError, match="V2"):
        array + array
    with pytest.raises(TypeError, match="V2"):
        array.mean()


def test_ml_dtypes_are_stored_with_the_same_bytes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = VALUES.astype(ml_dtypes.bfloat16)
    bodies = {encode(Slices(({"x": column},), 1)).body for column in (array, Bfloat16Array.of_bits(BITS))}
    (body,) = bodies
    (copy,) = Footer.of_object(body, "a").decode(0, 0, body[:64]).values()
    values = copy.view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(values, array)
    assert type(values + np.float32(1)) is np.ndarray  # whose bytes are no bits of bfloat16


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mesh", [Mesh(dp=2), Mesh(cp=2)])
def test_tensors_of_torch_come_back_as_they_were(tmp_path: Path, mesh: Mesh) -> None:
    torch = pytest.importorskip("torch")
    from blender.global_batches.torch import slice_tensors

    create_namespace(tmp_path, mesh)
    columns = {
        "logprobs": torch.randn(4, 8, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16),
        "scores": torch.tensor([[1.5], [2], [3], [4]], dtype=torch.bfloat16),
        "tokens": torch.arange(32, dtype=torch.int32).reshape(4, 8),
    }
    with BatchWriter(tmp_path) as writer:
        writer.put(cut(columns, mesh, sequence={"logprobs", "tokens"}), offset=np.int64(8))
        writer.finish()
    assert BatchWriter(tmp_path).offset == 8
    reader = BatchReader(str(tmp_path))
    ranks = [next(reader.read(StepRange(), rank)) for rank in range(mesh.ranks)]
    for name, column in columns.items():
        tensors = [slice_tensors(step)[name] for step in ranks]
        if mesh.dp == 2:
            whole = torch.cat(tensors)
        elif name == "scores":
            whole = tensors[0]
        else:  # zigzag: chunks 0 and 3, and 1 and 2
            whole = torch.cat([tensors[0][:, :2], tensors[1], tensors[0][:, 2:]], dim=1)
        assert whole.dtype == column.dtype
        assert torch.equal(whole, column)
    scores = ranks[0].scores
    assert torch.from_dlpack(scores).data_ptr() == scores.ctypes.data  # no copy


def test_a_tensor_that_numpy_cannot_read_is_refused_by_a_sentence() -> None:
    torch = pytest.importorskip("torch")
    for column in (torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, device="meta")):
        with pytest.raises(
            InvalidBatch, match=r"`x` is a Tensor that numpy cannot read .*\.detach\(\)\.cpu\(\)"
        ):
            cut({"x": column}, Mesh())
    with pytest.raises(InvalidBatch, match=r"`x` has dtype \|?V2|`x` has dtype \[?void|has dtype"):
        cut({"x": BITS.view("V2")}, Mesh())


def test_tensors_keep_their_own_description(tmp_path: Path) -> None:
    """An export is described anew for each consumer, so that replacing its dtype changes no tensor."""
    torch = pytest.importorskip("torch")
    tensor = torch.ones(2, 2, dtype=torch.bfloat16)
    array = host_array(tensor)
    assert tensor.dtype == torch.bfloat16
    array.view(np.uint16)[0, 0] = 0x4000
    assert tensor[0, 0] == 2


def test_only_batches_with_bfloat16_need_this_version() -> None:
    plain = encode(Slices(({"x": BITS},), 1))
    wide = encode(Slices(({"x": Bfloat16Array.of_bits(BITS)},), 1))
    versions = [
        json.loads(batch.body[batch.footer_offset :][: batch.footer_length])["version"]
        for batch in (plain, wide)
    ]
    assert versions == [1, 2]
    newer = wide.body[wide.footer_offset :][: wide.footer_length].replace(b'"version":2', b'"version":3')
    with pytest.raises(NamespaceDiffers, match="has format 3, and this version reads formats up to 2"):
        Footer.parse(newer, "a")
