"""Recording of a kernel and its arguments as a program, with named inputs and results in HBM."""

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore_rtl.frontends.nki.arguments import bind_arguments, map_leaves
from neuroncore_rtl.frontends.nki.dialects.hook import answering, is_answering, known_to
from neuroncore_rtl.frontends.nki.dialects.load import folder_of
from neuroncore_rtl.frontends.nki.dialects.modules import OPERATORS
from neuroncore_rtl.frontends.nki.indices.dtypes import DType
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.operands import mark_written
from neuroncore_rtl.frontends.nki.lowering.strided import strided
from neuroncore_rtl.frontends.nki.trace.kernel import Kernel, is_simulation
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.frontends.nki.trace.tensor import NkiTensor
from neuroncore_rtl.frontends.nki.trace.unwritten import fill, leaves_unwritten
from neuroncore_rtl.kernels.program import HbmTensor, Program
from neuroncore_rtl.spec.config import Config

__all__ = ["Array", "Recorded", "record"]


@dataclass(frozen=True)
class Array:
    """Array argument of a kernel in HBM; its values are rounded to `dtype`, to nearest even."""

    values: np.ndarray
    dtype: DType


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A kernel recorded as a program.

    `results` are the returned tensors in order; if the kernel returns nothing, the arguments that it writes. `written`
    has the HBM arguments that it writes, by name, and `inserted` the number of instructions that no call of the kernel
    names, by purpose.
    """

    program: Program
    inputs: Mapping[str | HbmTensor, np.ndarray]
    results: tuple[View, ...]
    written: Mapping[str, View]
    inserted: Counter

    @property
    def outputs(self) -> tuple[HbmTensor, ...]:
        """Return the results as tensors in HBM, which may be parts of others."""
        return tuple(_tensor(view) for view in self.results)


def _tensor(view: View) -> HbmTensor:
    view.check_bounds()
    if view.is_indirect():
        raise ValueError(f"{view.name}: a result must not have an index in memory: copy it to a tensor in HBM")
    fmt = view.dtype.machine_format
    address = view.allocation.in_hbm.address + view.element.start * fmt.bits // 8
    return HbmTensor(name=view.name, format=fmt, address=address, shape=view.shape, steps=view.element.steps)


def record(
    kernel: Callable,
    arguments: Mapping[str, object],
    config: Config,
    grid: tuple[int, ...] = (),
    order: str = "program",
) -> Recorded:
    """Record a kernel, or a function that calls kernels, as a program.

    An `Array` among the arguments, also in lists, tuples and dicts, becomes a tensor in HBM; other values are passed
    unchanged. `grid` and `order` are as in `frontends.nki.run_nki`.

    Raises:
        ValueError: if arguments do not fit, a call is refused (the message ends with the kernel's line), or the kernel
            returns anything other than tensors in HBM; one of `mode="simulation"` may return tiles on chip.
        Exception: any exception of the kernel.
    """
    program = Program(config, order=order)
    current = Recording(program, NkiTensor, OPERATORS)
    name = getattr(kernel, "__name__", "kernel")
    bound = bind_arguments(name, inspect.signature(kernel), arguments)
    inputs: dict[str | HbmTensor, np.ndarray] = {}
    given: dict[str, View] = {}

    def placed(key: str, value: object) -> object:
        if not isinstance(value, Array):
            return value
        tensor = program.space.hbm(key, value.dtype.machine_format, value.values.shape)
        inputs[tensor] = value.values
        given[key] = current.of_hbm(tensor, value.dtype)
        return given[key]

    for key, value in bound.arguments.items():
        bound.arguments[key] = map_leaves(placed, key, value)
    if grid:
        kernel = kernel[grid] if isinstance(kernel, Kernel) else Kernel(kernel)[grid]
    # Kernels may import modules inside their function body.
    function = inspect.unwrap(kernel.function if isinstance(kernel, Kernel) else kernel)
    file = Path(function.__code__.co_filename)
    where, folder = f"{file.name}:{function.__code__.co_firstlineno}", folder_of(file)
    imports = nullcontext() if is_answering() else answering(config, folder, known=known_to(function))
    with imports, current.current():
        found = kernel(*bound.args, **bound.kwargs)
        if is_simulation(function):
            found = tuple(_in_hbm(current, view) for view in (found if isinstance(found, tuple | list) else (found,)))
    fill(current)
    written = {key: view for key, view in given.items() if view.allocation.version}
    if found is None:
        # Kernels of the first dialect may return nothing and write to their arguments.
        found = tuple(written.values())
    results: tuple[Any, ...] = tuple(found) if isinstance(found, tuple | list) else (found,)
    if not results or any(not isinstance(result, View) or result.allocation.memory.on_chip for result in results):
        shown = ", ".join(type(result).__name__ if not isinstance(result, View) else result.name for result in results)
        shown = shown or "nothing"
        rule = "must return tensors in HBM, such as nl.ndarray(..., buffer=nl.shared_hbm)"
        raise ValueError(f"{name} {rule}, not {shown} ({where})")
    there = {view.allocation for view in given.values()}
    for result in results:
        if not (result.allocation.version or result.allocation.zeros or result.allocation in there):
            raise ValueError(f"{result.name} must be written before {name} returns it ({where})")
        if result.allocation not in there and leaves_unwritten(current, result.allocation.in_hbm):
            current.inserted["zeros in a result, where nothing was written"] += 1
    inputs |= dict(current.constants)
    return Recorded(program=program, inputs=inputs, results=results, written=written, inserted=current.inserted)


def _in_hbm(r: Recording, found: Any) -> Any:
    """Return a copy in HBM of a returned tile; other values unchanged."""
    if not isinstance(found, View) or not found.allocation.memory.on_chip:
        return found
    r.flush()
    found = r.resolved(found)
    r.inserted["copy to HBM of a returned tile"] += 1
    result = r.allocate(found.shape, found.dtype, Memory.shared_hbm, f"{found.name} in HBM")
    strided(r, result, found)
    mark_written(result)
    return result
