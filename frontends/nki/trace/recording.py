"""State of a kernel's recording: allocations, appended instructions and current program of the grid.

A call of the first dialect stays pending until the next one. If the next operation is an assignment of this result, as
in `tile[...] = nisa.activation(...)`, it is written directly to the target of the assignment; otherwise to a new
tensor.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import chain, count
from math import prod
from typing import Any, TypeVar

import numpy as np

from neuroncore_rtl.frontends.nki.arguments import map_leaves, typed_numbers
from neuroncore_rtl.frontends.nki.indices.affine import Affine
from neuroncore_rtl.frontends.nki.indices.dtypes import DType
from neuroncore_rtl.frontends.nki.indices.given import as_integer
from neuroncore_rtl.frontends.nki.indices.lines import explained, from_kernel, kernel_line
from neuroncore_rtl.frontends.nki.indices.storage import Allocation, Memory, format_in
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.kernels.program import HbmTensor, Program
from neuroncore_rtl.kernels.program.source import SourceLine, located, override_source
from neuroncore_rtl.spec.costs import busy_cycles
from neuroncore_rtl.spec.isa import Engine

__all__ = ["Pending", "Recording", "is_recording", "recording"]

_Made = TypeVar("_Made")

_CURRENT: ContextVar["Recording | None"] = ContextVar("recording", default=None)


@dataclass
class Pending:
    """A call with a destination that is not yet known.

    Arguments:
        result: the tensor returned to the kernel.
        run: appends instructions that write the result to a view of the same shape.
        source: the kernel's line with the call.
        product: whether `run` accepts accumulate=True, which adds to the view.
    """

    result: View
    run: Callable[..., None]
    source: SourceLine
    product: bool = False

    def append(self, target: View, **options: bool) -> None:
        with override_source(self.source):
            located(explained(self.run, "the call"))(target, **options)


@dataclass
class Recording:
    """A program under construction by a kernel's calls.

    `calls` has the functions of the tensor operators, by their names in `nki.language`.

    Attributes:
        inserted: number of instructions that no call names, by purpose.
        constants: arrays in HBM from the start.
    """

    program: Program
    tensor: type[View]
    calls: Mapping[str, Callable]
    inserted: Counter = field(default_factory=Counter)
    constants: list[tuple[HbmTensor, np.ndarray]] = field(default_factory=list)
    grid: tuple[int, ...] = ()
    place: tuple[int, ...] = ()
    pending: Pending | None = None
    streams: Iterator[int] = field(default_factory=lambda: count(1))
    running: dict[str, Any] = field(default_factory=dict)
    """Running results by engine, which a kernel may continue (`frontends.nki.lowering.running`)."""
    lanes_summing: int = 0
    """Number of partitions whose running sums the scalar engine holds."""
    loops: list = field(default_factory=list)
    """Dynamic loops being recorded, innermost last (`frontends.nki.lowering.loops`)."""
    on_chip: list[Allocation] = field(default_factory=list)
    aliases: dict[Allocation, tuple[View, int]] = field(default_factory=dict)
    """For each result assigned to a part of another tensor: that part, and the tensor's version at that time."""
    made: dict[tuple, Any] = field(default_factory=dict)
    """Objects that `once` has cached, by key."""

    def __post_init__(self):
        self._shared: list[View] = []
        self._shared_now = 0
        self._busy: Counter[Engine] = Counter()
        self._counted = 0
        self._outermost = True

    def allocate(self, shape: tuple[int, ...], dtype: DType, memory: Memory, name: str = "", lanes: int = 0) -> View:
        """Allocate a tensor.

        On chip, `shape` has blocks, partitions, elements of a partition, and `lanes` is the index of the partition
        dimension. An empty name in messages becomes the memory and the kernel's line.

        Raises:
            ValueError: for an empty dimension, a type that the machine lacks, or too many partitions.
        """
        name = name or f"{memory.value}@{kernel_line().kernel.number}"
        shape = tuple(as_integer(f"{name}: a dimension of shape", n) for n in shape)
        if any(n < 1 for n in shape) or not shape:
            raise ValueError(f"{name}: shape must have dimensions, each of at least 1 element, not {shape}")
        fmt = format_in(memory, dtype)
        if not memory.on_chip:
            return self._in_hbm(shape, dtype, memory, name)
        config, space = self.program.config, self.program.space
        most = config.columns if memory is Memory.psum else config.partitions
        if shape[lanes] > most:
            raise ValueError(f"{name}: partitions must be at most {most}, not the {shape[lanes]} of {shape}")
        make = space.psum if memory is Memory.psum else space.sbuf
        width = prod(shape[lanes + 1 :])
        allocation = Allocation(
            name, dtype, memory, shape, lanes, lambda block: make(name, fmt, (width,), shape[lanes])
        )
        self.on_chip.append(allocation)
        steps = [tuple(prod(part[d + 1 :]) for d in range(len(part))) for part in (shape[:lanes], shape[lanes + 1 :])]
        none, few, flat = (0,) * lanes, (0,) * (len(shape) - lanes - 1), (0,) * len(shape)
        return self.tensor(
            allocation=allocation,
            dtype=dtype,
            shape=shape,
            element=Affine(shape, (*none, 0, *steps[1])),
            partition=Affine(shape, (*none, 1, *few)),
            block=Affine(shape, (*steps[0], 0, *few)) if lanes else Affine(shape, flat),
            lanes=lanes,
        )

    def of_hbm(self, tensor: HbmTensor, dtype: DType, memory: Memory = Memory.shared_hbm) -> View:
        shape, flat = tensor.shape, (0,) * len(tensor.shape)
        allocation = Allocation(tensor.name, dtype, memory, shape, None, lambda block: tensor)
        return self.tensor(
            allocation=allocation,
            dtype=dtype,
            shape=shape,
            element=Affine(shape, tensor.steps or ()),
            partition=Affine(shape, flat),
            block=Affine(shape, flat),
        )

    def _in_hbm(self, shape: tuple[int, ...], dtype: DType, memory: Memory, name: str) -> View:
        if memory is Memory.shared_hbm and self._shared_now < len(self._shared):
            # All programs of a grid share these tensors and make them in the same order.
            found = self._shared[self._shared_now]
            if (found.shape, found.dtype) != (shape, dtype):
                rule = "programs of a grid must make the same shared tensors"
                raise ValueError(f"{name}: {rule}, {found.shape} of {found.dtype}, not {shape} of {dtype}")
        else:
            names = {tensor.name for tensor in self.program.space.hbm_tensors}
            name = next(n for n in chain((name,), (f"{name}.{k}" for k in count(1))) if n not in names)
            found = self.of_hbm(self.program.space.hbm(name, dtype.machine_format, shape), dtype, memory)
            self._shared += [found] if memory is Memory.shared_hbm else []
        self._shared_now += memory is Memory.shared_hbm
        return found

    def constant(self, values: np.ndarray, dtype: DType) -> View:
        name = f"constant{len(self.constants)}@{kernel_line().kernel.number}"
        tensor = self.program.space.hbm(name, dtype.machine_format, values.shape)
        self.constants.append((tensor, values))
        return self.of_hbm(tensor, dtype)

    @from_kernel
    def _stored(self, args: tuple, options: dict) -> tuple[tuple, dict]:
        """Return a kernel's arguments with the arrays of numpy in HBM."""

        def placed(name: str, value: object) -> object:
            found = typed_numbers(name, value)
            return value if found is None else self.constant(found[0].copy(), found[1])

        stored = tuple(map_leaves(placed, "argument", value) for value in args)
        return stored, {name: map_leaves(placed, name, value) for name, value in options.items()}

    def once(self, key: tuple, make: Callable[[], _Made]) -> _Made:
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def busy(self, engine: Engine) -> int:
        """Return the cycles for which the appended instructions occupy an engine, vector or scalar."""
        for step in self.program.steps[self._counted :]:
            self._busy[step.instruction.engine] += busy_cycles(step.instruction, self.program.config)
        self._counted = len(self.program.steps)
        return self._busy[engine]

    def flush(self) -> None:
        if self.pending is not None:
            waiting, self.pending = self.pending, None
            waiting.append(waiting.result)

    def assign(self, target: View, value: View, accumulate: bool = False) -> bool:
        """Write the pending call's result to `target` if it is `value`; return whether this was possible."""
        waiting = self.pending
        if waiting is None or waiting.result is not value or (accumulate and not waiting.product):
            return False
        if target.numbers is not None and target.allocation.memory.on_chip:
            return False
        if waiting.product and (target.buffer, target.allocation.format) != (value.buffer, value.allocation.format):
            return False  # a product accumulates in PSUM first
        if [n for n in target.shape if n != 1] != [n for n in value.shape if n != 1]:
            return False
        self.pending = None
        waiting.append(target, **({"accumulate": True} if accumulate else {}))
        self.aliases[value.allocation] = target, target.allocation.version
        return True

    def resolved(self, view: View) -> View:
        """Return a view of the tensor in which the elements of `view` are.

        The result of a call that was assigned to a part of another tensor is stored only there; ValueError if that part
        was written since.
        """
        if view.numbers is not None:
            view = replace(view, numbers=replace(view.numbers, view=self.resolved(view.numbers.view)))
        found = self.aliases.get(view.allocation)
        if found is None:
            return view
        if view.numbers is not None:
            raise ValueError(
                f"{view.name}: a result that was assigned to {found[0].name} must not have an index in memory: "
                f"index {found[0].name} instead"
            )
        target, version = found
        if target.allocation.version != version:
            rule = f"an assigned result must be used before its target {target.name} is written again"
            raise ValueError(f"{view.name}: {rule}")
        own = view.allocation
        whole = target.fitted(own.shape)
        if len(own.shape) == 2:
            return whole.indexed(view.shape, [view.partition, view.element])
        steps = tuple(prod(own.shape[d + 1 :]) if d else 0 for d in range(len(own.shape)))
        if (view.shape, view.element.start, view.element.steps) != (own.shape, 0, steps) or view.partition.start:
            rule = "an assigned result of several free dimensions must be used whole"
            raise ValueError(f"{view.name}: {rule}, or as part of {target.name}, not as {view.shape} of {own.shape}")
        return whole

    @contextmanager
    def current(self) -> Iterator["Recording"]:
        """Make this, in this context, the recording to which calls of the interface are appended."""
        before = _CURRENT.set(self)
        try:
            yield self
            self._end()
        finally:
            _CURRENT.reset(before)

    def _end(self) -> None:
        self.flush()
        if self.loops:
            rule = "a loop on a register must end with its body, without break, return, or an if on the register"
            raise ValueError(f"{rule} ({self.loops[-1].source})")

    def launch(self, function: Callable, grid: tuple[int, ...], args: tuple, options: dict) -> object:
        """Run a kernel for every index of a grid, one program after the other; return the last result.

        A kernel that another one calls becomes part of its program. An array of numpy that a function of the host
        passes becomes a tensor in HBM.
        """
        if not self._outermost:
            return function(*args, **options)
        args, options = self._stored(args, options)
        self._outermost, self.grid, result = False, grid, None
        shared = len(self._shared)
        try:
            for place in np.ndindex(*grid):
                self.place, self._shared_now = tuple(place), shared
                result = function(*args, **options)
                self._end()
        finally:
            self._outermost, self.grid, self.place = True, (), ()
            self._shared_now = len(self._shared)
        return result


def is_recording() -> bool:
    """Return whether a kernel is being recorded."""
    return _CURRENT.get() is not None


def recording() -> Recording:
    """Return the current recording; RuntimeError outside one."""
    current = _CURRENT.get()
    if current is None:
        raise RuntimeError("nki can be called only while a kernel is recorded: run it by run_nki or make sim TEST=nki")
    return current
