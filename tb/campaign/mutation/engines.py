"""Rows of the units of the element-wise engines: those of the lanes, and what is in front of the lanes."""

from amaranth.hdl import Module, Signal, Value

from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.power import Fp32Power
from neuroncore_rtl.hdl.elementwise.indices import Indices
from neuroncore_rtl.hdl.elementwise.store import ResultStore
from neuroncore_rtl.hdl.scalar.running_sum import RunningSum
from neuroncore_rtl.tb.campaign.mutation.unit import Unit, files, tested

__all__ = ["ENGINE_UNITS"]


def _announced(m: Module, store: ResultStore) -> Value:
    """Return whether a result was announced, and what is announced has room and one of the sizes that there are."""
    owed, writes = Signal(range(store.depth + 1), name="owed"), store.writes
    m.d.sync += owed.eq(owed + writes.valid - store.result_valid)
    sized = writes.payload.place.size != 3
    return (~writes.valid | (store.room & sized)) & (~store.result_valid | (owed != 0))


ENGINE_UNITS = {
    "divider": Unit("divider", Fp32Divider, files("arith/iterative"), 0),
    "power": Unit("power", Fp32Power, files("arith/iterative"), 0),
    "statistics": Unit(
        "statistics", tested("vector.test_stats", lambda tests: tests.WithUnits(1)), files("vector/stats"), 16,
        part="statistics",
    ),
    "functions": Unit(
        "activation functions", tested("scalar.activations", lambda tests: tests.PlayedFunction()),
        files("scalar/function"), 0, part="unit", whole=True,
    ),
    "running_sum": Unit("running sum", RunningSum, files("scalar/running_sum"), 0),
    "indices": Unit("element-wise indices", Indices, files("elementwise/indices"), 3),
    "sequencer": Unit(
        "element-wise sequencer", tested("elementwise.test_sequencer", lambda tests: tests.Front(tests.WIDE)),
        files("elementwise/sequencer"), 0, part="sequencer", without=("indices",),
    ),
    "checker": Unit(
        "element-wise checker",
        tested("elementwise.test_checker", lambda tests: tests.checker(tests.CONFIGS["8x4"], tests.OPCODES)),
        files("elementwise/checker"), 0,
    ),
    "store": Unit(
        "element-wise store", tested("elementwise.test_store", lambda tests: ResultStore(tests.TRIED, tests.DEPTH)),
        files("elementwise/store"), 8, legal=_announced,
    ),
    "frontend": Unit(
        "element-wise front end",
        tested("elementwise.test_frontend", lambda tests: tests.Command(tests.TINY, [], [], None).dut),
        files("elementwise/frontend"), 0, without=("checker", "sequencer", "store", "counting"),
    ),
}  # fmt: skip
"""By the names that UNIT= takes."""
