# amaranth: UnusedElaboratable=no

"""Units of `make synth`."""

from collections.abc import Callable
from dataclasses import dataclass

from amaranth import Module, Signal
from amaranth.lib import wiring

from neuroncore_rtl.hdl.arith.mac import Mac
from neuroncore_rtl.hdl.controller.controller import Controller
from neuroncore_rtl.hdl.core import Core
from neuroncore_rtl.hdl.dma.engine import DmaEngine
from neuroncore_rtl.hdl.link.router import Router
from neuroncore_rtl.hdl.memory.psum_block import PsumPartition
from neuroncore_rtl.hdl.scalar.lane import ActivationLane
from neuroncore_rtl.hdl.scalar.tables import FunctionTables
from neuroncore_rtl.hdl.tensor.array import tile_count
from neuroncore_rtl.hdl.tensor.datapath import Datapath
from neuroncore_rtl.hdl.tensor.tile import Tile
from neuroncore_rtl.hdl.vector.lane import VectorLane
from neuroncore_rtl.hdl.verilog.text import module_ports
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.instance import Instance

__all__ = ["UNITS", "Registered", "SynthesisUnit"]


class Registered(wiring.Component):
    """A unit with registers at the named ports, so that all paths are between registers."""

    def __init__(self, unit: wiring.Component, names: tuple[str, ...]):
        self.unit = unit
        self.names = names
        super().__init__(unit.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = self.unit
        ports = zip(module_ports(self.signature, self.unit), module_ports(self.signature, self), strict=True)
        for (name, member, inner), (*_, outer) in ports:
            source, target = (outer, inner) if member.flow == wiring.In else (inner, outer)
            if name.split("__")[0] in self.names:
                register = Signal.like(source, name=f"{name}_register")
                m.d.sync += register.eq(source)
                source = register
            m.d.comb += target.eq(source)
        return m


@dataclass(frozen=True)
class SynthesisUnit:
    """A unit of `make synth`, made from a machine's parameters."""

    summary: str
    build: Callable[[Config], wiring.Component]


UNITS: dict[str, SynthesisUnit] = {
    "mac": SynthesisUnit(
        "a multiply-accumulate, with registers at operands and sum",
        lambda config: Registered(Mac(config.mac_latency, config.significand_bits), ("x", "w", "out")),
    ),
    "pe": SynthesisUnit(
        "a processing element: a multiply-accumulate with its weights and pass-through, and a register at the sum",
        lambda config: Registered(
            Tile(1, tile_count(config.columns), config.mac_latency, config.significand_bits), ("out",)
        ),
    ),
    "array": SynthesisUnit("the array with the decoders and the skew at its edge", Datapath),
    "psum": SynthesisUnit(
        "a partition of PSUM with its adder", lambda config: PsumPartition(config.psum_words, config.add_latency)
    ),
    "vector_lane": SynthesisUnit(
        "a lane of the vector engine", lambda config: VectorLane(config.vector_latency, config.vector_units)
    ),
    "activation_lane": SynthesisUnit(
        "a lane of the scalar engine without its tables",
        lambda config: ActivationLane(config.scalar_depth, config.scalar_units),
    ),
    "tables": SynthesisUnit("the tables of two activation lanes", lambda config: FunctionTables(2)),
    "controller": SynthesisUnit(
        "the processor with its memory", lambda config: Controller(config.local_bytes, config.port_latency)
    ),
    "dma": SynthesisUnit("a DMA engine", DmaEngine),
    "router": SynthesisUnit("the router of a chip in a ring", lambda config: Router(Instance(core=config))),
    "core": SynthesisUnit("a whole core", Core),
}
