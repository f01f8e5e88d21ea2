"""Timing model within 5 % of the RTL's cycles, for every row of the table of docs/timing_model.md."""

import re
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from neuroncore_rtl import ROOT
from neuroncore_rtl.golden.timing import Prediction, controller
from neuroncore_rtl.kernels.program import Program, build_image, dma_copy
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.run.targets import ModelTarget
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32, INT8
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.tests.core import program
from tests.tb.reports import report_of

PAGE = (ROOT / "docs" / "timing_model.md").read_text()
TABLE = re.findall(r"^\| (\S.*?) +\| ([\d,]+) \| [\d,]+ \| [-+]", PAGE, re.MULTILINE)
"""Rows of the page's table: a TEST with its variables, and the RTL's cycles."""

RATES = "VECTOR_SPEED=40 SCALAR_SPEED=50 GPSIMD_SPEED=50 GPSIMD_START=150 LEAST_INTERVAL=64"
ACCESS = f"{RATES} ACCESS_CYCLES=100"
ABBREVIATIONS = {
    "RATES": RATES,
    "ACCESS": ACCESS,
    "ALL_RATES": f"{ACCESS} DMA_START=365",
    "OTHER_RATES": "PACKET_INTERVAL=40 SWAP_CYCLES=23 RESULT_LATENCY=300",
}

COPIES = {
    "transposed fp32": (FP32, (64, 32), lambda y, x: dma_copy(y, x.permute(1, 0))),
    "transposed int8": (INT8, (64, 48), lambda y, x: dma_copy(y.permute(1, 0), x)),
    "to every third element bf16": (BF16, (32, 66), lambda y, x: dma_copy(y[:, ::3], x[:, :22])),
    "from every other element fp32": (FP32, (16, 300), lambda y, x: dma_copy(y[:, :150], x[:, ::2])),
    "from the third element int8": (INT8, (40, 100), lambda y, x: dma_copy(y[:, :97], x[:, 3:])),
}


@dataclass(frozen=True)
class Case:
    """A TEST with its variables, random instructions (`program`), or a copy from HBM to HBM of `COPIES`."""

    name: str

    @property
    def test(self) -> str:
        return " ".join(word for word in self.name.split() if "=" not in word and word not in ABBREVIATIONS)

    @property
    def words(self) -> list[str]:
        written_out = (word for part in self.name.split() for word in ABBREVIATIONS.get(part, part).split())
        return [word for word in written_out if "=" in word]

    @property
    def settings(self) -> Settings:
        if self.test != "program" and self.test not in COPIES:
            return command_named(self.test).settings(self.words)
        chosen = command_named("program").settings([word for word in self.words if not word.startswith("LATENCY")])
        latency = next((int(word[8:]) for word in self.words if word.startswith("LATENCY")), 64)
        return Settings({**chosen.values, "LATENCY": latency, "BANDWIDTH": 0, "STALL": 0})

    def job(self) -> ImageJob:
        settings = self.settings
        if self.test in COPIES:
            images = [copy_image(settings.config, *COPIES[self.test], self.test.startswith("transposed"))]
        elif self.test == "program":
            rng = np.random.default_rng(settings.seed)
            images = program.random_images(rng, settings.config, 1, settings.instructions)
        else:
            return next(iter(command_named(self.test).jobs(Settings({**settings.values, "TARGET": "core"}))))
        return ImageJob(machine=settings.config, images=images, behaviour=Hbm(latency=settings.latency))


def copy_image(config, fmt, shape, copy, transposed: bool):
    made = Program(config)
    source, target = made.space.hbm("x", fmt, shape), made.space.hbm("y", fmt, shape)
    made.append(copy(target.reshape(*reversed(shape)) if transposed else target, source))
    return build_image(made)


@dataclass(frozen=True)
class Measured:
    case: Case
    cycles: int
    model: Prediction

    @property
    def deviation(self) -> float:
        return self.model.cycles / self.cycles - 1

    @property
    def row(self) -> str:
        return f"| {self.case.name} | {self.cycles:,} | {self.model.cycles:,} | {self.deviation:+.1%} |"


@cache
def _on_rtl(case: Case) -> tuple[ImageJob, int]:
    job = case.job()
    outcome = run_device(job.device(), job.work(1), doing=case.name).parts[0]
    assert outcome.exit_code is not None and not outcome.errors
    return job, outcome.cycles


def measure(case: Case) -> Measured:
    job, cycles = _on_rtl(case)
    values = {name: case.settings.values.get(name.upper(), 0) for name in ("latency", "bandwidth", "stall")}
    job = replace(job, computes=job.path is not None)
    return Measured(case, cycles, ModelTarget(**values).execute(job).prediction)


