# amaranth: UnusedElaboratable=no

"""Latencies of the hardware against `spec.timing`, and the bank reservation table."""

import numpy as np
import pytest

from neuroncore_rtl.golden.timing import banks, events, tensor
from neuroncore_rtl.golden.timing.calendar import (
    Accesses,
    Calendars,
    Moves,
    bank_places,
    buffered_lines,
    columns,
    new_calendar,
    slots,
)
from neuroncore_rtl.hdl.arith import divide, power
from neuroncore_rtl.hdl.dma.checker import DmaChecker
from neuroncore_rtl.hdl.scalar.block import ActivationBlock
from neuroncore_rtl.hdl.tensor.engine import TensorEngine as TensorHardware
from neuroncore_rtl.hdl.vector.lane import VectorLane
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import PRESETS


def test_derived_constants_are_those_of_the_specification():
    actual = {
        "DIVIDE_INTERVAL": divide.Fp32Divider.INTERVAL,
        "DIVIDE_LATENCY": divide.Fp32Divider.LATENCY,
        "REMAINDER_INTERVAL": divide.Fp32Divider.REMAINDER_INTERVAL,
        "REMAINDER_LATENCY": divide.Fp32Divider.REMAINDER_LATENCY,
        "POWER_LATENCY": power.Fp32Power.LATENCY,
        "SCALAR_LANES_LATENCY": tuple(ActivationBlock(1, depth).latency for depth in (1, 2)),
        "DMA_CHECKER_INTERVAL": DmaChecker.INTERVAL,
    }
    assert actual == {name: getattr(timing, name) for name in actual}


@pytest.mark.parametrize("preset", PRESETS)
def test_latency_of_a_column_is_that_of_the_hardware(preset):
    config = PRESETS[preset]
    assert tensor.TensorEngine(config, events.Agenda(), banks.Banks(config)).latency == TensorHardware.latency(config)


@pytest.mark.parametrize("alu_latency", [1, 2, 6])
def test_latency_of_the_vector_lanes_is_that_of_the_hardware(alu_latency):
    assert timing.vector_lanes_latency(alu_latency) == 1 + VectorLane(alu_latency).latency


CONFIG = PRESETS["tiny"]

BUSY = 100  # cycles in which another access reserves the first bank

MOST = CONFIG.sbuf_banks * timing.LINE_BUFFER + 1
"""Number of consecutive lines over all banks that are accepted without a wait; the last of them waits at the port."""


@pytest.mark.parametrize(
    ("count", "taken", "waits", "patience"),
    [(MOST, MOST - 1, 0, BUSY), (MOST + 1, BUSY, BUSY - MOST, BUSY), (MOST + 1, MOST, 0, 20)],
    ids=["as many as have room", "one more", "one more, and less patience"],
)
def test_lines_go_ahead_of_those_whose_bank_is_busy(count, taken, waits, patience):
    calendar, other = new_calendar(), new_calendar()
    stride = CONFIG.line_bytes * CONFIG.sbuf_banks
    moves = Moves(0, BUSY, 0, stride, 0, accumulate=False, to_read=0, to_write=0)
    columns(Calendars(calendar, other, other, other, bank_places(CONFIG)), moves)
    held = np.zeros(timing.LINE_BUFFER + 1, np.int64)
    banks = (np.arange(count) % CONFIG.sbuf_banks).astype(np.uint8)
    accesses = Accesses(banks, 0, count, begin=0, cycles=count, interval=1, until=10 * BUSY)
    done, last, waited, written = buffered_lines(calendar, held, accesses, 0, patience)
    assert (done, last, waited) == (count, taken, waits)
    assert (written >= BUSY) == (patience == BUSY)


@pytest.mark.parametrize("limit", [64, 100, 146, 192, 250, 256])
def test_ports_share_any_bandwidth_up_to_all_of_it(limit):
    """Four ports of 64 bytes, each with groups of 16 beats in turn, use what the limit allows."""
    table, ports, beats = new_calendar(), [0] * 4, 64
    for _ in range(4 * beats):
        port = min(range(4), key=ports.__getitem__)
        first = ports[port] + 1
        ports[port] = max(first + 15, slots(table, first, 16, 64 / limit))
    assert max(ports) == pytest.approx(4 * beats * 16 * 64 / limit, rel=0.01)
