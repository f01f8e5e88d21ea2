"""The registry of TESTs and commands: make, the command line and help read it, so none of them can be out of date."""

import importlib
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from neuroncore_rtl.run.settings import (
    LANES_OPTION,
    PROFILE,
    SEED,
    SIM,
    Command,
    Option,
    UsageError,
    choice,
    configuration_options,
    integer,
    later,
    switch,
)
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.link import CORES_PER_CHIP, MAX_CORES
from neuroncore_rtl.tb.campaign.options import CAMPAIGN_OPTIONS

__all__ = [
    "COMMANDS",
    "GROUPS",
    "MODULES",
    "TABLES",
    "command_named",
    "image_named",
    "profile_named",
    "profiled_tests",
    "tests",
]  # fmt: skip

GROUPS = {
    "products, networks": (
        "kernels.matmul",
        "kernels.digits",
        "learning.train",
        "learning.charlm",
        "links.tensor_parallel",
    ),
    "kernels of rows": ("kernels.kernels",),
    "other interfaces": ("kernels.nki",),
    "layers": ("kernels.layers", "kernels.transformer"),
    "their gradients": ("kernels.backward",),
    "engines": ("engines.vector", "engines.activation", "engines.timing", "kernels.sr"),
    "arithmetic": ("engines.mac", "engines.round"),
    "core, controller": ("core.program", "core.riscv"),
    "links of chips": ("links.router", "links.collective", "links.collectives", "links.gradients"),
}
"""Modules of `tb/tests/` as help groups their TESTs."""

MODULES = tuple(module for modules in GROUPS.values() for module in modules)
"""All of them: each defines `TEST`, the TEST of its name, or is in `TABLES`."""

TABLES = ("kernels.kernels", "kernels.layers", "kernels.transformer", "kernels.backward", "links.collective")
"""Those that define `TESTS`, a table of TESTs that are alike."""


@cache
def _tests(module: str) -> dict[str, Command]:
    found = importlib.import_module(f"neuroncore_rtl.tb.tests.{module}")
    return {bench.name: bench for bench in (found.TESTS if module in TABLES else (found.TEST,))}


def tests(modules: Iterable[str] | None = None) -> dict[str, Command]:
    """Return the TESTs of some modules, None: all, by name."""
    modules = MODULES if modules is None else modules
    return {name: bench for module in modules for name, bench in _tests(module).items()}


def command_named(name: str) -> Command:
    """Return the bench of a TEST.

    Raises:
        UsageError: if there is none of that name; the message lists those that exist.
    """
    # One TEST does not wait for the modules of all.
    own = [module for module in MODULES if module.endswith(f".{name}") and module not in TABLES]
    for module in own or TABLES:
        if name in _tests(module):
            return _tests(module)[name]
    raise UsageError(f"TEST must be one of {', '.join(tests())}, not {name!r}")


def profiled_tests() -> list[str]:
    """Return the names of the TESTs that have profiles: those that run an image on a core that is alone."""
    return [name for name, bench in tests().items() if PROFILE in bench.options]


def profile_named(name: str) -> Command:
    """Return the bench of a TEST with other defaults: on the core, with a profile.

    Raises:
        UsageError: if there is none of that name, or if it has no profiles; the message lists those that have.
    """
    bench = command_named(name)
    if PROFILE not in bench.options:
        raise UsageError(f"TEST must be one that has profiles, {', '.join(profiled_tests())}, not {name!r}")
    defaults = {"PROFILE": 1, "TARGET": "core"}
    own = (option for option in bench.options if option is not LANES_OPTION)  # it comes by itself
    return replace(bench, options=tuple(replace(one, default=defaults.get(one.name, one.default)) for one in own))


def image_named(name: str) -> Command:
    """Return the bench of a TEST with another default: on the core.

    Raises:
        UsageError: if there is none of that name, or if it runs no image on a core that is alone.
    """
    bench = command_named(name)
    if PROFILE not in bench.options:
        raise UsageError(f"TEST must be one that has an image, {', '.join(profiled_tests())}, not {name!r}")
    own = (option for option in bench.options if option is not LANES_OPTION)  # it comes by itself
    return replace(bench, options=tuple(replace(o, default="core") if o.name == "TARGET" else o for o in own))


