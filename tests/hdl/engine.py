"""Faster version of Amaranth's simulation engine for unit tests.

Amaranth's engine checks every process of a unit in every delta cycle. Here a signal that changes adds the processes
that read it to a set, and only these run. The Python code of a process is compiled once for all tests of a unit.
"""

from functools import lru_cache

from amaranth.sim import _pyrtl
from amaranth.sim.pysim import PySimEngine, _FragmentCompiler, _PyEngineState, _PySignalState, _run_wakers

__all__ = ["Engine"]


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
    """An engine for `amaranth.sim.Simulator` that writes no waveforms."""

    def __init__(self, design):
        self._design = design
        self._state = _State()
        self._unit = _FragmentCompiler(self._state)(design.fragment)
        self._processes = set()
        self._testbenches = []
        self._active_triggers = set()
        self._delta_cycles = 0
        self._begin()

    def _begin(self) -> None:
        self._state.due.clear()
        self._state.due.update(process for process in self._unit if process.is_comb)

    def reset(self) -> None:
        super().reset()
        self._begin()

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
