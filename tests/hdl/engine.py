"""Faster version of Amaranth's simulation engine for unit tests.

Amaranth's engine checks every process of a unit in every delta cycle. Here a signal that changes adds the processes
that read it to a set, and only these run. Amaranth makes one process of all combinational statements of a module;
`in_parts` splits it, which saves a fifth of the time of the tests of queues, links and the elementwise front end. The
Python code of a process is compiled once for all tests of a unit.
Testbenches read and write whole signals, and read members of constants, directly. The trigger of a clock, the shape of
an expression and the size of a layout are made once.
"""

from collections.abc import Iterable
from functools import lru_cache
from weakref import WeakKeyDictionary

from amaranth.hdl import Const, Fragment, Shape, Signal
from amaranth.hdl._ast import Concat, Operator, Part, SignalKey, Slice, SwitchValue
from amaranth.lib import data
from amaranth.sim import _async, _pyrtl
from amaranth.sim.pysim import PySimEngine, _FragmentCompiler, _PyEngineState, _PySignalState, _run_wakers

__all__ = ["Engine", "in_parts"]


class _Waker:
    """Schedules a process of a unit when an input or a memory changes, or when its clock changes to `polarity`."""

    __slots__ = ("polarity", "process")

    def __init__(self, process, polarity: int | None = None):
        self.process = process
        self.polarity = polarity

    def __call__(self, curr: int = 0, next: int = 0) -> bool:
        if self.polarity in (None, next):
            self.process.runnable = True
        return True


_pyrtl.comb_waker = _pyrtl.edge_waker = _pyrtl.memory_waker = _Waker
_pyrtl.compile = lru_cache(maxsize=None)(compile)


def _once(compute):
    key = f"_once_{compute.__name__}"
    return lambda self: vars(self).get(key) or vars(self).setdefault(key, compute(self))


for _kind in (Concat, Operator, Part, Slice, SwitchValue):
    _kind.shape = _once(_kind.shape)
data.Field.width = property(_once(data.Field.width.fget))
data.StructLayout.size = property(_once(data.StructLayout.size.fget))

_item = data.Const.__getitem__


def _field(self, key):
    """Return a member of a constant, directly if it is a plain number."""
    layout = self._Const__layout
    field = layout._fields.get(key) if type(layout) is data.StructLayout and type(key) is str else None
    if field is None or type(field._shape) is not Shape or field._shape._signed:
        return _item(self, key)
    return self._Const__target >> field._offset & (1 << field._shape._width) - 1


data.Const.__getitem__ = _field


class _Context(_async.TestbenchContext):
    """A testbench's access to signals; a write that changes nothing does not run the design."""

    def get(self, expr):
        return self._engine.get_value(expr) if type(expr) is Signal else super().get(expr)

    def set(self, expr, value):
        state = self._engine.state
        slot = state.slots[state.get_signal(expr)] if type(expr) is Signal and type(value) in (bool, int) else None
        if slot is None or slot.is_comb or expr._signed:
            super().set(expr, value)
        elif slot.next != (bits := value & (1 << expr._width) - 1):
            slot.update(bits)
            self._engine.step_design()


_async.TestbenchContext = _Context

_collect_trigger, _of_domain = _async.TickTrigger._collect_trigger, WeakKeyDictionary()


def _collect_triggers(tick) -> _async.TriggerCombination:
    """Return what a tick waits for: the three triggers of its domain, and samples."""
    if tick._domain not in _of_domain:
        _of_domain[tick._domain] = _collect_trigger(tick)._triggers[:3]
    samples = map(_async.SampleTrigger, tick._sampled)
    return _async.TriggerCombination(tick._engine, tick._process, triggers=(*_of_domain[tick._domain], *samples))


_async.TickTrigger._collect_trigger = _collect_triggers


class _SignalState(_PySignalState):
    """A signal with the processes that read it, and the processes of its edges to 0 and to 1."""

    __slots__ = ("due", "edges", "readers")

    def __init__(self, signal, pending: set, due: set):
        super().__init__(signal, pending)
        self.due, self.readers, self.edges = due, [], None

    def commit(self) -> bool:
        if self.curr == self.next:
            return False
        if self.readers:
            self.due.update(self.readers)
        if self.edges:
            self.due.update(self.edges[self.next])
        if self.wakers:
            _run_wakers(self.wakers, self.curr, self.next)
        self.curr = self.next
        return True


class _State(_PyEngineState):
    def __init__(self):
        super().__init__()
        self.due = set()
        self.indices = {}

    def get_signal(self, signal) -> int:
        index = self.indices.get(signal.duid)
        if index is None:
            index = self.indices[signal.duid] = len(self.slots)
            self.slots.append(_SignalState(signal, self.pending, self.due))
        return index

    def add_signal_waker(self, signal, waker) -> None:
        state = self.slots[self.get_signal(signal)]
        if type(waker) is not _Waker:
            state.add_waker(waker)
        elif waker.polarity is None:
            state.readers.append(waker.process)
        else:
            state.edges = state.edges or ([], [])
            state.edges[waker.polarity].append(waker.process)

    def add_memory_waker(self, memory, waker) -> None:
        def wake() -> bool:
            self.due.add(waker.process)
            return True

        super().add_memory_waker(memory, wake)


class Engine(PySimEngine):
    """An engine for `amaranth.sim.Simulator` that runs once and writes no waveforms."""

    def __init__(self, design):
        self._design = design
        self._state = _State()
        self._unit = _FragmentCompiler(self._state)(design.fragment)
        self._processes = set()
        self._testbenches = []
        self._active_triggers = set()
        self._delta_cycles = 0
        self._state.due.update(process for process in self._unit if process.is_comb)

    def reset(self) -> None:
        raise NotImplementedError("this engine runs a simulation once")

    def get_value(self, expr):
        if type(expr) is Signal:
            return self._state.slots[self._state.get_signal(expr)].curr
        return expr.value if type(expr) is Const else super().get_value(expr)

    def step_design(self) -> None:
        due, triggers = self._state.due, self._active_triggers
        converged = False
        while not converged:
            for trigger in triggers:
                trigger.run()
            triggers.clear()
            for process in due:  # no process wakes another before the changes are committed
                process.run()
            due.clear()
            for process in self._processes:
                if process.runnable:
                    process.runnable = False
                    process.run()
            converged = self._state.commit()
            self._delta_cycles += 1

    def write_vcd(self, **options) -> None:
        raise NotImplementedError("this engine writes no waveforms")


def in_parts(fragment: Fragment) -> Fragment:
    """Split the combinational logic of a fragment and its subfragments into parts, in place; return the fragment."""
    for below, *_ in fragment.subfragments:
        in_parts(below)
    for statements in _parts(fragment.statements.pop("comb", ())):
        part = Fragment()
        part.add_statements("comb", *statements)
        fragment.add_subfragment(part)
    return fragment


def _parts(statements: Iterable) -> list[list]:
    """Group statements, in order, so that no two groups drive the same signal."""
    part_of: dict[SignalKey, dict] = {}
    silent = {}  # assertions, which drive no signal
    for number, statement in enumerate(statements):
        signals = [SignalKey(signal) for signal in statement._lhs_signals()]
        first, *others = {id(part): part for part in map(part_of.get, signals) if part}.values() or [{}]
        for part in others:
            first |= part
            part_of |= {signal: first for signal, old in part_of.items() if old is part}
        part_of |= dict.fromkeys(signals, first)
        (first if signals else silent)[number] = statement
    parts = {id(part): part for part in (*part_of.values(), silent) if part}
    return [[part[number] for number in sorted(part)] for part in parts.values()]
