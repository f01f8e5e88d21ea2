"""Comparison of golden with Berkeley SoftFloat in millions of cases; exit status 1 if a result differs."""

import sys

import click
import numpy as np

from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.shell import terminal
from neuroncore_rtl.run.tables import table
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
    share, rows = -(-cases // len(CAMPAIGN_OPERATIONS)), []
    with progress(f"golden against SoftFloat: {cases:,} cases"):
        for name, operation in CAMPAIGN_OPERATIONS.items():
            differing = 0
            for start in range(0, share, CHUNK):
                operands, ours, theirs = operation(rng, min(CHUNK, share - start))
                positions = mismatches(ours, theirs)
                if len(positions) and not differing:
                    values = " ".join(f"{int(array[positions[0]]):x}" for array in (*operands, ours, theirs))
                    print(f"{name}: operands, golden and SoftFloat: {values}")
                differing += len(positions)
            rows.append({"operation": name, "cases": share, "mismatches": differing})
    columns = "operation: {operation} | cases: {cases:,} | mismatches: {mismatches:,}"
    terminal().print(table(f"golden against SoftFloat, seed {seed}", rows, columns))
    sys.exit(any(row["mismatches"] for row in rows))


if __name__ == "__main__":
    measure_softfloat()
