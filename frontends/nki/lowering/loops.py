"""Dynamic loops: a body is recorded once and executed repeatedly, as often as is known only at run time.

Each instruction must be valid in every iteration. Values that were cached before the loop are therefore computed again
in the body, and values that the body caches are not used after the loop.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from neuroncore_rtl.frontends.nki.indices.affine import Affine
from neuroncore_rtl.frontends.nki.indices.dtypes import DTYPES
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel, kernel_line
from neuroncore_rtl.frontends.nki.indices.registers import CONDITION, VirtualRegister, register_of, tests_while
from neuroncore_rtl.frontends.nki.indices.storage import Allocation, Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.operands import lanes_tensor
from neuroncore_rtl.frontends.nki.trace.recording import Recording, recording
from neuroncore_rtl.kernels.program import HbmTensor, Tensor
from neuroncore_rtl.kernels.program.flow import Register
from neuroncore_rtl.kernels.program.instructions import memset
from neuroncore_rtl.kernels.source import SourceLine, override_source

__all__ = [
    "LOOPS", "DoWhile", "Loop", "check_first_product", "dynamic_range", "element_of", "fori_loop", "loop_register",
    "while_loop",
]  # fmt: skip

LOOPS = {
    "dynamic_range": "a loop of the controller if a bound is a register; else unrolled, in numbers of Python",
    "fori_loop": "a loop of the controller",
    "while_loop": "a loop of the controller",
}

CONSTANTS = ("identity", "ones", "positions", "half")
"""Cached objects that never change, so that they stay valid within loops."""


@dataclass(frozen=True)
class Loop:
    """A loop under recording.

    `manager` is the program's loop context, `source` the kernel's line, `register` the condition of a `while` loop or
    the counter of another loop. `made` and `outside` are the objects cached and the tensors allocated before the loop.
    """

    manager: AbstractContextManager
    source: SourceLine
    register: object
    made: dict
    outside: frozenset[Allocation]


def _enter(current: Recording, manager: AbstractContextManager, register: VirtualRegister | None = None):
    current.flush()
    for allocation in current.on_chip:
        for block in sorted(allocation.zeros):
            current.program.append(memset(allocation.tile(block), 0.0))
            allocation.written_elements(block)[:] = True
        allocation.zeros.clear()
    found = manager.__enter__()
    counter = found if register is None else register
    loop = Loop(manager, kernel_line(), counter, current.made, frozenset(current.on_chip))
    current.loops.append(loop)
    current.made = {key: value for key, value in current.made.items() if key[0] in CONSTANTS}
    current.lanes_summing = 0
    current.running.clear()
    return found


def _leave(current: Recording) -> None:
    current.flush()
    loop = current.loops.pop()
    loop.manager.__exit__(None, None, None)
    current.made = loop.made
    current.lanes_summing = 0
    current.running.clear()


def check_first_product(current: Recording, allocation: Allocation, adds: bool | None, is_new: bool) -> None:
    """Raise ValueError if a tensor's first product is inside a loop, where each iteration would restart the sums."""
    if current.loops and is_new and adds is not False and allocation in current.loops[-1].outside:
        rule = "sums carried from iteration to iteration must be written before the loop, such as by nisa.memset"
        raise ValueError(f"{allocation.name}: {rule}; accumulate=False restarts them in every iteration")


def _bound(given: object) -> int | Register:
    if isinstance(given, VirtualRegister):
        return given.register
    if not isinstance(given, Integral):
        raise ValueError(f"a loop's bounds must be integers or registers, not {given!r}")
    return int(given)


def _count(current: Recording, lower: object, upper: object, step: Any) -> AbstractContextManager:
    current.flush()
    return current.program.flow.loop(_bound(lower), _bound(upper), step)


class _Rounds:
    """Iterator of `for i in nl.dynamic_range(...)`; it has one element, so that Python records the body once."""

    def __init__(self, *bounds: Any):
        self._bounds, self._entered = bounds, False

    def __iter__(self) -> Iterator[VirtualRegister]:
        return self

    @from_kernel
    def __next__(self) -> VirtualRegister:
        current = recording()
        if self._entered:
            _leave(current)
            raise StopIteration
        self._entered = True
        return loop_register(current, _enter(current, _count(current, *self._bounds)))