def _of_preset(name: str, help: str) -> Option:
    """Return a variable that is a parameter of the machine, as preset full has it."""
    parameter = name.lower()
    return integer(name, getattr(PRESETS["full"], parameter), help, *Config.RANGES[parameter])


MUTATED = (
    *(
        "pe",
        "edge_decoder",
        "rounding",
        "threefry",
        "adder",
        "multiply_add",
        "alu",
        "search",
        "psum",
        "mover",
        "loader",
        "counting",
        "fifo",
    ),
    *(
        "divider",
        "power",
        "statistics",
        "functions",
        "running_sum",
        "indices",
        "sequencer",
        "checker",
        "store",
        "frontend",
    ),
    *("queue", "semaphores", "fetcher", "boot", "registers", "address_decoder", "riscv"),
    *("bank_arbiter", "link_end", "router"),
    *(
        "round_robin",
        "line_arbiter",
        "address_generator",
        "chunker",
        "dma_reader",
        "dma_rows",
        "dma_writer",
        "caster",
        "dma_checker",
        "dma_answers",
        "dma_sequencer",
        "dma",
    ),
    *(
        "collective_checker",
        "schedule",
        "width_converter",
        "collective_loader",
        "storer",
        "receive_path",
        "reduce_lane",
        "rounding_lane",
    ),
    *("mailbox", "router_port", "collective_sender", "credit_manager", "collective"),
)
"""Those of which `make mutate` makes mutants."""

PROVED = ("arbiters", "axi", "link", "queue", "riscv", "semaphores")
"""What `make formal` proves something of: modules of `tb/proofs/`."""

SUITES = ("riscv-tests", "riscv-arch-test", "fpgen", "testfloat", "nccl-tests")
"""What `make oracle` runs."""

_FROM = "where the suite is: a folder, a file or a program, as docs/oracles.md says; of nccl-tests there is none"

