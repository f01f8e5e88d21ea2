"""Scalar engine: activation functions of tensors in SBUF and PSUM."""

from functools import partial

from amaranth import Const, Module, Signal
from amaranth.lib import wiring

from neuroncore_rtl.hdl.elementwise.frontend import Frontend, connect_engine, engine_ports
from neuroncore_rtl.hdl.elementwise.turns import serve
from neuroncore_rtl.hdl.scalar.block import ActivationLanes, scalar_block_name
from neuroncore_rtl.hdl.verilog.hierarchy import lanes
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Engine
from neuroncore_rtl.spec.isa.elementwise import SCALAR_OPCODES
from neuroncore_rtl.spec.pacing import pace_of

__all__ = ["ScalarEngine"]


class ScalarEngine(wiring.Component):
    """Engine that executes ACTIVATE: one element of every partition per `config.lane_partitions` cycles.

    Ports: see `hdl.elementwise.frontend.engine_ports`.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__(engine_ports(config))

    @staticmethod
    def latency(config: Config) -> int:
        return timing.SCALAR_LANES_LATENCY[config.scalar_depth > 1] + timing.turns_latency(config.lane_partitions)

    def elaborate(self, platform):
        m = Module()
        config = self.config
        turns = config.lane_partitions
        m.submodules.frontend = frontend = Frontend(
            config,
            SCALAR_OPCODES,
            latency=self.latency(config),
            interval=lambda instruction: Const(turns),
            pace=pace_of(Engine.SCALAR, config),
        )
        connect_engine(m, self, frontend)
        served = serve(m, frontend, config)

        parameters = config.scalar_depth, config.scalar_units, turns
        number = config.partitions // turns
        build = partial(ActivationLanes, number, *parameters)
        block = lanes(
            m,
            "lanes",
            scalar_block_name(f"activation_lanes_{number}", *parameters),
            build,
            platform,
            of=("activation_lane",),
        )
        m.d.comb += [
            block.valid.eq(served.valid),
            block.step.eq(served.step),
            block.a.eq(served.a),
        ]

        writes = served.valid & served.step.writes
        for cycle in range(timing.SCALAR_LANES_LATENCY[config.scalar_depth > 1]):
            late = Signal(name=f"writes{cycle}")
            m.d.sync += late.eq(writes)
            writes = late
        m.d.comb += [
            served.result_valid.eq(writes),
            served.word.eq(block.words),
            served.enable.eq(Const(-1, number)),
        ]
        return m
