"""Collective checker: applies the rules of `spec.isa.collective.rules`, and computes the products for a job."""

from amaranth import Const, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In

from neuroncore_rtl.hdl.collective.instruction import CollectiveInstruction, SignatureLayout
from neuroncore_rtl.hdl.collective.job import CollectiveJobLayout
from neuroncore_rtl.hdl.collective.signature import among
from neuroncore_rtl.hdl.primitives import checker
from neuroncore_rtl.hdl.primitives.checker import lowest_rule
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, Rule
from neuroncore_rtl.spec.isa.collective import (
    BLOCKS_OF_DST,
    BLOCKS_OF_SRC,
    COLLECTIVE,
    COLLECTIVE_ALIGNMENT,
    GRANULE,
    REDUCTION_KINDS,
    ROOTED,
    SIGNATURE_FIELDS,
    SIGNATURE_USES,
    CollectiveKind,
    CollectiveType,
    ReduceOp,
)
from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["CollectiveChecker"]

_K = CollectiveKind


class CollectiveChecker(checker.Checker):
    """Checks one collective at a time.

    Ports, besides those of `Checker`:
        core: number of this core; constant.
    """

    NUMBERS = False

    LATENCY = 3
    """Cycles from an instruction accepted at `i` to its job at `o` or to the error."""

    def __init__(self, cores: int):
        self.cores = cores
        super().__init__(CollectiveInstruction, CollectiveJobLayout, core=In(CORE_BITS))

    def elaborate(self, platform):
        m = Module()
        instruction = Signal(CollectiveInstruction, reset_less=True)
        held, multiplied = Signal(), Signal()
        judged = Signal(CollectiveJobLayout, reset_less=True)
        kind = instruction.kind
        barrier, chunk = kind == _K.BARRIER, Signal.like(judged.chunk)
        unit = Mux(among(kind, {_K.ALL_REDUCE, _K.BARRIER}), chunk, instruction.pitch)
        m.d.comb += chunk.eq((instruction.chunk + 1) * GRANULE)
        own, top = (Signal(HBM_ADDRESS_BITS, name=name, reset_less=True) for name in ("own", "top"))
        cores = {role: Signal(signed(16), name=f"{role}_core", reset_less=True) for role in ("own", "last", "root")}
        numbers = {"own": instruction.rank, "last": instruction.ranks, "root": instruction.root}
        m.d.sync += [own.eq(instruction.rank * unit), top.eq(instruction.ranks * unit)]
        m.d.sync += [cores[role].eq(instruction.base + n * instruction.stride) for role, n in numbers.items()]

        cause, refused = self._cause(m, instruction, top, cores), Signal()
        m.d.comb += [self.i.ready.eq(~held & ~self.error.valid), self.o.payload.eq(judged), self.busy.eq(held)]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [held.eq(1), instruction.eq(self.i.payload)]
        with m.If(held):
            m.d.sync += multiplied.eq(1)
        with m.If(multiplied & ~self.o.valid):
            m.d.sync += self.o.valid.eq(cause == 0)
        with m.If(refused | (self.o.valid & self.o.ready)):
            m.d.sync += [held.eq(0), multiplied.eq(0), self.o.valid.eq(0)]
        m.d.comb += refused.eq(multiplied & (cause != 0))
        self.refuse(m, refused, cause)

        job = Signal(CollectiveJobLayout)
        m.d.sync += judged.eq(job)
        for name in ("kind", "op", "narrow", "stochastic", "rank", "root", "seed", "stream"):
            m.d.comb += job[name].eq(instruction[name])
        m.d.comb += [
            job.dtype.eq(Mux(barrier, CollectiveType.FP32, instruction.dtype)),
            job.last_rank.eq(instruction.ranks),
            job.count.eq(Mux(barrier, 1, instruction.count)),
            job.chunk.eq(chunk),
            job.src.eq(instruction.src_address),
            job.dst.eq(instruction.dst_address),
            job.stride.eq(instruction.stride),
            job.core.eq(self.core),
            job.first_core.eq(instruction.base),
            job.last_core.eq(cores["last"]),
            job.root_core.eq(cores["root"]),
            job.unit.eq(unit),
            job.own.eq(own),
            job.top.eq(top),
            job.signature.eq(_signature(m, instruction)),
        ]
        return m

    def _cause(self, m: Module, instruction, top: Signal, cores: dict[str, Signal]) -> Signal:
        """Return the number of the lowest rule that the instruction breaks; 0 if it is legal."""
        kind, dtype = instruction.kind, instruction.dtype
        barrier, reduces = kind == _K.BARRIER, among(kind, REDUCTION_KINDS)
        transfer = among(kind, {_K.SEND, _K.RECEIVE})
        src_blocks, dst_blocks = among(kind, BLOCKS_OF_SRC), among(kind, BLOCKS_OF_DST)
        src_used = ~barrier & (kind != _K.RECEIVE) & ((kind != _K.BROADCAST) | (instruction.rank == instruction.root))
        dst_used = ~barrier & (kind != _K.SEND)
        pitch_used = src_blocks | dst_blocks
        below = (COLLECTIVE_ALIGNMENT - 1).bit_length()
        bf16 = dtype == CollectiveType.BF16
        block = Signal(33)
        m.d.comb += block.eq(instruction.count << Mux(bf16, 1, 2))
        ends = {}
        for name, blocks in (("src", src_blocks), ("dst", dst_blocks)):
            ends[name] = Signal(HBM_ADDRESS_BITS + 2, name=f"{name}_end")
            m.d.comb += ends[name].eq(instruction[f"{name}_address"] + Mux(blocks, top, 0) + block)

        last, limit_core = cores["last"], self.cores
        base_outside = instruction.base >= limit_core if limit_core < 1 << CORE_BITS else Const(0)
        limit = Const(1 << HBM_ADDRESS_BITS)
        broken: dict[Rule, Value] = {
            Rule.OPCODE: instruction.opcode != COLLECTIVE,
            Rule.FORMAT: (~barrier & (dtype > max(CollectiveType)))
            | (reduces & ((instruction.op > max(ReduceOp)) | ((instruction.narrow | instruction.stochastic) & ~bf16))),
            Rule.SHAPE: (~barrier & (instruction.count == 0)) | (instruction.ranks == 0),
            Rule.ALIGNMENT: (src_used & instruction.src_address[:below].any())
            | (dst_used & instruction.dst_address[:below].any())
            | (pitch_used & instruction.pitch[:below].any()),
            Rule.RANGE: (pitch_used & (instruction.pitch < block))
            | (src_used & (ends["src"] > limit))
            | (dst_used & (ends["dst"] > limit)),
            Rule.STATE: (instruction.stride == 0)
            | base_outside
            | (last < 0)
            | (last >= limit_core)
            | (instruction.rank > instruction.ranks)
            | (cores["own"] != self.core)
            | (among(kind, ROOTED) & (instruction.root > instruction.ranks))
            | (transfer & (instruction.root == instruction.rank)),
        }
        return lowest_rule(m, broken)


def _signature(m: Module, instruction) -> Value:
    signature = Signal(SignatureLayout)
    for name, _ in SIGNATURE_FIELDS:
        with m.If(among(instruction.kind, {kind for kind in _K if name in SIGNATURE_USES[kind]})):
            m.d.comb += signature[name].eq(instruction[name])
    return Value.cast(signature)
