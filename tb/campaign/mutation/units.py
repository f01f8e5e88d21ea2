"""The units of which mutants are made, with the tests that have to catch them."""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass

from amaranth.lib import wiring

from neuroncore_rtl import ROOT
from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.arith.decode import EdgeDecoder
from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.fma import Fp32Fma
from neuroncore_rtl.hdl.arith.power import Fp32Power
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.hdl.arith.threefry import Threefry2x32
from neuroncore_rtl.hdl.collective.sender import Sender
from neuroncore_rtl.hdl.controller.decoder import Decoder
from neuroncore_rtl.hdl.memory.psum import Psum
from neuroncore_rtl.hdl.queue.boot import Boot
from neuroncore_rtl.hdl.queue.fetch import Fetcher
from neuroncore_rtl.hdl.queue.queue import Queue
from neuroncore_rtl.hdl.queue.registers import Registers
from neuroncore_rtl.hdl.queue.semaphores import Semaphores
from neuroncore_rtl.hdl.tensor.loader import Loader
from neuroncore_rtl.hdl.tensor.mover import Mover
from neuroncore_rtl.hdl.vector.alu import Alu
from neuroncore_rtl.hdl.vector.search import Search
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.isa import Engine
from neuroncore_rtl.tb.benches.mac import MacUnit

__all__ = ["UNITS", "Unit", "unit_named"]


@dataclass(frozen=True)
class Unit:
    """A unit.

    Arguments:
        title: what it is called in tables.
        make: returns the component, with the parameters that its tests give it.
        tests: files of its tests.
        cycles: of proofs of equivalence, from reset.
        part: the submodule that mutants are made of; all of the component unless it is named.
    """

    title: str
    make: Callable[[], wiring.Component]
    tests: tuple[str, ...]
    cycles: int = 10
    part: str = ""


def _tests(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/hdl/{folder}/test_{name}.py" for folder, _, name in (name.partition("/") for name in names))


def _of_tests(module: str):
    """Return a module of the tests, some of which make a component around the unit."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return importlib.import_module(f"tests.hdl.{module}")


_TENSOR = Config(rows=2, columns=4), Config(rows=2, columns=19)

UNITS = {
    "pe": Unit("PE with its decoders", lambda: MacUnit(2), _tests("arith/mac", "arith/benches"), 5),
    "edge_decoder": Unit("edge decoder", EdgeDecoder, _tests("arith/decode"), 2),
    "rounding": Unit("rounding", lambda: Fp32Rounder(2), _tests("arith/round"), 5),
    "threefry": Unit("Threefry", Threefry2x32, _tests("arith/threefry"), 2),
    "adder": Unit("FP32 adder", lambda: Fp32Adder(2), _tests("arith/fp32"), 5),
    "multiply_add": Unit("FP32 multiply-add", lambda: Fp32Fma(4), _tests("arith/fp32"), 7),
    "psum": Unit("PSUM", lambda: Psum(3, 512, 1), _tests("memory/psum"), 8),
    "mover": Unit("tensor sequencing: mover", lambda: Mover(_TENSOR[0]), _tests("tensor/units")),
    "loader": Unit("tensor sequencing: loader", lambda: Loader(_TENSOR[1]), _tests("tensor/units")),
    "alu": Unit("vector ALU", lambda: Alu(), _tests("vector/alu"), 4),
    "statistics": Unit(
        "statistics", lambda: _of_tests("vector.test_stats").WithUnits(1), _tests("vector/stats"), 12, "statistics"
    ),
    "search": Unit("search", Search, _tests("vector/search"), 20),
    "divider": Unit("FP32 divider", Fp32Divider, _tests("arith/iterative"), 30),
    "power": Unit("FP32 power", Fp32Power, _tests("arith/iterative"), 30),
    "queue": Unit("queue", lambda: Queue(Engine.TENSOR, 2, 4), _tests("queue/queue"), 15),
    "semaphores": Unit("semaphores", lambda: Semaphores(3), _tests("queue/semaphores"), 8),
    "fetcher": Unit(
        "fetcher", lambda: Fetcher(Config(rows=4, columns=4, dma_engines=2, hbm_bytes=16)), _tests("queue/fetch"), 15
    ),
    "boot": Unit(
        "boot", lambda: Boot(Config(rows=4, columns=6, dma_engines=3, hbm_bytes=16, cores=24)), _tests("queue/boot"), 15
    ),
    "registers": Unit("registers", lambda: Registers(PRESETS["tiny"]), _tests("queue/registers"), 10),
    "address_decoder": Unit(
        "controller: addresses",
        lambda: Decoder(_of_tests("controller.test_decoder").REGIONS),
        _tests("controller/decoder"),
    ),
    "sender": Unit(
        "collective engine: sender",
        lambda: Sender(*(getattr(_of_tests("collective.test_control"), n) for n in ("LINK_BYTES", "CORES", "WINDOW"))),
        _tests("collective/control"),
        12,
    ),
}
"""By the names that UNIT= takes."""


def unit_named(name: str) -> Unit:
    """Return a unit of `UNITS`, or one of another module by module:name."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute) if attribute else UNITS[name]
