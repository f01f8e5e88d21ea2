"""Copies on chip, on the engine named by the kernel or on the least busy one."""

from collections import Counter

import numpy as np
import pytest

from neuroncore_rtl.frontends.nki import run_nki
from neuroncore_rtl.frontends.nki.indices.dtypes import dtype_of
from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.tb.stimulus.operands import random_codes
from tests.frontends.nki.kernels import run_kernel, write_kernel

X = np.random.default_rng(8).normal(size=(4, 24)).astype(np.float32)


def opcodes(kernel, *args, **options):
    done = run_kernel(kernel, *args, **options)
    names = Counter(entry.instruction.name for entry in done.run.program.entries)
    del names["DMA_COPY"], names["NOP"]
    return names, done


def copying(folder, engine, dtype="x.dtype"):
    return write_kernel(folder, f"""
a, b = nl.ndarray(x.shape, dtype=x.dtype), nl.ndarray(x.shape, dtype={dtype})
nisa.dma_copy(dst=a, src=x)
nisa.tensor_copy(dst=b, src=a, engine=nisa.engine.{engine})
""", out=f"x.shape, {dtype}", stores="b")  # fmt: skip


@pytest.mark.parametrize("engine, name", [("vector", "TENSOR_COPY"), ("scalar", "ACTIVATE"), ("gpsimd", "TENSOR_COPY")])
def test_a_kernel_names_the_engine(engine, name, tmp_path):
    names, done = opcodes(copying(tmp_path, engine), X)
    assert names == {name: 1} and (done.outputs[0] == X).all()


@pytest.mark.parametrize("engine, pieces", [("unknown", 3), ("vector", 1)])
def test_long_copies_go_in_pieces_if_no_engine_is_named(engine, pieces, tmp_path):
    x = np.random.default_rng(9).normal(size=(4, 300)).astype(np.float32)
    names, done = opcodes(copying(tmp_path, engine), x)
    assert sum(names.values()) == pieces and (done.outputs[0] == x).all()


def test_integers_stay_on_the_vector_engine(tmp_path):
    names, _ = opcodes(copying(tmp_path, "scalar", "nl.int32"), X.astype(np.int32))
    assert names == {"TENSOR_COPY": 1}


def all_numbers(dtype):
    fmt = dtype_of(dtype).machine_format
    codes = random_codes(np.random.default_rng(4), fmt, 4096) if fmt.bits == 32 else np.arange(1 << fmt.bits)
    with np.errstate(invalid="ignore"):
        return decode(codes.astype(f"u{fmt.bits // 8}"), fmt).astype(np.float64).reshape(4, -1)


FORMATS = ("float32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2")


def both_results(folder, call, source, dtype):
    """Return the codes that both engines leave for all numbers of a type, and the kinds of instructions."""
    kernel = write_kernel(folder, f"""
a, b, c = (nl.ndarray(x.shape, dtype=one) for one in (x.dtype, nl.{dtype}, nl.{dtype}))
nisa.dma_copy(dst=a, src=x)
nisa.{call}, dst=b, engine=nisa.engine.vector)
nisa.{call}, dst=c, engine=nisa.engine.scalar)
""", stores="b, c")  # fmt: skip
    # The scheduler would remove the second one as a repetition.
    done = run_nki(kernel, (all_numbers(source), source), preset="tiny", on="golden", order="program")
    names = {entry.instruction.name for entry in done.run.program.entries} - {"DMA_COPY", "NOP"}
    return [*done.run.codes.values()], names


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("result", FORMATS)
def test_both_engines_leave_the_same_bits(source, result, tmp_path):
    left, names = both_results(tmp_path, "tensor_copy(src=a", source, result)
    assert left[0].size and np.array_equal(*left) and names == {"TENSOR_COPY", "ACTIVATE"}


