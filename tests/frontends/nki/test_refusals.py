"""Errors before a run: rule, value and the kernel's line."""

import numpy as np
import pytest

from neuroncore_rtl.frontends.nki import run_nki
from tests.frontends.nki.kernels import FIRST, run_kernel, write_kernel

X = np.ones((4, 8), np.float32)

TILED = "nisa.nc_matmul(nl.load(x[:, :4]), nl.load(x)"

ONE = "nl.load(x[0:1, 0:1], dtype=nl.int32)"


@pytest.mark.parametrize(
    "line, message",
    [
        ("nl.random_seed(nl.load(x))", "nl.random_seed must be replaced, as this machine does not have it: .*seeds"),
        ("nisa.tensor_scaler(nl.load(x))", "nisa.tensor_scaler is not a name .*; there is tensor_scalar"),
        ("nl.load(x[nl.arange(4)[:, None] + 2, nl.arange(8)[None, :]])", "an index must be between 0 and 3, not .* 5"),
        ("nl.load(x[nl.arange(4)[:, None] // 2, nl.arange(8)[None, :]])", "an index must be affine"),
        ("nl.load(x, mask=(nl.arange(4)[:, None] < 2) | (nl.arange(8)[None, :] < 2))", "must be a rectangle: .* by &"),
        ("nl.ndarray((5, 8), dtype=nl.float32)", r"partitions must be at most 4, not the 5 of \(5, 8\)"),
        ("nl.ndarray((4, 8), dtype=nl.float8_e4m3fn)", "dtype must be one that the machine has .*, not float8_e4m3fn"),
        ("nl.ndarray((4, 8), dtype='float')", "dtype must be one of .*, not 'float'"),
        ("nl.ndarray((4, 0), dtype=nl.float32)", "each of at least 1 element"),
        ("nl.ndarray((4, 8), dtype=nl.float32, buffer='dram')", "buffer must be one of .*, not 'dram'"),
        ("nisa.nc_matmul(nl.load(x), nl.load(x))", "partitions must be at most 4, not the 8"),
        ("nisa.nc_matmul(nl.load(x[:, :4]), nl.zeros((4, 513), nl.float32))", "moving columns must be at most 512"),
        ("nisa.nc_matmul(nl.load(x[:, :4]), nl.zeros((4, 8), nl.bfloat16))", "float32 and int8 must .* the same type"),
        ("nisa.nc_matmul(x[:, :4], nl.load(x))", "must be in SBUF or PSUM, not in HBM"),
        (f"{TILED}, tile_position=(0, 0))", r"tile_position and tile_size must both be pairs, not \(0, 0\) and \(\)"),
        (f"{TILED}, tile_position=(0, 2), tile_size=(3, 4))", "tile_size must be 1 or 2 or 4 rows, not 3"),
        (f"{TILED}, tile_position=(0, 1), tile_size=(4, 2))", "tile_position must be .* of 2 columns below 4, not 1"),
        (f"{TILED}, tile_position=(4, 0), tile_size=(4, 4))", "tile_position must be .* of 4 rows below 4, not 4"),
        (f"{TILED}, tile_position=(0, 0), tile_size=(2, 4))", "must have at most the 2 rows of tile_size, not 4"),
        ("nisa.activation(op=nl.mod, data=nl.load(x))", "op must be a function that the machine has .*, not mod"),
        ("nisa.tensor_tensor(nl.load(x), nl.load(x), op=np.hypot)", "op must be one of .*, not hypot"),
        ("nisa.tensor_reduce(nl.add, nl.load(x), axis=0)", "axis must be of the free dimensions, 1 to 1, not 0"),
        ("nisa.tensor_copy(nl.load(x), mode=3)", "nisa.tensor_copy.*unexpected keyword argument 'mode'"),
        (f"nl.load(x[nl.arange(4)[:, None] + {ONE} + {ONE}])", "at most one number in memory may be added to an index"),
        ("nl.loop_reduce(nl.load(x), op=np.multiply, loop_indices=[0])", "op must be add, .* a mask, not multiply"),
        ("nl.where(0.5, nl.load(x), 0)", "nl.where: condition must be a tensor, or a mask beside a tensor, not 0.5"),
        ("nl.where(j < 2, 1.0, 0.0)", "nl.where: condition must be a tensor, or a mask beside a tensor, not a mask"),
        ("nl.where(nl.arange(9)[None, :] < 2, a, 0)", r"a mask must broadcast to the shape \(4, 8\)|must broadcast"),
        ("nl.invert([1])", r"nl.invert: x must be a tensor, not \[1\]"),
        ("nl.store(3, nl.load(x))", "nl.store: dst must be a tensor, not 3"),
        ("nl.load(x, mask=nl.load(x) > 0)", "mask must be a comparison of index expressions, not tensor"),
        ("nl.load(x) * nl.arange(8)[None, :]", "must be a number or a tensor, not an index expression from 0 to 7"),
        ("x + 1", "must be on chip, not in HBM: load it first"),
        ("bool(nl.load(x) > 0)", "a condition must be known while the kernel is recorded"),
        ("nisa.dma_compute(dst=x, srcs=[x], reduce_op=nl.add, scales=[2.0])",
         "reduce_op must be add, scales 1.0, and indices unique, not add"),
        ("nl.add(a)", r"nl.add\(x, y, dtype=None, mask=None\): missing a required argument: 'y'"),
        ("nl.add(a, 10**400)", r"must be within the range of FP32, below 2\*\*128"),
        ("nl.bitwise_and(a, None)", "must be a number or a tensor, not None"),
        ("nl.exp(3)", "nl.exp: x must be a tensor, not 3"),
        ("nl.abs(j)", "nl.abs: x must be a tensor, not an index expression"),
        ("nl.sum(a, axis='x')", "tensor_reduce: arguments must be of the types that it takes, not .*'x'"),
        ("nl.zeros((4, 2.5), nl.float32)", "a dimension of shape must be an integer, not 2.5"),
        ("nl.zeros(None, nl.float32)", r"ndarray: arguments must be of the types that it takes, not \(None, float32"),
        ("nl.zeros((4, 8), nl.float32, buffer=[1])", r"buffer must be one of .*, not \[1\]"),
        ("nl.zeros_like([1])", r"zeros_like: arguments must be of the types that it takes, not \(\[1\]\)"),
        ("nl.shared_constant('none.npy')", "none.npy: a file must have an array of numbers; .*No such file"),
        ("nl.par_dim(2.5)", "par_dim must be an integer, not 2.5"),
        ("nl.loop_reduce(a, op=np.add, loop_indices=3)", "loop_reduce: arguments must be of the types .* not iterable"),
        ("nl.loop_reduce(a, op=np.add, loop_indices=[3]) * 2", "has no __mul__ .*: use tile"),
        ("nisa.activation(op=nl.exp, data=a, reduce_op=nl.add, reduce_res=3)", "reduce_res must be a tensor, not 3"),
        ("nisa.activation(op=nl.exp, data=a, dst=3)", "nisa.activation: dst must be a tensor, not 3"),
        ("nisa.memset((4, 8))", r"_memset: arguments must be of the types"),
        ("nisa.dropout(a, 1.5)", "a probability must be from 0 to 1, not 1.5"),
        ("nisa.dma_compute(dst=a, srcs=x, reduce_op=nl.add)", "srcs must be one tensor or more, not tensor x"),
        ("nisa.nonzero_with_count(a[0:1], index_offset=2.5)", "index_offset must be an integer, not 2.5"),
        ("a.select(2, 0)", "a dimension must be from -2 to 1, not 2"),
        ("a.slice(-3, 0, 2)", "a dimension must be from -2 to 1, not -3"),
        ("a.expand_dim(4)", "a dimension must be from -3 to 2, not 4"),
        ("nl.expand_dims(a, 3)", "a dimension must be from -3 to 2, not 3"),
        ("a.broadcast('x', 4)", "a dimension must be an integer, not 'x'"),
        ("a.flatten_dims(1, 0)", "start_dim must be at most end_dim, not 1 and 0"),
        ("a[0:2.5]", "__getitem__: arguments must be of the types"),
        ("a.reshape(4, 0, -1)", "reshape: arguments must be of the types"),
        ("a.sum()", "tensor .* has no sum: use nl.sum"),
        ("(j < 5) * 1", "a mask of index expressions has no __mul__ while a kernel is recorded"),
        ("(j < 5)[0]", "a mask of index expressions has no __getitem__"),
        ("nl.full(x.shape, 1.0, nl.bfloat16, buffer=nl.psum).view(nl.int16)", "a view of PSUM, .* must be of float32"),
        ("nl.copy(a, dtype=nl.int16)[:, 0:1].view(nl.float32)", "must have 2 bytes per element, or whole elements in"),
        ("nl.copy(a, dtype=nl.uint8).view(nl.bool_)", "bits of uint8 must not be read as bool_"),
        ("a.assert_shape((4, 9))", r"shape must be \(4, 9\), not \(4, 8\)"),
        ("a.rearrange(('a', 'b'), ('b', 'c'))", "both with the same names"),
        ("a.rearrange(('a', ('b', 'c')), ('a', 'b', 'c'), {'b': 5})", "must have the product 8"),
        ("a[:, ::2].view(nl.uint8)", "whole elements in a contiguous last dimension"),
        ("a[:, 0:7].view(nl.uint8).view(nl.uint16)[:, 1:14].view(nl.float32)", "whole elements"),
        ("nisa.sequence_bounds(nl.copy(a, dtype=nl.uint8))", "dst must have a type that has -1, not uint8"),
        ("nisa.tensor_scalar(nl.copy(a, dtype=nl.int32), op0=nl.maximum, operand0=2**40, op1=nl.add, operand1=1)",
         "a number in max before another operation must be from -2147483648 to 4294967295"),
    ],
)  # fmt: skip
def test_refused_with_the_line(tmp_path, line, message):
    tiles = "a, j = nl.load(x), nl.arange(8)[None, :]"
    kernel = write_kernel(tmp_path, f"{tiles}\ny = {line}", older=True, out="(4, 8), nl.float32", stores="y")
    with pytest.raises((ValueError, AttributeError), match=message) as refused:
        run_kernel(kernel, X)
    assert str(refused.value).endswith(f"(kernel.py:{FIRST + 2})")


