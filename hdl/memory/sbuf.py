"""SBUF: operand memory of all engines; a partition has several banks, interleaved by lines.

    readers, line ports -> arbiter -> [blocks of partitions] -> data
    writers, line ports -> arbiter ->

Accesses to different banks, or in different directions, do not conflict.
"""

from functools import partial

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.hdl.memory.bank_arbiter import BankArbiter, one_of
from neuroncore_rtl.hdl.memory.port import LineRead, LineWrite, ReadPort, WritePort
from neuroncore_rtl.hdl.memory.sbuf_block import BLOCK_BITS, SBUF_READERS, Geometry, SbufPartitions, port_bits
from neuroncore_rtl.hdl.verilog.hierarchy import lanes
from neuroncore_rtl.spec.config import Config

__all__ = ["Sbuf"]


class Sbuf(wiring.Component):
    """Serves all ports without a conflict at their bank and direction.

    Priority in a conflict: moving, vector, scalar, then round robin between stationary (weights are seldom urgent) and
    the line ports. A request of stationary or of a line port precedes all engines after `LINE_PATIENCE` stalled cycles.
    A line access occupies its bank in all partitions.

    Ports (`storage` is ignored):
        read_turn: `turn` of `BankArbiter`.
        write_turn: `turn` of `BankArbiter`.
        read_stalls: one bit each for moving, vector, scalar, stationary and every line port, set when its read stalls.
        write_stalls: one bit each for vector, scalar and every line port, set when its write stalls.
        active: a request is pending or in flight; else the clock may stop.
    """

    def __init__(self, config: Config):
        self.config = config
        self.geometry = Geometry.of(config)
        ports, size = config.hbm_ports, config.hbm_bytes
        super().__init__(
            {
                "moving": In(ReadPort(config.rows, 32, config.port_latency)),
                "stationary": In(ReadPort(config.rows, 8 * config.load_bytes, config.port_latency)),
                "vector": In(ReadPort(config.partitions, 32, config.port_latency)),
                "scalar": In(ReadPort(config.partitions, 32, config.port_latency)),
                "vector_write": In(WritePort(config.partitions)),
                "scalar_write": In(WritePort(config.partitions)),
                "line_reads": In(LineRead(size, config.port_latency)).array(ports),
                "line_writes": In(LineWrite(size)).array(ports),
                "read_turn": In(range(1 + ports)),
                "write_turn": In(range(max(2, ports))),
                "read_stalls": Out(len(SBUF_READERS) + ports),
                "write_stalls": Out(2 + ports),
                "active": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        build = partial(SbufPartitions, config.partitions, self.geometry, config.port_latency)
        module = f"sbuf_partitions_{config.partitions}_{self.geometry}"
        partitions = lanes(m, "partitions", module, build, platform, of=("sbuf_partition_",))
        self._connect_reads(m, partitions)
        self._connect_writes(m, partitions)

        engines = [getattr(self, name) for name in (*SBUF_READERS, "vector_write", "scalar_write")]
        requested, reading = Signal(), Signal(self.line_reads[0].signature.latency - 1)
        m.d.sync += reading.eq(Cat(requested, reading))
        m.d.comb += [
            requested.eq(Cat(port.valid for port in (*engines, *self.line_reads, *self.line_writes)).any()),
            self.active.eq(requested | reading.any()),
        ]
        return m

    def _arbitrate(self, m: Module, name: str, engines: list, lines: list, stalls: Value) -> list[Signal]:
        arbiter = BankArbiter(len(engines), len(lines), self.geometry.banks, bool(self.config.port_latency))
        m.submodules[f"{name}_arbiter"] = arbiter
        ports = engines + lines
        for number, port in enumerate(ports):
            m.d.comb += [
                arbiter.requests[number].eq(port.valid),
                arbiter.banks[number].eq(port.address[self.geometry.bank]),
                port.ready.eq(arbiter.grants[number]),
            ]
        m.d.comb += [arbiter.turn.eq(getattr(self, f"{name}_turn")), stalls.eq(arbiter.stalls)]
        served = []
        for bank in range(self.geometry.banks):
            served.append(Signal(len(ports), name=f"{name}_bank{bank}"))
            at_bank = Cat(port.address[self.geometry.bank] == bank for port in ports)
            m.d.comb += served[-1].eq(arbiter.grants & at_bank)
        return served

    def _connect_reads(self, m: Module, partitions: SbufPartitions) -> None:
        size = self.config.hbm_bytes
        readers = [self.moving, self.vector, self.scalar, self.stationary]
        lines = [self.line_reads[port] for port in range(self.config.hbm_ports)]
        ports = readers + lines
        served = self._arbitrate(m, "read", readers[:-1], [self.stationary, *lines], self.read_stalls)
        block_of, partition_of = zip(*(_locate(line.partition) for line in lines), strict=True)

        lockstep = Cat(bank[: len(readers)].any() for bank in served)
        read_line = Cat(one_of(bank, [port.address[self.geometry.line] for port in ports]) for bank in served)
        m.d.comb += partitions.read_line.eq(read_line)
        for number, read in enumerate(partitions.read):
            here = Cat(of == number for of in block_of)
            alone = Cat((bank[len(readers) :] & here).any() for bank in served)
            m.d.comb += read.eq(lockstep | alone)

        for name, words in self.geometry.readers.items():
            port = getattr(self, name)
            place = slice((4 * words - 1).bit_length(), self.geometry.place.stop)
            m.d.comb += [
                getattr(partitions, f"{name}_select").eq(Cat(port.address[place], port.address[self.geometry.bank])),
                port.data.eq(getattr(partitions, name)),
            ]

        place = slice((size - 1).bit_length(), self.geometry.place.stop)
        for number, line in enumerate(lines):
            select = Cat(line.address[place], line.address[self.geometry.bank], partition_of[number])
            m.d.comb += partitions.line_select[number].eq(select)
            for index, taken in enumerate(partitions.line_taken):
                m.d.comb += taken[number].eq(line.valid & line.ready & (block_of[number] == index))
            block = Signal(range(max(2, len(partitions.lines))), name=f"line_block{number}")
            m.d.comb += block.eq(block_of[number])
            late_block = delayed(m, block, line.signature.latency, f"line_block{number}")
            m.d.comb += line.data.eq(Array(lines[number] for lines in partitions.lines)[late_block])

    def _connect_writes(self, m: Module, partitions: SbufPartitions) -> None:
        config = self.config
        writers = {name: getattr(self, f"{name}_write") for name in ("vector", "scalar")}
        lines = [self.line_writes[port] for port in range(config.hbm_ports)]
        engines = list(writers.values())
        ports = engines + lines
        served = self._arbitrate(m, "write", engines, lines, self.write_stalls)
        block_of, partition_of = zip(*(_locate(line.partition) for line in lines), strict=True)

        # Bytes of a line that each port writes if granted.
        size, end = config.hbm_bytes, self.geometry.place.stop
        words, places = range(self.geometry.words), range(config.line_bytes // size)
        bytes_of = [Cat(Mux(port.address[2:end] == word, port.mask, 0) for word in words) for port in engines]
        bytes_of += [Cat(Mux(line.address[:end] == size * place, line.mask, 0) for place in places) for line in lines]
        numbers = [Const(port, port_bits(config.hbm_ports)) for port in range(config.hbm_ports)]
        by_line = [bank[len(engines) :] for bank in served]
        common = {
            "write_line": Cat(one_of(bank, [port.address[self.geometry.line] for port in ports]) for bank in served),
            "write_bytes": Cat(one_of(bank, bytes_of) for bank in served),
            "write_single": Cat(bank.any() for bank in by_line),
            "write_partition": Cat(one_of(bank, partition_of) for bank in by_line),
            "write_port": Cat(one_of(bank, numbers) for bank in by_line),
            "write_scalar": Cat(bank[1] for bank in served),
            "write_lines": Cat(line.data for line in lines),
        }
        m.d.comb += [getattr(partitions, name).eq(value) for name, value in common.items()]
        for number, write_here in enumerate(partitions.write_here):
            here = Cat(of == number for of in block_of)
            m.d.comb += write_here.eq(Cat((bank & here).any() for bank in by_line))
        for name, port in writers.items():
            m.d.comb += [
                getattr(partitions, f"{name}_enable").eq(port.enable),
                getattr(partitions, f"{name}_words").eq(port.data),
            ]


def _locate(partition: Value) -> tuple[Value, Value]:
    return partition[BLOCK_BITS:], partition[:BLOCK_BITS]
