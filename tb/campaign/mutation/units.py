"""Table of all mutation units."""

import importlib

from amaranth import Cat, Mux, Signal
from amaranth.hdl import Assume

from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.arith.decode import EdgeDecoder
from neuroncore_rtl.hdl.arith.fma import Fp32Fma
from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.hdl.arith.threefry import Threefry2x32
from neuroncore_rtl.hdl.memory.psum import Psum
from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo
from neuroncore_rtl.hdl.tensor.loader import StationaryLoader
from neuroncore_rtl.hdl.tensor.mover import Mover
from neuroncore_rtl.hdl.vector.alu import VectorAlu
from neuroncore_rtl.hdl.vector.search import Search
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import matmul_formats
from neuroncore_rtl.tb.campaign.mutation.collective import COLLECTIVE_UNITS
from neuroncore_rtl.tb.campaign.mutation.control import CONTROL_UNITS
from neuroncore_rtl.tb.campaign.mutation.engines import ENGINE_UNITS
from neuroncore_rtl.tb.campaign.mutation.fabric import FABRIC
from neuroncore_rtl.tb.campaign.mutation.unit import Unit, files, payloads, qualify, tests_module
from neuroncore_rtl.tb.tests.engines.mac import MacUnit

__all__ = ["MUTATED_UNITS", "unit_named"]


def _known_formats(m, unit):
    """Assume that the operands' format is a known one, as results for other format codes have no meaning."""
    known = matmul_formats(unit.mac.significand_bits)
    m.d.comb += Assume(Cat(unit.word.format == FormatCode(fmt.code) for fmt in known).any())
    return {}


def _of_integers_or_not(m, unit):
    """Compare the product only for integer operations and the sum only for float operations, each after its latency."""
    integer, late = unit.integer, []
    for cycle in range(unit.latency):
        late.append(integer)
        integer = Signal(name=f"integer_{cycle}", reset_less=True)
        m.d.sync += integer.eq(late[-1])
    late.append(integer)
    return {"out": Mux(late[unit.latency], 0, unit.out), "product": Mux(late[unit.product_latency], unit.product, 0)}


def _accepted_reads(m, psum):
    """Compare read data only in the cycle after an accepted request."""
    seen = {}
    for name in ("reads", "shared_reads"):
        port, accepted = getattr(psum, name), Signal(name=f"{name}_accepted")
        m.d.sync += accepted.eq(port.valid & port.ready)
        seen |= qualify(accepted, {f"{name}.data": port.data})
    return seen


MUTATED_UNITS = {
    "pe": Unit(
        "PE with its decoders", lambda: MacUnit(2), files("arith/mac", "arith/benches"), 5, means=_known_formats
    ),
    "edge_decoder": Unit("edge decoder", EdgeDecoder, files("arith/decode"), 2),
    "rounding": Unit("rounding", lambda: Fp32Rounder(2), files("arith/round"), 5),
    "threefry": Unit("Threefry", Threefry2x32, files("arith/threefry"), 2),
    "adder": Unit("FP32 adder", lambda: Fp32Adder(2), files("arith/fp32"), 5),
    "multiply_add": Unit("FP32 multiply-add", lambda: Fp32Fma(4), files("arith/fp32"), 7, means=_of_integers_or_not),
    "alu": Unit("vector ALU", lambda: VectorAlu(), files("vector/alu"), 4),
    "search": Unit("search", Search, files("vector/search"), 20),
    "psum": Unit(
        "PSUM", lambda: Psum(3, 16, 1), files("memory/psum_traffic"), 0, means=_accepted_reads,
        without=tuple(f"partitions.block0.partition{n}.add" for n in range(3)),
    ),
    "mover": Unit("tensor sequencing: mover", lambda: Mover(Config(rows=2, columns=4)), files("tensor/sequencers")),
    "loader": Unit(
        "tensor sequencing: loader", lambda: StationaryLoader(Config(rows=2, columns=1024)), files("tensor/sequencers")
    ),
    "counting": Unit(
        "counters", lambda: tests_module("primitives.test_counting").counting(), files("primitives/counting"), 3
    ),
    "fifo": Unit(
        "queues in a memory", lambda: BufferedFifo(16, 4), files("primitives/fifo"), 8,
        means=lambda m, fifo: payloads(fifo, "o"),
    ),
    **ENGINE_UNITS,
    **CONTROL_UNITS,
    **FABRIC,
    **COLLECTIVE_UNITS,
}  # fmt: skip


def unit_named(name: str) -> Unit:
    """Return a unit of `MUTATED_UNITS`, or the unit that another module defines; then the name is module:attribute."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute) if attribute else MUTATED_UNITS[name]
