"""What befalls the wires of an instance in a harness, at random or for good (see `tb/harness/disturbance.v`)."""

from pathlib import Path
from typing import NamedTuple

__all__ = ["VERILOG", "Cut", "disturbing"]

VERILOG = Path(__file__).with_suffix(".v")
"""The module that disturbs them."""


class Cut(NamedTuple):
    """A wire that is dead from a cycle on."""

    wire: int
    cycle: int


def disturbing(errors: float, seed: int, cut: Cut | None) -> list[str]:
    """Return the plusargs of a run.

    Arguments:
        errors: share of the frames that are disturbed, of every wire.
        seed: of those.
        cut: a wire that dies.
    """
    plusargs = [f"+errors={round(errors * 2**32)}", f"+seed={seed}"]
    return plusargs + ([] if cut is None else [f"+cut={cut.wire}", f"+cut_cycle={cut.cycle}"])
