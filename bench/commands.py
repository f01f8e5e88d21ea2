"""Commands of `make bench` and `make synth`."""

from neuroncore_rtl.run.settings import Command, choice, configuration_options, integer, later, switch
from neuroncore_rtl.run.sim.vectors import WAYS

__all__ = ["BENCH_COMMANDS", "PARTS"]

UNITS = (
    "mac", "pe", "array", "psum", "vector_lane", "activation_lane", "tables", "controller", "dma", "router", "core",
)  # fmt: skip

FAMILIES = ("ecp5", "xcup")
PARTS = ("all", "tensor", "elementwise", "core", "link", "program", "silicon", "area", "depth")

BENCH_COMMANDS = (
    Command(
        name="bench",
        summary="Measure build times, simulated cycles per second, utilisation and area, and print the tables.",
        options=(
            choice("PART", "all", "what to measure", PARTS),
            integer("SIZE", None, "rows and columns of the array; default 8, 16, 32, 64 and 128", 2, 128),
            choice("LANES", None, "way to simulate replicated modules; default both", WAYS),
            choice("PRESET", "trainium1", "the machine of PART=silicon", ("trainium1", "full")),
        ),
        run=later("bench.run", "run_benchmarks", "fpga", "plots", "references"),
    ),
    Command(
        name="synth",
        summary="Synthesise a unit for an FPGA, on an ECP5 also place and route it; print area, clock and paths.",
        options=(
            choice("UNIT", None, "the unit", UNITS),
            choice("FAMILY", "ecp5", "the FPGA; xcup, UltraScale+, gives counts but no clock", FAMILIES),
            integer("SEEDS", 3, "seeds of place and route; the clock is their median; 0: counts only", 0, 9),
            switch("NETLIST", 0, "1: simulate UNIT=array as a netlist of FPGA cells and compare it with golden"),
            *configuration_options("small"),
        ),
        run=later("bench.fpga.synth", "run_synthesis", "fpga"),
    ),
)