COMMANDS = (
    Command(
        name="verilog",
        summary="Export the Verilog of a configuration, file lists, descriptions as JSON, and what a board needs.",
        options=(
            *configuration_options("full"),
            switch("DEBUG", 0, "1 gives the core behind AXI its debug ports"),
            integer("CLOCK", 100, "MHz that the constraints ask for", 1, 1000),
        ),
        run=later("tb.cli.export", "export"),
    ),
    Command(
        name="bitstream",
        summary="Build the core with a host link into the bitstream of a board, or say what does not fit.",
        options=(
            choice("BOARD", "ulx3s", "the board, with its largest FPGA", ("ulx3s",)),
            *configuration_options("fpga"),
            switch("CORE", 1, "0 leaves the core out, to try a board's link and memory"),
            integer("MHZ", 40, "of the clock", 10, 100),
            integer("BAUD", 1_000_000, "of the host link", 9600, 12_000_000),
            integer("SEED", 1, "of nextpnr, the first that is tried", 1),
            integer("SEEDS", 3, "that are tried until the router ends with a clock of MHZ", 1, 100),
        ),
        run=later("tb.cli.bitstream", "make_bitstream"),
    ),
    Command(
        name="host",
        summary="Load a program onto a board, or a simulated one, run it, and compare its results with golden.",
        options=(
            choice("TEST", "digits", "write and read memory, multiply, or read digits", ("memory", "matmul", "digits")),
            choice("PORT", None, "serial port of the board, such as /dev/ttyUSB0; a simulated board unless told"),
            integer("BAUD", 1_000_000, "of the port, as the bitstream has it", 1, 12_000_000),
            integer("IMAGES", 4, "digits: held-out images to classify", 1, 360),
            integer("BATCH", 4, "digits: images that the core computes at once", 1, 360),
            *configuration_options("fpga"),
            SEED,
        ),
        run=later("tb.cli.host", "run_session"),
    ),
    Command(
        name="formal",
        summary="Prove properties of the hardware with a solver, print verdicts and depths; fail if one fails.",
        options=(
            choice("UNIT", None, "of what; all but riscv unless told", PROVED),
            choice("RISCV_FORMAL", None, "a checkout of github.com/YosysHQ/riscv-formal, whose checks UNIT=riscv runs"),
            choice("ONLY", None, "only proofs that have this in their name"),
            integer("DEPTH", None, "cycles of the proofs, instead of each one's own", 1, 100),
            integer("TIMEOUT", 1800, "seconds that a solver may take for one of them", 1, 86400),
        ),
        run=later("tb.cli.formal", "prove_units"),
    ),
    Command(
        name="oracle",
        summary="Run what others have written to tell right from wrong on the hardware and on golden, bit for bit.",
        options=(
            choice("SUITE", None, "whose", SUITES),
            choice("FROM", None, _FROM),
            _of_preset("MAC_LATENCY", "fpgen, testfloat: pipeline stages of the multiply-accumulate"),
            _of_preset("VECTOR_LATENCY", "fpgen, testfloat: pipeline stages of a lane's ALU"),
            integer(
                "CHIPS", 4, "nccl-tests: chips of two cores, all of which take part", 2, MAX_CORES // CORES_PER_CHIP
            ),
            integer(
                "BYTES", 65536, "nccl-tests: bytes of the largest vector; the others go down to one element", 4, 1 << 22
            ),
            replace(SEED, help="testfloat, nccl-tests: seed of the operands"),
            SIM,
        ),
        run=later("tb.tests.oracle.command", "run_oracle"),
    ),
    Command(
        name="sweep",
        summary="Run a TEST over lists of values of its variables; write rows, a table and pictures.",
        options=(
            Option(name="SPEC", type=Path, default=None, help="what to run, a file such as examples/sweep.toml"),
            *CAMPAIGN_OPTIONS,
        ),
        run=later("tb.cli.sweep", "run_sweep"),
    ),
    Command(
        name="soak",
        summary="Run random programs on random machines against golden; cut failures down, and keep them.",
        options=(
            integer("HOURS", None, "after which nothing more is begun", 1, 10_000),
            integer("MINUTES", None, "the same in minutes, 10 if nothing is told", 1, 600_000),
            integer("RUNS", None, "runs, the first of the seed, instead of a time", 1, 10_000_000),
            replace(SEED, help="of all that is drawn"),
            integer("TRIES", 300, "runs in which a failure is cut down, at most", 1, 10_000),
            Option(name="CASE", type=Path, default=None, help="a failure that was kept, which alone is run again"),
            *CAMPAIGN_OPTIONS,
        ),
        run=later("tb.cli.soak", "soak_machine"),
    ),
    Command(
        name="mutate",
        summary="Change a unit's netlist in some hundred places, one at a time, and see which its tests do not notice.",
        options=(
            choice("UNIT", None, "the unit, else all in turn", MUTATED),
            integer("MUTANTS", 200, "of each unit, at most", 1, 5000),
            replace(SEED, help="of the draw of mutants"),
            integer("WORKERS", 2, "processes at once", 1, 256),
            switch("HOLES", 0, "1 tries only the holes of the record again, with the tests that there are now"),
            switch("RUN", 1, "0 runs nothing and prints the records that there are"),
        ),
        run=later("tb.campaign.mutation.command", "mutate_units"),
    ),
    Command(
        name="docs",
        summary="Build the documentation site with strict links.",
        options=(switch("SERVE", 0, "1 serves the site on http://localhost:8000 and rebuilds it when a file changes"),),
        run=later("tb.cli.docs", "build_site"),
    ),
    Command(
        name="figures",
        summary="Run the commands whose output the documents show, and write it and all single figures into them.",
        options=(
            choice("ONLY", None, "only commands that have this in them"),
            switch("RUN", 1, "0 runs nothing and takes single figures from the records that there are"),
        ),
        run=later("tb.cli.figures", "check_figures"),
    ),
)
"""Commands that take variables but simulate no TEST."""
