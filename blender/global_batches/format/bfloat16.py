"""Columns of bfloat16, a dtype that numpy lacks.

    array = Bfloat16Array.of_bits(bits)             # of uint16, over the same memory
    torch.from_dlpack(array)                        # a tensor of bfloat16, over the same memory
    array.view(ml_dtypes.bfloat16)                  # the same with ml_dtypes
    array.float32()                                 # a copy for computing in numpy
    host_array(tensor)                              # any tensor as an array: of bfloat16 as a Bfloat16Array

The array has the dtype `V2`, two bytes without a meaning, so that numpy refuses to compute with the bits.
DLPack has a code for bfloat16: here it replaces the code of uint16 in the description that an exporter hands
out, and the reverse.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

BITS = np.dtype("V2")

_UNSIGNED, _BFLOAT = 1, 4  # type codes of DLPack
_PLAIN, _VERSIONED = b"dltensor", b"dltensor_versioned"


class Bfloat16Array(np.ndarray):
    """Bits of bfloat16 numbers."""

    @classmethod
    def of_bits(cls, bits: npt.NDArray[np.generic]) -> Bfloat16Array:
        """The numbers over the memory of an array of two bytes each."""
        return np.asarray(bits).view(BITS).view(cls)

    def float32(self) -> npt.NDArray[np.float32]:
        """A copy with the same values, as float32 with zero lower bits."""
        return (self._bits().astype(np.uint32) << 16).view(np.float32)

    def view(self, *options: Any, **named_options: Any) -> Any:
        """As numpy's; a view as another dtype is a plain array, with which numpy may compute."""
        if options or named_options:
            return np.asarray(self).view(*options, **named_options)
        return super().view()

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._bits().__dlpack__(**options)
        _described(capsule).code = _BFLOAT
        return capsule

    def _bits(self) -> npt.NDArray[np.uint16]:
        return np.asarray(self).view(np.uint16)


def host_array(tensor: Any) -> npt.NDArray[np.generic]:
    """A tensor of torch or of another library as an array over the same memory.

    Raises what its export by DLPack raises: of a tensor of a device, or of one that needs gradients.
    """
    export = _Export(tensor)
    array = np.from_dlpack(export)
    return Bfloat16Array.of_bits(array) if export.is_bfloat16 else array


class _Export:
    """A tensor that says uint16 where it holds bfloat16."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor
        self.is_bfloat16 = False

    def __dlpack_device__(self) -> Any:
        return self._tensor.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._tensor.__dlpack__(**options)
        description = _described(capsule)
        if (description.code, description.bits) == (_BFLOAT, 16):
            self.is_bfloat16 = True
            description.code = _UNSIGNED
        return capsule


class _Tensor(ctypes.Structure):
    """`DLTensor`, to its type."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("n_axes", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


class _VersionedTensor(ctypes.Structure):
    """`DLManagedTensorVersioned`, to the type of its tensor."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


def _described(capsule: Any) -> _Tensor:
    """The description of a tensor in a capsule that nobody has consumed."""
    if _is_valid(capsule, _VERSIONED):
        return _VersionedTensor.from_address(_pointer(capsule, _VERSIONED)).tensor
    return _Tensor.from_address(_pointer(capsule, _PLAIN))
