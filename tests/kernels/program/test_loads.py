"""Loads of adjacent or overlapping columns: which become one, and that results keep their bits."""

from dataclasses import replace

import numpy as np
import pytest

from neuroncore_rtl.kernels.program import Program, build_image, dma_copy
from neuroncore_rtl.kernels.program.instructions import memset, tensor_copy
from neuroncore_rtl.kernels.program.products import load_stationary
from neuroncore_rtl.spec.config import preset_named
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.isa import DmaCopy, Storage
from tests.kernels.running import run_ordered

SLOW_ROWS = replace(preset_named("tiny"), packet_interval=32, hbm_rate=8)
"""Rows of less than 256 bytes take as long as those of 256."""

CASES = {
    "adjacent": 2,
    "of different widths": 2,
    "in a later section": 2,
    "cast": 2,
    "five tiles": 4,
    "of long rows": 4,
    "behind a narrow tile": 2,
    "with a copy between them": 2,
    "overlapping": 2,
    "within wider ones": 2,
    "of long rows that overlap by half": 2,
    "of long rows that overlap by less": 4,
    "64 steps apart": 2,
    "65 steps apart": 4,
    "of weights": 2,
    "of weights that overlap by five columns": 4,
    "of single elements": 4,
    "with a gap": 4,
    "in the other order": 4,
    "of other rows": 4,
    "in other pieces": 4,
    "of every second column": 4,
    "in different sections": 4,
    "with a copy within a tile": 4,
    "of a tile that is wider": 4,
    "of a tile that is written": 4,
    "of written bytes": 4,
    "without a limit of rows": 4,
}
"""How the loads of tiles differ, and how many are left of two per tile."""

OVERLAPPING = {
    "overlapping": 8,
    "within wider ones": 3,
    "of long rows that overlap by half": 32,
    "of long rows that overlap by less": 33,
    "of weights that overlap by five columns": 11,
}
"""First column of the second tile."""


def loaded(case: str, order: str):
    config = replace(SLOW_ROWS, packet_interval=0) if case == "without a limit of rows" else SLOW_ROWS
    program = Program(config, order=order)
    space = program.space
    count, width = 5 if case == "five tiles" else 2, 64 if "long rows" in case else 16
    x, y = space.hbm("x", FP32, (8, 256)), space.hbm("y", FP32, (4, count * width))
    tiles, other = [], space.sbuf("other", FP32, (16,))
    others = {
        "of different widths": [16, 8],
        "behind a narrow tile": [8, 16],
        "within wider ones": [16, 8],
        "of single elements": [1, 1],
    }
    widths = others.get(case, [width] * count)
    if case == "in a later section":
        program.append(dma_copy(other, x[4:, :16]))
        program.start_section()
    for n, columns in enumerate(widths):
        start = sum(widths[:n]) + 16 * n * (case == "with a gap")
        start = width - start if case == "in the other order" else start
        start = n * OVERLAPPING[case] if case in OVERLAPPING else start
        rows = x[4 * n * (case == "of other rows") :][:4]
        source = rows[:, start : start + columns]
        if case == "of every second column":
            source = rows[:, start : start + 2 * columns : 2]
        wider = 16 * (case == "of a tile that is wider")
        tile = space.sbuf("tile", BF16 if case == "cast" else FP32, (columns + wider,))
        cut = 1 + n if case == "in other pieces" else 2
        for part in (slice(cut), slice(cut, 4)):
            at = 0 if case == "of single elements" else slice(columns)
            program.append(dma_copy(tile[part, at], source[part, at]))
            if not n and (case, part.stop) in (("with a copy within a tile", 2), ("with a copy between them", 4)):
                program.append(dma_copy(other, x[4:, :16]))
                program.append(tensor_copy(other, other))
        if not n and case == "in different sections":
            program.start_section()
        if not n and case.endswith("steps apart"):
            for _ in range(int(case[:2]) - 1):
                program.append(memset(other, 1.0))
        tiles.append(tile[:, :columns])
    if case == "of a tile that is written":
        program.append(memset(tiles[1][:, :1], 2.0))
    for n, tile in enumerate(tiles):
        result = space.sbuf("result", FP32, tile.shape)
        if case.startswith("of weights"):
            program.append(load_stationary(tile[:, :4]))
        program.append(tensor_copy(result, tile))
        program.append(dma_copy(y[:, n * width :][:, : tile.shape[0]], result))
    if case == "of written bytes":
        program.append(dma_copy(x[:4, :16], tiles[0]))
    return program, x, y


@pytest.mark.parametrize(("case", "left"), CASES.items())
def test_near_loads_of_adjacent_columns_become_one(case, left):
    found, counts = [], []
    for order in ("program", "scheduled"):
        program, x, y = loaded(case, order)
        values = np.random.default_rng(2).integers(0x3F800000, 0x40800000, x.shape)
        image = build_image(program, [(x, values), (y, np.zeros(y.shape, np.uint32))])
        copies = [entry.instruction for entry in program.entries if isinstance(entry.instruction, DmaCopy)]
        counts.append(sum(copy.src.storage == Storage.HBM for copy in copies))
        found.append(y.elements(run_ordered(image, np.random.default_rng(1)).hbm).copy())
    between = case.startswith("with a copy") or case == "in a later section"
    assert counts == [2 * (y.shape[1] // (64 if "long rows" in case else 16)) + between, left + between]
    assert np.array_equal(*found) and found[0].any()


def test_columns_of_one_tile_keep_their_places():
    program, x, y = loaded("adjacent", "scheduled")
    values = np.arange(1, x.size + 1).reshape(x.shape)
    assert np.array_equal(y.elements(run_ordered(build_image(program, [(x, values)])).hbm), values[:4, :32])


def test_loads_that_transpose_remain():
    found = []
    for order in ("program", "scheduled"):
        program = Program(SLOW_ROWS, order=order)
        x, y = program.space.hbm("x", FP32, (4, 8)), program.space.hbm("y", FP32, (4, 8))
        tiles = [program.space.sbuf("tile", FP32, (4,), 4) for _ in range(2)]
        for n, tile in enumerate(tiles):
            load = dma_copy(tile, x[:, 4 * n : 4 * n + 4].permute(1, 0))
            src, dst = (replace(side, steps=side.steps[::-1]) for side in (load.src, load.dst))
            program.append(replace(load, src=src, dst=replace(dst, axis=1)))
        for n, tile in enumerate(tiles):
            program.append(dma_copy(y[:, 4 * n : 4 * n + 4], tile))
        assert len(program.entries) == 4
        image = build_image(program, [(x, np.arange(1, 33).reshape(4, 8))])
        found.append(y.elements(run_ordered(image, np.random.default_rng(1)).hbm).copy())
    assert np.array_equal(*found) and found[0].all()
