"""Compiled models: an image with typed arguments and results, its execution on arrays, and its file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes  # noqa: F401 (numpy learns the names of its types)
import numpy as np

from neuroncore_rtl.kernels.program import HbmTensor, Image, Program
from neuroncore_rtl.run.image_file import read_image, tensor_of, tensor_values, write_image
from neuroncore_rtl.run.program import run
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import UsageError

__all__ = ["ArrayType", "Compiled", "read_compiled", "word_of_call"]


_SPREAD = 0x9E37_79B1
"""Odd, so that its multiples are different modulo 2^32; far apart, so that seeds seldom share words."""


class ArrayType(NamedTuple):
    """Shape and numpy's type of an argument or result."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class Compiled:
    """Program of a model.

    Arguments:
        image: the program's image, with the constants.
        inputs: tensors in HBM of the arguments.
        outputs: those of the results; may be views.
        arguments, results: types of the arguments and results.
        ir: text of the graph after its simplification.
        program: the program; None if the image was read from a file.
    """

    image: Image
    inputs: tuple[HbmTensor, ...]
    outputs: tuple[HbmTensor, ...]
    arguments: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]
    ir: str
    program: Program | None = None

    def execute(
        self, arrays: Sequence[np.ndarray], on: Any = "rtl", words: int = 0, **variables
    ) -> tuple[list[np.ndarray], Result]:
        """Run the program on arrays; return the results and the run's `Result`.

        `words`, 32 bits, selects the random words of stochastic rounding.
        """
        data = self.image.seeded(words)
        memory = np.frombuffer(data, np.uint8)
        for tensor, kind, array in zip(self.inputs, self.arguments, arrays, strict=True):
            if (found := ArrayType(array.shape, array.dtype)) != kind:
                raise UsageError(f"an argument must be {kind}, not {found}")
            if array.size:
                codes = np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(tensor.shape)
                replace(tensor, address=tensor.address - self.image.base).elements(memory)[...] = codes
        result = run(replace(self.image, data=data), on=on, **variables)
        return [_array(result, *pair) for pair in zip(self.outputs, self.results, strict=True)], result

    def write(self, path: Path, **values: Any) -> None:
        """Write a file for `read_compiled`, with further values of JSON."""
        own: dict[str, Any] = {name: [*map(tensor_values, getattr(self, name))] for name in ("inputs", "outputs")}
        for name in ("arguments", "results"):
            own[name] = [(one.shape, one.dtype.name) for one in getattr(self, name)]
        write_image(path, self.image, **own, ir=self.ir, **values)


def read_compiled(path: Path) -> tuple[Compiled, dict[str, Any]]:
    """Return the program of a file, and the writer's values; errors as `run.image_file.read_image`."""
    image, values = read_image(path)
    if "inputs" not in values:
        raise ValueError(f"{path} must be a file of a model, not of another image")
    own: dict[str, Any] = {name: tuple(map(tensor_of, values.pop(name))) for name in ("inputs", "outputs")}
    for name in ("arguments", "results"):
        own[name] = tuple(ArrayType(tuple(shape), np.dtype(kind)) for shape, kind in values.pop(name))
    return Compiled(image=image, ir=values.pop("ir"), **own), values


def word_of_call(seed: int, call: int) -> int:
    """Return the words of `execute` for a call: another one for each call with a seed."""
    return seed ^ call * _SPREAD % (1 << 32)


def _array(result: Result, tensor: HbmTensor, kind: ArrayType) -> np.ndarray:
    if 0 in kind.shape:
        return np.zeros(*kind)
    codes = np.array(tensor.elements(result.memory))
    return codes.astype(np.bool_) if kind.dtype == np.bool_ else codes.view(kind.dtype).reshape(kind.shape)