@pytest.mark.parametrize("body", ["nl.load(x)", "return nl.load(x)", "return 3"])
def test_a_kernel_returns_tensors_in_hbm(tmp_path, body):
    with pytest.raises(ValueError, match="kernel must return tensors in HBM"):
        run_kernel(write_kernel(tmp_path, body, older=True), X)


def test_a_kernel_for_the_simulator_returns_tiles_on_chip(tmp_path):
    kernel = write_kernel(tmp_path, "tile = nl.load(x)\nreturn nl.add(tile, 1.0), tile", older=True)
    file = tmp_path / "kernel.py"
    file.write_text(file.read_text().replace("@nki.jit", '@nki.jit(mode="simulation")'))
    done = run_kernel(kernel, X)
    assert (done.outputs[0] == X + 1).all() and (done.outputs[1] == X).all()
    assert done.inserted["copy to HBM of a returned tile"] == 2


def test_arguments_fit_the_kernel(tmp_path):
    kernel = write_kernel(tmp_path, "return x", parameters="x, y")
    with pytest.raises(ValueError, match=r"arguments must fit kernel\(x, y\): missing a required argument: 'y'"):
        run_kernel(kernel, X)
    with pytest.raises(ValueError, match="at most the 2 of the kernel, x, y, not 3"):
        run_kernel(kernel, X, X, X)
    with pytest.raises(ValueError, match="x: dtype must be one of .*, not 'float64'"):
        run_kernel(kernel, X.astype(np.float64), X)


