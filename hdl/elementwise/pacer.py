"""Pacer: offers steps to the fetch at the rate of an engine whose own clock is slower than the machine's."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.elementwise.instruction import ElementwiseOpcode, Op
from neuroncore_rtl.hdl.elementwise.issue import ElementwiseIssue
from neuroncore_rtl.hdl.elementwise.step import Phase
from neuroncore_rtl.hdl.memory.port import OnChipStorage
from neuroncore_rtl.spec import pacing
from neuroncore_rtl.spec.isa import Opcode
from neuroncore_rtl.spec.pacing import Pace

__all__ = ["Pacer"]


class Pacer(wiring.Component):
    """Gate in a stream of steps; latency 0.

    Each step adds its ticks to a debt when it is first offered, and each cycle pays `pace.ticks` of it. A step is
    offered in the first cycle that pays the whole debt, so the remainder is not lost and the mean rate is exact. The
    first step of an instruction also waits for a second debt, the minimum since the previous instruction's first step.
    Time in which an offered step stalls pays both debts too.

    Arguments:
        pace: ticks of the engine.

    Ports:
        i, o: the steps.
        busy: a debt is not paid.
    """

    i: In(stream.Signature(ElementwiseIssue))
    o: Out(stream.Signature(ElementwiseIssue))
    busy: Out(1)

    def __init__(self, pace: Pace):
        self.pace = pace
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        pace, issue, step = self.pace, self.i.payload, self.i.payload.step
        element = step.phase == Phase.ELEMENT
        gpsimd, limited, reads_out = Signal(), Signal(), Signal()
        m.d.comb += [
            gpsimd.eq(_among(step.opcode, ElementwiseOpcode, pacing.GPSIMD)),
            limited.eq(~_among(step.opcode, ElementwiseOpcode, pacing.UNLIMITED)),
            # A RESULT step follows the last element of an instruction that reads a running result.
            reads_out.eq(
                element
                & step.last
                & ~issue.write.last
                & _among(step.opcode, ElementwiseOpcode, (Opcode.TENSOR_SCALAR_REDUCE, Opcode.ACTIVATE))
            ),
        ]
        halves = self._halves(m)
        element_ticks = max(max(pacing.HALVES.values()) * pace.half, 2 * pace.gpsimd_half)
        longest = element_ticks + pace.start + 2 * pace.least + pace.access + pace.ticks
        fresh, offered = Signal(init=1), Signal()  # the next step is an instruction's first; it has been offered
        debt, gap = Signal(range(longest)), Signal(range(longest))
        due, opens, went = Signal.like(debt), Signal(), Signal()
        cost, readout = Signal.like(debt), Signal.like(debt)
        m.d.comb += [
            due.eq(Mux(fresh & (gap > debt), gap, debt)),
            opens.eq(self.i.valid & ~offered & (due < pace.ticks)),
            self.o.valid.eq(opens | (self.i.valid & offered)),
            self.o.payload.eq(issue),
            went.eq(self.o.valid & self.o.ready),
            self.i.ready.eq(went),
            self.busy.eq((debt != 0) | (gap != 0)),
            readout.eq(Mux(reads_out, pace.least, 0)),
            cost.eq(
                Mux(element, Mux(gpsimd, 2 * pace.gpsimd_half, halves), 0)
                + Mux(fresh & gpsimd, pace.start, 0)
                + Mux(issue.write.last & ~gpsimd, pace.access, 0)
                + readout
            ),
        ]
        least = Mux(fresh, Mux(limited, due + pace.least, due), gap) + readout
        m.d.sync += [
            offered.eq((offered | opens) & ~went),
            debt.eq(_paid(Mux(opens, due + cost, debt), pace.ticks)),
            gap.eq(_paid(Mux(opens, least, gap), pace.ticks)),
        ]
        with m.If(went):
            m.d.sync += fresh.eq(issue.write.last)
        return m

    def _halves(self, m: Module) -> Signal:
        """Return the ticks of an element: half a cycle of the engine, times the published half cycles."""
        issue, step, half = self.i.payload, self.i.payload.step, self.pace.half
        formats = {name: step[f"{name}_dtype"] for name in ("a", "b", "dst")}
        narrow, both = Signal(), Signal()
        m.d.comb += [
            narrow.eq(Cat(code == FormatCode.BF16 for code in formats.values()).all()),
            both.eq(Cat(place.storage == OnChipStorage.SBUF for place in (issue.a, issue.b)).all()),
        ]
        first, second = pacing.QUICK_FUSED
        fused = (step.op0 == Op[first.name]) & (step.op1 == Op[second.name])
        reduces = (step.a_dtype == FormatCode.BF16) & _among(step.op0, Op, pacing.QUICK_REDUCTIONS)
        zero_formats = Cat(step.dst_dtype == FormatCode[fmt.name.upper()] for fmt in pacing.ZERO_FORMATS)
        quick_sum = narrow & _among(step.op0, Op, pacing.QUICK_SUMS)
        of = {
            Opcode.TENSOR_REDUCE: Mux(reduces, half, 2 * half),
            Opcode.MEMSET: Mux(~step.pointer0 & (step.scalar0 == 0) & zero_formats.any(), half, 2 * half),
            Opcode.TENSOR_TENSOR: Mux(both & ~quick_sum, 4 * half, 2 * half),
            Opcode.SELECT: Mux(both, 4 * half, 2 * half),
            **dict.fromkeys(pacing.ALWAYS_TWO, 4 * half),
            **{opcode: halves * half for opcode, halves in pacing.HALVES.items()},
        }
        of[Opcode.SCALAR_TENSOR_TENSOR] = Mux(narrow & fused, 2 * half, 4 * half)
        ticks = Signal(range(16 * half + 1), name="element_ticks")
        m.d.comb += ticks.eq(2 * half)
        with m.Switch(step.opcode):
            for opcode, value in of.items():
                with m.Case(ElementwiseOpcode(opcode)):
                    m.d.comb += ticks.eq(value)
            with m.Default():
                pass
        return ticks


def _among(code, kind, chosen) -> Value:
    return Cat(code == kind[one.name] for one in chosen).any()


def _paid(debt: Value, ticks: int) -> Value:
    return Mux(debt > ticks, debt - ticks, 0)
