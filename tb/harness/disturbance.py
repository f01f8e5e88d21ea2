"""What befalls the wires of an instance in a harness, at random or for good (see `tb/harness/disturbance.v`)."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from neuroncore_rtl.tb.harness.link_view import sampling
from neuroncore_rtl.tb.harness.verilog_text import plusargs

__all__ = ["VERILOG", "Cut", "LinkWork"]

VERILOG = Path(__file__).with_suffix(".v")
"""The module that disturbs them."""


class Cut(NamedTuple):
    """A wire that is dead from a cycle on."""

    wire: int
    cycle: int


@dataclass(frozen=True, kw_only=True)
class LinkWork:
    """What all work has in common that is done over links.

    Arguments:
        errors: share of the frames that are disturbed, of every wire.
        cut: a wire that dies.
        seed: of all that is random.
        sampled: whether the links are sampled in the course of the run.
    """

    errors: float = 0.0
    cut: Cut | None = None
    seed: int = 1
    sampled: bool = False

    def link_plusargs(self, directory: Path) -> list[str]:
        """Return the plusargs that say so, of a run in a directory of its own."""
        words = plusargs(errors=round(self.errors * 2**32), seed=self.seed)
        words += [] if self.cut is None else plusargs(cut=self.cut.wire, cut_cycle=self.cut.cycle)
        return words + (sampling(directory / "samples") if self.sampled else [])
