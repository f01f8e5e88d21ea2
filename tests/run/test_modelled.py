"""Timing model within 5 % of the RTL's cycles, for every TEST on the core."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from neuroncore_rtl.golden.timing import Prediction, controller
from neuroncore_rtl.kernels.program import Program, build_image, dma_copy
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.run.targets import ModelTarget
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.formats import BF16, FP32, INT8
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.tests.core import program
from tests.tb.reports import report_of


@dataclass(frozen=True)
class Case:
    test: str
    words: str

    @property
    def settings(self) -> Settings:
        own = [word for word in self.words.split() if self.test != "program" or not word.startswith("LATENCY")]
        chosen = command_named(self.test).settings(own)
        if self.test != "program":
            return chosen
        latency = next((int(word[8:]) for word in self.words.split() if word.startswith("LATENCY")), 64)
        return Settings({**chosen.values, "LATENCY": latency, "BANDWIDTH": 0, "STALL": 0})

    def job(self) -> ImageJob:
        settings = self.settings
        if self.test != "program":
            return next(iter(command_named(self.test).jobs(Settings({**settings.values, "TARGET": "core"}))))
        rng = np.random.default_rng(settings.seed)
        images = program.random_images(rng, settings.config, 1, settings.instructions)
        return ImageJob(machine=settings.config, images=images, behaviour=Hbm(latency=settings.latency))


COPIES = {
    "transposed fp32": (FP32, (64, 32), lambda y, x: dma_copy(y, x.permute(1, 0))),
    "transposed int8": (INT8, (64, 48), lambda y, x: dma_copy(y.permute(1, 0), x)),
    "to every third element bf16": (BF16, (32, 66), lambda y, x: dma_copy(y[:, ::3], x[:, :22])),
    "from every other element fp32": (FP32, (32, 64), lambda y, x: dma_copy(y[:, :32], x[:, ::2])),
    "from the third element int8": (INT8, (40, 100), lambda y, x: dma_copy(y[:, :97], x[:, 3:])),
}


@dataclass(frozen=True)
class CopyCase(Case):
    """A copy from HBM to HBM: `test` is its name in `COPIES`."""

    @property
    def settings(self) -> Settings:
        return Case("program", self.words).settings

    def job(self) -> ImageJob:
        settings, (fmt, shape, copy) = self.settings, COPIES[self.test]
        program = Program(settings.config)
        source, target = program.space.hbm("x", fmt, shape), program.space.hbm("y", fmt, shape)
        if self.test.startswith("transposed"):
            target = target.reshape(*reversed(shape))
        program.append(copy(target, source))
        return ImageJob(machine=settings.config, images=[build_image(program)], behaviour=Hbm(latency=settings.latency))


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
        return (
            f"| {self.case.test} {self.case.words} | {self.cycles:,} | {self.model.cycles:,} | {self.deviation:+.1%} |"
        )


@cache
def _on_rtl(case: Case) -> tuple[ImageJob, int]:
    job = case.job()
    outcome = run_device(job.device(), job.work(1), doing=f"{case.test} {case.words}").parts[0]
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

RATES = "VECTOR_SPEED=40 SCALAR_SPEED=50 GPSIMD_SPEED=50 GPSIMD_START=150 LEAST_INTERVAL=64"
ACCESS = f"{RATES} ACCESS_CYCLES=100"
# Few machines, as each is a build; HBM_RATE needs none.
ALL_RATES = f"{ACCESS} DMA_START=365"
OTHER_RATES = "RUN_INTERVAL=40 SWAP_CYCLES=23 RESULT_LATENCY=300"

CASES = [
    Case("matmul", "PRESET=tiny M=8 K=8 N=12"),
    Case("matmul", "PRESET=tiny M=20 K=12 N=40"),
    Case("matmul", "PRESET=tiny M=32 K=32 N=64 DTYPE=fp32"),
    Case("matmul", "PRESET=tiny M=64 K=32 N=128 LATENCY=1000"),
    Case("softmax", "PRESET=tiny M=40 N=96 LATENCY=2000"),
    Case("softmax", "PRESET=tiny M=64 N=512"),
    *[Case(test, "PRESET=tiny M=40 N=96") for test in ("softmax", "layernorm", "rmsnorm", "topk")],
    *[Case(test, "PRESET=tiny M=40 N=96") for test in ("softmax_backward", "crossentropy")],
    Case("linear", "PRESET=tiny M=12 K=20 N=24"),
    Case("conv2d", "PRESET=tiny"),
    Case("layernorm_backward", "PRESET=tiny M=12 N=24"),
    Case("embedding", "PRESET=tiny VOCAB=20 SEQ=12 DIM=24"),
    Case("attention", "PRESET=tiny SEQ=12 DIM=6 HEADS=1 CAUSAL=1"),
    Case("program", "PRESET=tiny SEED=1"),
    Case("softmax", f"PRESET=tiny M=40 N=96 {ALL_RATES}"),
    Case("matmul", f"PRESET=tiny M=20 K=12 N=40 {ALL_RATES}"),
    Case("softmax", f"PRESET=tiny M=40 N=96 {ALL_RATES} HBM_RATE=2"),
    Case("program", f"PRESET=tiny SEED=6 {ALL_RATES}"),
    Case("layernorm", f"PRESET=tiny M=12 N=24 {ALL_RATES}"),
    Case("adamw", f"PRESET=tiny M=12 N=24 STEPS=1 {ALL_RATES}"),
    *[Case("softmax", f"PRESET=tiny M=40 N=96 {OTHER_RATES}{rate}") for rate in ("", " HBM_RATE=5")],
    Case("program", f"PRESET=tiny SEED=6 {OTHER_RATES}"),
    *[CopyCase(name, f"PRESET=tiny {OTHER_RATES}") for name in COPIES],
    Case("layernorm", f"PRESET=tiny M=12 N=24 {OTHER_RATES}"),
    Case("matmul", f"PRESET=tiny M=20 K=12 N=40 {OTHER_RATES}"),
]

LONGER = [
    Case("matmul", "PRESET=small M=64 K=64 N=64"),
    *[Case("matmul", f"PRESET=small M=64 K=64 N=64 {limit}") for limit in ("BANDWIDTH=8", "BANDWIDTH=21")],
    Case("matmul", "PRESET=small M=64 K=64 N=64 HBM_PORTS=4 BANDWIDTH=73"),
    *[Case("matmul", f"PRESET=small M=64 K=64 N=64 LATENCY={latency}") for latency in (8, 200)],
    Case("matmul", "PRESET=small M=100 K=70 N=130 DTYPE=int8"),
    Case("matmul", "PRESET=small M=40 K=40 N=40 DTYPE=fp32"),
    Case("matmul", "PRESET=small M=1 K=512 N=512"),
    Case("softmax", "PRESET=small M=64 N=256 BANDWIDTH=8"),
    Case("layernorm", "PRESET=small M=128 N=128"),
    Case("rmsnorm", "PRESET=small M=64 N=64"),
    Case("gelu", "PRESET=tiny M=40 N=96"),
    Case("adamw", "PRESET=tiny M=40 N=96 STEPS=1"),
    *[Case(test, "PRESET=small M=40 N=96") for test in ("gelu", "adamw", "topk")],
    *[Case(test, "") for test in ("linear", "swiglu", "rope")],
    Case("linear_backward", "PRESET=tiny M=12 K=20 N=24"),
    Case("attention_backward", "PRESET=tiny SEQ=12 DIM=8 HEADS=2"),
    Case("encoder_backward", "PRESET=small SEQ=16 DIM=32 HEADS=2 HIDDEN=48"),
    Case("decoder", "PRESET=tiny SEQ=3 DIM=12 HEADS=3 HIDDEN=20"),
    Case("encoder", "PRESET=tiny SEQ=6 DIM=8 HEADS=2 HIDDEN=10"),
    Case("digits", "PRESET=small BATCH=20"),
    Case("digits", "PRESET=small BATCH=120"),
    Case("train", "PRESET=tiny HIDDEN=4 BATCH=6 STEPS=3 ROUND=sr"),
    Case("train", "PRESET=small STEPS=2 ROUND=rne"),
    Case("charlm", "PRESET=tiny PROMPT=a TOKENS=2 STEPS=2 SEQ=6 DIM=8 HIDDEN=8"),
    *[Case("program", f"PRESET=tiny SEED={seed}") for seed in (2, 3)],
    *[Case("program", f"PRESET=small SEED={seed} LATENCY=150") for seed in (4, 5)],
    *[Case(test, f"PRESET=tiny M=40 N=96 {RATES}") for test in ("softmax", "layernorm", "topk", "gelu")],
    *[Case("program", f"PRESET=tiny SEED={seed} {RATES}") for seed in (6, 7, 8)],
    Case("matmul", f"PRESET=tiny M=20 K=12 N=40 {RATES}"),
    Case("softmax", "PRESET=tiny M=40 N=96 DMA_START=365 HBM_RATE=5"),
    Case("matmul", "PRESET=tiny M=20 K=12 N=40 DMA_START=365"),
    Case("program", "PRESET=tiny SEED=6 DMA_START=365"),
    Case("program", "PRESET=tiny SEED=9 VECTOR_SPEED=37 GPSIMD_SPEED=93 SCALAR_SPEED=71 LEAST_INTERVAL=3"),
    *[Case(test, f"PRESET=tiny M=40 N=96 {ACCESS}") for test in ("topk", "gelu")],
    *[Case("program", f"PRESET=tiny SEED={seed} {ACCESS}") for seed in (7, 8, 9)],
    *[Case(test, f"PRESET=tiny M=12 N=24 {ACCESS} RESULT_LATENCY=300") for test in ("layernorm", "softmax")],
    Case("matmul", "PRESET=tiny M=20 K=12 N=40 SWAP_CYCLES=23 RESULT_LATENCY=90"),
]

COPY_CASES = [CopyCase(name, f"PRESET=tiny LATENCY={latency}") for name in COPIES for latency in (64, 200)]

SLOW_COPIES = [CopyCase(name, f"PRESET={preset}") for name in COPIES for preset in ("nano", "small")]

FULL = [
    *[Case("matmul", f"PRESET=full M={size} K={size} N={size}") for size in (128, 256, 512, 1024)],
    Case("matmul", "PRESET=full M=512 K=512 N=512 BANDWIDTH=128"),
    Case("matmul", "PRESET=full M=1024 K=4096 N=512"),
    Case("matmul", "PRESET=trainium1 M=256 K=256 N=256"),
    Case("softmax", "PRESET=trainium1 M=256 N=256"),
    *[Case(test, "PRESET=full M=256 N=256") for test in ("softmax", "layernorm", "rmsnorm", "gelu")],
    Case("adamw", "PRESET=full M=128 N=256 STEPS=1"),
    Case("topk", "PRESET=full M=128 N=128"),
    Case("attention", "PRESET=full SEQ=512 DIM=64 HEADS=4 CAUSAL=1"),
    Case("encoder", "PRESET=full SEQ=128 DIM=768 HEADS=12 HIDDEN=3072"),
    Case("digits", "PRESET=full BATCH=120"),
    Case("program", "PRESET=full SEED=1"),
]

BOARDS = [
    Case("matmul", "PRESET=nano M=12 K=10 N=140"),
    Case("linear", "PRESET=nano M=12 K=20 N=24"),
    Case("attention", "PRESET=fpga SEQ=12 DIM=6 HEADS=1 CAUSAL=1"),
]


def far_off(cases):
    rows = [measure(case) for case in cases]
    print(table(rows))
    return [row.row for row in rows if abs(row.deviation) > WITHIN]


@pytest.mark.parametrize(
    "cases",
    [
        *(CASES, COPY_CASES),
        *(pytest.param(cases, marks=pytest.mark.slow) for cases in (LONGER, FULL, BOARDS, SLOW_COPIES)),
    ],
)
def test_cycles_are_near_those_of_the_rtl(cases):
    assert far_off(cases) == []


def test_times_between_dependent_instructions_are_those_of_the_rtl():
    """Another constant in the RTL adds a few cycles per instruction, which 5 % would hide."""
    rows = [measure(case) for case in CASES if "RESULT_LATENCY" in case.words and case.test in ("layernorm", "matmul")]
    assert len(rows) == 2 and all(abs(row.model.cycles - row.cycles) <= 8 for row in rows)


def test_the_time_besides_the_elements_is_that_of_the_rtl():
    """These short instructions follow one another, so one cycle more or less for each of them shows."""
    rows = [measure(case) for case in CASES if "ACCESS_CYCLES" in case.words and case.test in ("layernorm", "adamw")]
    assert len(rows) == 2 and all(row.model.cycles == row.cycles for row in rows)


def test_records_are_issued_and_retire_in_the_cycles_of_the_rtl():
    """The first records of a small product never wait, so the model is exact."""
    assert [record.retired - record.issued for record in measure(CASES[0]).model.records[:2]] == [126, 128]


@pytest.mark.parametrize(
    ("where", "name", "wrong", "case"),
    [
        (timing, "VECTOR_ENTRY_LATENCY", (11, 3), Case("layernorm", "PRESET=tiny M=40 N=96")),
        (timing, "SCALAR_LANES_LATENCY", (43, 41), Case("rmsnorm", "PRESET=tiny M=40 N=96")),
        (timing, "DMA_CHECKER_INTERVAL", 40, Case("matmul", "PRESET=tiny M=8 K=8 N=12")),
        (controller, "TO_FIRST", 120, Case("matmul", "PRESET=tiny M=8 K=8 N=12")),
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


@pytest.mark.parametrize("words", ["STALL=10", "WAVES=1"])
def test_target_model_refuses_what_it_cannot_answer(words):
    with pytest.raises(UsageError, match=f"{words.split('=')[0]} must be 0 for TARGET=model"):
        report_of("matmul", f"TARGET=model PRESET=tiny M=8 K=8 N=8 {words}")
