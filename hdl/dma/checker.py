"""DMA checker: applies the rules of `spec.isa.dma` to a copy, and plans the walks over its tensors."""

from collections.abc import Iterable

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed

from neuroncore_rtl.hdl.arith.formats import element_size
from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.hdl.dma.extent import Extent
from neuroncore_rtl.hdl.dma.instruction import DmaInstruction
from neuroncore_rtl.hdl.dma.job import DmaJobLayout
from neuroncore_rtl.hdl.memory.port import PARTITION_BITS
from neuroncore_rtl.hdl.primitives import checker
from neuroncore_rtl.hdl.primitives.checker import lowest_rule
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FORMATS
from neuroncore_rtl.spec.isa import DMA_COPY, DMA_DIMENSIONS, HBM_ADDRESS_BITS, Rule
from neuroncore_rtl.spec.isa.access import Storage, storage_bytes, storage_partitions
from neuroncore_rtl.spec.isa.dma import NO_AXIS

__all__ = ["DmaChecker"]

_CODES = tuple(fmt.code for fmt in FORMATS.values())


class DmaChecker(checker.Checker):
    """Checks one copy per `INTERVAL` cycles, or one per `INTERVAL` + 4 cycles with `config.port_latency`.

    Three of these four cycles are additional registers: the operands of the multiplication, the bounds, the broken
    rules. The fourth separates instructions: an instruction is not accepted in the cycle in which the previous job is
    emitted.

    Ports: see `Checker`.
    """

    INTERVAL = Extent.TURNS + 1
    """Cycles from one instruction to the next, without `port_latency`."""

    LATENCY = INTERVAL + 1
    """Cycles from an instruction accepted at `i` to its job at `o` or to the error, without `port_latency`."""

    def __init__(self, config: Config):
        self.config = config
        super().__init__(DmaInstruction, DmaJobLayout)

    @property
    def latency(self) -> int:
        """Cycles from an instruction accepted at `i` to its job at `o`, or to `error`."""
        return self.LATENCY + timing.DMA_CHECKER_REGISTERS[self.config.port_latency]

    def elaborate(self, platform):
        m = Module()
        instruction = Signal(DmaInstruction, reset_less=True)
        held, verdict, legal = Signal(), Signal(), Signal()
        # With registers, accepting an instruction does not depend on `o.ready` of the same cycle.
        back_to_back = not self.config.port_latency
        last_turn = Extent.TURNS + timing.DMA_CHECKER_REGISTERS[self.config.port_latency]
        turn = Signal(range(last_turn + 1))
        judged, job = Signal(DmaJobLayout, reset_less=True), Signal(DmaJobLayout)
        m.d.comb += [
            verdict.eq(held & (turn == last_turn) & (~self.o.valid | (self.o.ready & back_to_back))),
            self.i.ready.eq(~self.error.valid & (~held | (verdict & legal & back_to_back))),
            self.o.payload.eq(judged),
            self.busy.eq(held | self.o.valid),
        ]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(held & (turn != last_turn)):
            m.d.sync += turn.eq(turn + 1)
        with m.If(verdict):
            m.d.sync += [held.eq(0), judged.eq(job), self.o.valid.eq(legal)]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [held.eq(1), turn.eq(0), instruction.eq(self.i.payload)]

        indexed = {"src": instruction.gather, "dst": instruction.scatter}
        tensors = [self._tensor(m, name, instruction, job, turn, indexed) for name in ("src", "dst")]
        self._rows(m, instruction, job)
        broken = {
            rule: delayed(m, breaks, self.config.port_latency, f"breaks_{rule.name.lower()}")
            for rule, breaks in self._judge(m, instruction, tensors).items()
        }
        cause = lowest_rule(m, broken)
        m.d.comb += legal.eq(~_any(broken.values()))
        self.refuse(m, verdict & ~legal, cause)
        m.d.comb += [job.formats.src.eq(instruction.src_dtype), job.formats.dst.eq(instruction.dst_dtype)]
        return m

    def _tensor(
        self, m: Module, name: str, instruction, job, turn: Signal, indexed: dict[str, Value]
    ) -> dict[Rule, Value]:
        """Fill one side (source or destination) of the job; return for each rule whether this tensor breaks it."""
        m.submodules[f"{name}_extent"] = extent = Extent(self.config.port_latency)
        tensor = {role: instruction[f"{name}_{role}"] for role in ("storage", "dtype", "address", "partition", "axis")}
        side, storage, code = job[name], Value.cast(tensor["storage"]), Value.cast(tensor["dtype"])
        rows = instruction.gather | instruction.scatter
        size = element_size(m, f"{name}_size", tensor["dtype"])
        m.d.comb += [
            # The extent holds its results while it stays at its last turn, until the next copy.
            extent.turn.eq(Mux(turn > Extent.TURNS, Extent.TURNS, turn)),
            extent.axis.eq(tensor["axis"]),
            extent.rows.eq(rows),
            extent.indexed.eq(indexed[name]),
            side.storage.eq(tensor["storage"]),
            side.size.eq(size),
            side.address.eq(tensor["address"]),
            side.partition.eq(tensor["partition"][:PARTITION_BITS]),
            side.axis.eq(tensor["axis"]),
            side.bytes.eq(extent.elements << size),
            side.last.eq(extent.last),
        ]
        for d in range(DMA_DIMENSIONS):
            step = instruction[f"{name}_step{d}"]
            m.d.comb += [extent.count[d].eq(instruction[f"count{d}"]), extent.step[d].eq(step)]
            # Row offsets replace the outermost step of an indexed tensor.
            outermost = d == DMA_DIMENSIONS - 1
            m.d.comb += side.step[d].eq(Mux(indexed[name], 0, step) if outermost else step)

        on_chip = storage != Storage.HBM
        first, end = (Signal(signed(56), name=f"{name}_{what}") for what in ("first", "end"))
        low, high = (Signal(signed(50), name=f"{name}_partition_{what}") for what in ("low", "high"))
        partitions, limit = Signal(11, name=f"{name}_partitions"), Signal(HBM_ADDRESS_BITS + 1, name=f"{name}_limit")
        m.d.comb += [
            first.eq(tensor["address"] + (extent.low << size)),
            end.eq(tensor["address"] + ((extent.high + 1) << size)),
            low.eq(tensor["partition"] + extent.partition_low),
            high.eq(tensor["partition"] + extent.partition_high + 1),
        ]
        first, end, low, high = (
            delayed(m, bound, self.config.port_latency, bound.name) for bound in (first, end, low, high)
        )
        with m.Switch(storage):
            for place in (Storage.SBUF, Storage.PSUM):
                with m.Case(int(place)):
                    m.d.comb += [
                        partitions.eq(storage_partitions(place, self.config)),
                        limit.eq(storage_bytes(place, self.config)),
                    ]
            with m.Default():
                m.d.comb += limit.eq(1 << HBM_ADDRESS_BITS)
        wrong_axis = (tensor["axis"] != NO_AXIS) & ((tensor["axis"] >= DMA_DIMENSIONS) | ~on_chip)
        outside = wrong_axis | (on_chip & ((low < 0) | (high > partitions)))
        misaligned = ((size >= 1) & tensor["address"][0]) | ((size == 2) & tensor["address"][1])
        known = storage.matches(*(int(place) for place in Storage))
        return {
            Rule.FORMAT: ~code.matches(*_CODES),
            Rule.PARTITIONS: known & outside,
            Rule.ALIGNMENT: known & misaligned,
            Rule.RANGE: known & ((first < 0) | (end > limit)),
            Rule.STORAGE: ~known | (indexed[name] & on_chip),
        }

    @staticmethod
    def _rows(m: Module, instruction, job) -> None:
        m.d.comb += [
            job.rows.on.eq(instruction.gather | instruction.scatter),
            job.rows.scatter.eq(instruction.scatter),
            job.rows.address.eq(instruction.index_address),
            job.rows.partition.eq(instruction.index_partition[:PARTITION_BITS]),
            job.rows.last.eq(instruction.count4 - 1),
            job.rows.limit.eq(instruction.index_limit),
            job.rows.skip.eq(instruction.index_skip),
            job.rows.step.eq(Mux(instruction.scatter, instruction.dst_step4, instruction.src_step4)),
            job.rows.size.eq(Mux(instruction.scatter, job.dst.size, job.src.size)),
        ]

    def _judge(self, m: Module, instruction, tensors: list[dict[Rule, Value]]) -> dict[Rule, Value]:
        """Return for each rule whether the copy instruction breaks it."""
        counts = [instruction[f"count{d}"] for d in range(DMA_DIMENSIONS)]
        rows = instruction.gather | instruction.scatter
        end = Signal(17)
        m.d.comb += end.eq(instruction.index_partition + Mux(counts[-1] == 0, 1, counts[-1]))
        broken = {
            Rule.OPCODE: instruction.opcode != DMA_COPY,
            Rule.FORMAT: Const(0),
            Rule.SHAPE: _any(count == 0 for count in counts),
            Rule.PARTITIONS: rows & (end > self.config.partitions),
            Rule.ALIGNMENT: rows & instruction.index_address[:2].any(),
            Rule.RANGE: rows & (instruction.index_address > self.config.sbuf_bytes - 4),
            Rule.STORAGE: instruction.gather & instruction.scatter,
        }
        of_either = {rule: _any(tensor[rule] for tensor in tensors if rule in tensor) for rule in broken}
        return {rule: broken[rule] | of_either[rule] for rule in broken}


def _any(conditions: Iterable[Value]) -> Value:
    return Cat(conditions).any()
