"""Comparison of golden with Berkeley SoftFloat in millions of cases; exit status 1 if a result differs."""

import sys

import click
import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from neuroncore_rtl.tb.check.oracles.compare import mismatches
from neuroncore_rtl.tb.stimulus.campaign import CAMPAIGN_OPERATIONS

__all__ = ["measure_softfloat"]

CHUNK = 250_000  # cases per call, which bounds the memory


@click.command()
@click.option("--cases", type=click.IntRange(min=1), default=10_000_000, show_default=True, help="Number of cases.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the random cases.")
def measure_softfloat(cases: int, seed: int) -> None:
    """Compare the golden MAC, adder and conversions with Berkeley SoftFloat, bit for bit.

    Each operation gets an equal share of the cases.
    """
    rng = np.random.default_rng(seed)
    share = -(-cases // len(CAMPAIGN_OPERATIONS))
    table = Table("operation", "cases", "mismatches", title=f"golden against SoftFloat, seed {seed}")
    compared = wrong = 0
    with Progress() as progress:
        bar = progress.add_task("", total=share * len(CAMPAIGN_OPERATIONS))
        for name, operation in CAMPAIGN_OPERATIONS.items():
            progress.update(bar, description=name)
            differing = 0
            for start in range(0, share, CHUNK):
                n = min(CHUNK, share - start)
                operands, ours, theirs = operation(rng, n)
                positions = mismatches(ours, theirs)
                if len(positions) and not differing:
                    first = positions[0]
                    values = [f"{int(array[first]):x}" for array in (*operands, ours, theirs)]
                    shown = f"{name}: {' '.join(values[:-2])}: ours {values[-2]}, SoftFloat {values[-1]}"
                    progress.console.print(shown)
                differing += len(positions)
                progress.advance(bar, n)
            table.add_row(name, f"{share:,}", f"{differing:,}")
            compared += share
            wrong += differing
    table.add_section()
    table.add_row("all", f"{compared:,}", f"{wrong:,}")
    Console().print(table)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    measure_softfloat()
