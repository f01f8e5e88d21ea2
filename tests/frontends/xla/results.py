"""Results of functions of JAX on the machine, compared with those of JAX's CPU."""

import jax
import numpy as np

from neuroncore_rtl.frontends.xla import jit
from neuroncore_rtl.frontends.xla.compiled import compile_graph
from neuroncore_rtl.frontends.xla.reading.module import parse_text, read_module
from neuroncore_rtl.spec.config import PRESETS

__all__ = ["compare", "compare_all", "compare_calls", "compile_text", "differences", "run_text"]


def compare(function, *args, **options):
    """Run a function on both; return the `Jitted`. Options are those of `compare_calls`."""
    return compare_calls(function, args, **options)


def compare_all(*cases, **options):
    """Compare functions, each with its arguments, as one program: it is traced, lowered and compiled once."""
    functions, args = [function for function, *_ in cases], [own for _, *own in cases]
    return compare(lambda args: [f(*own) for f, own in zip(functions, args, strict=True)], args, **options)


def compare_calls(
    function, *calls, preset: str = "tiny", target: str = "golden", order: str = "program", tolerance: float = 0.0
):
    """Run calls of a function, each a tuple of arguments of the same shapes, on both; return the `Jitted`.

    AssertionError if a result has another shape or type, or differs by more than the tolerance relative to the largest
    finite element; without a tolerance all bits must be the same, NaN apart.
    """
    machine = jit(function, preset=preset, target=target, order=order)
    for args in calls:
        got = [np.asarray(one) for one in jax.tree.leaves(machine(*args))]
        wanted = jax.tree.leaves_with_path(machine.function(*args))  # traced and lowered once for both
        expected = {jax.tree_util.keystr(path): np.asarray(one) for path, one in wanted}
        assert [(one.shape, one.dtype) for one in got] == [(one.shape, one.dtype) for one in expected.values()]
        for one, (name, other) in zip(got, expected.items(), strict=True):
            if tolerance and one.dtype.kind not in "iub":
                one, other = one.astype(np.float64), other.astype(np.float64)
                largest = abs(other[np.isfinite(other)]).max(initial=1e-30)
                np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * largest, err_msg=name)
            else:
                assert not differences(one, other).any(), (name, one, other)
    return machine


def differences(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return where the bits of two arrays differ; all NaN are equal."""
    codes = [np.ascontiguousarray(each).view(f"u{each.itemsize}").reshape(each.shape) for each in (one, other)]
    if one.dtype.kind in "iub":
        return codes[0] != codes[1]
    nan = np.isnan(one.astype(np.float32)) & np.isnan(other.astype(np.float32))
    return (codes[0] != codes[1]) & ~nan


def compile_text(text: str):
    """Return the `Compiled` of StableHLO's text."""
    return compile_graph(read_module(parse_text(text)), PRESETS["tiny"])


def run_text(text: str, *args: np.ndarray) -> list[np.ndarray]:
    """Return the results of StableHLO's text on the machine."""
    return compile_text(text).execute(args, "golden")[0]
