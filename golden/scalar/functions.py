"""Activation functions of docs/activation.md on arrays."""

from functools import cache

import numpy as np

from neuroncore_rtl.golden.arith.numba_cache import cached_function
from neuroncore_rtl.spec.functions import Function, Tables, function_named, load_tables
from neuroncore_rtl.spec.functions.layout import Special, control_address, window

__all__ = ["activate"]

_NAN = 0x7FC00000
_WINDOWS = np.array([(window(e) >> 40, window(e) & (1 << 40) - 1) for e in range(128)], np.uint64)


def activate(function: Function | str, z, alpha: float | np.ndarray = 0.0, tables: Tables | None = None) -> np.ndarray:
    """Return f(z) in FP32, with subnormal numbers and the canonical NaN; docs/activation.md has the error bounds.

    `alpha` is the parameter of leaky_relu and dleaky_relu; `tables`, contents of the hardware's tables, are by default
    the repository's.
    """
    if not isinstance(function, Function):
        function = function_named(function)
    z = np.asarray(z, np.float32)
    parameter = np.float32(alpha)
    result = np.empty(z.size, np.uint32)
    cached_function("neuroncore_rtl.golden.scalar.evaluation", "evaluate")(
        np.ascontiguousarray(z).reshape(-1).view(np.uint32), result, z.size, _special_words(function, parameter),
        int(parameter.view(np.uint32)), int(function.parity), *_arrays(tables, function.code), _WINDOWS,
    )  # fmt: skip
    return result.view(np.float32).reshape(z.shape)


@cache
def _arrays(tables: Tables | None, code: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tables = tables or load_tables()
    first, last = control_address(code, 0, 0), control_address(code + 1, 0, 0)
    control = np.array(tables.control[first:last], np.int64)
    return control, np.array(tables.segments, np.int64), np.array(tables.exp2, np.int64)


def _special_words(function: Function, alpha: np.float32) -> np.ndarray:
    words = []
    for (special, sign), z in zip(function.specials, np.array([0.0, -0.0, np.inf, -np.inf], np.float32), strict=True):
        if special.word is not None:
            words.append(sign << 31 | special.word)
        else:
            with np.errstate(invalid="ignore"):
                value = alpha if special is Special.ALPHA else alpha * z
            words.append(_NAN if np.isnan(value) else int(value.view(np.uint32)))
    return np.array(words, np.int64)
