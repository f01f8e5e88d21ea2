"""The commands of `make bench` and `make synth`, with their variables."""

from neuroncore_rtl.run.settings import Command, choice, configuration_options, integer, later, switch
from neuroncore_rtl.run.sim.vectors import WAYS

__all__ = ["BENCH_COMMANDS", "PARTS"]

UNITS = (
    "mac", "pe", "array", "psum", "vector_lane", "activation_lane", "tables", "controller", "dma", "router", "core",
)  # fmt: skip
"""What `make synth` synthesises."""

FAMILIES = ("ecp5", "xcup")
"""FPGAs for which it does."""

PARTS = ("all", "tensor", "elementwise", "core", "link", "program", "silicon", "area", "depth")
"""What `make bench` measures."""

BENCH_COMMANDS = (
    Command(
        name="bench",
        summary="Measure build times, simulated cycles per second, utilisation and area, and print the tables.",
        options=(
            choice("PART", "all", "what to measure", PARTS),
            integer(
                "SIZE", None, "rows and columns of the only array to measure, instead of 8, 16, 32, 64 and 128", 2, 128
            ),
            choice("LANES", None, "the only way to evaluate what there is many times, instead of both", WAYS),
        ),
        run=later("bench.run", "run_benchmarks"),
    ),
    Command(
        name="synth",
        summary="Synthesise a unit for an FPGA, on an ECP5 place and route it; print area, clock and critical path.",
        options=(
            choice("UNIT", None, "what to synthesise, alone", UNITS),
            choice("FAMILY", "ecp5", "the FPGA; for xcup, UltraScale+, there are counts and no clock", FAMILIES),
            integer("SEEDS", 3, "seeds of place and route, whose median is the clock; 0: counts alone", 0, 9),
            switch("NETLIST", 0, "1: UNIT=array as a netlist of the FPGA's cells multiplies matrices, against golden"),
            *configuration_options("small"),
        ),
        run=later("bench.fpga.synth", "run_synthesis"),
    ),
)
"""Both."""
