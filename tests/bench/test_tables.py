"""Tables of figures: a column per way, and a width that fits documents."""

import pytest
from rich.console import Console

from neuroncore_rtl.bench import core, elementwise, instance, tensor
from neuroncore_rtl.run import shell, tables
from neuroncore_rtl.run.sim.vectors import WAYS

LARGE = {
    "elaboration_s": 123.4, "cold_build_s": 1234.5, "build_peak_gib": 12.34, "warm_start_s": 12.3,
    "cycles_per_s": 1234567.8, "whole_cycles_per_s": 123456.7, "golden_over_rtl": 12345.6,
    "ns_per_pe": 123.45, "mega_elements_per_s": 1234.5,
}  # fmt: skip
"""Figures of a simulation with the largest number of digits that occurs."""

ROW = {
    "cycles": 123456, "ideal_cycles": 123456, "utilisation": 0.987, "bit_exact": True, "size": 1024, "records": 1234,
    "array": 128, "shape": "1024 x 1024 x 1024 bf16", "golden_gmacs_per_s": 123.4, "engine": "vector", "lanes": 128,
    "cycles_per_element": 12.34, "preset": "small", "chips": 16, "bytes": 32768, "load": 0.987, "store": 0.987,
    "ranks": 4, "all_reduce_cycles": 123456, "cost": 0.0123, "within_bar": False,
}  # fmt: skip


def of_ways(*ways):
    return ROW | dict.fromkeys(ways, LARGE) | ({"speed_up": 123.4} if len(ways) > 1 else {})


def tables_of(row):
    record = {"sizes": {"128": row}, "products": [row], "engines": [row], "golden_softmax_s": 0.5, "core": [row]}
    record["dma"] = [row]
    parts = [tensor.tensor_tables(record), elementwise.elementwise_tables(record), core.core_tables(record)]
    return [made for part in [*parts, instance.instance_tables([row], row)] for made in part]


def lines_of(made):
    console = Console(width=shell.PLAIN_WIDTH)
    with console.capture() as capture:
        console.print(made)
    return capture.get().splitlines()


@pytest.mark.parametrize("ways", [WAYS, WAYS[:1], WAYS[1:]], ids=" ".join)
def test_tables_fit_with_every_word_whole(ways):
    for made in tables_of(of_ways(*ways)):
        lines = lines_of(made)
        assert max(map(len, lines)) <= shell.PLAIN_WIDTH
        words = {word for column in made.columns for text in (column.header, *column.cells) for word in text.split()}
        assert {word for word in words if not any(word in line for line in lines)} == set()


def headings(made):
    return [column.header for column in made.columns]


def test_columns_are_those_of_the_ways_that_were_measured():
    columns = "cycles: {cycles:,} | WAY a\\n s: {WAY[cycles_per_s]:,.0f}\nspeed-up: {speed_up} | right: {bit_exact}"
    both = tables.table("both", [of_ways(*WAYS)], columns)
    assert headings(both) == ["cycles", "vector\na\n s", "scalar\na\n s", "speed-up", "right"]
    cells = [cell for column in both.columns for cell in column.cells]
    assert cells == ["123,456", "1,234,568", "1,234,568", "123.4", "yes"]
    assert headings(tables.table("one", [of_ways("scalar")], columns)) == ["cycles", "scalar\na\n s", "right"]
    assert headings(tables.table("none", [], columns)) == ["cycles", "right"]
