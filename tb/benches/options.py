"""What the variables of TESTs and commands are made of: a line for each, and the groups that several of them have."""

from collections.abc import Iterable

from neuroncore_rtl.tb.sim.settings import DEPTH, SEED, SIM, WAVES, Option, configuration_options

__all__ = ["HBM_OPTIONS", "LATENCY", "RECORDED", "STALL", "choice", "core_options", "integer", "switch"]


def integer(name: str, default: int | None, help: str, minimum: int, maximum: int | None = None) -> Option:
    """Return a variable that is an integer of a range; None: where it is not given something else decides."""
    return Option(name=name, type=int, default=default, help=help, minimum=minimum, maximum=maximum)


def switch(name: str, default: int, help: str) -> Option:
    """Return a variable that is 0 or 1."""
    return integer(name, default, help, 0, 1)


def choice(name: str, default: str | None, help: str, choices: Iterable[str] = ()) -> Option:
    """Return a variable that is one of some words, or any; None: where it is not given something else decides."""
    return Option(name=name, type=str, default=default, help=help, choices=tuple(choices))


RECORDED = (SIM, WAVES, DEPTH)
"""Who simulates, and what is recorded."""

STALL = integer(
    "STALL",
    0,
    "every stream and memory port that the harness drives pauses in so many of 256 cycles, at random",
    0,
    240,
)
LATENCY = integer("LATENCY", 64, "cycles from an HBM address to its data", 1, 200)
BANDWIDTH = integer("BANDWIDTH", 0, "bytes per cycle that HBM moves at most, 0 for what its ports carry", 0, 1024)

HBM_OPTIONS = (LATENCY, BANDWIDTH, STALL)
"""How HBM behaves. Twice 200 cycles of beats is what its model holds."""


def core_options(target: str, engine: str, preset: str) -> tuple[Option, ...]:
    """Return the variables of a TEST of the whole core or of an engine alone, behind its own.

    Arguments:
        target: what it runs on unless told: "core" or "engine".
        engine: what is there alone.
        preset: its configuration unless told.
    """
    where = f"the whole core, or {engine} alone, where HBM plays no part"
    target_option = choice("TARGET", target, where, ("core", "engine"))
    return target_option, *configuration_options(preset), SEED, *HBM_OPTIONS, *RECORDED