def table(rows: list[Measured]) -> str:
    return "\n".join(["| TEST | RTL | model | deviation |", "|---|---|---|---|", *(row.row for row in rows)])


WITHIN = 0.05

SMALL = Case("matmul PRESET=tiny M=8 K=8 N=12")

MACHINES = (set(), *({*ABBREVIATIONS[name].split()} for name in ("ALL_RATES", "OTHER_RATES")))
"""Parameters of quick cases beside preset tiny, except for HBM_RATE; each machine is a build."""


def is_quick(case: Case, cycles: int) -> bool:
    parameters = {word for word in case.words if word.partition("=")[0].lower() in Config.RANGES}
    own = {word for word in parameters if not word.startswith("HBM_RATE")}
    return "PRESET=tiny" in case.words and own in MACHINES and cycles < 14_000


CASES = {Case(name): int(cycles.replace(",", "")) for name, cycles in TABLE}
QUICK = [case for case, cycles in CASES.items() if is_quick(case, cycles)]
SLOW = {preset: [] for preset in ("tiny", "small", "full", "trainium1", "nano", "")}
for row in (case for case in CASES if case not in QUICK):
    SLOW[next((word[7:] for word in row.words if word.startswith("PRESET=")), "")].append(row)
SLOW["boards"] = [
    Case("matmul PRESET=nano M=12 K=10 N=140"),
    Case("linear PRESET=nano M=12 K=20 N=24"),
    Case("attention PRESET=fpga SEQ=12 DIM=6 HEADS=1 CAUSAL=1"),
]


def far_off(cases):
    rows = [measure(case) for case in cases]
    print(table(rows))
    return [row.row for row in rows if abs(row.deviation) > WITHIN]


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(QUICK, id="quick"),
        *(pytest.param(cases, marks=pytest.mark.slow, id=name or "default") for name, cases in SLOW.items()),
    ],
)
def test_cycles_are_near_those_of_the_rtl(cases):
    assert cases and far_off(cases) == []


def test_times_between_dependent_instructions_are_those_of_the_rtl():
    """Another constant in the RTL adds a few cycles per instruction, which 5 % would hide."""
    rows = [measure(case) for case in QUICK if "OTHER_RATES" in case.name and case.test in ("layernorm", "matmul")]
    assert len(rows) == 2 and all(abs(row.model.cycles - row.cycles) <= 8 for row in rows)


def test_the_time_besides_the_elements_is_that_of_the_rtl():
    """These short instructions follow one another, so one cycle more or less for each of them shows."""
    rows = [measure(case) for case in QUICK if "ALL_RATES" in case.name and case.test in ("layernorm", "adamw")]
    assert len(rows) == 2 and all(row.model.cycles == row.cycles for row in rows)


def test_records_are_issued_and_retire_in_the_cycles_of_the_rtl():
    """The first records of a small product never wait, so the model is exact."""
    assert [record.retired - record.issued for record in measure(SMALL).model.records[:2]] == [126, 128]


@pytest.mark.parametrize(
    ("where", "name", "wrong", "case"),
    [
        (timing, "VECTOR_ENTRY_LATENCY", (11, 3), Case("layernorm PRESET=tiny M=40 N=96")),
        (timing, "SCALAR_LANES_LATENCY", (43, 41), Case("rmsnorm PRESET=tiny M=40 N=96")),
        (timing, "DMA_CHECKER_INTERVAL", 40, SMALL),
        (controller, "TO_FIRST", 120, SMALL),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_constant_is_noticed(where, name, wrong, case, monkeypatch):
    assert far_off([case]) == []
    monkeypatch.setattr(where, name, wrong)
    assert len(far_off([case])) == 1


@pytest.mark.parametrize(
    ("test", "words"),
    [("matmul", "M=20 K=12 N=40"), ("softmax", "M=8 N=16"), ("digits", "IMAGES=20 BATCH=20")],
    ids=["matmul", "softmax", "digits"],
)
def test_target_model_answers_and_does_not_say_that_rtl_has_run(test, words, capsys):
    report = report_of(test, f"TARGET=model PRESET=tiny {words}")
    assert report.modelled and report.exit_status == 0 and report.compared == 0 and report.cycles > 0
    assert "targetmodel" in report.label and report.as_json()["modelled"]
    report.show()
    shown = capsys.readouterr().out
    assert "MODEL: no RTL has run" in shown and "timing model" in shown
    assert "PASSED" not in shown and "bit-exact" not in shown
