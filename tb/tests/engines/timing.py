"""TEST=timing: the cycles of vector and scalar instructions, next to our formulas and the published costs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuroncore_rtl.run.elementwise import ElementwiseJob, ElementwiseProgram
from neuroncore_rtl.run.harness.engines.elementwise import EngineRecord
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import SIM, Settings, UsageError, configuration_options
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.costs import dependent_period, latency, period
from neuroncore_rtl.spec.isa import Context, Engine
from neuroncore_rtl.spec.pacing import pace_of
from neuroncore_rtl.tb.check.costs import CASES, ELEMENTS, CostCase, formula
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = ["TEST", "has_units_for", "measurements_of", "timing_job"]

SBUF_USED = 0x4000  # bytes per partition
REPEATED = 3


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Cycles of an instruction, measured and by the formulas of `spec.costs`.

    `alone`: cycles from acceptance by an idle engine to retirement. `overlapped`: period of independent instructions.
    `dependent`: period of instructions that each wait for the write of the previous instruction. `paced`: an engine has
    rates; the formulas are then within 5 % or 4 cycles, and `alone` is not compared, as the minimum interval since the
    previous instruction may delay the first step.
    """

    case: CostCase
    elements: int
    measured: dict[str, list[int]]
    expected: dict[str, int]
    paced: bool = False

    @property
    def as_expected(self) -> bool:
        return all(
            abs(cycles - expected) <= (max(0.05 * expected, 4) if self.paced else 0)
            for name, expected in self.expected.items()
            for cycles in self.measured[name]
            if not (self.paced and name == "alone")
        )

    def line(self) -> str:
        published = "-" if self.case.cost is None else f"{self.case.cost(self.elements):.0f}"
        cycles = {name: "/".join(map(str, sorted(set(found)))) for name, found in self.measured.items()}
        wrong = "" if self.as_expected else f"   by the formulas {', '.join(map(str, self.expected.values()))}"
        return (
            f"{self.case.name:36} {self.elements:4} {cycles['alone']:>7} {cycles['dependent']:>10} "
            f"{cycles['overlapped']:>10} {published:>10}{wrong}"
        )


HEADING = f"{'instruction':36} {'N':>4} {'alone':>7} {'dependent':>10} {'overlapped':>10} {'published':>10}"


def timing_job(
    config: Config, *, cases: Sequence[CostCase] = CASES, elements: Sequence[int] = ELEMENTS
) -> ElementwiseJob:
    """Return the job of every case alone, overlapped and dependent, with the nearest possible elements per lane."""
    plan, records, instructions = [], [], []
    counts = {"vector": 0, "scalar": 0}
    for case in cases:
        for wanted in elements:
            instruction = case.build(case.elements(wanted, config), config)
            instruction.check(Context(config))
            engine = instruction.engine.name.lower()
            plan.append((case, instruction, engine, counts[engine]))
            kinds = [True] * (1 + REPEATED) + [False] * (1 + REPEATED)
            for number, overlap in enumerate([True, *kinds]):
                # The first instruction runs alone: both engines issue the next instruction after its retirement.
                waits = counts if number < 2 else {}
                one = replace(instruction, overlap=overlap)
                instructions.append(one)
                records.append(EngineRecord(engine=engine, word=one.encode(config), **waits))
                counts[engine] += 1
    rng = np.random.default_rng(1)
    # Values near 1, so that no operation has trivial operands in all lanes.
    sbuf = rng.normal(0, 1, (config.partitions, SBUF_USED // 4)).astype("<f4").view(np.uint8)
    psum = rng.normal(0, 1, (config.columns, config.psum_bytes // 4)).astype("<f4").view(np.uint8)
    program = ElementwiseProgram(instructions=instructions, records=records, sbuf=sbuf, psum=psum)
    return ElementwiseJob(config=config, program=program, events=True, subject=plan)


def measurements_of(result: Result) -> list[Measurement]:
    """Return the measurements of a `timing_job`."""
    config, measurements = result.job.config, []
    paced = any(pace_of(engine, config) for engine in (Engine.VECTOR, Engine.SCALAR))
    for case, instruction, engine, first in result.job.subject:
        events = result.outcome.parts[engine]
        retired = events.retired
        # The first instruction of a run fills the pipeline; the periods after it count.
        runs = {
            "overlapped": retired[first + 1 : first + 2 + REPEATED],
            "dependent": retired[first + 1 + REPEATED + 1 : first + 1 + 2 * (1 + REPEATED)],
        }
        formulas = {"alone": latency, "overlapped": period, "dependent": dependent_period}
        measured = {"alone": [retired[first] - events.events[first].issued]}
        measured |= {name: np.diff(cycles).tolist() for name, cycles in runs.items()}
        expected = {name: cycles(instruction, config) for name, cycles in formulas.items()}
        elements = int(np.prod(instruction.shape))
        one = Measurement(case=case, elements=elements, measured=measured, expected=expected, paced=paced)
        measurements.append(one)
    return measurements


def has_units_for(case: CostCase, config: Config) -> bool:
    """Return whether the machine's lanes have the units of an instruction."""
    machine = replace(config, sbuf_bytes=max(config.sbuf_bytes, SBUF_USED))
    try:
        case.build(case.elements(ELEMENTS[0], machine), machine).check(Context(machine))
    except ValueError:
        return False
    return True


def _cases(settings: Settings) -> list[CostCase]:
    return [case for case in CASES if has_units_for(case, settings.config)]


def _jobs(settings: Settings) -> Jobs:
    if settings.config.sbuf_bytes < SBUF_USED:
        raise UsageError(
            f"SBUF_BYTES must be at least {SBUF_USED} for the instructions of timing, not {settings.config.sbuf_bytes}"
        )
    yield timing_job(settings.config, cases=_cases(settings))


def _rows(settings: Settings, results: Sequence[Result]) -> Report:
    config, cases = settings.config, _cases(settings)
    measurements = measurements_of(results[0])
    print(HEADING)
    for measurement in measurements:
        print(measurement.line())
    wrong = [f"{m.case.name} of {m.elements}" for m in measurements if not m.as_expected]
    return Report(
        rows={
            "measurements": len(measurements),
            "left_out": len(CASES) - len(cases),
            "formulas": [{"instruction": case.name, "cycles": formula(case, config)} for case in cases],
        },
        failures=(f"cycles differ from the formulas of spec/costs.py: {', '.join(wrong)}",) if wrong else (),
    )


TEST = Scenario(
    name="timing",
    summary="cycles of every vector and scalar instruction, next to formulas and published costs",
    options=(*configuration_options("tiny"), SIM),
    jobs=_jobs,
    rows=_rows,
    timed=False,
)
