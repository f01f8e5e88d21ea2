"""Front end of the vector and scalar engines: everything except their lanes.

    instructions -> checker -> sequencer -> fetch -> [lanes] -> store -> write port
                                            |  |
                                         SBUF  PSUM

An engine adds its lanes between `lanes_*` and `result_*`:

    class VectorEngine(wiring.Component):
        def __init__(self, config):
            super().__init__(engine_ports(config))

        def elaborate(self, platform):
            m = Module()
            m.submodules.frontend = frontend = Frontend(config, VECTOR_OPCODES, latency=..., slow=..., interval=...)
            connect_engine(m, self, frontend)
            # Inputs of the lanes: frontend.lanes_valid, lanes_step, lanes_a, lanes_b.
            # Outputs: frontend.result_valid, result, result_enable.
            return m

`slow` and `interval` are functions of a view of the instruction (`hdl.elementwise.instruction`). `slow` returns whether
the instruction must be the only one in the lanes, `interval` the least cycles from one step to the next (1 to 255).
"""

from collections.abc import Callable, Iterable

from amaranth import Const, Module, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.elementwise.checker import ElementwiseChecker
from neuroncore_rtl.hdl.elementwise.fetch import ElementwiseFetch
from neuroncore_rtl.hdl.elementwise.instruction import ElementwiseInstruction
from neuroncore_rtl.hdl.elementwise.issue import ElementwiseIssue
from neuroncore_rtl.hdl.elementwise.pacer import Pacer
from neuroncore_rtl.hdl.elementwise.sequencer import ElementwiseSequencer
from neuroncore_rtl.hdl.elementwise.step import ElementwiseStep, Phase
from neuroncore_rtl.hdl.elementwise.store import ResultStore
from neuroncore_rtl.hdl.memory.port import ReadPort, WritePort
from neuroncore_rtl.hdl.primitives.counting import count
from neuroncore_rtl.hdl.primitives.engine_error import EngineError
from neuroncore_rtl.hdl.primitives.fifo import Fifo
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Opcode
from neuroncore_rtl.spec.isa.engine import COUNTER_BITS
from neuroncore_rtl.spec.pacing import Pace

__all__ = ["ElementwiseCounters", "Frontend", "connect_engine", "engine_ports"]


class ElementwiseCounters(data.Struct):
    """Counters since reset, in cycles unless noted.

    Fields:
        busy: cycles with an instruction pending or in flight.
        instructions: number of retired instructions.
        elements: number of ELEMENT steps.
        wait_sbuf, wait_psum: cycles in which a step stalled on the read port of SBUF, of PSUM.
        wait_write: cycles in which a step stalled because the store was full, or because earlier results had to be
            written first.
    """

    busy: unsigned(COUNTER_BITS)
    instructions: unsigned(COUNTER_BITS)
    elements: unsigned(COUNTER_BITS)
    wait_sbuf: unsigned(COUNTER_BITS)
    wait_psum: unsigned(COUNTER_BITS)
    wait_write: unsigned(COUNTER_BITS)


def engine_ports(config: Config) -> dict:
    """Return the ports of an element-wise engine.

    Ports:
        instructions: a stream of `ElementwiseInstruction`.
        sbuf, psum: read ports of the memories.
        write: write port of both memories.
        retired: pulse for each instruction, in order, after its last write is accepted.
        error: an instruction was refused; no more are accepted, earlier ones complete.
        busy: an instruction is pending or in flight.
        active: the state of the engine may change at the end of this cycle; otherwise the clock may stop.
        counters: `ElementwiseCounters`.
    """
    return {
        "instructions": In(stream.Signature(ElementwiseInstruction)),
        "sbuf": Out(ReadPort(config.partitions, 32, config.port_latency)),
        "psum": Out(ReadPort(config.columns, 32, config.port_latency)),
        "write": Out(WritePort(config.partitions)),
        "retired": Out(1),
        "error": Out(EngineError),
        "busy": Out(1),
        "active": Out(1),
        "counters": Out(ElementwiseCounters),
    }


def connect_engine(m: Module, engine: wiring.Component, frontend: "Frontend") -> None:
    """Connect an engine's ports (`engine_ports`) to its front end."""
    for name in ("instructions", "sbuf", "psum", "write"):
        wiring.connect(m, wiring.flipped(getattr(engine, name)), getattr(frontend, name))
    for name in ("retired", "error", "busy", "active", "counters"):
        m.d.comb += getattr(engine, name).eq(getattr(frontend, name))


