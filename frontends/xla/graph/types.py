"""Element types: XLA's, with the machine's format and numpy's type of the same bits."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.library.functions.lanes import ElementKind
from neuroncore_rtl.kernels.source import SourceLine
from neuroncore_rtl.spec import formats
from neuroncore_rtl.spec.formats import Format

__all__ = [
    "BOOLEAN", "CASTS", "FLOAT32", "INTEGER8", "INTEGER32", "UNSIGNED32", "ElementType", "check_narrow",
    "dense_steps", "element_type",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ElementType(ElementKind):
    """Type of a value's elements.

    Arguments:
        name: StableHLO's name.
        dtype: numpy's type.
        is_wide: whether the machine does not have the type, so that its values must be constants.
    """

    name: str
    dtype: np.dtype
    is_wide: bool = False

    def __str__(self) -> str:
        return self.name


def _type(name: str, fmt: Format, dtype: DTypeLike, is_wide: bool = False) -> ElementType:
    return ElementType(fmt, name == "i1", name=name, dtype=np.dtype(dtype), is_wide=is_wide)


_TYPES = {
    one[0]: _type(*one)
    for one in (
        ("f32", formats.FP32, np.float32),
        ("bf16", formats.BF16, ml_dtypes.bfloat16),
        ("f16", formats.FP16, np.float16),
        ("f8E4M3", formats.FP8E4M3, ml_dtypes.float8_e4m3),
        ("f8E5M2", formats.FP8E5M2, ml_dtypes.float8_e5m2),
        ("f8E3M4", formats.FP8E3M4, ml_dtypes.float8_e3m4),
        ("i8", formats.INT8, np.int8),
        ("i16", formats.INT16, np.int16),
        ("i32", formats.INT32, np.int32),
        ("ui8", formats.UINT8, np.uint8),
        ("ui16", formats.UINT16, np.uint16),
        ("ui32", formats.UINT32, np.uint32),
        ("i1", formats.UINT8, np.bool_),
    )
}
_WIDE = {
    one[0]: _type(*one, is_wide=True)
    for one in (
        ("i64", formats.INT32, np.int64), ("ui64", formats.UINT32, np.uint64), ("f64", formats.FP32, np.float64)
    )
}  # fmt: skip
_INSTEAD = {
    "f64": "float32", "i64": "int32", "ui64": "uint32", "i4": "int8", "ui4": "uint8", "i2": "int8", "ui2": "uint8",
    "f8E4M3FN": "float8_e4m3, whose maximum is 240", "f8E4M3FNUZ": "float8_e4m3", "f8E4M3B11FNUZ": "float8_e4m3",
    "f8E5M2FNUZ": "float8_e5m2",
}  # fmt: skip

CASTS = {
    "bf16": _TYPES["bf16"],
    "fp16": _TYPES["f16"],
    "tf32": _type("tf32", formats.TF32, np.float32),
    "fp8_e4m3": _TYPES["f8E4M3"],
}
"""Types to which float32 may be cast, by neuronx-cc's names."""
FLOAT32, INTEGER8, INTEGER32, UNSIGNED32, BOOLEAN = (_TYPES[name] for name in ("f32", "i8", "i32", "ui32", "i1"))


def element_type(name: str) -> ElementType:
    """Return the type of StableHLO's name; Refused if the machine does not have it."""
    if name not in _TYPES and name not in _WIDE:
        instead = f"; use {_INSTEAD[name]}" if name in _INSTEAD else ""
        raise Refused(f"element types must be {', '.join(_TYPES)}, not {name}{instead}")
    return (_TYPES | _WIDE)[name]


def check_narrow(
    kind: ElementType, what: str = "values that are no constants", source: SourceLine | None = None
) -> None:
    """Raise Refused if the machine does not have the type; `what` names the values in the message."""
    if kind.is_wide:
        raise Refused(f"{what} must be of {', '.join(_TYPES)}, not {kind}; use {_INSTEAD[kind.name]}", source)


def dense_steps(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the steps of row-major order."""
    return tuple(prod(shape[d + 1 :]) for d in range(len(shape)))
