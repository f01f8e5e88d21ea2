"""Memory pressure: which share of a memory early loads and early results may fill."""

import pytest

from neuroncore_rtl.kernels.program import Program
from neuroncore_rtl.kernels.program.memory_pressure import MemoryPressure
from neuroncore_rtl.spec.config import preset_named
from neuroncore_rtl.spec.formats import INT8
from neuroncore_rtl.spec.isa import Storage

UNITS = 9


@pytest.mark.parametrize(
    ("loads", "results", "load_fits", "result_fits"),
    [(2, 2, True, True), (5, 0, False, True), (1, 4, False, True), (0, 6, True, True), (0, 7, False, False)],
)
def test_loads_leave_a_quarter_to_results_and_may_fill_an_eighth(loads, results, load_fits, result_fits):
    """Each unit has a buffer of an eighth of SBUF; unit 0, which has not started, needs one, too."""
    space = Program(preset_named("tiny")).space
    size = len(space.room(Storage.SBUF)) // 8
    for _ in range(UNITS):
        space.sbuf("tile", INT8, (size,))
    room = MemoryPressure([[number] for number in space.buffers], (), space, {Storage.SBUF: 1.0, Storage.PSUM: 1.0})
    for unit in range(1, 1 + loads + results):
        room.take(unit, 0, load=unit <= loads)
    assert [room.fits(UNITS - 1, 0, load) for load in (True, False)] == [load_fits, result_fits]
    for unit in range(1, 1 + loads + results):
        room.give(unit)
    assert room.fits(UNITS - 1, 0, load=True)
