"""Registry of TESTs and commands, read by make, the command line and help."""

import importlib
from dataclasses import replace
from functools import cache
from pathlib import Path

from neuroncore_rtl.run import settings
from neuroncore_rtl.run.settings import SEED, Command, Option, choice, configuration_options, integer, later, switch
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import MATMUL_FORMATS
from neuroncore_rtl.spec.link import CORES_PER_CHIP, MAX_CORES
from neuroncore_rtl.tb.cli.overview import MODULES

__all__ = ["COMMANDS", "command_named", "image_named", "profile_named", "profiled_tests", "tests"]


def tests() -> dict[str, Command]:
    """Return all TESTs by name."""
    return {name: command_named(name) for name in MODULES}


@cache
def command_named(name: str) -> Command:
    """Return the TEST with a name; UsageError, with similar names, if no TEST has this name."""
    if name not in MODULES:
        raise settings.unknown("TEST", name, MODULES)
    found = importlib.import_module(f"neuroncore_rtl.tb.tests.{MODULES[name]}")
    choices = found.TESTS if hasattr(found, "TESTS") else (found.TEST,)
    return next(one for one in choices if one.name == name)


def profiled_tests() -> list[str]:
    """Return the names of the TESTs that can run an image on a single core."""
    return [name for name, bench in tests().items() if settings.PROFILE in bench.options]


def profile_named(name: str) -> Command:
    """Return a TEST that by default runs on the core and writes its profile; UsageError if it has no profile."""
    return _on_core(name, "profiles", PROFILE=1)


def image_named(name: str) -> Command:
    """Return a TEST that by default runs on the core; UsageError if it runs no image on a single core."""
    return _on_core(name, "an image")


def _on_core(name: str, what: str, **given: int) -> Command:
    bench = command_named(name)
    if settings.PROFILE not in bench.options:
        raise settings.UsageError(f"TEST must be one that has {what}, {', '.join(profiled_tests())}, not {name!r}")
    return replace(bench, given={"TARGET": "core", **given})


def _of_preset(name: str, help: str) -> Option:
    parameter = name.lower()
    return integer(name, getattr(PRESETS["full"], parameter), help, *Config.RANGES[parameter])


MUTATED = tuple(
    """
    pe edge_decoder rounding threefry adder multiply_add alu search psum mover loader counting fifo
    divider power statistics functions running_sum indices sequencer checker pacer store frontend
    queue semaphores fetcher boot registers address_decoder riscv
    bank_arbiter link_end router round_robin line_arbiter address_generator packet_turns chunker
    dma_reader dma_rows dma_writer caster dma_checker dma_answers dma_sequencer dma
    collective_checker schedule width_converter collective_loader read_arbiter storer receive_path reduce_lane
    rounding_lane mailbox router_port collective_sender credit_manager collective
    """.split()
)

PROVED = ("arbiters", "axi", "link", "queue", "riscv", "semaphores")
SUITES = ("riscv-tests", "riscv-arch-test", "fpgen", "testfloat", "nccl-tests", "stablehlo", "jax")
_FROM = "location of the suite: a folder, a file or a program, see docs/oracles.md; nccl-tests needs none"

_WORKERS = "parallel processes, default one per core; with a batch queue, the number of jobs"
_CLUSTER = (
    "run on a cluster instead of here: address of a dask.distributed scheduler, such as tcp://host:8786, "
    "or a batch queue: slurm, pbs, lsf, sge, oar, moab, htcondor"
)
CAMPAIGN_OPTIONS = (integer("WORKERS", None, _WORKERS, 1, 1024), choice("CLUSTER", None, _CLUSTER))

_SIZES = (("M", "rows of A and C"), ("K", "columns of A, rows of B"), ("N", "columns of B and C"))
_MATRIX = "file of matrix {}, decimals in rows, as text, CSV or .npy; default small integers"