@pytest.mark.parametrize("call", [f"op0=nl.{op}, operand0={n}" for op in ("multiply", "add") for n in (-3e-30, 0.1)])
@pytest.mark.parametrize("source, result", [("float32", "float32"), ("bfloat16", "float16"), ("float16", "float32")])
def test_both_engines_scale_to_the_same_bits(call, source, result, tmp_path):
    left, names = both_results(tmp_path, f"tensor_scalar(data=a, {call}", source, result)
    assert left[0].size and np.array_equal(*left) and names == {"TENSOR_SCALAR", "ACTIVATE"}


@pytest.mark.parametrize(
    "call, speed, name",
    [
        ("op0=nl.multiply, operand0=3.0", 40, "ACTIVATE"),
        ("op0=nl.multiply, operand0=3.0", 100, "TENSOR_SCALAR"),
        ("op0=nl.multiply, operand0=3.0, op1=nl.add, operand1=1.0", 40, "TENSOR_SCALAR"),
        ("op0=nl.subtract, operand0=3.0", 40, "TENSOR_SCALAR"),
    ],
)
def test_a_long_product_with_a_scalar_goes_to_the_engine_with_less_to_do(call, speed, name, tmp_path):
    x = np.random.default_rng(9).normal(size=(4, 300)).astype(np.float32)
    kernel = write_kernel(tmp_path, f"""
a, b, c = (nl.ndarray(x.shape, dtype=x.dtype) for _ in range(3))
nisa.dma_copy(dst=a, src=x)
nisa.tensor_tensor(dst=b, data1=a, data2=a, op=nl.add)
nisa.tensor_scalar(dst=c, data=b, {call})
""", out="x.shape, x.dtype", stores="c")  # fmt: skip
    names, _ = opcodes(kernel, x, preset=PRESETS["tiny"].with_overrides(vector_speed=speed))
    assert names == {"TENSOR_TENSOR": 1, name: 1}


def test_the_engine_with_less_to_do_takes_a_copy(tmp_path):
    kernel = write_kernel(tmp_path, """
tiles = [nl.ndarray(x.shape, dtype=x.dtype) for _ in range(9)]
nisa.dma_copy(dst=tiles[0], src=x)
for before, tile in zip(tiles, tiles[1:]):
    nisa.tensor_copy(dst=tile, src=before)
""", out="x.shape, x.dtype", stores="tiles[8]")  # fmt: skip
    names, done = opcodes(kernel, X)
    assert names == {"TENSOR_COPY": 4, "ACTIVATE": 4} and (done.outputs[0] == X).all()


@pytest.mark.parametrize("continued", [True, False])
def test_a_copy_comes_to_the_scalar_engine_only_after_its_running_sums(continued, tmp_path):
    sums = "nisa.activation(dst=b, op=nl.copy, data=a, reduce_op=nl.add, reduce_res=sums, reduce_cmd=nisa.reduce_cmd"
    kernel = write_kernel(tmp_path, f"""
a, b = nl.ndarray(x.shape, dtype=x.dtype), nl.ndarray(x.shape, dtype=x.dtype)
sums = nl.ndarray((4, 1), dtype=x.dtype)
nisa.dma_copy(dst=a, src=x)
nisa.tensor_scalar(dst=a, data=a, op0=nl.add, operand0=1.0)
nisa.tensor_scalar(dst=a, data=a, op0=nl.subtract, operand0=1.0)
nisa.activation(dst=b, op=nl.copy, data=a, reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.reset_reduce)
nisa.tensor_copy(dst=b, src=a)
{sums}.{"reduce" if continued else "reset_reduce"})
""", out="(4, 1), x.dtype", stores="sums")  # fmt: skip
    names, done = opcodes(kernel, X)
    assert names == {"TENSOR_SCALAR": 2, "ACTIVATE": 3 - continued} | ({"TENSOR_COPY": 1} if continued else {})
    assert np.allclose(done.outputs[0], (1 + continued) * ((X + 1) - 1).sum(1, keepdims=True), rtol=1e-4)
