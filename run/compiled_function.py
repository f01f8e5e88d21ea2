"""Compiled functions: called with trees of arrays, stored in a file, and read back without JAX."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore_rtl.run.compiled import ArrayType, Compiled, read_compiled, word_of_call
from neuroncore_rtl.run.report import only_long
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.trees import flattened, unflattened

__all__ = ["CompiledFunction", "load_model"]


@dataclass(kw_only=True)
class CompiledFunction:
    """A compiled function; call it with arguments of the trees, shapes and types that it was compiled for.

    Arguments:
        compiled: its program.
        names: of the arrays among the arguments.
        flatten: returns the arrays of arguments; UsageError for another tree.
        unflatten: returns the result of its arrays.
        forms: returns the forms of arguments and result, see `run.trees`.
        donated: whether a call uses up each array.
        target, variables: where and how it runs, as for `jit`.
        seed: of stochastic rounding.
        calls: number of calls so far, which determines its words; a lower one replays calls.
        result: the `Result` of the last call.
    """

    compiled: Compiled
    names: Sequence[str]
    flatten: Callable[[tuple, dict], Sequence]
    unflatten: Callable[[Sequence[np.ndarray]], Any]
    forms: Callable[[], Sequence]
    target: Any
    variables: dict[str, Any]
    donated: Sequence[bool] = ()
    seed: int = 0
    calls: int = 0
    result: Result | None = None

    @property
    def report(self) -> str:
        """Cycles, utilisation, stalls and costly lines of the last call."""
        return str(self.result)

    @property
    def ir(self) -> str:
        """Text of the graph."""
        return self.compiled.ir

    def __call__(self, *args, **kwargs) -> Any:
        """Run the function; return a tree of arrays."""
        return self.run(self.flatten(args, kwargs))

    def run(self, leaves: Sequence[Any]) -> Any:
        """Run the function on the arrays of its arguments, in order; return a tree of arrays."""
        arrays = [*map(_array, self.names, leaves, self.compiled.arguments)]
        with only_long() if self.result else nullcontext():  # a loop of calls shows its first one
            words = word_of_call(self.seed, self.calls)
            found, self.result = self.compiled.execute(arrays, self.target, words, **self.variables)
        self.calls += 1
        for leaf in compress(leaves, self.donated):
            if hasattr(leaf, "delete"):
                leaf.delete()
        return self.unflatten(found)

    def save(self, path: str | Path) -> None:
        """Write the file that `load_model` reads; UsageError if a tree has other containers than Python's."""
        self.compiled.write(Path(path), names=[*self.names], forms=self.forms(), seed=self.seed)


def load_model(path: str | Path, *, target: Any = "rtl", **variables) -> CompiledFunction:
    """Return the function of a file that `save` wrote; JAX need not be installed, and results are numpy's arrays.

    `target` and the variables of a run are as for `jit`; the file has the machine. Raises FileNotFoundError without
    the file; ValueError if it is damaged or of another version.
    """
    compiled, values = read_compiled(Path(path))
    if "forms" not in values:
        raise ValueError(f"{path} must be a file that `save` wrote, not one of the cache")
    positional, named = values["forms"][0][1]
    return CompiledFunction(
        compiled=compiled,
        names=values["names"],
        flatten=lambda args, kwargs: [*flattened(positional, args, "args"), *flattened(named, kwargs, "kwargs")],
        unflatten=lambda arrays: unflattened(values["forms"][1], iter(arrays)),
        forms=lambda: values["forms"],
        target=target,
        variables=variables,
        seed=values["seed"],
    )


def _array(name: str, given: Any, kind: ArrayType) -> np.ndarray:
    """Return an argument as an array; as in JAX, 64 bits count as 32, and a number fits any type of its kind."""
    array = np.asarray(given)
    found = ArrayType(array.shape, array.dtype)
    if found != kind:
        plain = isinstance(given, bool | int | float) and np.can_cast(array.dtype, kind.dtype, "same_kind")
        wide = array.dtype.kind == kind.dtype.kind and (array.itemsize, kind.dtype.itemsize) == (8, 4)
        if found.shape != kind.shape or not (plain or wide):
            raise UsageError(f"{name} must be {kind}, as compiled, not {found}")
    return array.astype(kind.dtype, copy=False)
