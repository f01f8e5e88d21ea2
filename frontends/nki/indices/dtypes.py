"""Number formats by the names that kernels give them."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from neuroncore_rtl.spec.formats import (
    BF16,
    FORMATS,
    FP8E3M4,
    FP8E4M3,
    FP8E5M2,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    TF32,
    UINT8,
    UINT16,
    UINT32,
    Format,
    IntFormat,
)

__all__ = ["DTYPES", "DType", "dtype_of", "promoted"]


@dataclass(frozen=True, eq=False)
class DType:
    """A number format of the interface; equal to its name, and to numpy's type of the same name.

    Arguments:
        name: as of `nki.language`.
        format: the machine's; None: the machine has none, and a tensor of it is refused.
    """

    name: str
    format: Format | None

    def __eq__(self, other: object) -> bool:
        try:
            return self.name == dtype_of(other).name
        except ValueError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    @property
    def dtype(self) -> np.dtype:
        """What numpy takes for it: its own type of the name or that of ml_dtypes; float32 if neither has one."""
        name = self.name.rstrip("_")
        return np.dtype(getattr(ml_dtypes, name, name if hasattr(np, name) else "float32"))

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.known.bits // 8

    @property
    def known(self) -> Format:
        """The machine's format; ValueError if it has none."""
        if self.format is None:
            raise ValueError(f"dtype must be one that the machine has ({', '.join(_KNOWN)}), not {self.name}")
        return self.format

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point format."""
        return self.known.is_float

    @property
    def signed(self) -> bool:
        """Whether it has numbers below 0."""
        return not isinstance(self.known, IntFormat) or self.known.signed


DTYPES = {
    dtype.name: dtype
    for dtype in (
        *(DType(*pair) for pair in (("float32", FP32), ("tfloat32", TF32), ("bfloat16", BF16), ("float16", FP16))),
        *(DType(*pair) for pair in (("float8_e4m3", FP8E4M3), ("float8_e5m2", FP8E5M2), ("float8_e3m4", FP8E3M4))),
        *(DType(*pair) for pair in (("int8", INT8), ("int16", INT16), ("int32", INT32))),
        *(DType(*pair) for pair in (("bool_", UINT8), ("uint8", UINT8), ("uint16", UINT16), ("uint32", UINT32))),
        *(DType(name, None) for name in ("float8_e4m3fn", "float8_e8m0fnu", "float8_e5m2_x4", "float8_e4m3fn_x4")),
        DType("float4_e2m1fn_x4", None),
    )
}
"""Every type of `nki.language`, by name. What is stored as `bool_` is a byte, 0 or 1 of what compares."""

_KNOWN = tuple(name for name, dtype in DTYPES.items() if dtype.format is not None)
_BY_FORMAT = {dtype.format.name: dtype for dtype in DTYPES.values() if dtype.format is not None}
assert set(_BY_FORMAT) == set(FORMATS)


def dtype_of(given: object) -> DType:
    """Return the type that a kernel, numpy or INPUTS mean: itself, its name, numpy's, or the machine's short name.

    Raises:
        ValueError: if there is none of that name; the message lists those that exist.
    """
    if isinstance(given, DType):
        return given
    name = given if isinstance(given, str) else _numpy_name(given)
    name = {"bool": "bool_"}.get(name, name)
    found = DTYPES.get(name) or _BY_FORMAT.get(name)
    if found is None:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {name!r}")
    return found


def promoted(*dtypes: DType) -> DType:
    """Return the type that holds what all of them hold, as an operation on them has: FP32 if no float does, at most 32
    bits of an integer.
    """
    first = dtypes[0]
    if all(dtype.name == first.name for dtype in dtypes):
        return first
    floats = [dtype for dtype in dtypes if dtype.is_float]
    if len({dtype.name for dtype in floats}) == 1:
        return floats[0]
    if floats:
        return DTYPES["float32"]
    signed, unsigned = (
        max((dtype.known.bits for dtype in dtypes if dtype.signed is sign), default=0) for sign in (True, False)
    )
    if not signed:
        return DTYPES[f"uint{unsigned}"]
    # A number without a sign takes a bit more of a type that has one.
    return DTYPES[f"int{min(32, max(signed, 2 * unsigned))}"]


def _numpy_name(given: Any) -> str:
    if given is None:
        raise ValueError("dtype must be a type, not None")
    try:
        return np.dtype(given).name
    except TypeError:
        return str(given)
