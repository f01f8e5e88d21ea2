"""Attributes and locations of MLIR as Python values, by jaxlib's bindings."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from neuroncore_rtl.frontends.xla.graph.types import ElementType, element_type
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.program.source import Line, SourceLine

__all__ = ["Attributes", "tensor_type", "user_line"]

_STRUCTURES = {
    "dot_dimension_numbers": stablehlo.DotDimensionNumbers,
    "scatter_dimension_numbers": stablehlo.ScatterDimensionNumbers,
    "gather_dimension_numbers": stablehlo.GatherDimensionNumbers,
    "convolution_dimension_numbers": stablehlo.ConvDimensionNumbers,
}
_LIBRARY = ("/jax/_src/", "/jax/", "/optax/", "/flax/", "/site-packages/", "/neuroncore_rtl/frontends/")
_UNKNOWN = Line("<unknown>", 0)


class Attributes:
    """Attributes of an operation, by name."""

    def __init__(self, operation: ir.Operation):
        self._all = operation.attributes

    def __contains__(self, name: str) -> bool:
        return name in self._all

    def get(self, name: str) -> Any:
        """Return the MLIR attribute."""
        return self._all[name]

    def integers(self, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Return an array attribute of integers or booleans, in one dimension."""
        if name not in self._all:
            return default
        found: Any = self._all[name]
        if isinstance(found, ir.DenseElementsAttr):
            return tuple(int(one) for one in array_of(found).reshape(-1))
        return tuple(int(one) for one in found)

    def integer(self, name: str, default: int = 0) -> int:
        return int(self.get(name).value) if name in self._all else default

    def text(self, name: str, default: str = "") -> str:
        """Return the name of an enumeration's case, or a string."""
        if name not in self._all:
            return default
        found = self._all[name]
        if isinstance(found, ir.StringAttr | ir.FlatSymbolRefAttr):
            return found.value
        return str(found).split("<")[-1].rstrip(">").split()[-1]

    def structure(self, name: str, kind: str) -> Any:
        """Return a structure of StableHLO's dialect, such as the dimension numbers of a product."""
        return _STRUCTURES[kind](self._all[name])

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
        return np.broadcast_to(_scalar(found, dtype), shape)
    try:
        return np.array(found).astype(dtype, copy=False).reshape(shape)
    except (TypeError, ValueError, RuntimeError, BufferError):
        return _from_text(found, dtype).reshape(shape)


def _scalar(found: ir.DenseElementsAttr, dtype: np.dtype) -> np.ndarray:
    splat = found.get_splat_value()
    if dtype == np.bool_:
        return np.array(str(splat) in ("true", "1", "-1 : i1", "true : i1"))
    value = getattr(splat, "value", None)
    return _number(str(splat).split(":")[0].strip(), dtype) if value is None else np.asarray(value).astype(dtype)


def _number(text: str, dtype: np.dtype) -> np.ndarray:
    """Return the number of MLIR's text; hexadecimal digits are the bits of a float."""
    if text.startswith("0x") and dtype.kind not in "iub":
        return np.array(int(text, 16), f"u{dtype.itemsize}").view(dtype)
    return (
        np.array(text in ("true", "1"))
        if dtype == np.bool_
        else np.array(float(text) if dtype.kind not in "iu" else int(text)).astype(dtype)
    )


def _from_text(found: ir.DenseElementsAttr, dtype: np.dtype) -> np.ndarray:
    """Return the elements of a type that the bindings do not convert, such as FP8."""
    text = str(found)
    text = text[text.index("<") + 1 : text.rindex(">", 0, text.rindex(":"))]
    if text.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(text.strip('"')[2:]), dtype)
    return np.array([_number(one.strip(), dtype) for one in text.replace("[", "").replace("]", "").split(",")])


def user_line(location: ir.Location) -> SourceLine:
    """Return the user's line: the innermost one outside JAX and other installed packages."""
    lines = list(_lines(location))
    users = [line for line in lines if not any(part in line.file for part in _LIBRARY)]
    user = (users or lines or [_UNKNOWN])[0]
    return SourceLine(user, user)


def _lines(location: Any) -> list[Line]:
    match location:
        case ir.NameLoc():
            return _lines(location.child_loc)
        case ir.CallSiteLoc():
            return _lines(location.callee) + _lines(location.caller)
        case ir.FusedLoc():
            return [line for one in list(location.locations) for line in _lines(one)]
        case ir.FileLineColLoc():
            return [Line(str(Path(str(location.filename).strip('"'))), location.start_line)]
    return []
