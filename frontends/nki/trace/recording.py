"""State of a kernel's recording: allocations, appended instructions and current program of the grid.

A call of the first dialect stays pending until the next one. If the next operation is an assignment of this result, as
in `tile[...] = nisa.activation(...)`, it is written directly to the target of the assignment
(`frontends.nki.trace.results`); otherwise to a new tensor.
"""

from collections import Counter, defaultdict
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
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel, kernel_line
from neuroncore_rtl.frontends.nki.indices.storage import Allocation, Memory, format_in
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.trace.results import Assigned, Pending
from neuroncore_rtl.kernels.program import HbmTensor, Program

__all__ = ["Recording", "is_recording", "recording"]

_Made = TypeVar("_Made")

_LATEST = 4
"""Assigned results per tensor for which the next write to it is noted."""

_CURRENT: ContextVar["Recording | None"] = ContextVar("recording", default=None)


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
    assigned: dict[Allocation, Assigned] = field(default_factory=dict)
    """Results without storage of their own."""
    made: dict[tuple, Any] = field(default_factory=dict)
    """Objects that `once` has cached, by key."""

    def __post_init__(self):
        self._places: defaultdict[Allocation, list[Assigned]] = defaultdict(list)
        self._shared: list[View] = []
        self._shared_now = 0
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

    def flush(self) -> None:
        if self.pending is not None:
            waiting, self.pending = self.pending, None
            waiting.append(waiting.result)

    def assign(self, target: View, value: View, accumulate: bool = False) -> bool:
        """Write the pending call's result to `target` if it is `value`; return whether this was possible."""
        waiting = self.pending
        if waiting is None or waiting.result is not value or (accumulate and not waiting.product):
            return False
        if target.numbers is not None or not target.allocation.memory.on_chip:
            return False  # engines write only to fixed places on chip
        if target.allocation is value.allocation:
            return False  # its own bits as another type
        if waiting.product and (target.buffer, target.allocation.format) != (value.buffer, value.allocation.format):
            return False  # a product accumulates in PSUM first
        if [n for n in target.shape if n != 1] != [n for n in value.shape if n != 1]:
            return False
        self.pending = None
        versions, running = waiting.versions(), dict(self.running)
        waiting.append(target, **({"accumulate": True} if accumulate else {}))
        if any(running.get(engine) is not now for engine, now in self.running.items()):
            waiting.reads = None
        found = Assigned(waiting, target, versions, tuple(self.loops), accumulate)
        self._keep(found)
        return True

    def copied(self, place: View) -> View:
        """Return a tile with the elements of a view; instructions make it only if a write needs them."""
        result = self.allocate(place.shape, place.dtype, place.allocation.memory, place.name)

        def copy(target: View) -> None:
            self.calls["assign"](target, place)

        call = Pending(result, copy, kernel_line(), reads=(place,))
        found = Assigned(call, place, call.versions(), tuple(self.loops), copied=True)
        self._keep(found)
        return result

    def _keep(self, one: Assigned) -> None:
        self.assigned[one.call.result.allocation] = one
        if one.is_held:
            self._places[one.place.allocation].append(one)

    def resolved(self, view: View) -> View:
        """Return a view of the tensor in which the elements of `view` are.

        Raises:
            ValueError: if a result that was assigned is neither there any longer nor can be computed again.
        """
        view = self.with_index(view)
        one = self.assigned.get(view.allocation)
        if one is None:
            return view
        found = one.part_of(view) if one.is_kept() else None
        if found is not None and one.copied:
            one.readers += (loop for loop in self.loops if loop not in one.loops)
        else:
            self._check_loops(one)
        if found is None:
            self._store(one)
        return view if found is None else found

    def with_index(self, view: View) -> View:
        """Return a view with its index in memory resolved."""
        if view.numbers is None:
            return view
        return replace(view, numbers=replace(view.numbers, view=self.resolved(view.numbers.view)))

    def own(self, view: View, *, everything: bool) -> None:
        """Give a result in another tensor its own storage, before a write to a view of it.

        `everything` says that the view's previous elements are not needed.
        """
        if view.allocation in self._places:
            self._places[view.allocation] = self._before_write(view, self._places[view.allocation])
        one = self.assigned.get(view.allocation)
        if one is None:
            return
        self._check_loops(one)
        if everything and view.is_whole():
            del self.assigned[view.allocation]
        else:
            self._store(one)

    def _before_write(self, view: View, places: list[Assigned]) -> list[Assigned]:
        """Note the place of the next step in the results that a write may change; return those to look at later.

        These are all copies, and the last few assigned results, because each write looks at them.
        """
        left = [one for one in places if one.copied] + [one for one in places if not one.copied][-_LATEST:]
        for one in left:
            if one.copied and any(loop in one.readers for loop in self.loops) and one.is_kept():
                rule = f"a loop that reads the copy {one.call.result.name} of it must not write it"
                raise ValueError(f"{view.name}: {rule}: copy it by nl.copy before the loop")
            if not one.copied and one.loops == tuple(self.loops) and one.is_kept():
                one.before = len(self.program.steps)
        return left

    def _check_loops(self, one: Assigned) -> None:
        if any(loop not in one.loops for loop in self.loops):
            rule = "must not be used or written in a loop that began later"
            name, place = one.call.result.name, one.place.name
            raise ValueError(f"{name}: a result that is a part of {place} {rule}: copy it by nl.copy before")

    def _store(self, one: Assigned) -> None:
        """Give a result in another tensor its own storage."""
        result, kept = one.call.result, one.is_kept()
        before = one.before if one.is_held and one.place.allocation.memory is Memory.sbuf else None
        if not kept and before is None and not one.is_repeatable(tuple(self.loops)):
            rule = "must be used before this tensor or an operand is written"
            raise ValueError(f"{result.name}: a result that is a part of {one.place.name} {rule}: copy it by nl.copy")
        del self.assigned[result.allocation]
        first = len(self.program.steps)
        if kept or before is not None:
            self.calls["assign"](result, one.place.fitted(result.shape))
        else:
            one.call.append(result)
        if not kept and before is not None:
            self._move_last(len(self.program.steps) - first, before)

    def _move_last(self, count: int, to: int) -> None:
        self.program.move_last(count, to)
        for one in self.assigned.values():
            one.before = one.before if one.before is None or one.before < to else one.before + count

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
