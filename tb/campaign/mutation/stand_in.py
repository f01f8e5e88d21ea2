"""Amaranth's simulator with a compiled module in the place of a component: a testbench does not see the difference.

Only the component's signals are in the simulated design. What a testbench sets is given to the module, what it reads
comes from there; contexts and triggers are Amaranth's own.
"""

from collections.abc import Sequence

from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.hdl._ast import ShapeCastable, Value
from amaranth.lib import wiring
from amaranth.sim import Simulator
from amaranth.sim._async import AsyncProcess, DelayTrigger, EdgeTrigger, SampleTrigger
from amaranth.sim._base import BaseEngine
from amaranth.sim._pyeval import eval_assign, eval_value

from neuroncore_rtl.tb.campaign.mutation.library import Library
from neuroncore_rtl.tb.campaign.mutation.netlist import SELECT_BITS, Port, ports_of

__all__ = ["CONTROLS", "Endless", "stand_in"]

CONTROLS = (Port("clk", 1, True), Port("rst", 1, True), Port("mutant", SELECT_BITS, True))
"""Ports of the module besides those of the component."""


class Endless(AssertionError):
    """A testbench runs for longer than it may: with the sound component it has ended long before."""


def stand_in(
    component: wiring.Component, library: Library, mutant: int, limit: int, resets: Sequence[Signal] = ()
) -> Simulator:
    """Return a simulator, whose one clock runs.

    Arguments:
        component: whose signals the testbench uses. library: its netlist.
        mutant: number of the mutant in force, 0 for none.
        limit: clock edges behind which the simulation raises `Endless`.
        resets: signals that reset the component besides the reset of its domain.
    """
    m = Module()
    m.domains.sync = sync = ClockDomain()

    class Bound(_Engine):
        def __init__(self, design):
            super().__init__(design, component, library.model(), limit, (sync.rst, *resets))
            self._model.set("mutant", mutant)

    return Simulator(m, engine=Bound)


class _Slot:
    """The value of a signal, as Amaranth's evaluation of expressions wants it."""

    is_comb = False

    def __init__(self, signal: Signal):
        self.signal = signal  # lest another one gets its number
        self.curr = signal.init

    @property
    def next(self) -> int:
        return self.curr

    def update(self, value: int) -> None:
        self.curr = value


class _Wait:
    """What a testbench waits for."""

    def __init__(self, engine: "_Engine", combination):
        self.engine, self.process, self.triggers = engine, combination._process, combination._triggers
        delays = [trigger.interval_fs for trigger in self.triggers if isinstance(trigger, DelayTrigger)]
        self.delay = min(delays, default=None)
        self.result = ()

    def initial_eligible(self) -> bool:
        return False

    def __await__(self):
        self.engine.wait(self)
        yield self
        return self.result

    def fire(self) -> None:
        self.result = tuple(map(self._seen, self.triggers))
        self.process.runnable = True

    def _seen(self, trigger):
        if isinstance(trigger, SampleTrigger):
            value = self.engine.get_value(trigger.value)
            return trigger.shape.from_bits(value) if isinstance(trigger.shape, ShapeCastable) else value
        return isinstance(trigger, DelayTrigger if self.delay is not None else EdgeTrigger)


class _Engine(BaseEngine):
    """Steps the module and the testbenches; see `stand_in`."""

    def __init__(self, design, component, model, limit, resets):
        self._design, self._model, self._limit, self._resets = design, model, limit, resets
        self.slots: dict[int, _Slot] = {}
        ports = [(port, self.slots[self.get_signal(signal)]) for port, signal in ports_of(component)]
        self._inputs = [(port.name, slot, (1 << port.width) - 1) for port, slot in ports if port.is_input]
        self._outputs = [(port.name, slot, slot.signal) for port, slot in ports if not port.is_input]
        self._given = dict.fromkeys((name for name, *_ in self._inputs), 0)
        self._testbenches: list[AsyncProcess] = []
        self._at_edge: list[_Wait] = []
        self._delayed: list[tuple[int, _Wait]] = []
        self._now = self._period = self._edge = self.edges = 0
        self._model.evaluate()
        self.step_design()

    @property
    def state(self):
        return self

    @property
    def now(self) -> int:
        return self._now

    def get_signal(self, signal: Signal) -> int:
        """Return the number of a signal's slot."""
        if id(signal) not in self.slots:
            self.slots[id(signal)] = _Slot(signal)
        return id(signal)

    def add_clock_process(self, clock, *, phase, period):
        self._edge, self._period = phase, period

    def add_async_testbench(self, simulator, process, *, background):
        self._testbenches.append(AsyncProcess(self._design, self, process, testbench=True, background=background))

    def add_trigger_combination(self, combination, *, oneshot):
        return _Wait(self, combination)

    def get_value(self, expr) -> int:
        return eval_value(self, Value.cast(expr))

    def set_value(self, expr, value: int) -> None:
        eval_assign(self, Value.cast(expr), value)

    def wait(self, wait: _Wait) -> None:
        """Wake a testbench at the next clock edge, or when its delay is over."""
        if wait.delay is None:
            self._at_edge.append(wait)
        else:
            self._delayed.append((self._now + wait.delay, wait))

    def step_design(self) -> None:
        """Let the module's outputs follow its inputs."""
        for name, slot, mask in self._inputs:
            if slot.curr != self._given[name]:
                self._given[name] = slot.curr
                self._model.set(name, slot.curr & mask)
        self._model.set("rst", any(self.slots[self.get_signal(reset)].curr for reset in self._resets))
        self._model.evaluate()
        self._read()

    def _read(self) -> None:
        for name, slot, signal in self._outputs:
            value = self._model.get(name)
            signed = signal._signed and value >> (len(signal) - 1)
            slot.curr = value - (1 << len(signal)) if signed else value

    def advance(self) -> bool:
        while runnable := [testbench for testbench in self._testbenches if testbench.runnable]:
            for testbench in runnable:
                testbench.runnable = False
                testbench.run()
        critical = any(testbench.critical for testbench in self._testbenches)
        if critical:
            first = min((at for at, _ in self._delayed), default=self._edge)
            if first < self._edge:
                self._end_delays(first)
            else:
                self._clock()
        return critical

    def _end_delays(self, now: int) -> None:
        self._now, delayed = now, self._delayed
        self._delayed = [(at, wait) for at, wait in delayed if at > now]
        for at, wait in delayed:
            if at <= now:
                wait.fire()

    def _clock(self) -> None:
        """Sample what the testbenches wait for, then let the clock rise, and fall again."""
        self._now, self._edge, self.edges = self._edge, self._edge + self._period, self.edges + 1
        if self.edges > self._limit:
            raise Endless(f"it has not ended in {self._limit} cycles")
        waits, self._at_edge = self._at_edge, []
        for wait in waits:
            wait.fire()
        for level in (1, 0):
            self._model.set("clk", level)
            self._model.evaluate()
        self._read()

    def reset(self):
        raise NotImplementedError("a run is made once")

    def add_async_process(self, simulator, process):
        raise NotImplementedError("there are only testbenches")

    def write_vcd(self, **options):
        raise NotImplementedError("there are no waveforms")
