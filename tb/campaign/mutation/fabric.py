"""Rows of the units that move data: SBUF's arbiter, DMA, links, the router between them, and the collective engine."""

from amaranth.hdl import Cat, Module, Signal, Value

from neuroncore_rtl.hdl.collective.engine import CollectiveEngine
from neuroncore_rtl.hdl.dma.caster import Caster
from neuroncore_rtl.hdl.dma.checker import Checker
from neuroncore_rtl.hdl.dma.engine import DmaEngine
from neuroncore_rtl.hdl.link.router import Router
from neuroncore_rtl.hdl.memory.bank_arbiter import BankArbiter
from neuroncore_rtl.tb.campaign.mutation.unit import Unit, files, of_tests

__all__ = ["FABRIC"]


def _collective() -> CollectiveEngine:
    machine = of_tests("collective.machine")
    return CollectiveEngine(machine.LINK_BYTES, machine.HBM_BEAT, machine.CORES)


def _routed(m: Module, router: Router) -> Value:
    """Return whether every flit that comes is one that golden would send this way, and the chip stays the same."""
    tests = of_tests("link.test_router")
    routes, streams = tests.cases(tests.RING), of_tests("link.test_router_cycles").streams(router, 0)
    legal = []
    for source, flits in zip(of_tests("link.routers").came_from(tests.RING), streams, strict=True):
        header = flits.payload.header
        place = Cat(router.chip, header.destination, header.channel)
        widths = len(router.chip), len(header.destination)
        known = [chip | core << widths[0] | channel << sum(widths) for chip, core, channel in routes.get(source, ())]
        legal.append(~flits.valid | place.matches(*known))
    begun, chip = Signal(), Signal.like(router.chip)
    m.d.sync += [begun.eq(1), chip.eq(router.chip)]
    return Cat(legal, ~begun | (chip == router.chip)).all()


_WITH_ROWS = tuple(
    f"channel{channel}.{name}"
    for channel in (0, 1)
    for name in ("counting", *(f"path.{part}" for lane in (0, 1) for part in
                               (f"reducer.lane{lane}.adder", f"rounding.lane{lane}.random")))
)  # fmt: skip
"""Of the collective engine's channels what has a row of its own."""

FABRIC = {
    "bank_arbiter": Unit("SBUF's arbiter", lambda: BankArbiter(3, 4, 4), files("memory/bank_arbiter"), 24),
    "link_end": Unit(
        "link's end", lambda: of_tests("link.pair").Pair(1, 2),
        (*files("link/ends"), *(f"{file}::test_{name}_dead" for file in files("link/link") for name in
                                ("cut_link_is", "idle_link_is_not"))), 7, part="end0", without=("counting",),
    ),
    "router": Unit(
        "router", lambda: Router(of_tests("link.test_router").RING), files("link/router_cycles", "link/router"), 4,
        legal=_routed,
    ),
    "collective": Unit(
        "collective engine", _collective, files("collective/cycles", "collective/engines"), 0,
        module="collective_engine", without=("counting", *_WITH_ROWS),
    ),
    "caster": Unit("DMA's casts", lambda: Caster(8, 1, 1), files("dma/caster"), 4),
    "dma_checker": Unit(
        "DMA's checker", lambda: Checker(of_tests("dma.test_checker").CONFIGS["4x4"]), files("dma/checker"), 0
    ),
    "dma": Unit(
        "DMA engine", lambda: DmaEngine(of_tests("dma.test_errors").CONFIG),
        files("dma/cycles", "dma/copies", "dma/errors", "dma/counters"), 0, module="dma_engine",
        without=("counting", "caster", "checker"),
    ),
}  # fmt: skip
"""By the names that UNIT= takes."""
