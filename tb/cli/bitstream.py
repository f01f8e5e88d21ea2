"""`make bitstream`: the core with a host link as a bitstream for a board, built with YoWASP's tools."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.hdl.board.board import Board
from neuroncore_rtl.hdl.board.sdram_chip import MT48LC16M16
from neuroncore_rtl.hdl.board.uart import uart_divisor
from neuroncore_rtl.hdl.board.ulx3s import OSCILLATOR_HZ, PHASE_DEGREES, Ulx3sPads, Ulx3sPlatform
from neuroncore_rtl.run.fpga.paths import estimate_paths, estimate_table
from neuroncore_rtl.run.fpga.placement import path_table, remaining, route, slowest
from neuroncore_rtl.run.fpga.synthesis import ABC, Netlist
from neuroncore_rtl.run.fpga.whole import LUTS_OF, black_box, largest, replace_black_box, whole
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.settings import Settings, UsageError, refusals
from neuroncore_rtl.run.shell import display_path, terminal
from neuroncore_rtl.run.sim.doctor import MissingTool
from neuroncore_rtl.run.sim.simulation import BuildFailed
from neuroncore_rtl.tb.cli.export import directory_name, list_files

__all__ = ["capacity_problem", "make_bitstream"]

PATIENCE_S = 0.02  # idle time of the line, longer than the pauses of USB adapters
NAME = "top"

RESOURCES = {"LUT4": "luts", "TRELLIS_FF": "registers", "MULT18X18D": "multipliers", "DP16KD": "rams"}
"""ECP5 cells, and the attribute of the platform that says how many of them the device has."""

NEXTPNR = "--placer static --router router1"
"""Options of nextpnr. The placer `static` (electrostatic) makes a core's wires 23 % shorter than the placer `heap`.
The router `router1` reroutes one conflicting net at a time; `router2` routes all nets at the same time and does not
converge in crowded designs."""


def make_bitstream(settings: Settings) -> int:
    """Build a bitstream; return 1 if the design does not fit or is too slow."""
    config = settings.config if settings.core else None
    if config and config.cores > 1:
        raise UsageError(f"CORES must be 1 on a board, not {config.cores}")
    name = directory_name(config) if config else "memory"
    clock_hz = 1_000_000 * settings.mhz
    with refusals():
        divisor = uart_divisor(clock_hz, settings.baud)
    directory = SIM_BUILD / "bitstream" / f"{settings.board}-{name}"
    board, modules = whole(Board(config, MT48LC16M16, clock_hz, divisor, round(PATIENCE_S * clock_hz)), "board")

    platform = Ulx3sPlatform()
    platform.add_file("board.v", black_box(board))
    platform.add_file("pll.v", _pll(directory, settings.mhz))
    plan = platform.build(
        Ulx3sPads(clock_hz),
        name=NAME,
        do_build=False,
        script_after_read=f'scratchpad -set abc9.script "{ABC}"',
        nextpnr_opts=f"{NEXTPNR} --report report.json --timing-allow-fail",
    )
    plan.extract(directory)
    synthesis, routing, packing = json.loads((directory / f"build_{NAME}.json").read_text())["commands"]
    _run(directory, synthesis, f"Yosys: the pads of {name}")
    netlist = directory / f"{NAME}.json"
    everything = replace_black_box(json.loads(netlist.read_text()), board)
    netlist.write_text(json.dumps(everything))
    counts = board.cells
    console = terminal()
    console.print(largest(modules))
    with progress("estimate of the slowest paths"):
        paths = estimate_paths(board)
    console.print(estimate_table(paths))
    console.print(", ".join(f"{count:,} {cell}" for cell, count in _usage(counts).items()), markup=False)
    if problem := capacity_problem(counts, platform, name):
        console.print(problem, markup=False, soft_wrap=True)
        return 1
    reached = _route(directory, routing, board, name, settings)
    if not reached:
        return 1
    _run(directory, packing, f"ecppack: {name}")
    if reached < settings.mhz:
        message = f"the bitstream must run at {settings.mhz} MHz, not {reached:.1f}: try another SEED="
        console.print(message, markup=False)
    list_files((directory / f"{NAME}.bit", directory / f"{NAME}.svf"))
    return int(reached < settings.mhz)


def _route(directory: Path, command: list[str], board: Netlist, name: str, settings: Settings) -> float:
    """Place and route with consecutive seeds until a design reaches MHZ; return the highest clock in MHz, or 0."""
    console, log, reached = terminal(), directory / f"{NAME}.tim", 0.0
    design, fastest = directory / f"{NAME}.config", directory / "fastest.config"
    program, *options = command
    for seed in range(settings.seed, settings.seed + settings.seeds):
        again = [_program(program), *options, "--seed", str(seed)]
        if not route(again, directory, log, f"nextpnr: {name}, seed {seed}"):
            least = min(remaining(log.read_text(errors="replace")))
            console.print(f"seed {seed}: the router made no progress, {least:,} connections remain", markup=False)
            continue
        found = slowest(json.loads((directory / "report.json").read_text()), board)
        if found["critical_path"]:
            console.print(path_table(found["critical_path"]))
        clock = found["fmax_mhz"]
        console.print(f"{clock:.1f} MHz routed, {settings.mhz} MHz requested, seed {seed}", markup=False)
        if clock > reached:
            reached = clock
            shutil.copy(design, fastest)
        if clock >= settings.mhz:
            break
    if reached:
        shutil.copy(fastest, design)
    else:
        last = settings.seed + settings.seeds - 1
        console.print(f"{name} is not routed with seeds {settings.seed} to {last}: try SEED={last + 1}", markup=False)
    return reached


def _usage(counts: Mapping[str, int]) -> dict[str, int]:
    used = {cell: counts.get(cell, 0) for cell in RESOURCES}
    used["LUT4"] += sum(luts * counts.get(cell, 0) for cell, luts in LUTS_OF.items())
    return used


def capacity_problem(counts: Mapping[str, int], platform: type | object, name: str) -> str | None:
    """Return a sentence about the resources beyond the board's, or None."""
    used = _usage(counts)
    room = {cell: getattr(platform, attribute) for cell, attribute in RESOURCES.items()}
    beyond = [f"{used[cell]:,} {cell} of {room[cell]:,}" for cell in RESOURCES if used[cell] > room[cell]]
    return f"{name} does not fit the {platform.device}: it needs {', '.join(beyond)}" if beyond else None