class Frontend(wiring.Component):
    """Element-wise engine without lanes.

    Arguments:
        config: the machine's parameters.
        opcodes: opcodes of the engine.
        latency: cycles from a step to its result in the lanes. This sets the number of results in flight, so a step
            with more cycles reduces the throughput.
        slow, interval: functions as for `hdl.elementwise.job.derive_job`; default: no instruction is slow, one step per
            cycle.
        pace: ticks of the engine's steps; None: each step takes one cycle.

    Ports (besides `engine_ports`):
        lanes_valid, lanes_step, lanes_a, lanes_b: a step with its words; see
            `hdl.elementwise.fetch.ElementwiseFetch`.
        result_valid, result, result_enable: result of each step with `writes`, in order; see
            `hdl.elementwise.store.ResultStore`.
    """

    LATENCY = ElementwiseChecker.LATENCY + ElementwiseSequencer.LATENCY
    """Cycles from acceptance of an instruction to its first read request."""

    def __init__(
        self,
        config: Config,
        opcodes: Iterable[Opcode],
        *,
        latency: int,
        slow: Callable = lambda instruction: Const(0),
        interval: Callable = lambda instruction: Const(1),
        pace: Pace | None = None,
    ):
        self.config = config
        self.opcodes = frozenset(opcodes)
        self.latency = latency
        self.slow = slow
        self.interval = interval
        self.pace = pace
        super().__init__(
            engine_ports(config)
            | {
                "lanes_valid": Out(1),
                "lanes_step": Out(ElementwiseStep),
                "lanes_a": Out(32 * config.partitions),
                "lanes_b": Out(32 * config.partitions),
                "result_valid": In(1),
                "result": In(32 * config.partitions),
                "result_enable": In(config.partitions),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.checker = checker = ElementwiseChecker(config, self.opcodes, self.slow, self.interval)
        m.submodules.sequencer = sequencer = ElementwiseSequencer()
        m.submodules.fetch = fetch = ElementwiseFetch(config)
        m.submodules.store = store = ResultStore(config, self.latency + timing.STORE_SLACK[config.port_latency])
        wiring.connect(m, wiring.flipped(self.instructions), checker.i)
        wiring.connect(m, checker.o, sequencer.i)
        issue, waiting = sequencer.o, Const(0)
        if config.port_latency:
            # Two entries, so that the sequencer does not depend on the memories within a cycle.
            m.submodules.issue = places = Fifo(ElementwiseIssue, 2)
            wiring.connect(m, issue, places.i)
            issue, waiting = places.o, places.o.valid
        active = self.busy | fetch.busy
        if self.pace:
            m.submodules.pacer = pacer = Pacer(self.pace)
            wiring.connect(m, issue, pacer.i)
            issue, active = pacer.o, active | pacer.busy
        wiring.connect(m, issue, fetch.i)
        wiring.connect(m, fetch.sbuf, wiring.flipped(self.sbuf))
        wiring.connect(m, fetch.psum, wiring.flipped(self.psum))
        wiring.connect(m, fetch.writes, store.writes)
        wiring.connect(m, store.port, wiring.flipped(self.write))
        m.d.comb += [
            self.lanes_valid.eq(fetch.valid),
            self.lanes_step.eq(fetch.step),
            self.lanes_a.eq(fetch.a),
            self.lanes_b.eq(fetch.b),
            fetch.room.eq(store.room),
            fetch.drained.eq(store.drained),
            store.result_valid.eq(self.result_valid),
            store.result.eq(self.result),
            store.enable.eq(self.result_enable),
            self.retired.eq(store.retired),
            self.error.eq(checker.error),
            self.busy.eq(
                checker.busy
                | sequencer.busy
                | waiting
                | ~store.drained
                | store.retired
                | (self.instructions.valid & ~checker.error.valid)
            ),
            self.active.eq(active),
        ]
        count(
            m,
            self.counters,
            busy=self.busy,
            instructions=self.retired,
            elements=fetch.went & (fetch.i.payload.step.phase == Phase.ELEMENT),
            wait_sbuf=fetch.wait_sbuf,
            wait_psum=fetch.wait_psum,
            wait_write=fetch.wait_write,
        )
        return m
