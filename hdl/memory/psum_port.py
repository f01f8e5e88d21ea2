"""PSUM port: arbitrates all accesses to PSUM except those of the tensor engine.

Each access is to all partitions at one address; a line port reads or writes one word of one partition through it.
"""

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.hdl.memory.bank_arbiter import BankArbiter
from neuroncore_rtl.hdl.memory.port import LineRead, LineWrite, PsumWritePort, ReadPort, WritePort
from neuroncore_rtl.hdl.memory.psum_block import PsumGeometry
from neuroncore_rtl.spec.config import Config

__all__ = ["PsumPort"]


class PsumPort(wiring.Component):
    """Grants one write per cycle, and two reads of different banks: the vector engine's and one other.

    Priority: vector, scalar, then line ports with aging (`BankArbiter`). The vector engine's read and another read
    compete only if they request the same bank.

    Ports (`storage` is ignored):
        turn: see `BankArbiter`.
        psum: vector reads; a stalled request yields to one with priority. This and the next two ports connect to the
            tensor engine.
        psum_shared: all other reads.
        psum_write: all writes.
        reading: PSUM banks at which reads stall in this cycle.
        read_stalls: one bit each for vector, scalar and every line port, set when its read stalls.
        write_stalls: the same for writes.
    """

    def __init__(self, config: Config):
        self.config = config
        ports, size = config.hbm_ports, config.hbm_bytes
        super().__init__(
            {
                "vector": In(ReadPort(config.columns, 32, config.port_latency)),
                "scalar": In(ReadPort(config.columns, 32, config.port_latency)),
                "vector_write": In(WritePort(config.partitions)),
                "scalar_write": In(WritePort(config.partitions)),
                "line_reads": In(LineRead(size, config.port_latency)).array(ports),
                "line_writes": In(LineWrite(size)).array(ports),
                "psum": Out(ReadPort(config.columns, 32)),
                "psum_shared": Out(ReadPort(config.columns, 32)),
                "psum_write": Out(PsumWritePort(config.columns)),
                "reading": In(config.psum_banks),
                "turn": In(range(max(2, ports))),
                "read_stalls": Out(2 + ports),
                "write_stalls": Out(2 + ports),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._connect_reads(m)
        self._connect_writes(m)
        return m

    def _arbitrate(
        self, m: Module, name: str, engines: list, lines: list, ready: Value, early: list | None = None
    ) -> BankArbiter:
        """Add an arbiter that grants a port to one requester, and return it.

        `early` has for each engine a signal that is known before arbitration and replaces `ready`.
        """
        arbiter = BankArbiter(len(engines), len(lines), self.config.psum_banks, bool(self.config.port_latency))
        m.submodules[f"{name}_arbiter"] = arbiter
        m.d.comb += [
            arbiter.requests.eq(Cat(asker.valid for asker in engines + lines)),
            arbiter.turn.eq(self.turn),
            arbiter.held_up.eq(~ready),
        ]
        served = (early or [ready] * len(engines)) + [ready] * len(lines)
        for number, asker in enumerate(engines + lines):
            m.d.comb += asker.ready.eq(arbiter.grants[number] & served[number])
        return arbiter

    def _connect_reads(self, m: Module) -> None:
        config, vector, psum, shared = self.config, self.vector, self.psum, self.psum_shared
        engines, lines = [self.scalar], [self.line_reads[port] for port in range(config.hbm_ports)]
        ready = Signal()
        bank_of = PsumGeometry(config.psum_words, config.psum_banks).bank
        wanted, early = bank_of(vector.address[2:]), None
        if config.port_latency:
            # Independent of the line ports' requests.
            own = bank_of(self.scalar.address[2:])
            early = [~(self.reading & 1 << own).any() & ~(vector.valid & (wanted == own))]
        arbiter = self._arbitrate(m, "read", engines, lines, ready, early)
        meet, yields = Signal(), Signal()
        m.d.comb += [
            meet.eq(vector.valid & arbiter.requests.any() & (wanted == bank_of(shared.address[2:]))),
            yields.eq(arbiter.urgent if config.port_latency else meet & arbiter.urgent),
            psum.valid.eq(vector.valid & ~yields),
            psum.address.eq(vector.address),
            vector.ready.eq(psum.ready & ~yields),
            shared.valid.eq(arbiter.requests.any() & (~meet | yields)),
            ready.eq(shared.ready & (~meet | yields)),
            self.read_stalls.eq(Cat(vector.valid & ~vector.ready, arbiter.stalls)),
        ]

        word_address = [
            *(port.address for port in engines),
            *(line.address | (line.word << 2) for line in lines),
        ]
        partition = Signal(range(config.columns), reset_less=True)
        word = Signal(32, reset_less=True)
        with m.Switch(arbiter.grants):
            for number, address in enumerate(word_address):
                with m.Case("-" * (len(arbiter.grants) - number - 1) + "1" + "-" * number):
                    m.d.comb += shared.address.eq(address)
                    if number >= len(engines):
                        m.d.sync += partition.eq(lines[number - len(engines)].partition)
        # Same latency as SBUF.
        late = config.port_latency
        vector_data, shared_data = (
            delayed(m, port.data, late, f"{name}_data") for name, port in (("psum", psum), ("shared", shared))
        )
        partition = delayed(m, partition, late, "partition")
        m.d.sync += word.eq(Array(shared_data.word_select(column, 32) for column in range(config.columns))[partition])
        m.d.comb += [vector.data.eq(vector_data), self.scalar.data.eq(shared_data)]
        m.d.comb += [line.data.eq(word.replicate(config.hbm_bytes // 4)) for line in lines]

    def _connect_writes(self, m: Module) -> None:
        config, psum_write = self.config, self.psum_write
        engines = [self.vector_write, self.scalar_write]
        lines = [self.line_writes[port] for port in range(config.hbm_ports)]
        arbiter = self._arbitrate(m, "write", engines, lines, psum_write.ready)
        m.d.comb += [psum_write.valid.eq(arbiter.requests.any()), self.write_stalls.eq(arbiter.stalls)]
        for number, port in enumerate(engines + lines):
            with m.If(arbiter.grants[number]):
                if number < len(engines):
                    m.d.comb += [
                        getattr(psum_write, name).eq(getattr(port, name))
                        for name in ("address", "enable", "mask", "data")
                    ]
                else:
                    place, mask, word = _word(m, f"line{number - len(engines)}", port, config.hbm_bytes)
                    m.d.comb += [
                        psum_write.address.eq(port.address | place << 2),
                        psum_write.enable.eq(Cat(port.partition == column for column in range(config.columns))),
                        psum_write.mask.eq(mask),
                        psum_write.data.eq(word.replicate(config.columns)),
                    ]


def _word(m: Module, name: str, line, size: int) -> tuple[Signal, Signal, Signal]:
    place, mask, word = 0, 0, 0
    for number in range(size // 4):
        part = line.mask.word_select(number, 4)
        place |= Mux(part.any(), number, 0)
        mask |= part
        word |= Mux(part.any(), line.data.word_select(number, 32), 0)
    # These are signals, because an expression would be generated as logic at each use.
    chosen = tuple(
        Signal.like(Value.cast(value), name=f"{name}_{what}")
        for what, value in (("place", place), ("mask", mask), ("word", word))
    )
    m.d.comb += [signal.eq(value) for signal, value in zip(chosen, (place, mask, word), strict=True)]
    return chosen