COMMANDS = (
    Command(
        name="picture",
        summary="Draw a matrix product in the systolic array, moving and still, from a run of the RTL.",
        options=(
            choice("TEST", "matmul", "the TEST to draw", ("matmul",)),
            *(integer(name, None, f"{what}; default 4, or as the files have", 1, 64) for name, what in _SIZES),
            *(Option(name=name, type=Path, default=None, help=_MATRIX.format(name)) for name in "AB"),
            replace(SEED, default=None, help="seed of random small integers, instead of the matrices of lesson 2"),
            settings.dtype_option(fmt.name for fmt in MATMUL_FORMATS),
            *configuration_options("tiny"),
        ),
        run=later("tb.cli.array_picture", "make_picture", "plots"),
    ),
    Command(
        name="verilog",
        summary="Export a configuration: Verilog, file lists, JSON descriptions, and files for a board.",
        options=(
            *configuration_options("full"),
            switch("DEBUG", 0, "1 adds debug ports to the core behind AXI"),
            integer("CLOCK", 100, "clock constraint in MHz", 1, 1000),
        ),
        run=later("tb.cli.export", "export"),
    ),
    Command(
        name="bitstream",
        summary="Build the core with a host link as a bitstream for a board, or report what does not fit.",
        options=(
            choice("BOARD", "ulx3s", "the board, with its largest FPGA", ("ulx3s",)),
            *configuration_options("fpga"),
            switch("CORE", 1, "0 omits the core, to test a board's link and memory"),
            integer("MHZ", 40, "clock in MHz", 10, 100),
            integer("BAUD", 1_000_000, "baud rate of the host link", 9600, 12_000_000),
            integer("SEED", 1, "first seed of nextpnr", 1),
            integer("SEEDS", 3, "number of seeds to try until the clock reaches MHZ", 1, 100),
        ),
        run=later("tb.cli.bitstream", "make_bitstream", "fpga"),
    ),
    Command(
        name="host",
        summary="Load a program onto a real or simulated board, run it, and compare its results with golden.",
        options=(
            choice("TEST", "digits", "memory test, product, or digit recognition", ("memory", "matmul", "digits")),
            choice("PORT", None, "serial port of the board, such as /dev/ttyUSB0; default a simulated board"),
            integer("BAUD", 1_000_000, "baud rate of the bitstream", 1, 12_000_000),
            integer("IMAGES", 4, "digits: number of images to classify", 1, 360),
            integer("BATCH", 4, "digits: images per batch", 1, 360),
            *configuration_options("fpga"),
            SEED,
        ),
        run=later("tb.cli.host", "run_session", "references"),
    ),
    Command(
        name="formal",
        summary="Prove properties of the hardware with a solver; print verdicts and depths, fail if one fails.",
        options=(
            choice("UNIT", None, "unit to prove; default all except riscv", PROVED),
            choice("RISCV_FORMAL", None, "UNIT=riscv: a checkout of github.com/YosysHQ/riscv-formal, for its checks"),
            choice("ONLY", None, "run only proofs with this text in their name"),
            integer("DEPTH", None, "cycles of every proof, instead of its own", 1, 100),
            integer("TIMEOUT", 1800, "most seconds of the solver per proof", 1, 86400),
        ),
        run=later("tb.cli.formal", "prove_units", "fpga"),
    ),
    Command(
        name="oracle",
        summary="Run external test suites on the hardware and on golden, compared bit for bit.",
        options=(
            choice("SUITE", None, "the suite", SUITES),
            choice("FROM", None, _FROM),
            _of_preset("MAC_LATENCY", "fpgen, testfloat: pipeline stages of the multiply-accumulate"),
            _of_preset("VECTOR_LATENCY", "fpgen, testfloat: pipeline stages of a lane's ALU"),
            integer("CHIPS", 4, "nccl-tests: chips of two cores, all participating", 2, MAX_CORES // CORES_PER_CHIP),
            integer("BYTES", 65536, "nccl-tests: size of the largest vector; others shrink to one element", 4, 1 << 22),
            integer("CASES", 100, "jax: cases that are drawn of each file; 0: all", 0, 10_000),
            replace(SEED, help="testfloat, nccl-tests: seed of the operands; jax: of the drawn cases"),
            settings.SIM,
        ),
        run=later("tb.tests.oracle.command", "run_oracle"),
    ),
    Command(
        name="sweep",
        summary="Run a TEST over lists of values of its variables; write rows, a table and plots.",
        options=(
            Option(name="SPEC", type=Path, default=None, help="the sweep, a file such as examples/sweep.toml"),
            *CAMPAIGN_OPTIONS,
        ),
        run=later("tb.cli.sweep", "run_sweep", "campaign", "plots"),
    ),
    Command(
        name="soak",
        summary="Run random programs on random machines and compare them with golden; shrink and store failures.",
        options=(
            integer("HOURS", None, "hours after which no run is started", 1, 10_000),
            integer("MINUTES", None, "the same in minutes; default 10", 1, 600_000),
            integer("RUNS", None, "number of runs, instead of a time", 1, 10_000_000),
            replace(SEED, help="seed of the random programs and machines"),
            integer("TRIES", 300, "most runs to shrink a failure", 1, 10_000),
            Option(name="CASE", type=Path, default=None, help="run only this stored failure again"),
            *CAMPAIGN_OPTIONS,
        ),
        run=later("tb.cli.soak", "soak_machine", "campaign"),
    ),
    Command(
        name="top",
        summary="Show what runs: progress, cycles a second, utilisation of each engine, memory, until q is pressed.",
        options=(switch("ONCE", 0, "1 prints it once, as without a terminal"),),
        run=later("tb.cli.top", "show_live"),
    ),
    Command(
        name="mutate",
        summary="Change a unit's netlist in some hundred places, one at a time, and list those that its tests miss.",
        options=(
            choice("UNIT", None, "the unit; default all", MUTATED),
            integer("MUTANTS", 200, "most mutants per unit", 1, 5000),
            replace(SEED, help="seed of the draw of mutants"),
            integer("WORKERS", 2, "parallel processes", 1, 256),
            switch("HOLES", 0, "1 tests only the holes of the record again, with the current tests"),
            switch("RUN", 1, "0 runs nothing and prints the existing records"),
        ),
        run=later("tb.campaign.mutation.command", "mutate_units", "fpga", "develop", clone="mutate"),
    ),
    Command(
        name="docs",
        summary="Build the documentation site with strict links.",
        options=(switch("SERVE", 0, "1 serves the site on http://localhost:8000 and rebuilds it when a file changes"),),
        run=later("tb.cli.figures", "build_site", "docs", clone="docs"),
    ),
    Command(
        name="figures",
        summary="Run the commands in the documents' output blocks, and update the blocks and the figures.",
        options=(
            choice("ONLY", None, "run only commands that contain this text"),
            switch("RUN", 1, "0 runs nothing and updates figures from the existing records"),
        ),
        run=later("tb.cli.figures", "check_figures", clone="figures"),
    ),
)
