"""Start of copies: each instruction a fixed time after its acceptance, in order."""

import pytest
from amaranth import Value

from neuroncore_rtl.hdl.dma.start import CopyStart
from neuroncore_rtl.spec import timing
from tests.hdl.streams import play

COUNT = 3 * timing.QUEUE_RECORDS


@pytest.mark.parametrize("cycles", [1, 2, 7, 40])
def test_instructions_start_a_fixed_time_after_their_acceptance(cycles):
    dut = CopyStart(cycles)
    assert len(Value.cast(dut.i.payload)) > 100
    played = play(dut, {"i": range(1, COUNT + 1)}, {"o": COUNT}, stall={"i": 0.8, "o": 0.0}, seed=cycles)
    assert played.payloads["o"] == [*range(1, COUNT + 1)]
    assert [out - into for into, out in zip(played.cycles["i"], played.cycles["o"], strict=True)] == [cycles] * COUNT


def test_a_busy_engine_delays_later_instructions_only_by_its_own_time():
    dut, free = CopyStart(5), 30
    played = play(dut, {"i": range(1, 9)}, {"o": 8}, hold={"o": lambda cycle: cycle < free})
    assert played.cycles["o"] == [*range(free, free + 8)]
