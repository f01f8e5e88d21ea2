"""On-chip memories: connects engine ports and line ports to SBUF (here) and PSUM (in the tensor engine).

tensor engine: stationary, moving ------> SBUF
vector, scalar engine: reads, writes -> SBUF | PSUM
line ports: reads, writes ------------> SBUF | PSUM
"""

from functools import partial, reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.hdl.memory.port import LineRead, LineWrite, OnChipStorage, PsumWritePort, ReadPort, WritePort
from neuroncore_rtl.hdl.memory.psum_port import PsumPort
from neuroncore_rtl.hdl.memory.sbuf import Sbuf
from neuroncore_rtl.hdl.memory.sbuf_block import Geometry
from neuroncore_rtl.hdl.primitives.clock_gate import gated
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config
from neuroncore_rtl.spec.isa.engine import COUNTER_BITS

__all__ = ["Conflicts", "OnChipMemory"]


class Conflicts(data.Struct):
    """Bank conflicts since reset: cycles in which a request stalled because another one had its bank.

    The counters of line ports cover all line ports together; lines that wait in a `LineBuffer` without a request do not
    count. The first eight counters are for SBUF, by port and direction; each counter for PSUM covers all ports.
    """

    stationary: unsigned(COUNTER_BITS)
    moving: unsigned(COUNTER_BITS)
    vector_read: unsigned(COUNTER_BITS)
    scalar_read: unsigned(COUNTER_BITS)
    line_read: unsigned(COUNTER_BITS)
    vector_write: unsigned(COUNTER_BITS)
    scalar_write: unsigned(COUNTER_BITS)
    line_write: unsigned(COUNTER_BITS)
    psum_read: unsigned(COUNTER_BITS)
    psum_write: unsigned(COUNTER_BITS)


class OnChipMemory(wiring.Component):
    """Connects all ports to SBUF and PSUM.

    A request without a conflict is accepted in the same cycle; a write is visible to reads from the next cycle on.

    Ports:
        line_reads: line read ports, one per HBM port.
        line_writes: line write ports, one per HBM port.
        busy: SBUF banks that an engine writes in this cycle.
        psum: port to the PSUM in the tensor engine; see `PsumPort`, also for `psum_*`.
    """

    def __init__(self, config: Config):
        self.config = config
        rows, partitions, columns = config.rows, config.partitions, config.columns
        ports, size, late = config.hbm_ports, config.hbm_bytes, config.port_latency
        super().__init__(
            {
                "stationary": In(ReadPort(rows, 32 * LOAD_COLUMNS, late)),
                "moving": In(ReadPort(rows, 32, late)),
                "vector_sbuf": In(ReadPort(partitions, 32, late)),
                "scalar_sbuf": In(ReadPort(partitions, 32, late)),
                "vector_psum": In(ReadPort(columns, 32, late)),
                "scalar_psum": In(ReadPort(columns, 32, late)),
                "vector_write": In(WritePort(partitions)),
                "scalar_write": In(WritePort(partitions)),
                "line_reads": In(LineRead(size, late)).array(ports),
                "line_writes": In(LineWrite(size)).array(ports),
                "busy": Out(config.sbuf_banks),
                "psum": Out(ReadPort(columns, 32)),
                "psum_shared": Out(ReadPort(columns, 32)),
                "psum_reading": In(config.psum_banks),
                "psum_write": Out(PsumWritePort(columns)),
                "conflicts": Out(Conflicts),
            }
        )

    def elaborate(self, platform):
        m = Module()
        sbuf = gated(m, "sbuf", "sbuf", partial(Sbuf, self.config), platform)
        m.submodules.psum = psum = PsumPort(self.config)
        for name in ("psum", "psum_shared", "psum_write"):
            wiring.connect(m, getattr(psum, name), wiring.flipped(getattr(self, name)))
        m.d.comb += psum.reading.eq(self.psum_reading)
        wiring.connect(m, wiring.flipped(self.moving), sbuf.moving)
        _widen(m, self.config, self.stationary, sbuf.stationary)
        for name in ("vector", "scalar"):
            wiring.connect(m, wiring.flipped(getattr(self, f"{name}_sbuf")), getattr(sbuf, name))
            wiring.connect(m, wiring.flipped(getattr(self, f"{name}_psum")), getattr(psum, name))
            write = f"{name}_write"
            _route(m, getattr(self, write), getattr(sbuf, write), getattr(psum, write))
        writes = [sbuf.vector_write, sbuf.scalar_write]
        bank = Geometry.of(self.config).bank
        m.d.comb += self.busy.eq(reduce(or_, (Mux(port.valid, 1 << port.address[bank], 0) for port in writes)))
        for number in range(self.config.hbm_ports):
            _route(m, self.line_writes[number], sbuf.line_writes[number], psum.line_writes[number])
            line = self.line_reads[number]
            _route(m, line, sbuf.line_reads[number], psum.line_reads[number])
            storage = delayed(m, line.storage, line.signature.latency, f"storage{number}")
            read = [memory.line_reads[number].data for memory in (psum, sbuf)]
            m.d.comb += line.data.eq(Mux(storage == OnChipStorage.PSUM, *read))
        # The counters are here, because the gated clock of SBUF may stop.
        ports = self.config.hbm_ports
        turn, read_turn = Signal(range(max(2, ports))), Signal(range(1 + ports))
        m.d.sync += [
            turn.eq(Mux(turn == ports - 1, 0, turn + 1)),
            read_turn.eq(Mux(read_turn == ports, 0, read_turn + 1)),
        ]
        m.d.comb += [sbuf.read_turn.eq(read_turn), sbuf.write_turn.eq(turn), psum.turn.eq(turn)]
        self._count(m, sbuf, psum)
        return m

    def _count(self, m: Module, sbuf: Sbuf, psum: PsumPort) -> None:
        reads, writes = sbuf.read_stalls, sbuf.write_stalls
        for name, stalls in {
            "moving": reads[0],
            "vector_read": reads[1],
            "scalar_read": reads[2],
            "stationary": reads[3],
            "line_read": reads[4:],
            "vector_write": writes[0],
            "scalar_write": writes[1],
            "line_write": writes[2:],
            "psum_read": psum.read_stalls,
            "psum_write": psum.write_stalls,
        }.items():
            with m.If(stalls.any()):
                m.d.sync += self.conflicts[name].eq(self.conflicts[name] + sum(stalls))


def _widen(m: Module, config: Config, wide: ReadPort, sbuf: ReadPort) -> None:
    """Widen SBUF's stationary data to `LOAD_COLUMNS` words per partition, by repetition.

    Repetition puts the words that the array loads at every position where its edge may expect them.
    """
    bits, times = 8 * config.load_bytes, 4 * LOAD_COLUMNS // config.load_bytes
    data = (sbuf.data.word_select(row, bits).replicate(times) for row in range(config.rows))
    m.d.comb += [
        sbuf.valid.eq(wide.valid),
        sbuf.address.eq(wide.address),
        wide.ready.eq(sbuf.ready),
        wide.data.eq(Cat(data)),
    ]


def _route(m: Module, port, sbuf, psum) -> None:
    at_psum = port.storage == OnChipStorage.PSUM
    for name, member in port.signature.members.items():
        if member.flow == In and name not in ("valid", "ready"):
            m.d.comb += [getattr(memory, name).eq(getattr(port, name)) for memory in (sbuf, psum)]
    m.d.comb += [
        sbuf.valid.eq(port.valid & ~at_psum),
        psum.valid.eq(port.valid & at_psum),
        port.ready.eq(Mux(at_psum, psum.ready, sbuf.ready)),
    ]
