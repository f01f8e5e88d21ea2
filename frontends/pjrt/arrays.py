"""Arrays in the HBM of a core."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from neuroncore_rtl.frontends.pjrt.core import JaxCore, Memory
from neuroncore_rtl.frontends.pjrt.handles import Failure
from neuroncore_rtl.frontends.xla.graph.types import element_type
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.run.compiled import ArrayType

__all__ = ["DeviceArray", "code_of", "dtype_of_code"]

_NAMES = (
    "invalid", "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "f32", "f64", "bf16",
    "complex<f32>", "complex<f64>", "f8E5M2", "f8E4M3FN", "f8E4M3B11FNUZ", "f8E5M2FNUZ", "f8E4M3FNUZ", "i4", "ui4",
    "token", "i2", "ui2", "f8E4M3", "f8E3M4", "f8E8M0FNU", "f4E2M1FN", "s1", "u1",
)  # fmt: skip
"""StableHLO's names of element types by PJRT's codes."""


def dtype_of_code(code: int) -> np.dtype:
    """Return numpy's type of a code; Refused if the machine does not have it."""
    kind = element_type(_NAMES[code] if code < len(_NAMES) else f"type {code}")
    if kind.is_wide:
        raise Refused(f"arrays must be of elements of at most 32 bits, not {kind}; leave jax_enable_x64 off")
    return kind.dtype


def code_of(dtype: np.dtype) -> int:
    """Return the code of numpy's type."""
    return _CODES[dtype]


class DeviceArray:
    """An array of a core; `values` is None after it was deleted, or without a result after an interrupt."""

    is_on_cpu = False

    def __init__(self, kind: ArrayType, device: JaxCore, values: np.ndarray | None = None):
        self.device, self.dims, self.type = device, kind.shape, code_of(kind.dtype)
        self.room = 0 if values is None else device.hbm.take(values.nbytes, str(kind))
        self.values = values

    @property
    def data(self) -> np.ndarray:
        """The values; Failure if the array was deleted."""
        if self.values is None:
            raise Failure("arrays must not be used after they were deleted or donated", Failure.INVALID_ARGUMENT)
        return self.values

    @property
    def memory(self) -> Memory:
        return self.device.memory

    @property
    def size(self) -> int:
        """Bytes in HBM."""
        return self.room

    @property
    def is_deleted(self) -> bool:
        return self.values is None

    @property
    def pointer(self) -> int:
        """Address of the values in this process."""
        return self.data.ctypes.data

    @property
    def event(self) -> None:
        """Event that the array is ready: always."""

    def delete(self) -> None:
        """Free the array's room."""
        if self.values is not None:
            self.values = None
            self.device.hbm.give(self.room)

    def copy_to(self, device: JaxCore) -> "DeviceArray":
        """Return a copy in the HBM of another core."""
        return DeviceArray(ArrayType(self.data.shape, self.data.dtype), device, self.data.copy())

    def in_order(self, order: Sequence[int]) -> np.ndarray:
        """Return the values with the dimensions of `order`, the innermost first, one after the other in memory."""
        return np.ascontiguousarray(self.data.transpose(order[::-1]) if order else self.data)


def _codes() -> dict[np.dtype, int]:
    found = {}
    for code in range(len(_NAMES)):
        with suppress(Refused):  # the machine does not have the type
            found[dtype_of_code(code)] = code
    return found


_CODES = _codes()
