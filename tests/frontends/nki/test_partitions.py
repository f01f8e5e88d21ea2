"""Calls that move or reduce across partitions, against numpy."""

import numpy as np
import pytest

from tests.frontends.nki.kernels import result, write_kernel

RNG = np.random.default_rng(31)


def shuffle(tmp_path, x, y, mask, body="", preset="full"):
    kernel = write_kernel(tmp_path, f"""
a, b = nl.load(x), nl.load(y)
{body or "nisa.nc_stream_shuffle(dst=b, src=a, shuffle_mask=mask)"}
""", parameters="x, y, mask", out="y.shape, y.dtype", stores="b")  # fmt: skip
    return result(kernel, x, y, list(mask), preset=preset)


@pytest.mark.parametrize("partitions", [32, 64, 70, 128])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_every_group_of_partitions_is_shuffled_alike(tmp_path, partitions, dtype):
    x, y = (RNG.integers(-99, 99, (partitions, 6)).astype(dtype) for _ in range(2))
    mask = RNG.integers(0, partitions % 32 or 32, 32)
    mask[RNG.random(32) < 0.3] = 255
    sources = np.array([p - p % 32 + mask[p % 32] if mask[p % 32] != 255 else -1 for p in range(partitions)])
    theirs = np.where(sources[:, None] < 0, y, x[np.maximum(sources, 0)])
    assert np.array_equal(shuffle(tmp_path, x, y, mask.tolist()), theirs)


def test_a_shuffle_in_place_and_of_one_partition(tmp_path):
    x = RNG.normal(size=(32, 6)).astype(np.float32)
    x[3, 2] = np.inf
    mask = [(i - 1) % 32 for i in range(32)]
    body = "nisa.nc_stream_shuffle(dst=b, src=b, shuffle_mask=mask)"
    assert np.array_equal(shuffle(tmp_path, x, x, mask, body), np.roll(x, 1, axis=0))
    for part in ("a[0, 0:6]", "a[0, nl.mgrid[0:1, 0:6].x]"):
        body = f"nisa.nc_stream_shuffle(dst=b, src={part}, shuffle_mask=mask)"
        assert np.array_equal(shuffle(tmp_path, x[:1], x, [0] * 32, body), np.broadcast_to(x[:1], x.shape))


def test_shuffles_that_are_refused(tmp_path):
    x = np.ones((16, 4), np.float32)
    with pytest.raises(ValueError, match="shuffle_mask must select from the 16 partitions of .*, not 20"):
        shuffle(tmp_path, x, x, [20] * 32, preset="small")
    with pytest.raises(ValueError, match="shuffle_mask must have 32 numbers"):
        shuffle(tmp_path, x, x, [0] * 16, preset="small")


OPERATIONS = {
    "add": np.add, "average": np.add, "maximum": np.maximum, "minimum": np.minimum, "bitwise_or": np.bitwise_or,
    "bitwise_and": np.bitwise_and,
}  # fmt: skip


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_partitions_are_reduced_from_wherever_they_start(tmp_path, op, dtype):
    if "bitwise" in op and "float" in dtype:
        pytest.skip("bits are integers'")
    kernel = write_kernel(tmp_path, f"""
a, b = nl.load(x), nl.ndarray((1, 5), dtype=out.dtype, buffer=nl.sbuf)
nisa.tensor_partition_reduce(dst=b, op=nl.{op}, data=a[8:12])
""", out=f'(1, 5), nl.{"int32" if "bitwise" in op else "float32"}', stores="b")  # fmt: skip
    x = RNG.integers(-60, 60, (16, 5))
    theirs = OPERATIONS[op].reduce(x[8:12], axis=0, keepdims=True) / (4 if op == "average" else 1)
    assert np.array_equal(result(kernel, (x, dtype), preset="small"), theirs)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_an_assignment_reaches_every_partition(tmp_path, dtype):
    kernel = write_kernel(tmp_path, """
tile, other = nl.zeros(x.shape, dtype=x.dtype), nl.load(x)
for row in range(4):
    tile[row, 3] = row + 1
tile[1:4, 0:2] = 7
tile[2:4, 4:6] = other[1:3, 0:2]
tile[0, 4] = other[3, 5]
""", older=True, out="x.shape, x.dtype", stores="tile")  # fmt: skip
    x = RNG.integers(-60, 60, (4, 6)).astype(np.float32)
    theirs = np.zeros_like(x)
    theirs[:, 3], theirs[1:4, 0:2], theirs[2:4, 4:6], theirs[0, 4] = np.arange(1, 5), 7, x[1:3, 0:2], x[3, 5]
    assert np.array_equal(result(kernel, (x, dtype)), theirs)
