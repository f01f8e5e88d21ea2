"""DMA caster: converts elements from the source's format to the destination's.

    piece -> [select] -> [widen] -> [round or saturate] -> bytes
               0            1              2, ...

Equal formats bypass the stages. A cast between integers passes through 32 bits and saturates. Every other cast passes
through FP32 and rounds once, to nearest even: on the way to a narrower format, FP32 is rounded to odd. A stage has the
number of the register at its output.
"""

from itertools import pairwise

from amaranth import Cat, Const, EnableInserter, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.formats import element_size
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.hdl.arith.saturate import Saturate
from neuroncore_rtl.hdl.arith.widen import Widen
from neuroncore_rtl.hdl.dma.job import bytes_layout, piece_layout
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.formats import FORMATS, FP32, UINT32

__all__ = ["Caster"]

_INTEGERS = tuple(f.code for f in FORMATS.values() if not f.is_float)


class Caster(wiring.Component):
    """Casts up to `lanes` elements per cycle, at most one beat of results; without a cast, forwards a piece per cycle.

    Arguments:
        size: bytes per beat.
        lanes: maximum number of elements cast per cycle.
        latency: pipeline stages of the rounding; if it has more than one, the widening has three.

    Ports:
        i: pieces, each the bytes of whole elements in one beat; a piece with an HBM error is never accepted.
        o: the bytes of the pieces: in the same cycle, or with a cast `cast_latency(latency)` cycles later.
        busy: an element that is being cast is in the pipeline.
    """

    def __init__(self, size: int, lanes: int = 4, latency: int = 1):
        self.size = size
        self.lanes = lanes
        self.latency = latency
        self.widened = timing.cast_latency(latency) - latency - 1
        """Index of the stage that holds the widened value."""
        super().__init__(
            {
                "i": In(stream.Signature(piece_layout(size))),
                "o": Out(stream.Signature(bytes_layout(size))),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        piece, formats = self.i.payload.bytes, self.i.payload.formats
        casts, offered, advance = Signal(), Signal(), Signal()
        valid = Signal(timing.cast_latency(self.latency))  # one bit per stage
        m.d.comb += [
            casts.eq(Value.cast(formats.src) != Value.cast(formats.dst)),
            offered.eq(self.i.valid & ~self.i.payload.bad),
            advance.eq(~valid[-1] | self.o.ready),
            self.busy.eq(valid.any()),
        ]

        # Before stage 0: select the elements of the piece.
        src_size, dst_size = (element_size(m, f"{n}_size", getattr(formats, n)) for n in ("src", "dst"))
        done, place, here = Signal.like(piece.count), Signal.like(piece.offset), Signal.like(piece.count)
        fits, lanes, last = Signal(range(self.lanes + 1)), Signal(range(self.lanes + 1)), Signal()
        window = Signal(8 * 4 * self.lanes)
        m.d.comb += [
            place.eq(piece.offset + done),
            here.eq((piece.count - done) >> src_size),
            fits.eq(Mux(dst_size == 2, min(self.lanes, self.size // 4), self.lanes)),
            last.eq(here <= fits),
            lanes.eq(Mux(last, here, fits)),
            window.eq(piece.data >> Cat(Const(0, 3), place)),
        ]
        selects = Signal()
        m.d.comb += selects.eq(offered & casts & advance)
        with m.If(selects):
            m.d.sync += done.eq(Mux(last, 0, done + (lanes << src_size)))

        # Control of the stages: formats and number of elements.
        control = data.StructLayout({"formats": formats.shape(), "lanes": len(lanes)})
        stages = [Signal(control, name=f"stage{n}", reset_less=True) for n in range(len(valid))]
        with m.If(advance):
            m.d.sync += [
                valid.eq(Cat(offered & casts, valid[:-1])),
                Value.cast(stages[0]).eq(Cat(formats, lanes)),
                *(stage.eq(before) for before, stage in pairwise(stages)),
            ]
        integer = [Signal(name=f"integer{n}") for n in range(len(stages))]
        for flag, stage in zip(integer, stages, strict=True):
            m.d.comb += flag.eq(_is_integer(stage.formats.src) & _is_integer(stage.formats.dst))

        words = []
        for n in range(self.lanes):
            words.append(self._lane(m, n, window, src_size, stages, integer, advance))
        out_size = element_size(m, "out_size", stages[-1].formats.dst)
        packed = Signal(32 * self.lanes)
        with m.Switch(out_size):
            for case, bits in ((0, 8), (1, 16)):
                with m.Case(case):
                    m.d.comb += packed.eq(Cat(word[:bits] for word in words))
            with m.Default():
                m.d.comb += packed.eq(Cat(words))

        result = self.o.payload
        with m.If(valid.any()):
            m.d.comb += [
                self.o.valid.eq(valid[-1]),
                result.data.eq(packed),
                result.offset.eq(0),
                result.count.eq(stages[-1].lanes << out_size),
            ]
        with m.Else():
            m.d.comb += [self.o.valid.eq(offered & ~casts), result.eq(piece)]
        m.d.comb += self.i.ready.eq(Mux(casts, selects & last, offered & ~valid.any() & self.o.ready))
        return m

    def _lane(self, m: Module, n: int, window, src_size, stages, integer, advance) -> Value:
        """Add lane `n`; return its storage word after the last pipeline stage. Unused upper bits are 0."""
        widen = Widen(self.widened - 1)
        m.submodules[f"widen{n}"] = EnableInserter(advance)(widen)
        m.submodules[f"saturate{n}"] = saturate = Saturate()
        rounder = Fp32Rounder(self.latency)
        m.submodules[f"round{n}"] = EnableInserter(advance)(rounder)
        word, value = (Signal(32, name=f"{r}{n}", reset_less=True) for r in ("word", "value"))
        saturated = [Signal(32, name=f"saturated{n}_{cycle}", reset_less=True) for cycle in range(self.latency)]
        m.d.comb += [
            widen.word.eq(word),
            widen.dtype.eq(stages[0].formats.src),
            widen.odd.eq(Value.cast(stages[0].formats.dst) != FP32.code),
            rounder.value.eq(value),
            rounder.format.eq(stages[self.widened].formats.dst),
            saturate.value.eq(value),
            saturate.uint32.eq(Value.cast(stages[self.widened].formats.src) == UINT32.code),
            saturate.dtype.eq(stages[self.widened].formats.dst),
        ]
        with m.If(advance):
            with m.Switch(src_size):
                for case, bits in ((0, 8), (1, 16)):
                    with m.Case(case):
                        m.d.sync += word.eq(window[bits * n : bits * n + bits])
                with m.Default():
                    m.d.sync += word.eq(window[32 * n : 32 * n + 32])
            m.d.sync += [
                value.eq(Mux(integer[self.widened - 1], widen.integer, widen.fp32)),
                *(late.eq(before) for before, late in pairwise([saturate.word, *saturated])),
            ]
        return Mux(integer[-1], saturated[-1], rounder.word)


def _is_integer(code) -> Value:
    return Value.cast(code).matches(*_INTEGERS)
