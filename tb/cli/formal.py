"""`make formal`: proofs of a unit's properties, or riscv-formal's checks of the processor, one line each."""

import importlib
import json
import time
from collections.abc import Callable, Iterator
from functools import partial

from neuroncore_rtl.hdl.verilog.forks import Forks
from neuroncore_rtl.run.report import RESULTS
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.run.shell import display_path, terminal
from neuroncore_rtl.tb.cli.registry import PROVED
from neuroncore_rtl.tb.proofs.solver import Method, NoAnswer, SolverVerdict, prove

__all__ = ["prove_units"]

CPU = "riscv"  # the unit that is checked with the properties of riscv-formal instead of this project's
LINE = "{name:34}  {verdict:9}  {kind:9}  {depth:>5}  {seconds:>7}"


def prove_units(settings: Settings) -> int:
    """Run the proofs, print and store them; return the exit status."""
    selected = dict(_select(settings))
    if not selected:
        raise UsageError(f"ONLY must be in the name of a proof, not {settings.only!r}")
    console, rows = terminal(), []
    console.print(LINE.format(name="proof", verdict="verdict", kind="kind", depth="depth", seconds="seconds"))
    with Forks() as forks:
        for name, (_, _, run) in selected.items():
            forks.submit(name, _time, run)
        for name, result in forks:
            verdict, log, seconds = result()
            kind, depth, _ = selected[name]
            rows.append({"name": name, "verdict": verdict, "kind": kind, "depth": depth, "seconds": round(seconds, 1)})
            console.print(LINE.format(**rows[-1]), markup=False, highlight=False)
            if log:
                console.print(log, markup=False, highlight=False)
    failed = [row["name"] for row in rows if row["verdict"] != "holds"]
    console.print(f"{len(rows)} proofs, {len(failed)} failed", highlight=False)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"formal-{settings.unit or 'all'}.json"
    path.write_text(json.dumps({"settings": settings.values, "proofs": rows, "failed": failed}, indent=2) + "\n")
    console.print(f"record: {display_path(path)}", markup=False, soft_wrap=True)
    return 1 if failed else 0


def _select(settings: Settings) -> Iterator[tuple[str, tuple[str, int, Callable[[], SolverVerdict]]]]:
    """Yield the selected proofs by name: kind, depth, and a function that runs the proof."""
    if (settings.riscv_formal is None) == (settings.unit == CPU):
        message = f"RISCV_FORMAL must be given with UNIT={CPU}, and only then: a checkout of riscv-formal"
        raise UsageError(f"{message}, not {settings.riscv_formal!r}")
    for unit in [settings.unit] if settings.unit else [unit for unit in PROVED if unit != CPU]:
        module = importlib.import_module(f"neuroncore_rtl.tb.proofs.{unit}")
        for name, method, depth, run in (_checks if unit == CPU else _proofs)(settings, module, unit):
            if (settings.only or "") in name:
                yield name, (method.value, depth, run)


def _proofs(settings: Settings, module, unit: str):
    for one in module.PROOFS:
        depth = settings.depth or one.depth
        yield f"{unit}: {one.name}", one.method, depth, partial(_prove, one, depth, settings.timeout)


def _prove(proof, depth: int, timeout: float) -> SolverVerdict:
    return prove(proof.model(), depth, proof.method, timeout=timeout)


def _checks(settings: Settings, module, unit: str):
    folder = module.checkout(settings.riscv_formal)
    for check in module.checks(settings.depth or module.DEPTH):
        yield check.name, Method.BOUNDED, check.depth, partial(module.run_check, check, folder, settings.timeout)


def _time(run: Callable[[], SolverVerdict]) -> tuple[str, str, float]:
    begun = time.monotonic()
    try:
        verdict = run()
    except NoAnswer as error:
        return "no answer", str(error), time.monotonic() - begun
    seconds = time.monotonic() - begun
    failed = "\n".join(line for line in verdict.log.splitlines() if "Assert failed" in line)
    return ("holds", "", seconds) if verdict.holds else ("FAILS", failed or verdict.log, seconds)
