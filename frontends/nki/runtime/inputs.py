"""INPUTS and REFERENCE of TEST=nki: a kernel's arguments as text, and a numpy function that gives expected results."""

import ast
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from neuroncore_rtl.frontends.nki.dialects.load import load_kernel
from neuroncore_rtl.frontends.nki.indices.arrays import as_numbers, read_array
from neuroncore_rtl.frontends.nki.indices.dtypes import dtype_of
from neuroncore_rtl.frontends.nki.record import Array
from neuroncore_rtl.frontends.nki.runtime.run import rounded
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.spec.config import Config

__all__ = ["arguments_of", "input_errors", "reference_of"]

SHAPE = re.compile(r"(\d+(?:x\d+)*):(\w+)")
FILE = re.compile(r"(.+\.npy)(?::(\w+))?")


def arguments_of(words: str, rng: np.random.Generator) -> dict[str, object]:
    """Parse arguments such as `q=128x512:bf16 table=weights.npy causal=True`; UsageError if a word is malformed.

    A shape with a type gives a random array: normally distributed floats, integers up to 100, or truth values. A
    .npy file gives its array, rounded once to the type if one follows, as in `x=weights.npy:bf16`. Any other value is a
    Python literal.
    """
    found: dict[str, object] = {}
    for word in words.split():
        name, sign, text = word.partition("=")
        if not sign or not name.isidentifier() or name in found:
            raise UsageError(f"INPUTS must be words name=value, each name once, not {word!r}")
        try:
            found[name] = _argument(word, text, rng)
        except MemoryError:
            raise UsageError(f"INPUTS: {word}: an array must fit into the host's memory") from None
    return found


def reference_of(text: str, config: Config) -> Callable:
    """Load the numpy function "file.py:function"; otherwise UsageError with a list of the file's functions."""
    file, _, name = text.rpartition(":")
    if not Path(file).is_file():
        raise UsageError(f"REFERENCE must be path/to/file.py:function, not {text!r}")
    module = load_kernel(Path(file), config)
    functions = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    if name not in functions:
        raise UsageError(f"REFERENCE must be a function of {file}, {', '.join(functions)}, not {name!r}")
    return getattr(module, name)


def input_errors(
    reference: Callable, arguments: Mapping[str, object], outputs: tuple[np.ndarray, ...]
) -> dict[str, dict[str, float]]:
    """Return each output's error against a numpy function of the same arguments; UsageError if shapes differ."""
    given = {
        name: rounded(value.values, value.dtype.machine_format) if isinstance(value, Array) else value
        for name, value in arguments.items()
    }
    expected = reference(**given)
    expected = expected if isinstance(expected, tuple | list) else (expected,)
    shapes = [tuple(np.shape(one)) for one in expected]
    if shapes != [one.shape for one in outputs]:
        raise UsageError(f"REFERENCE must return shapes {[one.shape for one in outputs]}, not {shapes}")
    pairs = enumerate(zip(outputs, expected, strict=True))
    return {f"output_{number}": _errors(found, wanted) for number, (found, wanted) in pairs}


def _errors(found: np.ndarray, wanted: ArrayLike) -> dict[str, float]:
    """Return the largest error of the finite numbers, and how many others differ: NaN or infinity in only one array.

    Differences are taken in float64, which has every number of the machine exactly.
    """
    try:
        found, wanted = (np.asarray(one).astype(np.float64, casting="same_kind") for one in (found, wanted))
    except TypeError as error:
        raise UsageError(f"REFERENCE must return arrays of real numbers; {error}") from None
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    finite = np.isfinite(found) & np.isfinite(wanted)
    error = np.abs(found[finite] - wanted[finite]).max(initial=0)
    scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=1e-30)
    return {
        "largest_error": float(error),
        "of_the_largest": float(error / scale),
        "nan_or_infinity_differs": int((~same & ~finite).sum()),
    }


def _argument(word: str, text: str, rng: np.random.Generator) -> object:
    shaped = SHAPE.fullmatch(text)
    if shaped:
        shape = tuple(int(n) for n in shaped[1].split("x"))
        try:
            dtype = dtype_of(shaped[2])
            least = 0 if dtype.is_float or not dtype.signed else -100
            most = 2 if dtype.is_truth else 101
            values = rng.normal(size=shape) if dtype.is_float else rng.integers(least, most, size=shape)
        except ValueError as refusal:
            raise UsageError(f"INPUTS: {word}: {refusal}") from None
        return Array(values, dtype)
    named = FILE.fullmatch(text)
    if named:
        if not Path(named[1]).is_file():
            raise UsageError(f"INPUTS: a file must exist, not {word!r}")
        try:
            return Array(*as_numbers(read_array(named[1]), named[2]))
        except ValueError as refusal:
            raise UsageError(f"INPUTS: {word}: {refusal}") from None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        forms = "a shape with a type such as 128x512:bf16, a file.npy or file.npy:bf16, or a literal of Python"
        raise UsageError(f"INPUTS: a value must be {forms}, not {word!r}") from None
