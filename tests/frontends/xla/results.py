"""Results of functions of JAX on the machine, compared with those of JAX's CPU."""

import numpy as np

__all__ = ["compare", "differences"]


def compare(function, *args, preset: str = "tiny", target: str = "golden", tolerance: float = 0.0):
    """Run a function on both; return the `Jitted`.

    AssertionError if a result has another shape or type, or differs by more than the tolerance relative to the largest
    element; without a tolerance all bits must be the same, NaN apart.
    """
    import jax

    from neuroncore_rtl.frontends.xla import jit

    machine = jit(function, preset=preset, target=target, order="program")
    got = [np.asarray(one) for one in jax.tree.leaves(machine(*args))]
    expected = [np.asarray(one) for one in jax.tree.leaves(jax.jit(function)(*args))]
    assert [(one.shape, one.dtype) for one in got] == [(one.shape, one.dtype) for one in expected]
    for one, other in zip(got, expected, strict=True):
        if tolerance:
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(1e-30, abs(other).max(initial=0)))
        else:
            assert not differences(one, other).any(), (one, other)
    return machine


def differences(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return where the bits of two arrays differ; all NaN are equal."""
    codes = [np.ascontiguousarray(each).view(f"u{each.itemsize}").reshape(each.shape) for each in (one, other)]
    if one.dtype.kind in "iub":
        return codes[0] != codes[1]
    nan = np.isnan(one.astype(np.float32)) & np.isnan(other.astype(np.float32))
    return (codes[0] != codes[1]) & ~nan
