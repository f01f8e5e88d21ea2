"""Errors of the activation functions; arguments are drawn as integers, the same ones on every machine."""

from functools import cache

import numpy as np

from neuroncore_rtl.spec.functions import FUNCTIONS, layout, load_tables
from neuroncore_rtl.tb.check.oracles.functions import POSITIVE, reference

__all__ = ["CROSSINGS", "bf16_values", "borders", "dense", "errors", "last_place", "wrong_way"]

CROSSINGS = {
    "dgelu": (-0.9, -0.6), "dgelu_tanh": (-0.9, -0.6), "dgelu_sigmoid": (-0.9, -0.6), "dsilu": (-1.5, -1.1),
}  # fmt: skip
"""By function, the range of arguments around its zero crossing, where only the absolute error is meaningful."""

_BINADES = (-149, -140, -127, -126, -2, -1, 0, 1, 2, 126, 127)
"""Exponents of the tested binades (ranges of one exponent) of functions that behave alike in every binade."""


def last_place(y) -> np.ndarray:
    """Return the value of one FP32 last place in the binade of y, float64; for small y, of a subnormal's last place."""
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(np.abs(y))
    return np.ldexp(1.0, np.maximum(exponent, -125) - 24)


def errors(name: str, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return |y - f(z)| in last places of f(z); 0 if both are the same infinity."""
    exact = reference(name, z)
    overflow = float(np.finfo(np.float32).max) * (1 + 2.0**-25)
    with np.errstate(all="ignore"):
        same = (np.abs(exact) >= overflow) & np.isinf(y) & (np.sign(y) == np.sign(exact))
        return np.where(same, 0, np.abs(y.astype(np.float64) - exact) / last_place(exact))


def wrong_way(name: str, z: np.ndarray, evaluate) -> tuple[int, int]:
    """Count the steps in which the results change in the direction opposite to the function, and all steps.

    A step is from an argument z to the next FP32 number. A step is not counted as opposite if the function changes by
    less than the error of its float64 reference.
    """
    z = np.unique(z)
    with np.errstate(over="ignore"):
        after = np.nextafter(z, np.float32(np.inf))
    z, after = z[np.isfinite(after)], after[np.isfinite(after)]
    before, exact = reference(name, z), reference(name, after)
    with np.errstate(all="ignore"):
        direction = np.where(np.abs(exact - before) > 2.0**-46 * np.abs(before), np.sign(exact - before), 0)
        ours = np.sign(evaluate(after).astype(np.float64) - evaluate(z))
    # Zero can be a pole, with results of either sign on its sides.
    direction[np.sign(z) != np.sign(after)] = 0
    return int((ours * direction < 0).sum()), len(z)


def bf16_values() -> np.ndarray:
    """Return all finite BF16 values."""
    z = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    return z[np.isfinite(z)]


def dense(name: str, rng: np.random.Generator, count: int) -> np.ndarray:
    """Return random float32 in the function's domain: any pattern, exponents near 0, and evenly spaced values."""
    third = count // 3
    sign = rng.integers(0, 2, 3 * third, np.uint32) << np.uint32(31)
    near = rng.integers(115 << 23, 135 << 23, third, np.uint32)
    even = (rng.integers(1, 110 << 16, third) / (1 << 16)).astype(np.float32).view(np.uint32)
    words = np.concatenate([rng.integers(1, 0x7F800000, third, np.uint32), near, even]) | sign
    return _in_domain(name, words.view(np.float32))


@cache
def borders(name: str, reach: int = 2) -> np.ndarray:
    """Return the float32 numbers within `reach` last places of every border of a segment."""
    function = FUNCTIONS[name]
    places = [np.arange(-150 * 128, 128 * 128 + 1) * np.log(2) / 128] if name == "exp" else []
    for negative in (0, 1):
        for row in range(2 if function.parity else layout.HIGH_EXPONENT - layout.LOW_EXPONENT + 1):
            fields = load_tables().control[layout.control_address(function.code, negative, row)]
            places.append((-1) ** negative * _row_borders(dict(zip(layout.CONTROL_FIELDS, fields, strict=True)), row))
    with np.errstate(over="ignore"):
        words = np.concatenate(places).astype(np.float32).view(np.uint32).astype(np.int64)
    near = (words[:, np.newaxis] + np.arange(-reach, reach + 1)) & 0xFFFFFFFF
    return _in_domain(name, near.astype(np.uint32).ravel().view(np.float32))


def _row_borders(field: dict[str, int], row: int) -> np.ndarray:
    steps = np.arange((1 << field["bits"]) + 1) / (1 << field["bits"])
    if field["coordinate"] in (layout.Coordinate.SIN, layout.Coordinate.COS):
        return ((np.arange(64)[:, np.newaxis] + steps) * np.pi / 2).ravel()
    if field["coordinate"] == layout.Coordinate.OUTER and row == 0:
        return steps * 2.0 ** (layout.LOW_EXPONENT + 1)
    if field["coordinate"] == layout.Coordinate.OUTER:
        binade, fraction = np.divmod(steps * (1 << layout.BINADES_BITS), 1)
        return (1 + fraction) * 2.0 ** (binade + layout.HIGH_EXPONENT)
    if field["scale"] != layout.Scale.NONE or field["factor"] == layout.Factor.LOG:
        return ((1 + steps) * 2.0 ** np.array(_BINADES)[:, np.newaxis]).ravel()
    return (1 + steps) * 2.0 ** (row + layout.LOW_EXPONENT)


def _in_domain(name: str, z: np.ndarray) -> np.ndarray:
    z = z[np.isfinite(z) & (z != 0)]
    return np.unique(z[z > 0] if name in POSITIVE else z)
