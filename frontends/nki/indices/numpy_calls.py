"""numpy's and Python's functions on the objects of a kernel: element-wise ones are calls of `nl`, others are refused.

Without these methods, numpy takes such an object for a scalar: `np.max(tile)` would return the tile itself.
"""

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from neuroncore_rtl.frontends.nki.indices.lines import from_kernel, kernel_line

__all__ = ["NumpyCalls"]

OF_SHAPES = {np.shape, np.ndim, np.size}
"""Functions that only read attributes."""

NAMES = {"absolute": "abs", "remainder": "mod", "true_divide": "divide"}
"""Names of `nl` for functions with another name in numpy."""

WAYS = {
    **dict.fromkeys(("max", "amax", "maximum.reduce"), "nl.max"),
    **dict.fromkeys(("min", "amin", "minimum.reduce"), "nl.min"),
    **dict.fromkeys(("sum", "add.reduce"), "nl.sum"),
    **dict.fromkeys(("prod", "multiply.reduce"), "nl.prod"),
    **dict.fromkeys(("dot", "matmul", "inner", "vdot", "tensordot", "einsum"), "nl.matmul or nisa.nc_matmul"),
    **dict.fromkeys(("concatenate", "stack", "hstack", "vstack", "tile", "repeat"), "assignments to parts of a tile"),
    **{name: f"nl.{name}" for name in ("mean", "var", "all", "where", "transpose", "expand_dims", "broadcast_to")},
    **{name: f"nl.{name}" for name in ("zeros_like", "empty_like", "copy")},
    "ptp": "nl.max and nl.min",
    "std": "nl.sqrt of nl.var",
    "clip": "nl.minimum and nl.maximum",
    "reshape": "tile.reshape",
    **{"T": "nl.transpose", "len": "tile.shape[0]"},
    **dict.fromkeys(("floor_divide", "floordiv", "divmod"), "nl.floor of nl.divide, or nl.right_shift of integers"),
}
"""Replacement of each refused function that has one."""


class NumpyCalls:
    """Base of tensors, index expressions and masks.

    `_elementwise` gives the implementation of an element-wise function by its name, `_way` the replacement of all other
    functions, for the message.
    """

    _way = ""

    def _elementwise(self, name: str) -> Callable | None:
        return None

    def _instead(self, name: str) -> str:
        return self._way or WAYS.get(name) or "the functions of nl"

    @from_kernel
    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        name = NAMES.get(function.__name__, function.__name__)
        implementation = self._elementwise(name) if function.signature is None and method == "__call__" else None
        if implementation is None or options:
            self._refuse(function.__name__ if method == "__call__" else f"{function.__name__}.{method}", options)
        # numpy passes its scalars as arrays without dimensions.
        numbers = [x.item() if isinstance(x, np.generic | np.ndarray) and x.size == 1 else x for x in inputs]
        for number in numbers:
            if isinstance(number, np.ndarray):
                rule = "an array of numpy must be an argument of the kernel or the result of nl.shared_constant"
                raise ValueError(f"{rule}, not combined with {self!r}, of shape {number.shape}")
        return implementation(*numbers)

    @from_kernel
    def __array_function__(self, function: Any, types: Iterable, args: tuple, options: dict) -> Any:
        if function not in OF_SHAPES:
            module = function.__module__.removeprefix("numpy").lstrip(".")
            self._refuse(f"{module}.{function.__name__}".lstrip("."), {})
        return function._implementation(*args, **options)

    @from_kernel
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return an array that holds this object, if its type is `object`; ValueError otherwise."""
        if dtype is None or np.dtype(dtype) != object:
            raise ValueError("numpy cannot read the values of a kernel's object, known only when the kernel runs")
        holder = np.empty((), object)
        holder[()] = self
        return holder

    @from_kernel
    def __copy__(self, *known: object) -> NoReturn:
        raise ValueError(f"{self!r} must be copied by nl.copy, not by Python's copy")

    __deepcopy__ = __copy__

    def __getattr__(self, name: str) -> NoReturn:
        unknown = AttributeError(f"{self!r} has no {name}: use {self._instead(name)} ({kernel_line()})")
        if not name.startswith("_"):
            vars(unknown)["source"] = kernel_line()
        raise unknown

    def _refuse(self, name: str, options: dict) -> NoReturn:
        given = f" with {', '.join(options)}=" if options else ""
        rule = f"np.{name}{given} cannot compute with {self!r} while a kernel is recorded"
        raise ValueError(f"{rule}: use {self._instead(name)}")


def _refused(name: str, way: str) -> Callable:
    @from_kernel
    def refuse(self: NumpyCalls, *others: object) -> NoReturn:
        raise ValueError(f"{self!r} has no {name} while a kernel is recorded: use {self._instead(way)}")

    return refuse


_BINARY = "add sub mul matmul truediv floordiv mod divmod pow and or xor lshift rshift".split()
_OTHERS = "pos neg abs invert round len int float complex index lt le gt ge getitem call".split()

for _name in (*_BINARY, *_OTHERS):
    for _prefix in ("", "r") if _name in _BINARY else ("",):
        setattr(NumpyCalls, f"__{_prefix}{_name}__", _refused(f"__{_prefix}{_name}__", _name))
