"""The scalar engine: activations of tensors in SBUF and PSUM, a lane for each partition."""

from functools import partial

from amaranth import Const, Module, Signal
from amaranth.lib import wiring

from neuroncore_rtl.hdl.elementwise.frontend import Frontend, connect_engine, engine_ports
from neuroncore_rtl.hdl.hierarchy import lanes
from neuroncore_rtl.hdl.scalar.block import ActivationLanes, module_name
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa.elementwise import SCALAR_OPCODES

__all__ = ["ScalarEngine"]


class ScalarEngine(wiring.Component):
    """Executes ACTIVATE, one element of every lane per cycle.

    Arguments:
        config: the machine's parameters.

    Ports: see :func:`hdl.elementwise.frontend.engine_ports`.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__(engine_ports(config))

    @staticmethod
    def latency(config: Config) -> int:
        """Return the cycles from a step to its result."""
        return timing.SCALAR_LANES_LATENCY[config.scalar_depth > 1]

    def elaborate(self, platform):
        m = Module()
        partitions = self.config.partitions
        m.submodules.frontend = frontend = Frontend(self.config, SCALAR_OPCODES, latency=self.latency(self.config))
        connect_engine(m, self, frontend)

        parameters = self.config.scalar_depth, self.config.scalar_units
        build = partial(ActivationLanes, partitions, *parameters)
        module = module_name(f"activation_lanes_{partitions}", *parameters)
        block = lanes(m, "lanes", module, build, platform, of=("activation_lane",))
        m.d.comb += [
            block.valid.eq(frontend.lanes_valid),
            block.step.eq(frontend.lanes_step),
            block.a.eq(frontend.lanes_a),
        ]

        writes = frontend.lanes_valid & frontend.lanes_step.writes
        for cycle in range(self.latency(self.config)):
            late = Signal(name=f"writes{cycle}")
            m.d.sync += late.eq(writes)
            writes = late
        m.d.comb += [
            frontend.result_valid.eq(writes),
            frontend.result.eq(block.words),
            frontend.result_enable.eq(Const(-1, partitions)),
        ]
        return m
