"""Cache of functions that Numba compiled."""

import subprocess
import sys

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import numba_cache

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
