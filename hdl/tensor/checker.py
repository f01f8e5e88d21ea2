"""Checker of the tensor engine's instructions.

The only product, the extent of a moving operand, is computed in the cycle in which an instruction is accepted.
"""

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.arith.formats import FormatCode, element_size
from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.hdl.primitives import checker
from neuroncore_rtl.hdl.primitives.checker import lowest_rule
from neuroncore_rtl.hdl.primitives.span import Span
from neuroncore_rtl.hdl.tensor.instruction import TensorInstruction, TensorOpcode
from neuroncore_rtl.spec.config import LOAD_COLUMNS, PSUM_BANKS, Config
from neuroncore_rtl.spec.isa.rule import Rule
from neuroncore_rtl.spec.isa.tensor.rules import column_starts, row_starts

__all__ = ["TensorChecker"]


class Loaded(data.Struct):
    """Columns that the last LoadStationary wrote, and whether the weights are INT8.

    Empty before the first LoadStationary.
    """

    columns: Span
    integer: unsigned(1)


class TensorChecker(checker.Checker):
    """Checker of tensor instructions. Throughput: one instruction per cycle.

    With `config.port_latency` the check takes one more cycle, and instructions do not overlap.

    Ports: see `hdl.primitives.checker.Checker`.
    """

    LATENCY = 1
    """Cycles from an instruction at `i` to `o`, without `port_latency`; an error is reported one cycle later."""

    def __init__(self, config: Config):
        self.config = config
        super().__init__(TensorInstruction, TensorInstruction)

    @property
    def latency(self) -> int:
        return self.LATENCY + self.config.port_latency

    def elaborate(self, platform):
        m = Module()
        instruction = Signal(TensorInstruction, reset_less=True)
        held, judged, leaves = Signal(), Signal(), Signal()
        extent = Signal(26, reset_less=True)  # bytes from the first moving element to the last one
        loaded = Signal(Loaded)
        refused, taken = Signal(), Signal()
        broken, late = self._broken(m, instruction, extent, loaded), self.config.port_latency
        broken = {rule: delayed(m, breaks, late, f"breaks_{rule.name.lower()}") for rule, breaks in broken.items()}
        cause, legal = lowest_rule(m, broken), ~Cat(broken.values()).any()
        if late:
            m.d.sync += judged.eq(held & ~leaves)
        else:
            m.d.comb += judged.eq(held)
        m.d.comb += [
            refused.eq(judged & ~legal),
            self.o.valid.eq(judged & legal),
            self.o.payload.eq(instruction),
            leaves.eq((self.o.valid & self.o.ready) | refused),
            self.i.ready.eq(~self.error.valid & ~refused & (~held | (self.o.ready & (not late)))),
            taken.eq(self.i.valid & self.i.ready),
            self.busy.eq(held),
        ]
        with m.If(leaves):
            m.d.sync += held.eq(0)
        self.refuse(m, refused, cause)
        with m.If(taken):
            incoming = self.i.payload
            m.d.sync += [held.eq(1), instruction.eq(incoming), extent.eq((incoming.n - 1)[:10] * incoming.stride)]
        with m.If(self.o.valid & self.o.ready):
            with m.If(instruction.opcode == TensorOpcode.LOAD_STATIONARY):
                m.d.sync += [
                    loaded.columns.first.eq(instruction.column),
                    loaded.columns.end.eq(instruction.column + instruction.m),
                    loaded.integer.eq(instruction.dtype == FormatCode.INT8),
                ]
        return m

    def _broken(self, m: Module, instruction, extent: Signal, loaded) -> dict[Rule, Value]:
        """Return for each rule whether the instruction breaks it.

        The condition of a rule may assume that all lower rules hold.
        """
        config = self.config
        moving = instruction.opcode == TensorOpcode.MULTIPLY_MOVING
        code = instruction.dtype.as_value()
        size = element_size(m, "size", instruction.dtype, config.matmul_formats)
        # Required alignment in bytes: one element, or a whole step for a load.
        step, below, unaligned = Signal(range(LOAD_COLUMNS * 4 + 1)), Signal(range(LOAD_COLUMNS * 4)), Signal()
        end = Signal(28)
        steps = (instruction.m + (LOAD_COLUMNS - 1))[LOAD_COLUMNS.bit_length() - 1 :]
        m.d.comb += [
            step.eq(Mux(moving, 1, LOAD_COLUMNS) << size),
            below.eq(step - 1),
            unaligned.eq((instruction.address & below).any() | (moving & (instruction.stride & below).any())),
            end.eq(instruction.address + Mux(moving, extent + step, (steps * LOAD_COLUMNS) << size)),
        ]
        word, end_of_psum = ((words - 1).bit_length() for words in (config.psum_words, PSUM_BANKS * config.psum_words))
        outside = instruction.psum[:word] + instruction.n > config.psum_words
        beyond = instruction.psum[end_of_psum:]  # nonzero: address outside PSUM; no bits for the largest PSUM
        if len(beyond):
            outside |= beyond.any()
        return {
            Rule.OPCODE: ~moving & (instruction.opcode != TensorOpcode.LOAD_STATIONARY),
            Rule.FORMAT: ~code.matches(*(fmt.code for fmt in config.matmul_formats)),
            Rule.OPERATION: instruction.half & (instruction.dtype != FormatCode.FP32),
            Rule.SHAPE: _outside(instruction.m, config.columns) | (moving & _outside(instruction.n, config.psum_words)),
            Rule.PARTITIONS: _outside(instruction.k, config.rows)
            | _misplaced(instruction.row, instruction.k, row_starts(config), config.rows, config.quadrant)
            | _misplaced(instruction.column, instruction.m, column_starts(config), config.columns, config.quadrant),
            Rule.ALIGNMENT: unaligned,
            Rule.RANGE: (end > config.sbuf_bytes) | (moving & outside),
            Rule.STATE: moving
            & (
                (instruction.column < loaded.columns.first)
                | (instruction.column + instruction.m > loaded.columns.end)
                | ((instruction.dtype == FormatCode.INT8) & ~loaded.integer)
            ),
        }


def _outside(value: Value, most: int) -> Value:
    return (value < 1) | (value > most)


def _misplaced(start: Value, count: Value, starts: list[int], limit: int, quadrant: int) -> Value:
    odd = [one for one in starts if one // quadrant % 2]
    return (
        ~start.matches(*starts)
        | ((count > 2 * quadrant) & (start != 0))
        | ((count > quadrant) & start.matches(*odd))
        | (start + count > limit)
    )