@from_kernel
def dynamic_range(start, stop=None, step=1, **options) -> Iterable:
    """Return a `range` if all bounds are integers, otherwise a dynamic loop."""
    bounds = (0, start, step) if stop is None else (start, stop, step)
    if all(isinstance(number, Integral) for number in bounds):
        return range(*bounds)
    return _Rounds(*bounds)


@from_kernel
def fori_loop(lower, upper, body_fun: Callable, step=1) -> None:
    """Run body_fun(i) for i from lower to before upper; i is a copy of the loop's counter register."""
    current = recording()
    counter = _enter(current, _count(current, lower, upper, step))
    with override_source(None):
        returned = body_fun(loop_register(current, current.program.flow.register(counter)))
    if returned is not None:
        raise ValueError("the body of nl.fori_loop must return nothing")
    _leave(current)


@from_kernel
def while_loop(init, body_fun: Callable) -> None:
    """Run register = body_fun(register) while the register is not 0."""
    current = recording()
    flow = current.program.flow
    current.flush()
    condition = flow.register(register_of(init, "init"))
    _enter(current, flow.loop_while(condition))
    with override_source(None):
        returned = body_fun(loop_register(current, condition))
    following = register_of(returned, "the result of nl.while_loop's body")
    current.flush()
    if following is not condition:
        flow.set(condition, following)
    _leave(current)


class DoWhile:
    """Implements `with do_while(condition):`, which repeats the body while the tensor's one element is not 0."""

    def __init__(self, condition: View):
        self._condition = condition

    @from_kernel
    def __enter__(self) -> None:
        flow = recording().program.flow
        self._register = flow.register(1)
        _enter(recording(), flow.loop_while(self._register))

    @from_kernel
    def __exit__(self, kind, *error) -> None:
        """End the body of the loop; a `return` in the body ends the kernel only after the loop."""
        if kind is None:
            current = recording()
            current.flush()
            current.program.flow.load(self._register, element_of(current, self._condition))
            _leave(current)


class LoopRegister(VirtualRegister):
    """Register that can be the condition of a Python `while`."""

    @from_kernel
    def __bool__(self) -> bool:
        """Implement `while register:`: True once, so that Python records the body, then False."""
        current, line = recording(), kernel_line()
        if not tests_while(line.kernel):
            rule = "a register's number is known only when the kernel runs, so it cannot be a condition of Python"
            raise ValueError(f"{rule}: {CONDITION}")
        if any(loop.register is self and loop.source == line for loop in current.loops):
            _leave(current)
            return False
        _enter(current, current.program.flow.loop_while(self.register), self)
        return True


def element_of(current: Recording, view: View) -> Tensor | HbmTensor:
    """Return the machine's tensor for a view of one element."""
    if not isinstance(view, View) or view.size != 1:
        shape = view.shape if isinstance(view, View) else repr(view)
        raise ValueError(f"a register must be loaded from, or stored to, a tensor of one element, not {shape}")
    if view.numbers is not None:
        raise ValueError(
            f"{view.name}: a register must be loaded from a fixed address: copy an element at an index in memory first"
        )
    view = current.resolved(view)
    if view.allocation.memory.on_chip:
        return lanes_tensor(current, view)
    view.check_bounds()
    base = view.allocation.tensor(0)
    address = base.address + view.element.start * base.format.bits // 8
    return HbmTensor(name=view.name, format=view.dtype.machine_format, address=address, shape=(1,))


def loop_register(current: Recording, register: Register) -> LoopRegister:
    """Return a register for kernels that stands for a register of the program."""
    shape = (1, 1)
    flat = Affine(shape, (0, 0))
    word = Allocation("register", DTYPES["int32"], Memory.sbuf, shape, 0, lambda block: register.word, is_register=True)
    element, partition = Affine(shape, (0, 1)), Affine(shape, (1, 0))
    view = current.tensor(
        allocation=word, dtype=word.dtype, shape=shape, element=element, partition=partition, block=flat, lanes=0
    )
    return LoopRegister(register, view)
