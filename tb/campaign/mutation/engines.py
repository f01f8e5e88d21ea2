"""Mutation units of the element-wise engines: lanes and front end."""

from amaranth.hdl import Module, Signal, Value

from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.power import Fp32Power
from neuroncore_rtl.hdl.elementwise.indices import Indices
from neuroncore_rtl.hdl.elementwise.pacer import Pacer
from neuroncore_rtl.hdl.elementwise.store import ResultStore
from neuroncore_rtl.hdl.scalar.running_sum import RunningSum
from neuroncore_rtl.spec.isa import Engine
from neuroncore_rtl.spec.pacing import pace_of
from neuroncore_rtl.tb.campaign.mutation.legal import if_valid
from neuroncore_rtl.tb.campaign.mutation.unit import Unit, files, tests_module

__all__ = ["ENGINE_UNITS"]


def _announcements(m: Module, store: ResultStore) -> Value:
    """Return whether each result follows its write request, and each request has a free entry and a legal size."""
    owed, writes = Signal(range(store.depth + 1), name="owed"), store.writes
    m.d.sync += owed.eq(owed + writes.valid - store.result_valid)
    sized = writes.payload.place.size != 3
    return if_valid(writes, store.room & sized) & (~store.result_valid | (owed != 0))


ENGINE_UNITS = {
    "divider": Unit("divider", Fp32Divider, files("arith/iterative"), 0),
    "power": Unit("power", Fp32Power, files("arith/iterative"), 0),
    "statistics": Unit(
        "statistics", lambda: tests_module("vector.test_stats").WithUnits(1), files("vector/stats"), 16,
        part="statistics",
    ),
    "functions": Unit(
        "activation functions", lambda: tests_module("scalar.activations").PlayedFunction(),
        files("scalar/function"), 0, part="unit", whole=True,
    ),
    "running_sum": Unit("running sum", RunningSum, files("scalar/running_sum"), 0),
    "indices": Unit("element-wise indices", Indices, files("elementwise/indices"), 3),
    "sequencer": Unit(
        "element-wise sequencer", lambda: (tests := tests_module("elementwise.test_sequencer")).Front(tests.WIDE),
        files("elementwise/sequencer"), 0, part="sequencer", without=("indices",),
    ),
    "checker": Unit(
        "element-wise checker",
        lambda: (tests := tests_module("elementwise.test_checker")).checker(tests.CONFIGS["8x4"], tests.OPCODES),
        files("elementwise/checker"), 0,
    ),
    "pacer": Unit(
        "pacer", lambda: Pacer(pace_of(Engine.VECTOR, tests_module("elementwise.test_pacer").MACHINE)),
        files("elementwise/pacer"), 0,
    ),
    "store": Unit(
        "element-wise store",
        lambda: ResultStore((tests := tests_module("elementwise.test_store")).TRIED, tests.DEPTH),
        files("elementwise/store"), 8, legal=_announcements,
    ),
    "frontend": Unit(
        "element-wise front end",
        lambda: (tests := tests_module("elementwise.test_frontend")).Command(tests.TINY, [], [], None).dut,
        files("elementwise/frontend"), 0, without=("checker", "sequencer", "store", "counting"),
    ),
}  # fmt: skip
