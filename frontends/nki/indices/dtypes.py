"""Number formats by their names in kernels."""

from dataclasses import dataclass
from numbers import Integral
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

__all__ = ["DTYPES", "DType", "dtype_of", "promoted", "type_of_numbers"]


@dataclass(frozen=True, eq=False, repr=False)
class DType:
    """Number format of the interface; equal to its name and to numpy's type of that name.

    Tensors of a type without a `format` of the machine are refused.
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

    def __repr__(self) -> str:
        return self.name

    @property
    def dtype(self) -> np.dtype:
        """Type of numpy or ml_dtypes with the name of this type; float32 if neither library has such a type."""
        name = self.name.rstrip("_")
        return np.dtype(getattr(ml_dtypes, name, name if hasattr(np, name) else "float32"))

    @property
    def itemsize(self) -> int:
        return self.machine_format.bits // 8

    @property
    def machine_format(self) -> Format:
        if self.format is None:
            raise ValueError(f"dtype must be one that the machine has ({', '.join(_KNOWN)}), not {self.name}")
        return self.format

    @property
    def is_float(self) -> bool:
        return self.machine_format.is_float

    @property
    def is_truth(self) -> bool:
        """Whether the type is `bool_`, a byte that is 0 or 1."""
        return self.name == "bool_"

    @property
    def signed(self) -> bool:
        return not isinstance(self.machine_format, IntFormat) or self.machine_format.signed


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
"""Every type of `nki.language`, by name. `bool_` is stored as a byte, 0 or 1."""

_KNOWN = tuple(name for name, dtype in DTYPES.items() if dtype.format is not None)
_BY_FORMAT = {dtype.format.name: dtype for dtype in DTYPES.values() if dtype.format is not None}
assert set(_BY_FORMAT) == set(FORMATS)


def dtype_of(given: object) -> DType:
    """Return a type, given as `DType`, name, numpy type or the machine's short name; ValueError lists the types."""
    if isinstance(given, DType):
        return given
    name = given if isinstance(given, str) else _numpy_name(given)
    name = {"bool": "bool_"}.get(name, name)
    found = DTYPES.get(name) or _BY_FORMAT.get(name)
    if found is None:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {name!r}")
    return found


def promoted(*dtypes: DType) -> DType:
    """Return the result type of an operation on operands of these types.

    It is the common type; FP32 for different floating-point types; at most 32 bits for integers; another type beside
    truth values.
    """
    dtypes = tuple(dtype for dtype in dtypes if not dtype.is_truth) or dtypes
    first = dtypes[0]
    if all(dtype.name == first.name for dtype in dtypes):
        return first
    floats = [dtype for dtype in dtypes if dtype.is_float]
    if len({dtype.name for dtype in floats}) == 1:
        return floats[0]
    if floats:
        return DTYPES["float32"]
    signed, unsigned = (
        max((dtype.machine_format.bits for dtype in dtypes if dtype.signed is sign), default=0)
        for sign in (True, False)
    )
    if not signed:
        return DTYPES[f"uint{unsigned}"]
    # An unsigned number needs a signed type with more bits.
    return DTYPES[f"int{min(32, max(signed, 2 * unsigned))}"]


def type_of_numbers(*numbers: object) -> DType:
    """Return the type of a tensor of Python numbers: `bool_` for truth values, else int32, or float32 with a float."""
    if all(isinstance(number, bool | np.bool_) for number in numbers):
        return DTYPES["bool_"]
    return DTYPES["int32" if all(isinstance(number, Integral | np.bool_) for number in numbers) else "float32"]


def _numpy_name(given: Any) -> str:
    if given is None:
        raise ValueError("dtype must be a type, not None")
    try:
        return np.dtype(given).name
    except TypeError:
        return str(given)