def test_files_and_functions_that_do_not_exist_list_those_that_do(tmp_path):
    kernel = write_kernel(tmp_path, "return x")
    with pytest.raises(ValueError, match="KERNEL must be a function of kernel.py, kernel, not 'karnel'"):
        run_nki(kernel.replace(":kernel", ":karnel"), X, preset="tiny")
    with pytest.raises(ValueError, match=r"name an existing file, not .*none.py: .* contains kernel.py"):
        run_nki(f"{tmp_path}/none.py:kernel", X, preset="tiny")
    with pytest.raises(ValueError, match="path/to/file.py:function, not 'kernel'"):
        run_nki("kernel", X, preset="tiny")


def test_a_kernel_s_own_error_is_its_own(tmp_path):
    kernel = write_kernel(tmp_path, "assert x.shape == (4, 9), 'nine columns'")
    with pytest.raises(AssertionError, match="nine columns"):
        run_kernel(kernel, X)


def test_a_call_outside_of_a_kernel_is_refused(tmp_path):
    file = tmp_path / "loose.py"
    file.write_text("import nki.language as nl\nnl.zeros((4, 4), nl.float32)\n")
    with pytest.raises(RuntimeError, match="only while a kernel is recorded"):
        run_nki(f"{file}:any", preset="tiny")
