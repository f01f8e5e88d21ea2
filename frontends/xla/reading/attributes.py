"""Attributes and locations of MLIR as Python values, by jaxlib's bindings."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from neuroncore_rtl.frontends.xla.graph.types import ElementType, element_type
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.source import Line, SourceLine

__all__ = ["Attributes", "tensor_type", "user_line"]

_STRUCTURES = (
    stablehlo.ConvDimensionNumbers, stablehlo.DotDimensionNumbers, stablehlo.GatherDimensionNumbers,
    stablehlo.ScatterDimensionNumbers,
)  # fmt: skip
_LIBRARY = ("/jax/_src/", "/jax/", "/optax/", "/flax/", "/site-packages/", "/neuroncore_rtl/frontends/")
_UNKNOWN = Line("<unknown>", 0)


class Attributes:
    """Attributes of an operation, by name; also those inside its dimension numbers."""

    def __init__(self, operation: ir.Operation):
        self._all = operation.attributes
        names = [name for name in self._all if name.endswith("dimension_numbers")]
        found = [kind(self._all[name]) for name in names for kind in _STRUCTURES if kind.isinstance(self._all[name])]
        self.numbers: Any = found[0] if found else None

    def integers(self, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Return an array attribute of integers or booleans, in one dimension."""
        if hasattr(self.numbers, name):
            return tuple(getattr(self.numbers, name))
        if name not in self._all:
            return default
        found: Any = self._all[name]
        return tuple(map(int, array_of(found).reshape(-1) if isinstance(found, ir.DenseElementsAttr) else found))

    def integer(self, name: str, default: int = 0) -> int:
        if hasattr(self.numbers, name):
            return getattr(self.numbers, name)
        found: Any = self._all[name] if name in self._all else None
        return default if found is None else int(found.value)

    def text(self, name: str, default: str = "") -> str:
        """Return the name of an enumeration's case, or a string."""
        found = self._all[name] if name in self._all else None
        if found is None or isinstance(found, ir.StringAttr | ir.FlatSymbolRefAttr):
            return default if found is None else found.value
        return str(found).split("<")[-1].rstrip(">").split()[-1]

    def array(self, name: str) -> np.ndarray:
        """Return a constant's array."""
        return array_of(self._all[name])


def tensor_type(value_type: ir.Type) -> tuple[tuple[int, ...], ElementType]:
    """Return shape and element type of a tensor's type; Refused if the machine does not have it."""
    found = value_type.maybe_downcast() if hasattr(value_type, "maybe_downcast") else value_type
    if not isinstance(found, ir.RankedTensorType):
        raise Refused(f"values must be arrays, not {found}")
    if not found.has_static_shape:
        raise Refused(f"shapes must be constants, not {found}; export with concrete shapes")
    return tuple(found.shape), element_type(str(found.element_type))


def array_of(attribute: ir.Attribute) -> np.ndarray:
    """Return the array of a dense attribute; a splat occupies one element."""
    found: Any = attribute.maybe_downcast() if hasattr(attribute, "maybe_downcast") else attribute
    if isinstance(found, ir.DenseResourceElementsAttr):
        raise Refused("constants must be in the module, not in a resource")
    kind = ir.RankedTensorType(found.type)
    shape, of = tuple(kind.shape), str(kind.element_type)
    dtype = element_type("i64" if of == "index" else of).dtype
    if found.is_splat:
        return np.broadcast_to(_from_text(found, dtype).reshape(()), shape)
    try:
        return np.array(found).astype(dtype, copy=False).reshape(shape)
    except (TypeError, ValueError, RuntimeError, BufferError):
        return _from_text(found, dtype).reshape(shape)


def _from_text(found: ir.DenseElementsAttr, dtype: np.dtype) -> np.ndarray:
    """Return the elements as MLIR writes them, also of a type that the bindings do not convert, such as FP8."""
    text = str(found)
    text = text[text.index("<") + 1 : text.rindex(">", 0, text.rindex(":"))]
    if text.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(text.strip('"')[2:]), dtype)
    return np.array([_number(one.strip(), dtype) for one in text.replace("[", "").replace("]", "").split(",")])


def _number(text: str, dtype: np.dtype) -> np.ndarray:
    """Return the number of MLIR's text; hexadecimal digits are the bits of a float."""
    if dtype == np.bool_:
        return np.array(text in ("true", "1"))
    if dtype.kind in "iu":
        return np.array(int(text), dtype)
    return (
        np.array(int(text, 16), f"u{dtype.itemsize}").view(dtype)
        if text.startswith("0x")
        else np.array(float(text)).astype(dtype)
    )


def user_line(location: ir.Location) -> SourceLine:
    """Return the user's line: the innermost one outside JAX and other installed packages."""
    first = None
    for line in _lines(location):
        if not any(part in line.file for part in _LIBRARY):
            return SourceLine(line, line)
        first = first or line
    return SourceLine(first or _UNKNOWN, first or _UNKNOWN)


def _lines(location: Any) -> Iterator[Line]:
    match location:
        case ir.NameLoc():
            yield from _lines(location.child_loc)
        case ir.CallSiteLoc():
            yield from _lines(location.callee)
            yield from _lines(location.caller)
        case ir.FusedLoc():
            for one in list(location.locations):
                yield from _lines(one)
        case ir.FileLineColLoc():
            yield Line(_file(str(location.filename)), location.start_line)


@cache
def _file(text: str) -> str:
    return str(Path(text.strip('"')))