def _pll(directory: Path, mhz: int) -> str:
    directory.mkdir(parents=True, exist_ok=True)
    options = {"clkin": OSCILLATOR_HZ // 1_000_000, "clkout0": mhz, "clkout1": mhz, "phase1": PHASE_DEGREES}
    words = [word for option, value in options.items() for word in (f"--{option}", str(value))]
    _run(directory, ["ecppll", *words, "-f", "pll.v"], "ecppll")
    text = (directory / "pll.v").read_text()
    found = float(re.search(r"output clkout0, // ([0-9.]+) MHz", text)[1])
    if found != mhz:
        raise UsageError(f"MHZ must be a frequency that the PLL can derive from 25 MHz, not {mhz} (nearest: {found:g})")
    return text


def _program(name: str) -> Path:
    program = Path(sys.executable).with_name(f"yowasp-{name}")
    if not program.is_file():
        raise MissingTool(f"{program.name} is missing beside {sys.executable}: run make")
    return program


def _run(directory: Path, command: list[str], doing: str) -> None:
    program = _program(command[0])
    with progress(doing):
        result = subprocess.run([program, *command[1:]], cwd=directory, capture_output=True, text=True)
    if result.returncode:
        raise BuildFailed(
            f"{command[0]} failed in {display_path(directory)}:\n{(result.stdout + result.stderr)[-2000:]}"
        )
