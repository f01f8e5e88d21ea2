"""Place and route on the largest ECP5 by nextpnr: highest clock, and critical path in terms of the source.

A unit is placed with unconnected ports; its slowest path between registers sets the clock.
"""

import json
import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from rich.markup import escape
from rich.table import Table

from neuroncore_rtl import ROOT
from neuroncore_rtl.run.fpga.synthesis import Netlist, project_source, run_tool
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.sim.simulation import BuildFailed
from neuroncore_rtl.run.tables import table

__all__ = ["critical_path", "path_table", "place", "remaining", "route", "slowest", "stands_still"]

DEVICE = ("--85k", "--package", "CABGA756", "--speed", "6", "--out-of-context")

TARGET_MHZ = 200
"""Target clock for nextpnr, the same for all units because results depend on it."""


PATIENCE = 50
"""Thousands of connections that the router may make without a new minimum of remaining ones. In runs that end, each
thousand is a new minimum."""

_THOUSAND = re.compile(r"\|\s*(\d+)\|\s*[\d.]+\s+[\d.]+\|")


def place(netlist: Netlist, seed: int) -> dict[str, object]:
    """Place and route a netlist, or read the cached report of the seed; raises as `run_tool`.

    Returns:
        `fmax_mhz`, None without a clock; `critical_path`, see `critical_path`; `used`, the used share of each
        resource.
    """
    report = netlist.folder / f"report-{seed}.json"
    if not report.is_file():
        name = f".unfinished-{seed}.json"
        options = ("--json", "netlist.json", "--timing-allow-fail", "--freq", str(TARGET_MHZ), "--seed", str(seed))
        run_tool(netlist.folder, "nextpnr-ecp5", *DEVICE, *options, "--report", name)
        (netlist.folder / name).rename(report)
    found = json.loads(report.read_text())
    used = {name: of["used"] / of["available"] for name, of in found["utilization"].items() if of["used"]}
    return slowest(found, netlist) | {"used": used}


def slowest(report: Mapping, netlist: Netlist) -> dict[str, object]:
    """Return `fmax_mhz` and `critical_path` of nextpnr's report."""
    clocks = [clock["achieved"] for clock in report["fmax"].values()]
    paths = [one for one in report["critical_paths"] if one["from"] == one["to"] != "<async>"]
    path = max(paths, key=lambda one: sum(part["delay"] for part in one["path"]), default=None)
    return {
        "fmax_mhz": min(clocks, default=None),
        "critical_path": critical_path(path["path"], netlist) if clocks and path else None,
    }


def path_table(path: Mapping) -> Table:
    """Return a table of a result of `critical_path`."""
    title = f"Critical path: {path['ns']:.1f} ns, {path['logic_ns']:.1f} of them logic; {path['luts']} LUTs"
    steps = (step | {"name": escape(step["signal"] or _expression(step["source"]))} for step in path["steps"])
    return table(title, steps, "at ns: {ns:.1f} | LUTs before: {luts} | signal: {name} | source: {source}")


def critical_path(segments: Iterable[Mapping], netlist: Netlist) -> dict[str, object]:
    """Return a path of nextpnr's report in terms of the source.

    LUTs have no names in the source; they are counted up to the next signal, sum or product with one.

    Returns:
        `ns`, `logic_ns` and `luts` of the whole path, and its `steps`: arrival in `ns`, `signal` (None for an
        expression), `source` (file and line), and `luts` since the previous step.
    """
    steps: list[dict] = []
    at = logic = 0.0
    luts = since = 0
    for segment in segments:
        at += segment["delay"]
        to = segment["to"]
        if segment["type"] in ("logic", "setup", "clk-to-q"):
            logic += segment["delay"]
        if segment["type"] == "logic" and "$CCU2_" not in to["cell"]:
            since += 1
            luts += 1
        if segment["type"] == "routing":
            # Names that the tools made are not in the source.
            signal = None if _MADE.search(segment["net"]) else segment["net"]
            source = project_source(segment.get("sources", ()))
        elif segment["type"] == "setup":
            signal, source = _register(to["cell"], netlist)
        else:
            continue
        if source is None:
            continue
        if steps and not since and (steps[-1]["signal"], steps[-1]["source"]) == (signal, source):
            steps[-1]["ns"] = at  # the same carry chain continues
            continue
        steps.append({"ns": at, "signal": signal, "source": source, "luts": since})
        since = 0
    return {"ns": at, "logic_ns": logic, "luts": luts, "steps": steps}


_MADE = re.compile(r"\$|_(LUT4|CCU2C|PFUMX|L6MUX21)_")


def _register(cell: str, netlist: Netlist) -> tuple[str | None, str | None]:
    connections = netlist.module["cells"].get(cell, {}).get("connections", {})
    signals = cast(Mapping[Any, Any], netlist.signals)
    return signals.get(next(iter(connections.get("Q", [])), None), (None, None))


MOST_LETTERS = 48
"""Most letters of an expression that replaces a signal's missing name."""


def _expression(source: str) -> str:
    file, line = source.split(":")[:2]
    text = (ROOT / file).read_text().splitlines()[int(line) - 1].strip()
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 3]}..."


def remaining(log: str) -> list[int]:
    """Return the number of unrouted connections, by nextpnr's log, after each thousand connections that it made."""
    return [int(found) for found in _THOUSAND.findall(log)]


def stands_still(left: Sequence[int]) -> bool:
    """Return whether routing makes no progress: more than `PATIENCE` of the counts `left` follow the smallest one."""
    return bool(left) and len(left) - 1 - left.index(min(left)) > PATIENCE


def route(command: Sequence[str], directory: Path, log: Path, doing: str) -> bool:
    """Run nextpnr in a directory; return False if it was stopped because its router made no progress.

    router1 rips up a net when two nets need the same wire, and never ends if wires are too few, which depends on the
    placement and so on the seed. The command names the log; `doing` is for the progress display. Raises BuildFailed,
    with the end of the output, if nextpnr fails.
    """
    log.unlink(missing_ok=True)
    said = directory / "nextpnr.txt"
    with progress(doing), said.open("w") as output:
        process = subprocess.Popen(command, cwd=directory, stdout=output, stderr=subprocess.STDOUT)
        try:
            while process.poll() is None:
                time.sleep(1)
                if log.is_file() and stands_still(remaining(log.read_text(errors="replace"))):
                    return False
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode:
        raise BuildFailed(f"nextpnr failed in {display_path(directory)}:\n{said.read_text(errors='replace')[-2000:]}")
    return True
