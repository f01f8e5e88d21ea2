"""Conversion between numpy arrays and the codes of tensors in HBM, unsigned integers of the format's size."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from neuroncore_rtl.golden.arith import decode, round_once, storage_dtype
from neuroncore_rtl.kernels.program import HbmTensor
from neuroncore_rtl.spec.formats import Format, IntFormat

__all__ = ["Inputs", "codes_of", "contents", "encode", "numbers_of"]

Inputs = Mapping[str | HbmTensor, ArrayLike]
"""Initial contents, numbers or codes, of tensors or views in HBM, by the tensors or their names."""


def contents(inputs: Inputs, tensors: Sequence[HbmTensor]) -> Iterator[tuple[HbmTensor, np.ndarray]]:
    """Yield the tensors that have inputs, and their codes; `tensors` are all tensors of the program in HBM.

    Raises ValueError if a name belongs to no tensor or to several, and as `codes_of`.
    """
    if not isinstance(inputs, Mapping):
        raise ValueError(f"inputs must be arrays by names of tensors, such as {{'x': x}}, not {inputs!r}")
    for key, given in inputs.items():
        if not isinstance(key, str | HbmTensor):
            raise ValueError(f"an input must be named by a tensor in HBM or by its name, not by {key!r}")
        tensor = _find_tensor(key, tensors) if isinstance(key, str) else key
        ends = ((one.address, one.address + one.size * one.format.bits // 8) for one in tensors)
        if not any(first <= tensor.address and tensor.address + _span(tensor) <= end for first, end in ends):
            raise ValueError(f"{tensor.name}: an input must be in the program's HBM, not at {tensor.address:#x}")
        yield tensor, codes_of(tensor, given)


def _span(tensor: HbmTensor) -> int:
    """Return the number of bytes from the first to the last element of a tensor or view, both included."""
    steps = zip(tensor.shape, tensor.steps or (), strict=True)
    return (1 + sum((count - 1) * max(step, 0) for count, step in steps)) * tensor.format.bits // 8


def _find_tensor(name: str, tensors: Sequence[HbmTensor]) -> HbmTensor:
    found = [tensor for tensor in tensors if tensor.name == name]
    if not found:
        names = ", ".join(dict.fromkeys(tensor.name for tensor in tensors)) or "none"
        raise ValueError(f"an input must be one of the program's tensors in HBM ({names}), not {name!r}")
    if len(found) > 1:
        raise ValueError(f"an input's name must name one tensor, not {len(found)}: give the tensor {name!r} instead")
    return found[0]


def codes_of(tensor: HbmTensor, given: ArrayLike) -> np.ndarray:
    """Return the codes of the initial contents of a tensor; ValueError if shape, type or range do not fit.

    Unsigned integers of the format's size are codes. Other numbers are rounded once, to nearest even; for an integer
    format they must be integers in its range.
    """
    fmt = tensor.format
    try:
        given = np.asarray(given)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{tensor.name}: elements must form an array of shape {tensor.shape!r}; {error}") from None
    if given.shape != tensor.shape:
        raise ValueError(f"{tensor.name}: shape must be {tensor.shape!r}, not {given.shape!r}")
    if given.dtype == storage_dtype(fmt):
        return given
    if given.dtype.kind not in "bif":
        rule = f"must be numbers, or codes of {fmt.name} as {storage_dtype(fmt)}"
        raise ValueError(f"{tensor.name}: elements {rule}, not {given.dtype}")
    if isinstance(fmt, IntFormat):
        legal = (given == np.trunc(given)) & (given >= fmt.min) & (given <= fmt.max)
        if not legal.all():
            wrong = given[~legal].flat[0]
            raise ValueError(f"{tensor.name}: elements must be integers from {fmt.min} to {fmt.max}, not {wrong}")
    return encode(given, fmt)


def numbers_of(codes: np.ndarray, fmt: Format) -> np.ndarray:
    """Return the numbers of codes: float32, which has every floating-point format exactly, or int8, int16, int32."""
    return decode(codes, fmt).astype(np.float32 if fmt.is_float else fmt.name)


def encode(values: np.ndarray, fmt: Format) -> np.ndarray:
    """Return the codes of numbers, rounded once, to nearest even; for an integer format they must be its integers."""
    values = np.asarray(values)
    if not fmt.is_float:
        return values.astype(np.int64).astype(f"uint{fmt.bits}")
    return round_once(values, fmt)
