"""Run of a kernel of the Neuron Kernel Interface on this machine."""

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore_rtl import ROOT
from neuroncore_rtl.frontends.nki.arguments import bind_arguments, map_leaves, typed_numbers
from neuroncore_rtl.frontends.nki.dialects.load import existing, function_of, load_kernel
from neuroncore_rtl.frontends.nki.record import Array, Recorded, record
from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.run.program import PRESET, run
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import UsageError, machine_of, refusals
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import Format

__all__ = ["NKI_ORDER", "NkiResult", "argument_of", "found_in", "recorded", "rounded", "run_nki"]

NKI_ORDER = "scheduled"
"""Default order of instructions: NKI lets the compiler reorder them if the results stay the same."""


@dataclass(frozen=True, kw_only=True)
class NkiResult:
    """Results of a kernel that ran to its end; prints as a table.

    `outputs` are float32 for every floating-point format, otherwise int8, int16 or int32. `inserted` has the number of
    instructions that no call names, by purpose.
    """

    outputs: tuple[np.ndarray, ...]
    run: Result
    inserted: Counter

    def __str__(self) -> str:
        lines = [str(self.run), "open-RTL cycles, not a prediction of Trainium's"]
        lines += [f"inserted: {count} x {reason}" for reason, count in self.inserted.items()]
        for line, cost in self.run.lines.items():
            lines.append(f"{line}  {cost.cycles:,} cycles, {cost.records} records")
        return "\n".join(lines)


def run_nki(
    kernel: str | Path,
    *args: object,
    grid: tuple[int, ...] | int = (),
    preset: str | Config = PRESET,
    order: str = NKI_ORDER,
    **variables: Any,
) -> NkiResult:
    """Run a kernel of the Neuron Kernel Interface.

    Arguments:
        kernel: "path/to/file.py:function"; the function may be a kernel or call kernels.
        args: the kernel's arguments in order; arrays, and pairs (array, type) as (x, "bfloat16"), are stored in HBM,
            also those within lists, tuples and dicts.
        grid: programs along each axis, run one after the other.
        preset: the machine, "tiny" to "full" or a `Config`.
        order: order of a queue's instructions, "program" or "scheduled".
        variables: `on`, the target, and other options of `run.run`, also parameters of the machine.

    Raises:
        ValueError: if the kernel does not exist, arguments do not fit, or a call is refused (with the kernel's line).
        Exception: any exception of the kernel or of `run.run`.
    """
    config, variables = machine_of(preset, variables)
    function = found_in(kernel, config)
    signature = inspect.signature(function)
    names, kinds = list(signature.parameters), {parameter.kind for parameter in signature.parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        arguments = signature.bind_partial(*args).arguments
    elif len(args) > len(names):
        rule = f"arguments must be at most the {len(names)} of the kernel, {', '.join(names)}"
        raise ValueError(f"{rule}, not {len(args)}")
    else:
        arguments = dict(zip(names, args, strict=False))
    made = recorded(function, arguments, config, grid, order)
    done = run(made.program, made.inputs, **variables)
    return NkiResult(outputs=tuple(map(done.read, made.outputs)), run=done, inserted=made.inserted)


def found_in(kernel: str | Path, config: Config) -> Callable:
    """Load the function "file.py:function" for a machine; otherwise UsageError with a list of the functions."""
    file, _, name = str(kernel).rpartition(":")
    if not file:
        raise UsageError(f"KERNEL must be path/to/file.py:function, not {str(kernel)!r}")
    path = Path(file) if Path(file).exists() else ROOT / file if (ROOT / file).exists() else Path(file)
    with refusals():
        existing(path)
    module = load_kernel(path, config)
    with refusals():
        return function_of(module, name)


def recorded(
    function: Callable, arguments: Mapping[str, object], config: Config, grid: tuple[int, ...] | int, order: str
) -> Recorded:
    """Return a kernel recorded as a program, see `record`; a `grid` n means (n,).

    Arrays among the arguments and their defaults are as for `run_nki`.
    """
    axes = (grid,) if isinstance(grid, int) else grid
    if not isinstance(axes, tuple | list) or not all(isinstance(axis, int) for axis in axes):
        raise ValueError(f"a grid must have integers of at least 1, not {grid!r}")
    bound = bind_arguments(getattr(function, "__name__", "kernel"), inspect.signature(function), arguments)
    arguments = {name: map_leaves(argument_of, name, given) for name, given in bound.arguments.items()}
    return record(function, arguments, config, tuple(axes), order)


def rounded(values: np.ndarray, fmt: Format) -> np.ndarray:
    """Return numbers rounded to a format."""
    numbers = decode(encode(values, fmt), fmt)
    return numbers.astype(np.float32) if fmt.is_float else numbers.astype(fmt.name)


def argument_of(name: str, given: Any) -> object:
    """Return an array as `Array`, other values unchanged; ValueError for a type that the machine lacks."""
    found = typed_numbers(name, given)
    return given if found is None else Array(*found)
