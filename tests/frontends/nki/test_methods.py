"""Methods of tensors, against numpy."""

import numpy as np
import pytest

from tests.frontends.nki.kernels import result, run_kernel, store_kernel, write_kernel

X = np.random.default_rng(59).normal(size=(4, 24)).astype(np.float32)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("nl.load(x).astype(nl.float16).astype(nl.float32)", X.astype(np.float16).astype(np.float32)),
        ("nl.load(x).assert_shape((4, 24)).expand_dims(1)[:, 0, :]", X),
        ("nl.load(x.rearrange((('p', 'q'), 'f'), ('q', 'p', 'f'), {'p': 2})[1, :, :])", X.reshape(2, 2, 24)[:, 1]),
    ],
)
def test_methods_of_the_first_dialect(tmp_path, expression, expected):
    shape = str(expected.shape)
    found = run_kernel(store_kernel(tmp_path, expression, out=f"{shape}, x.dtype"), X).outputs[0]
    assert np.array_equal(found, expected)


def test_dimensions_are_split_permuted_and_merged(tmp_path):
    kernel = write_kernel(tmp_path, """
a = nl.load(x)
b = nl.ndarray((4, 8, 3), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_copy(dst=b, src=a.rearrange(("b", ("h", "w")), ("b", "w", "h"), {"h": 3}))
c = nl.ndarray((4, 12), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_copy(dst=c, src=a[:, 0:12].rearrange(("b", ("h", "i", "w")), ("b", ("h", "i", "w")), dict(h=2, i=2)))
""", stores="b, c")  # fmt: skip
    turned, same = run_kernel(kernel, X).outputs
    assert np.array_equal(turned, X.reshape(4, 3, 8).swapaxes(1, 2)) and np.array_equal(same, X[:, :12])


@pytest.mark.parametrize(("seen", "part"), [("float32", ":, 8:16"), ("uint16", ":, 4:10"), ("float32", "1:3, 0:24")])
def test_bits_are_read_as_a_larger_type(tmp_path, seen, part):
    kernel = write_kernel(tmp_path, f"""
a = nl.load(x)[{part}].view(nl.{seen})
out = nl.ndarray(a.shape, dtype=nl.{seen}, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=a)
other = nl.ndarray(a.shape, dtype=nl.{seen}, buffer=nl.shared_hbm)
nisa.dma_copy(dst=other, src=x[{part}].reinterpret_cast(nl.{seen}))
return out, other
""")  # fmt: skip
    x = np.random.default_rng(3).integers(0, 120, (4, 24)).astype(np.uint8)
    expected = np.ascontiguousarray(eval(f"x[{part}]")).view(seen)
    for found in run_kernel(kernel, x).outputs:
        assert np.array_equal(found.astype(seen), expected)


def test_patterns_of_tensors_are_those_of_ap(tmp_path):
    kernel = write_kernel(tmp_path, """
a = nl.load(x)
part = a[2:4, 4:12:2]
assert part.get_pattern() == [[24, 2], [2, 4]] and x[1].get_pattern() == [[1, 24]]
assert a.is_contiguous() and a[1:3].is_contiguous() and not part.is_contiguous()
assert x[1:3].is_contiguous() and not x[:, 0:12].is_contiguous()
b = nl.ndarray((2, 4), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_copy(dst=b, src=a.ap(part.get_pattern(), offset=52))
""", stores="b", out="(2, 4), x.dtype")  # fmt: skip
    assert np.array_equal(result(kernel, X), X[2:4, 4:12:2])
