"""Vector engine: element-wise operations, reductions, statistics and searches."""

from functools import partial

from amaranth import Cat, Const, Module, Mux
from amaranth.lib import wiring

from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.formats import element_size
from neuroncore_rtl.hdl.arith.power import Fp32Power
from neuroncore_rtl.hdl.elementwise.frontend import Frontend, connect_engine, engine_ports
from neuroncore_rtl.hdl.elementwise.instruction import ElementwiseOpcode, Op
from neuroncore_rtl.hdl.elementwise.turns import serve
from neuroncore_rtl.hdl.vector.block import VectorLanes, vector_block_name
from neuroncore_rtl.hdl.vector.decode import slow_op0, slow_op1
from neuroncore_rtl.hdl.vector.transpose import Transposer
from neuroncore_rtl.hdl.verilog.hierarchy import lanes, shared
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import VECTOR_OPCODES, Engine
from neuroncore_rtl.spec.isa.elementwise import transpose_block
from neuroncore_rtl.spec.pacing import pace_of

__all__ = ["VectorEngine", "interval", "slow"]


def slow(instruction):
    """Return whether an instruction has a slow operation, so it must be alone in the lanes."""
    return slow_op0(instruction) | slow_op1(instruction) | (instruction.opcode == ElementwiseOpcode.BN_AGGR)


def interval(instruction, alu_latency: int = 1, turns: int = 1):
    """Return the cycles from one step of an instruction to the next.

    If both operations are slow, the second starts after the first is done.

    Arguments:
        instruction: the instruction.
        alu_latency: cycles of an ALU. A running result is fed back through the second ALU, in a scan through both; the
            mean of the statistics is fed back through both.
        turns: number of partitions that a lane serves in turn; if above 1, a lane has no slow unit.
    """
    of_first, of_second = (_of_unit(instruction[f"op{number}"], "INTERVAL") for number in (0, 1))
    of_first = Mux(instruction.opcode == ElementwiseOpcode.RECIPROCAL, Fp32Divider.INTERVAL, of_first)
    both = _of_unit(instruction.op0, "LATENCY") + of_second
    slow0, slow1 = slow_op0(instruction), slow_op1(instruction)
    ordinary = Const(turns)
    for opcode, cycles in timing.vector_intervals(alu_latency).items():
        ordinary = Mux(instruction.opcode == ElementwiseOpcode[opcode], max(cycles, turns), ordinary)
    return Mux(slow0, Mux(slow1, both, of_first), Mux(slow1, of_second, ordinary))


def _of_unit(op, constant: str):
    of_remainder = getattr(Fp32Divider, f"REMAINDER_{constant}")
    of_quotient = Mux((op == Op.MOD) | (op == Op.FMOD), of_remainder, getattr(Fp32Divider, constant))
    return Mux(op == Op.POWER, getattr(Fp32Power, constant), of_quotient)


class VectorEngine(wiring.Component):
    """Engine that executes the vector instructions of `spec.isa` in order.

    Ports: see `hdl.elementwise.frontend.engine_ports`.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__(engine_ports(config))

    @staticmethod
    def latency(config: Config) -> int:
        return timing.vector_lanes_latency(config.vector_latency) + timing.turns_latency(config.lane_partitions)

    def elaborate(self, platform):
        m = Module()
        config = self.config
        turns = config.lane_partitions
        m.submodules.frontend = frontend = Frontend(
            config,
            VECTOR_OPCODES,
            latency=self.latency(config),
            slow=slow,
            interval=partial(interval, alu_latency=config.vector_latency, turns=turns),
            pace=pace_of(Engine.VECTOR, config),
        )
        connect_engine(m, self, frontend)
        served = serve(m, frontend, config, self._transpose(m, frontend, platform))
        parameters = config.vector_latency, config.vector_units, turns
        number = config.partitions // turns
        build = partial(VectorLanes, number, *parameters)
        module = vector_block_name(f"vector_lanes_{number}", *parameters)
        block = lanes(m, "lanes", module, build, platform, of=("vector_lane",))
        m.d.comb += [getattr(block, name).eq(getattr(served, name)) for name in ("valid", "step", "a", "b", "moved")]
        m.d.comb += [getattr(served, name).eq(getattr(block, name)) for name in ("result_valid", "word", "enable")]
        return m

    def _transpose(self, m: Module, frontend: Frontend, platform):
        size = transpose_block(self.config)
        width = element_size(m, "width", frontend.lanes_step.a_dtype)
        moved = []
        for first in range(0, self.config.partitions - size + 1, size):
            unit = shared(m, f"transposer_{first}", f"transposer_{size}", partial(Transposer, size), platform)
            m.d.comb += [
                unit.step.eq(frontend.lanes_valid & (frontend.lanes_step.opcode == ElementwiseOpcode.TRANSPOSE)),
                unit.first.eq(frontend.lanes_step.first),
                unit.width.eq(width),
                unit.column.eq(frontend.lanes_a.word_select(first // size, 32 * size)),
            ]
            moved.append(unit.out)
        return Cat(*moved, Const(0, 32 * (self.config.partitions % size)))
