"""Random programs for all engines on the core, under any HBM behaviour."""

import numpy as np
import pytest

from neuroncore_rtl.golden.timing import predict
from neuroncore_rtl.run import job as run_job
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.sim import doctor, simulation
from neuroncore_rtl.run.targets import Rtl, execute
from neuroncore_rtl.spec.config import PRESETS
from tests.kernels.program.loops import join_image
from tests.run.harness.core_images import Work
from tests.tb.reports import passed, report_of

TINY = PRESETS["tiny"]


def run_sound(image, sim="verilator", **options):
    result = execute(run_job.ImageJob(machine=image.config, images=[image], **options), Rtl(sim=sim))
    assert (result.failures, result.mismatches) == ((), 0)
    return result, result.outcome.parts[0]


def test_random_programs_are_golden():
    report = passed("program", "COUNT=6 INSTRUCTIONS=60 SEED=6")
    print(report.as_json())
    assert report.rows["races"] == 0
    assert report.rows["kinds_of_instruction"] >= 20
    assert min(report.rows["instructions"].values()) >= 20 and report.rows["instructions"]["queue"] >= 50
    assert set(report.rows["bytes_compared"]) == {"hbm", "sbuf", "psum"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "COUNT=1000 SEED=1000",
        "COUNT=32 ROWS=8 COLUMNS=4 HBM_BYTES=64 DMA_ENGINES=5 HBM_PORTS=3",
        "COUNT=32 ROWS=5 COLUMNS=16 HBM_BYTES=8",
    ],
)
def test_many_random_programs_are_golden(words):
    print(passed("program", words).as_json())


def test_a_byte_that_differs_fails_the_bench(monkeypatch):
    def disturbed(config, hbm, images, traces=None):
        expected = sound(config, hbm, images, traces)
        hbm[-0x9000] ^= 1
        return expected

    sound = run_job.execute_on_golden
    monkeypatch.setattr(run_job, "execute_on_golden", disturbed)
    report = report_of("program", "COUNT=1 INSTRUCTIONS=2")
    assert report.mismatches == 1 and report.exit_status == 1
    assert any("PSUM partition" in failure for failure in report.failures)


@pytest.mark.slow
def test_icarus_runs_an_image_alike():
    """Icarus, unlike Verilator, propagates undefined values, and simulates without clock gating."""
    doctor.require("iverilog")
    image = Work(TINY, 0, np.random.default_rng(1)).finished()
    options = {"behaviour": Hbm(latency=100, size=1 << 20), "limit": 20_000}
    runs = [run_sound(image, sim, **options)[1] for sim in simulation.SIMULATORS]
    assert runs[0] == runs[1] and runs[0].cycles > 1000 and runs[0].exit_code == 0


EIGHT_PRODUCERS = TINY.with_overrides(rows=8, dma_engines=5, hbm_ports=3, hbm_bytes=64)


@pytest.mark.parametrize("config", [TINY, pytest.param(EIGHT_PRODUCERS, marks=pytest.mark.slow)])
def test_an_instruction_waits_for_every_other_lane(config):
    image, results = join_image(config)
    result, done = run_sound(image, behaviour=Hbm(latency=64), limit=None, dump=True)
    assert all((tensor.elements(result.memory) == code).all() for tensor, code in results)
    predicted = {timed.address: timed for timed in predict(image).records}
    events = [event for event in done.events if image.locate(event.address)[1].instruction.name == "NOP"]
    assert len(events) == (2 + config.dma_engines) // 2 and all(event.issued == event.retired for event in events)
    # The timing model's tolerance.
    assert all(abs(event.issued - predicted[event.address].issued) <= 16 + event.issued // 20 for event in events)
