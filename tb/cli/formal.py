"""`make formal`: proofs of a unit's properties, or riscv-formal's checks of the processor, one line each."""

import importlib
import time
from collections.abc import Callable, Iterator
from functools import partial

from neuroncore_rtl.hdl.verilog.forks import Forks
from neuroncore_rtl.run.report import RESULTS, write_record
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.run.shell import display_path, terminal
from neuroncore_rtl.tb.cli.registry import PROVED
from neuroncore_rtl.tb.proofs.solver import Method, NoAnswer, SolverVerdict

__all__ = ["prove_units"]

CPU = "riscv"  # the unit that is checked with the properties of riscv-formal instead of this project's
LINE = "{name:34}  {verdict:9}  {kind:9}  {depth:>5}  {seconds:>7}"


def prove_units(settings: Settings) -> int:
    """Run the proofs, print and store them; return the exit status."""
    proofs = {name: own for name, *own in _proofs(settings) if (settings.only or "") in name}
    if not proofs:
        raise UsageError(f"ONLY must be in the name of a proof, not {settings.only!r}")
    console, rows = terminal(), []
    console.print(LINE.format(name="proof", verdict="verdict", kind="kind", depth="depth", seconds="seconds"))
    with Forks() as forks:
        for name, (_, _, run) in proofs.items():
            forks.submit(name, _time, run)
        for name, result in forks:
            verdict, log, seconds = result()
            method, depth, _ = proofs[name]
            known = {"name": name, "verdict": verdict, "kind": method.value, "depth": depth}
            rows.append({**known, "seconds": round(seconds, 1)})
            console.print(LINE.format(**rows[-1]), markup=False, highlight=False)
            if log:
                console.print(log, markup=False, highlight=False)
    failed = [row["name"] for row in rows if row["verdict"] != "holds"]
    console.print(f"{len(rows)} proofs, {len(failed)} failed", highlight=False)
    record = {"settings": settings.values, "proofs": rows, "failed": failed}
    path = write_record(RESULTS / f"formal-{settings.unit or 'all'}.json", record)
    console.print(f"record: {display_path(path)}", markup=False, soft_wrap=True)
    return 1 if failed else 0


def _proofs(settings: Settings) -> Iterator[tuple[str, Method, int, Callable[[], SolverVerdict]]]:
    """Yield name, method and depth of each proof, and a function that runs it."""
    if (settings.riscv_formal is None) == (settings.unit == CPU):
        message = f"RISCV_FORMAL must be given with UNIT={CPU}, and only then: a checkout of riscv-formal"
        raise UsageError(f"{message}, not {settings.riscv_formal!r}")
    for unit in [settings.unit] if settings.unit else [unit for unit in PROVED if unit != CPU]:
        module = importlib.import_module(f"neuroncore_rtl.tb.proofs.{unit}")
        if unit == CPU:
            folder = module.checkout(settings.riscv_formal)
            for one in module.checks(settings.depth or module.DEPTH):
                yield one.name, Method.BOUNDED, one.depth, partial(module.run_check, one, folder, settings.timeout)
            continue
        for one in module.PROOFS:
            depth = settings.depth or one.depth
            yield f"{unit}: {one.name}", one.method, depth, partial(one.run, depth, settings.timeout)


def _time(run: Callable[[], SolverVerdict]) -> tuple[str, str, float]:
    begun = time.monotonic()
    try:
        found = run()
        failed = "\n".join(line for line in found.log.splitlines() if "Assert failed" in line)
        verdict, log = ("holds", "") if found.holds else ("FAILS", failed or found.log)
    except NoAnswer as error:
        verdict, log = "no answer", str(error)
    return verdict, log, time.monotonic() - begun
