"""A device while it runs: the simulator's pulse, and utilisation from events that grow."""

from collections import Counter
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

from neuroncore_rtl.kernels.program import dma_copy, instructions
from neuroncore_rtl.run import report, run
from neuroncore_rtl.run.harness import run as harness
from neuroncore_rtl.run.harness.live import LiveRun
from neuroncore_rtl.run.sim import run_to_end
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp


def copies(program):
    x, y = (program.space.hbm(name, FP32, (4, 64)) for name in "xy")
    tile = program.space.sbuf("tile", FP32, (64,))
    for _ in range(3):
        program.append(dma_copy(tile, x))
        program.append(instructions.tensor_scalar(tile, tile, 2.0, AluOp.MULTIPLY))
        program.append(dma_copy(y, tile))


def test_utilisation_and_progress_of_a_core_are_those_of_its_events(tmp_path, monkeypatch):
    """At the end of a run of the RTL they are exact."""

    @contextmanager
    def kept(name):
        yield tmp_path

    machines = []
    monkeypatch.setattr(harness.simulation, "run_directory", kept)
    monkeypatch.setattr(harness, "progress", lambda *_, machine, **__: (machines.append(machine), nullcontext())[1])
    with report.recording_in(tmp_path):
        result = run(copies, {"x": np.ones((4, 64), np.float32)}, preset="tiny")
    (live,) = machines
    live.look()
    events = result.outcome.parts[0].events
    assert live.done() == 1 and live.records == len(events) > 8 and live.cycles == 0
    end = max(event.retired for event in events)
    with_work = {queue: set() for queue in range(len(live.engines))}
    for event in events:
        with_work[event.queue] |= {*range(event.issued, event.retired)}
    whole, engines = live.utilisation()[0]
    assert engines == {name: len(cycles) / end for name, cycles in zip(live.engines, with_work.values(), strict=True)}
    assert engines["vector"] > 0 == engines["tensor"] and whole == len(set().union(*with_work.values())) / end


def test_files_that_grow(tmp_path):
    live = LiveRun(("tensor", "dma0"), {0: 64, 1: 64}, records=10)
    live.look()
    live.directory = tmp_path
    live.look()
    assert live.utilisation() == {core: (0, {"tensor": 0, "dma0": 0}) for core in (0, 1)} and live.cycles == 0
    (tmp_path / "pulse").write_text("200 2.0 4096")
    with (tmp_path / "events").open("w") as events:
        events.write("s 0\ni 0 0 80 10\ni 0 0 100 12\nc 0 65\na 0 13 ff\nr 0 2 80 30\np 1 1 80 40\nr 0 0 1")
        events.flush()
        live.look()
        assert (live.cycles, live.cycles_per_second, live.host_bytes, live.done()) == (200, 100, 4096, 0.2)
        # The second record of tensor is at work since cycle 10, until now.
        assert live.utilisation()[0] == (174 / 184, {"tensor": 174 / 184, "dma0": 0})
        events.write("00 110\ns 1\ni 0 1 80 90\n")
        (tmp_path / "pulse").write_text("416 2.5 8192")
    live.look()
    assert (live.cycles_per_second, live.retired) == (432, 3)
    assert live.utilisation()[0] == (300 / 400, {"tensor": 100 / 400, "dma0": 200 / 400})
    (tmp_path / "pulse").write_text("9")
    live.look()
    assert live.cycles == 416


@pytest.mark.parametrize("rates, late", [([1000], 0), ([1e6], 0), ([0.1], 60), ([1e6, 1000, 1e6], 1)])
def test_pulses_come_every_half_second_to_two_seconds(rates, late, tmp_path, monkeypatch):
    """Python runs about once a second in a simulator of any speed; only the pulse after a change can be late."""
    waits, now = [], 0.0

    class Timer:
        def __init__(self, time, unit):
            waits.append(time // run_to_end.PERIOD_NS)

        def __await__(self):
            yield

    monkeypatch.setattr(run_to_end, "Timer", Timer)
    monkeypatch.setattr(run_to_end.time, "perf_counter", lambda: now)

    def note(cycles, seconds):
        assert (cycles, seconds) == (sum(waits), now)

    pulses = []
    monkeypatch.setattr(run_to_end, "_tell", lambda file, *pulse: pulses.append(pulse) or note(*pulse))
    beat = run_to_end._beat(tmp_path / "pulse", now)
    beat.send(None)
    for rate in rates:
        for _ in range(60):
            now += waits[-1] / rate
            beat.send(None)
    seconds = [later - first for (_, first), (_, later) in zip(pulses, pulses[1:], strict=False)]
    assert min(seconds) >= 0.5 and Counter(second > 2 for second in seconds)[True] <= late
    assert len(pulses) > 60 * len(rates) - 30 and (late < 60 or waits[-1] == 1)


def test_a_pulse_is_written_after_the_files_of_the_harness(tmp_path):
    run_to_end._tell(tmp_path / "pulse", 12, 3.5)
    cycles, seconds, size = (tmp_path / "pulse").read_text().split()
    assert (cycles, seconds) == ("12", "3.5") and int(size) > 1 << 20
