"""Objects of global batches: what goes in comes out, as views, and bad batches are refused by a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blender.global_batches.errors import InvalidBatch
from blender.global_batches.format.bfloat16 import Bfloat16Array
from blender.global_batches.format.columns import ALIGNMENT, BFLOAT16, DTYPES, Array, dtype_of
from blender.global_batches.format.cut import cut
from blender.global_batches.format.footer import Footer
from blender.global_batches.format.slices import EncodedBatch, Slices, encode
from blender.global_batches.json_values import MOST_BYTES, Json
from blender.spec.mesh import Mesh

KIB = 1024
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=5), values, max_size=3),
    max_leaves=8,
)
extents = st.integers(0, 3)


def random_array(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Array:
    """Any bytes that the dtype can have, NaNs included."""
    size = int(np.prod(shape, dtype=np.int64))
    if dtype == BFLOAT16:
        return Bfloat16Array.of_bits(random_array(rng, "<u2", shape))
    if np.dtype(dtype) == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    return np.frombuffer(rng.bytes(size * np.dtype(dtype).itemsize), dtype=dtype).reshape(shape)


@st.composite
def any_slices(draw: st.DrawFn) -> Slices:
    dp, chunks = draw(st.integers(1, 4)), draw(st.sampled_from([1, 4, 6]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    arrays: tuple[dict[str, Array], ...] = tuple({} for _ in range(dp * chunks))
    names = draw(st.lists(st.text(max_size=8), min_size=1, max_size=4, unique=True))
    sequence = frozenset(draw(st.lists(st.sampled_from(names), unique=True)))
    for name in names:
        dtype = draw(st.sampled_from(DTYPES)).replace("<", draw(st.sampled_from("<>")))
        for index in range(dp):
            shape = tuple(draw(st.lists(extents, min_size=2 if name in sequence else 0, max_size=4)))
            for chunk in range(0, chunks, 1 if name in sequence else 2):
                arrays[index * chunks + chunk][name] = random_array(rng, dtype, shape)
    return Slices(arrays, dp, chunks, sequence)


def decoded(batch: EncodedBatch) -> tuple[dict[str, Array], ...]:
    footer = Footer.of_object(batch.body, "a")
    slices = [(dp, chunk) for dp in range(footer.dp) for chunk in range(footer.chunks)]
    ranges = [footer.range_of(*place) for place in slices]
    return tuple(
        footer.decode(*place, batch.body[offset : offset + length])
        for place, (offset, length) in zip(slices, ranges, strict=True)
    )


def contents(arrays: Mapping[str, Array]) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    little = {name: array.astype(array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    return {name: (dtype_of(array), array.shape, array.tobytes()) for name, array in little.items()}


@given(slices=any_slices(), origin=json_values)
def test_slices_and_origin_come_back(slices: Slices, origin: Json) -> None:
    batch = encode(slices, origin)
    footer_bytes = batch.body[batch.footer_offset : batch.footer_offset + batch.footer_length]
    footer = Footer.parse(footer_bytes, "a", batch.footer_hash)
    assert footer == Footer.of_object(batch.body, "a")
    assert (footer.dp, footer.chunks, footer.sequence, footer.origin) == (
        slices.dp,
        slices.chunks,
        slices.sequence,
        origin,
    )
    assert footer.encoded() == footer_bytes
    assert [*map(contents, decoded(batch))] == [*map(contents, slices.arrays)]


@settings(max_examples=25)
@given(slices=any_slices())
def test_slices_follow_each_other_without_a_gap(slices: Slices) -> None:
    batch = encode(slices)
    footer, end = Footer.of_object(batch.body, "a"), 0
    for dp in range(slices.dp):
        for chunk in range(slices.chunks):
            offset, length = footer.range_of(dp, chunk)
            assert offset == end
            assert offset % ALIGNMENT == length % ALIGNMENT == 0
            end += length
    assert end == batch.footer_offset


@pytest.mark.parametrize("container", [bytes, bytearray, memoryview])
def test_arrays_are_aligned_views_that_cannot_be_written(container: type) -> None:
    columns = {"a": np.arange(3, dtype=np.int8), "b": np.ones((3, 5)), "c": np.zeros(3, np.float16)}
    batch = encode(cut(columns, Mesh()))
    data = container(batch.body[: batch.footer_offset])
    start = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    for name, array in Footer.of_object(batch.body, "a").decode(0, 0, data).items():
        assert np.shares_memory(array, np.frombuffer(data, np.uint8))
        assert (array.__array_interface__["data"][0] - start) % ALIGNMENT == 0
        assert not array.flags.writeable
        np.testing.assert_array_equal(array, columns[name])


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24).reshape(4, 6)[::-1, ::2],
        np.arange(24).reshape(4, 6).T,
        np.arange(24, dtype=">i2").reshape(4, 6),
        np.broadcast_to(np.float32(2), (4, 3)),
        np.array(True),
        np.zeros((0, 5), np.uint16),
        np.zeros((3, 0, 2)),
    ],
    ids=["strided", "transposed", "big-endian", "broadcast", "no axes", "no rows", "no elements"],
)
def test_arrays_of_any_memory_layout_come_back(array: Array) -> None:
    (arrays,) = decoded(encode(Slices(({"column": array},), dp=1)))
    assert contents(arrays) == contents({"column": array})


def golden_slices() -> Slices:
    columns = {
        "tokens": np.arange(4 * 8, dtype=np.uint16).reshape(4, 8),
        "weights": np.array([0, 0.25, 0.5, 1], np.float32),
        "übung": np.array([True, False, True, True]),
    }
    return cut(columns, Mesh(dp=2, cp=2), sequence=["tokens"])


@pytest.mark.invariant(
    "Equal batches have equal bytes from any writer, and equal histories have equal content."
)
def test_published_bytes_never_change() -> None:
    """Hashes of footers are in the logs of users: a change of format needs another version."""
    batch = encode(golden_slices(), {"blend": "b-1", "offset": 812})
    footer = batch.body[batch.footer_offset : batch.footer_offset + batch.footer_length].decode()
    assert footer == GOLDEN_FOOTER
    assert batch.footer_hash.hex() == GOLDEN_HASH
    assert blake2b(batch.body, digest_size=16).hexdigest() == GOLDEN_BODY


GOLDEN_FOOTER = (
    '{"chunks":4,"columns":[{"cut":true,"dtype":"<u2","name":"tokens","shapes":[[2,2]]},'
    '{"cut":false,"dtype":"<f4","name":"weights","shapes":[[2]]},'
    r'{"cut":false,"dtype":"|b1","name":"\u00fcbung","shapes":[[2]]}],'
    '"crc32":[3127529947,4225109504,3062078513,1923888935,'
    "1825080731,3014516831,1612793969,987224440],"
    '"dp":2,"origin":{"blend":"b-1","offset":812},"version":1}'
)
GOLDEN_HASH = "657aff8a122048ea1907a69b4803e5f5"
GOLDEN_BODY = "26f837bc41659d11a8f8a28a4a1f0c35"


def test_neither_the_order_of_columns_nor_of_the_origin_matters() -> None:
    slices = golden_slices()
    turned = tuple(dict(reversed(arrays.items())) for arrays in slices.arrays)
    other = Slices(turned, slices.dp, slices.chunks, slices.sequence)
    assert encode(slices, {"a": 1, "b": 2}) == encode(other, {"b": 2, "a": 1})


@pytest.mark.parametrize("dp, most", [(32, 1.01), (128, 1.03)])
def test_a_slice_of_100_kib_and_the_footer_are_little_more_than_the_slice(dp: int, most: float) -> None:
    rng = np.random.default_rng(7)
    columns = {
        name: rng.integers(0, 2**16, (dp, 25 * KIB // 2), dtype=np.uint16)
        for name in ("tokens", "next_tokens", "segment_lengths", "weights")
    }
    batch = encode(cut(columns, Mesh(dp=dp)), {"blend": "b" * 32, "offset": 10**9})
    payload = 100 * KIB
    length = Footer.of_object(batch.body, "a").range_of(dp - 1, 0)[1]
    assert payload < (length + batch.footer_length) <= most * payload
    assert len(batch.body) <= 1.0002 * payload * dp + batch.footer_length


def test_the_footer_does_not_grow_by_shapes_that_all_slices_share() -> None:
    batch = encode(cut({f"c{i}": np.zeros((128, 3)) for i in range(20)}, Mesh(dp=128)))
    assert batch.footer_length < 128 * 11 + 20 * 70 + 100


ROW = np.arange(4, dtype=np.int32)
ROWS = ROW.reshape(2, 2)
UNKNOWN_DTYPES = {
    "object": np.array([None, 1], dtype=object),
    "<U1": np.array(["a", "b"]),
    r"\|S1": np.array([b"a", b"b"]),
    r"datetime64\[s\]": np.zeros(2, "M8[s]"),
    "complex128": np.zeros(2, complex),
    r"\[\('a', '<i4'\)\]": np.zeros(2, [("a", "<i4")]),
    "longdouble|float128": np.zeros(2, np.longdouble),
}


@pytest.mark.parametrize("dtype", UNKNOWN_DTYPES)
def test_columns_of_other_dtypes_are_refused_by_name(dtype: str) -> None:
    with pytest.raises(InvalidBatch, match=rf"Column `c` has dtype ({dtype})\. A batch holds bool"):
        encode(Slices(({"c": UNKNOWN_DTYPES[dtype]},), dp=1))


def split(*arrays: dict[str, object], dp: int = 1, chunks: int = 1, sequence: str = "") -> Slices:
    return Slices(arrays, dp, chunks, frozenset(sequence))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "slices, sentence",
    [
        (split({"a": ROW}, dp=2), "^1 slices were given for 2 dp indexes of 1 chunks. Give 2.$"),
        (split({"a": ROW}, dp=0), "cannot have 0 dp indexes"),
        (split({"a": ROW}, {"a": ROW}, chunks=2), "cannot have 1 dp indexes of 2 chunks"),
        (split(*[{"a": ROW}] * 5, chunks=5), "cannot have 1 dp indexes of 5 chunks"),
        (split({}), "has no columns"),
        (split({1: ROW}), r"columns \[1\] are not all named by strings"),  # type: ignore[dict-item]
        (split({"offset": ROW}), "A column is named `offset`, which is the step of a batch"),
        (split({"a": ROW}, {"b": ROW}, dp=2), "Slice dp 1, chunk 0 has the columns `b`, and should have `a`"),
        (split(*[{"a": ROW}] * 4, chunks=4), "Slice dp 0, chunk 1 has the columns `a`, and should have none"),
        (split({"a": ROW}, {"a": ROW.astype("i8")}, dp=2), "`a` is int64 in slice dp 1, chunk 0, and int32"),
        (
            split({"a": ROWS}, *[{"a": ROWS[:1]}] * 3, chunks=4, sequence="a"),
            r"`a` has shape \(1, 2\) in slice dp 0, chunk 1, and \(2, 2\) in chunk 0",
        ),
        (split({"a": ROW}, sequence="a"), r"`a` has shape \(4,\). Give it rows as axis 0, and the sequence"),
        (split({"a": ROW}, sequence="b"), "`sequence` names the column `b`. Columns: `a`"),
        (
            split({"a": ROW.astype("u2")}, {"a": Bfloat16Array.of_bits(ROW.astype("u2"))}, dp=2),
            "`a` is bfloat16 in slice dp 1, chunk 0, and uint16 in the first",
        ),
        (split({"a": [1, 2]}), "`a` is a list. Give it as an array of numpy"),
    ],
)
def test_slices_that_do_not_fit_are_refused_by_a_sentence(slices: Slices, sentence: str) -> None:
    with pytest.raises(InvalidBatch, match=sentence):
        encode(slices)


def nested(depth: int) -> Json:
    value: Json = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "origin",
    [{1: 2}, (1, 2), float("nan"), [float("inf")], b"x", np.arange(2), {"a", "b"}, nested(100_000)],
    ids=["key", "tuple", "nan", "infinity", "bytes", "array", "set", "nested"],
)
def test_an_origin_that_would_not_come_back_is_refused(origin: Json) -> None:
    with pytest.raises(InvalidBatch, match="The origin of a batch is not JSON: "):
        encode(golden_slices(), origin)


def test_numbers_of_numpy_in_an_origin_come_back_as_those_of_python() -> None:
    origin = {"row": np.int64(2**53), "at": [np.uint8(3), {"reward": np.float32(0.1)}], "ok": np.bool_(True)}
    copy = Footer.of_object(encode(golden_slices(), origin).body, "a").origin  # type: ignore[arg-type]
    assert copy == {"row": 2**53, "at": [3, {"reward": float(np.float32(0.1))}], "ok": True}
    assert type(copy["row"]) is int  # type: ignore[index, call-overload]
    assert type(copy["ok"]) is bool  # type: ignore[index, call-overload]
    with pytest.raises(InvalidBatch, match="The origin of a batch is not JSON: "):
        encode(golden_slices(), np.float32("nan"))  # type: ignore[arg-type]


def test_an_origin_may_have_4_kib() -> None:
    longest = "x" * (MOST_BYTES - 2)
    assert Footer.of_object(encode(golden_slices(), longest).body, "a").origin == longest
    with pytest.raises(InvalidBatch, match=r"has 4,097 bytes of JSON\. Give at most 4,096"):
        encode(golden_slices(), longest + "x")
