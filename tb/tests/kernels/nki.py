"""TEST=nki: an unmodified kernel of AWS's Neuron Kernel Interface on this machine (docs/nki.md)."""

import inspect
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from neuroncore_rtl import ROOT
from neuroncore_rtl.frontends.nki.costs import published_by_line
from neuroncore_rtl.frontends.nki.dialects.load import kernels_in, load_kernel
from neuroncore_rtl.frontends.nki.dialects.table import calls
from neuroncore_rtl.frontends.nki.runtime.inputs import arguments_of, input_errors, reference_of
from neuroncore_rtl.frontends.nki.runtime.raised import report_errors
from neuroncore_rtl.frontends.nki.runtime.run import NKI_ORDER, found_in, recorded
from neuroncore_rtl.kernels.program.program import ORDERS
from neuroncore_rtl.kernels.program.spilling import spill_table
from neuroncore_rtl.run import settings as variables
from neuroncore_rtl.run.harness.hbm import hbm_of
from neuroncore_rtl.run.program import program_job
from neuroncore_rtl.run.report import Report, Share
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import SEED, Settings, UsageError, choice, refusals, switch
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.view.source_lines import line_table
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = ["TEST"]

EXAMPLES = "frontends/nki/examples"
KERNEL = f"{EXAMPLES}/newer.py:attention"
INPUTS = "q=16x32:bf16 k=16x32:bf16 v=32x16:bf16 causal=True"


def _jobs(settings: Settings) -> Jobs:
    if settings.list:
        return
    config = settings.config
    with refusals():
        kernel = found_in(settings.kernel, config)
        reference = reference_of(settings.reference, config) if settings.reference else None
        arguments = arguments_of(settings.inputs, np.random.default_rng(settings.seed))
        with report_errors():
            made = recorded(kernel, arguments, config, _grid(settings.grid), settings.order)
        job = program_job(made.program, made.inputs, "", hbm_of(settings))
    yield replace(job, subject=(made, arguments, reference))


def _rows(settings: Settings, results: Sequence[Result]) -> Report:
    if settings.list:
        return _listed(settings)
    (result,), config = results, settings.config
    made, arguments, reference = result.job.subject
    done = replace(result, program=made.program)
    with refusals():
        outputs = tuple(map(done.read, made.outputs))
        against = {}
        if reference:
            against = {"against_numpy": input_errors(reference, arguments, outputs)}
    lines = {}
    if done.cycles is not None:
        lines = {
            "cycles_are": "of this RTL at the silicon's clocks, see docs/silicon.md"
            if config.clock_mhz
            else "open-RTL cycles, not a prediction of Trainium's",
            "busy": {engine: Share(share) for engine, share in done.utilisation.items()},
            "lines": _line_table(done),
        }
    if done.profile is not None:
        lines |= {"profile": display_path(done.profile), f"cycles_of_{done.busiest}": done.causes}
    pairs = zip(outputs, made.results, strict=True)
    return Report(
        rows={
            "outputs": ", ".join(f"{list(one.shape)} {view.dtype}" for one, view in pairs),
            "records": len(made.program.entries),
            "inserted": [{"why": why, "instructions": count} for why, count in made.inserted.items()] or "nothing",
            "spilled": spill_table(made.program.spills) or "nothing",
            **against,
            "config": config.named,
            **lines,
        },
    )


def _line_table(done: Result) -> list[dict[str, object]]:
    """Return cycles by line, and where AWS published them, its cycles, and the ratio of the line's to them."""
    config = done.image.config
    published = published_by_line(done.program.entries, config)
    rows = []
    for (line, cost), row in zip(done.lines.items(), line_table(done.lines, done.cycles), strict=True):
        time = {} if config.microseconds(0) is None else {"microseconds": config.microseconds(cost.cycles)}
        known = published.get(line)
        own = (
            {"published": round(known.cycles), "ratio": cost.cycles / known.cycles, "formula": known.formula}
            if known
            else {}
        )
        first = {name: row.pop(name) for name in ("line", "engine", "cycles")}
        rows.append({**first, **time, **own, **row})
    return rows


def _listed(settings: Settings) -> Report:
    named = settings.kernel.rpartition(":")[0] or settings.kernel
    files = [named, *(str(file.relative_to(ROOT)) for file in sorted((ROOT / EXAMPLES).glob("[!_]*.py")))]
    found = {}
    with refusals():
        for file in dict.fromkeys(files):
            path = Path(file) if Path(file).exists() else ROOT / file
            for name, function in kernels_in(load_kernel(path, settings.config)).items():
                found[f"{file}:{name}"] = str(inspect.signature(function))
    return Report(
        settings={"KERNEL": settings.kernel},
        judge="nothing ran",
        rows={
            "kernels": [{"kernel": kernel, "arguments": arguments} for kernel, arguments in found.items()],
            **{
                module.replace(".", "_"): [{"call": name, "how": how, "note": note} for name, how, note in rows]
                for module, rows in calls().items()
            },
        },
    )


def _grid(text: str | None) -> tuple[int, ...]:
    if not text:
        return ()
    if not re.fullmatch(r"\d+(x\d+)*", text):
        raise UsageError(f"GRID must be counts such as 4 or 2x8, not {text!r}")
    return tuple(int(n) for n in text.split("x"))


TEST = Scenario(
    name="nki",
    summary="an unmodified kernel of AWS's Neuron Kernel Interface; cycles of its lines",
    options=(
        choice("KERNEL", KERNEL, "path/to/file.py:function"),
        choice("INPUTS", INPUTS, "arguments of the kernel: name=128x512:bf16 (random), name=file.npy, name=value"),
        choice("GRID", None, "programs along each axis, such as 4 or 2x8"),
        choice("REFERENCE", None, "path/to/file.py:function in numpy with the same arguments, to print the error"),
        switch("LIST", 0, "1 only lists the kernels of KERNEL's file, the shipped kernels, and all calls"),
        choice("TARGET", "core", "the RTL of the core, its timing model, or golden only", ("core", "model", "golden")),
        *variables.configuration_options("small"),
        choice("ORDER", NKI_ORDER, "order of the instructions in a queue", ORDERS),
        SEED,
        *variables.HBM_OPTIONS,
        *variables.RECORDED,
        variables.PROFILE,
    ),
    jobs=_jobs,
    rows=_rows,
)
