"""TEST=nki: a kernel written for AWS's Neuron Kernel Interface, as it is, on this machine (docs/nki.md)."""

import inspect
import re
from pathlib import Path

import numpy as np

from neuroncore_rtl import ROOT
from neuroncore_rtl.frontends.nki.costs import published_by_line
from neuroncore_rtl.frontends.nki.dialects.load import kernels_in, load
from neuroncore_rtl.frontends.nki.dialects.table import calls
from neuroncore_rtl.frontends.nki.runtime.inputs import arguments_of, errors_of, reference_of
from neuroncore_rtl.frontends.nki.runtime.raised import told
from neuroncore_rtl.frontends.nki.runtime.run import ORDER, found_in, recorded
from neuroncore_rtl.kernels.program.program import ORDERS
from neuroncore_rtl.run.core import HBM_OPTIONS
from neuroncore_rtl.run.program_result import Result
from neuroncore_rtl.run.program_run import ProgramFailed, run
from neuroncore_rtl.run.report import Report, shown
from neuroncore_rtl.run.settings import (
    PROFILE,
    RECORDED,
    SEED,
    Command,
    Settings,
    UsageError,
    choice,
    configuration_options,
    refusals,
    switch,
)
from neuroncore_rtl.run.view.source_lines import line_table

__all__ = ["TEST"]

EXAMPLES = "frontends/nki/examples"
KERNEL = f"{EXAMPLES}/newer.py:attention"
INPUTS = "q=16x32:bf16 k=16x32:bf16 v=32x16:bf16 causal=True"


def _run(settings: Settings) -> Report:
    if settings.list:
        return _listed(settings)
    config = settings.config
    name = settings.kernel.rpartition(":")[2]
    label = f"{settings.target}-{re.sub(r'[^A-Za-z0-9_]+', '', name)}-{settings.preset}-{config.rows}x{config.columns}"
    with refusals():
        kernel = found_in(settings.kernel, config)
        reference = reference_of(settings.reference, config) if settings.reference else None
        arguments = arguments_of(settings.inputs, np.random.default_rng(settings.seed))
        with told():
            made = recorded(kernel, arguments, config, _grid(settings.grid), settings.order)
        target = {"core": "rtl"}.get(settings.target, settings.target)
        passed_on = (*HBM_OPTIONS, *RECORDED, PROFILE, SEED)
        variables = {option.name.lower(): settings.values[option.name] for option in passed_on}
        try:
            done = run(made.program, made.inputs, target=target, **variables)
        except ProgramFailed as failure:
            return Report(
                test="nki", label=label, settings=dict(settings.values), compared=0, mismatches=0,
                failures=tuple(str(failure).splitlines()),
            )  # fmt: skip
        outputs = tuple(done.read(view.allocation.tensor(0)) for view in made.results)
        against = {}
        if reference:
            against = {"against_numpy": errors_of(reference, arguments, outputs)}
    lines = {}
    if done.cycles is not None:
        lines = {
            "cycles_are": "open-RTL cycles, not a prediction of Trainium's",
            "busy": {engine: f"{share:.1%}" for engine, share in done.utilisation.items()},
            "lines": _line_table(done),
        }
    if done.profile is not None:
        lines |= {"profile": shown(done.profile), f"cycles_of_{done.busiest}": done.causes}
    return Report(
        test="nki",
        label=label,
        settings=dict(settings.values),
        compared=done.compared,
        mismatches=done.mismatches,
        cycles=done.cycles,
        modelled=target != "rtl",
        extra={
            "outputs": ", ".join(
                f"{list(one.shape)} {view.dtype}" for one, view in zip(outputs, made.results, strict=True)
            ),
            "records": len(made.program.entries),
            "inserted": dict(made.inserted) or "nothing",
            **against,
            "config": config.named,
            **lines,
        },
    )


def _line_table(done: Result) -> dict[str, dict[str, object]]:
    """Return the costs of the kernel's lines, and what is published of their instructions."""
    rows = line_table(done.lines, done.cycles)
    published = published_by_line(done.program.entries)
    for line in done.lines:
        cost = published.get(line)
        rows[str(line)] |= {"published": round(cost.cycles) if cost else "", "formula": cost.formula if cost else ""}
    return rows


def _listed(settings: Settings) -> Report:
    """Return what there is: the functions of KERNEL's file and of the files that ship, and every call."""
    named = settings.kernel.rpartition(":")[0] or settings.kernel
    files = [named, *(str(file.relative_to(ROOT)) for file in sorted((ROOT / EXAMPLES).glob("[!_]*.py")))]
    found = {}
    with refusals():
        for file in dict.fromkeys(files):
            path = Path(file) if Path(file).exists() else ROOT / file
            for name, function in kernels_in(load(path, settings.config)).items():
                found[f"{file}:{name}"] = str(inspect.signature(function))
    return Report(
        test="nki", label="list", settings={"KERNEL": settings.kernel}, compared=0, mismatches=0, judge="nothing ran",
        extra={
            "kernels": {kernel: {"arguments": arguments} for kernel, arguments in found.items()},
            **{module: {name: {"how": how, "": note} for name, how, note in rows} for module, rows in calls().items()},
        },
    )  # fmt: skip


def _grid(text: str | None) -> tuple[int, ...]:
    if not text:
        return ()
    if not re.fullmatch(r"\d+(x\d+)*", text):
        raise UsageError(f"GRID must be counts such as 4 or 2x8, not {text!r}")
    return tuple(int(n) for n in text.split("x"))


TEST = Command(
    name="nki",
    summary="a kernel of AWS's Neuron Kernel Interface, its file as it is; cycles of its lines",
    options=(
        choice("KERNEL", KERNEL, "path/to/file.py:function"),
        choice("INPUTS", INPUTS, "its arguments: name=128x512:bf16 random, name=file.npy, name=value"),
        choice("GRID", None, "programs along each axis, such as 4 or 2x8"),
        choice("REFERENCE", None, "path/to/file.py:function of numpy with the same arguments: the error is printed"),
        switch("LIST", 0, "only list the kernels of KERNEL's file and those that ship, and every call"),
        choice("TARGET", "core", "the RTL of the core, its timing model, or golden alone", ("core", "model", "golden")),
        *configuration_options("small"),
        choice("ORDER", ORDER, "of the instructions of a queue", ORDERS),
        SEED,
        *HBM_OPTIONS,
        *RECORDED,
        PROFILE,
    ),
    run=_run,
)
"""The TEST."""
