"""Code in LLVM's intermediate language, against the same in Python; cache of functions that Numba compiled."""

import subprocess
import sys

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import machine_code, numba_cache


def polynomial(fused: bool):
    builder, (coefficients, results, rows, length) = machine_code.new_function(
        "f", *[machine_code.FLOAT.as_pointer()] * 2, machine_code.INDEX, machine_code.INDEX
    )
    with machine_code.counted_range(builder, rows) as row:
        total = machine_code.local(builder, machine_code.FLOAT)
        builder.store(machine_code.FLOAT(0), total)
        with machine_code.counted_range(builder, length) as index:
            c = builder.load(builder.gep(coefficients, [builder.add(builder.mul(row, length), index)]))
            builder.store(
                machine_code.multiply_add(builder, builder.load(total), machine_code.FLOAT(0.5), c, fused), total
            )
        builder.store(builder.load(total), builder.gep(results, [row]))
    return builder


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("rows", "length"), [(3, 5), (1, 1), (3, 0), (0, 3)])
def test_loops_and_multiply_adds(fused, rows, length):
    coefficients = np.arange(rows * length, dtype=np.float32).reshape(rows, length)
    results = np.full(rows + 1, -1, np.float32)
    machine_code.compile_function(polynomial(fused))(coefficients, results, rows, length)
    expected = [sum(c * 0.5 ** (length - 1 - i) for i, c in enumerate(row)) for row in coefficients.tolist()]
    assert results.tolist() == [*expected, -1]


@pytest.mark.skipif(not machine_code.has_fused_multiply_add(), reason="this processor has no fused multiply-add")
def test_fused_multiply_adds_are_the_processors():
    assert "fmaf" not in machine_code.assembly(polynomial(fused=True))
    assert any(name in machine_code.assembly(polynomial(fused=True)) for name in ("vfmadd", "fmadd"))
    assert "fmadd" not in machine_code.assembly(polynomial(fused=False))


def test_a_feature_that_no_processor_has():
    assert not machine_code.has_feature("third-hand")


SOURCE = """
from numba import carray, njit
from numba.types import CPointer, int64, void
from neuroncore_rtl.golden.arith.numba_cache import OPTIONS

@njit(void(CPointer(int64), int64, int64), **OPTIONS)
def raised(words, count, power):
    words = carray(words, count)
    for i in range(count):
        words[i] = words[i] ** power + {number}
"""

USE = """
import sys
import numpy as np
from neuroncore_rtl.golden.arith.power import power_fp32
assert power_fp32(3.0, 2.0) == 9
from neuroncore_rtl.golden.scalar.functions import activate
assert activate("relu", np.float32([-1, 2])).tolist() == [0, 2]
print("numba" in sys.modules)
"""


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(numba_cache, "SIM_BUILD", tmp_path / "sim_build")
    monkeypatch.setattr(numba_cache, "ROOT", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "spec").mkdir()
    calls = []
    before = numba_cache._compiled
    monkeypatch.setattr(numba_cache, "_compiled", lambda *names: calls.append(names) or before(*names))

    def run(number: int) -> tuple[list[int], int]:
        (tmp_path / "a_cached_module.py").write_text(SOURCE.format(number=number))
        sys.modules.pop("a_cached_module", None)
        numba_cache.cached_function.cache_clear()
        words = np.arange(4)
        numba_cache.cached_function("a_cached_module", "raised")(words, 3, 2)
        return words.tolist(), len(calls)

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield run
    numba_cache.cached_function.cache_clear()


def test_code_is_cached_until_a_source_changes(compiled, tmp_path):
    assert compiled(10) == ([10, 11, 14, 3], 1)
    assert compiled(10) == ([10, 11, 14, 3], 1)
    assert compiled(20) == ([20, 21, 24, 3], 2)
    (tmp_path / "spec" / "numbers.py").write_text("ONE = 1\n")
    assert compiled(20) == ([20, 21, 24, 3], 3)


def test_another_processor_has_other_code(monkeypatch):
    names = [numba_cache._digest("neuroncore_rtl.golden.scalar.evaluation")]
    monkeypatch.setattr(numba_cache.binding, "get_host_cpu_name", lambda: "another")
    names.append(numba_cache._digest("neuroncore_rtl.golden.scalar.evaluation"))
    assert names[0] != names[1]


def test_a_cached_function_runs_without_numba():
    runs = [subprocess.run([sys.executable, "-c", USE], check=True, capture_output=True, text=True) for _ in range(2)]
    assert runs[1].stdout == "False\n"
