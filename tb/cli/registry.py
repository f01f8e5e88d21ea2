"""The registry of TESTs and commands: make, the command line and help read it, so none of them can be out of date."""

import importlib
from functools import cache

from neuroncore_rtl.tb.sim.settings import Bench, Option, Settings, UsageError, configuration_options

__all__ = ["COMMANDS", "TESTS", "bench_named"]

TESTS = (
    "matmul", "vector", "activation", "timing", "softmax", "layernorm", "rmsnorm", "gelu", "adamw", "topk", "sr",
    "mac", "round", "digits", "riscv", "program", "allreduce", "reducescatter", "allgather", "broadcast", "alltoall",
    "sendrecv", "barrier", "collectives", "router", "gradients", "tensor_parallel",
)  # fmt: skip
"""Names of the TESTs; each is the module of that name in `tb/benches/`, which defines `BENCH`."""


@cache
def bench_named(name: str) -> Bench:
    """Return the bench of a TEST.

    Raises:
        UsageError: if there is none of that name; the message lists those that exist.
    """
    if name not in TESTS:
        raise UsageError(f"TEST must be one of {', '.join(TESTS)}, not {name!r}")
    return importlib.import_module(f"neuroncore_rtl.tb.benches.{name}").BENCH


def _export(settings: Settings) -> int:
    from neuroncore_rtl.tb.cli.export import export

    return export(settings)


def _measure(settings: Settings) -> int:
    from neuroncore_rtl.bench.run import main

    return main(settings)


COMMANDS = (
    Bench(
        name="verilog",
        summary="Export the Verilog of a configuration, a file list, and its parameters and ports as JSON.",
        options=configuration_options("full"),
        run=_export,
    ),
    Bench(
        name="bench",
        summary="Measure build times, simulated cycles per second, utilisation and area, and print the tables.",
        options=(
            Option(
                name="PART",
                type=str,
                default="all",
                help="what to measure",
                choices=("all", "tensor", "elementwise", "core", "link", "area"),
            ),
            Option(
                name="SIZE",
                type=int,
                default=None,
                help="rows and columns of the only array to measure, instead of 8, 16, 32, 64 and 128",
                minimum=2,
                maximum=128,
            ),
        ),
        run=_measure,
    ),
)
"""Commands that take variables but simulate no TEST."""
