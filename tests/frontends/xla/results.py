"""Results of functions of JAX on the machine, compared with those of JAX's CPU."""

import math

import numpy as np

__all__ = ["compare", "compared", "differences", "run_text"]


def compare(
    function, *args, preset: str = "tiny", target: str = "golden", order: str = "program", tolerance: float = 0.0
):
    """Run a function on both; return the `Jitted`.

    AssertionError if a result has another shape or type, or differs by more than the tolerance relative to the largest
    finite element; without a tolerance all bits must be the same, NaN apart.
    """
    import jax

    from neuroncore_rtl.frontends.xla import jit

    machine = jit(function, preset=preset, target=target, order=order)
    got = [np.asarray(one) for one in jax.tree.leaves(machine(*args))]
    expected = [np.asarray(one) for one in jax.tree.leaves(machine.function(*args))]  # traced and lowered once for both
    assert [(one.shape, one.dtype) for one in got] == [(one.shape, one.dtype) for one in expected]
    for one, other in zip(got, expected, strict=True):
        if tolerance and one.dtype.kind not in "iub":
            one, other = one.astype(np.float64), other.astype(np.float64)
            largest = abs(other[np.isfinite(other)]).max(initial=1e-30)
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * largest)
        else:
            assert not differences(one, other).any(), (one, other)
    return machine


def compared(machine) -> int:
    """Return the number of elements of a model's results."""
    return sum(math.prod(one.shape) for one in machine.compiled.results)


def differences(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return where the bits of two arrays differ; all NaN are equal."""
    codes = [np.ascontiguousarray(each).view(f"u{each.itemsize}").reshape(each.shape) for each in (one, other)]
    if one.dtype.kind in "iub":
        return codes[0] != codes[1]
    nan = np.isnan(one.astype(np.float32)) & np.isnan(other.astype(np.float32))
    return (codes[0] != codes[1]) & ~nan


def run_text(text: str, *args: np.ndarray) -> list[np.ndarray]:
    """Return the results of StableHLO's text on the machine."""
    from neuroncore_rtl.frontends.xla.compiled import compile_graph
    from neuroncore_rtl.frontends.xla.reading.module import parse_text, read_module
    from neuroncore_rtl.spec.config import PRESETS

    return compile_graph(read_module(parse_text(text)), PRESETS["tiny"]).execute(args, "golden")[0]
