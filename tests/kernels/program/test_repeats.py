"""Repeated instructions: which are removed, and that results keep their bits."""

from collections import Counter

import numpy as np
import pytest

from neuroncore_rtl.kernels.program import Program, build_image, dma_copy
from neuroncore_rtl.kernels.program import repeats as removal
from neuroncore_rtl.kernels.program.instructions import (
    activation,
    memset,
    tensor_copy,
    tensor_reduce,
    tensor_scalar,
    tensor_tensor,
)
from neuroncore_rtl.kernels.program.loads import LoadedTile
from neuroncore_rtl.spec.config import preset_named
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp, DmaCopy, Storage
from tests.kernels.running import run_golden

TINY = preset_named("tiny")

CASES = {
    "the same": 1,
    "with another result": 3,
    "after a write to a source": 3,
    "with a result that is written again": 3,
    "in another section": 3,
    "at another place": 3,
    "a copy by either engine": 1,
    "a reduction": 1,
    "a product with a number": 1,
    "a product with other numbers": 3,
    "a copy times two": 3,
    "a copy with a sum": 3,
    "a copy that starts sums": 3,
}
"""What differs in each turn of a loop, and how many of three results are computed."""


def repeated(case: str, turn: int, out, a, b):
    """Return the instruction of a turn."""
    match case:
        case "a copy by either engine":
            return activation(out, a, "identity") if turn % 2 else tensor_copy(out, a)
        case "a copy that starts sums":
            return activation(out, a, "identity")
        case "a reduction":
            return tensor_reduce(out[:, :1], a, AluOp.MAX)
        case "a product with a number" | "a product with other numbers":
            return tensor_scalar(out, a, 3.0 + turn * case.endswith("numbers"), AluOp.MULTIPLY)
        case "a copy times two":
            return activation(out, a, "identity", 2.0) if turn else tensor_copy(out, a)
        case "a copy with a sum":
            return activation(out[:, :15], a[:, :15], "identity", sum_into=out[:, 15:])
    op = (AluOp.ADD, AluOp.MULTIPLY, AluOp.MAX)[turn if case == "with another result" else 1]
    return tensor_tensor(out, a, b, op)


def turns(order: str, case: str):
    program = Program(TINY, order=order)
    space = program.space
    x, y = (space.hbm(name, FP32, shape) for name, shape in (("x", (2, 4, 16)), ("y", (6, 4, 16))))
    a, b = (space.sbuf(name, FP32, (16,)) for name in "ab")
    program.append(dma_copy(a, x[0]))
    program.append(dma_copy(b, x[1]))
    for turn in range(3):
        wide = space.sbuf("wide", FP32, (32,))
        result = wide[:, turn : turn + 16] if case == "at another place" else wide[:, :16]
        program.append(repeated(case, turn, result, a, b))
        if case == "with a result that is written again":
            program.append(memset(result[:, turn : turn + 1], 2.0 + turn))
        if case == "after a write to a source":
            program.append(memset(b, 2.0 + turn))
        if case == "a copy that starts sums" and turn:
            sums = space.sbuf("sums", FP32, (16,))
            program.append(activation(sums[:, :15], b[:, :15], "exp", sum_into=sums[:, 15:], sum_continue=True))
            program.append(dma_copy(y[3 + turn], sums))
        program.append(dma_copy(y[turn], result))
        if case == "in another section":
            program.start_section()
    return program, x, y


@pytest.mark.parametrize(("case", "kept"), CASES.items())
def test_an_instruction_that_repeats_another_is_removed(rng, case, kept):
    values, found = rng.integers(0x3F800000, 0x40800000, (2, 4, 16)), []
    for order, count in (("program", 3), ("scheduled", kept)):
        program, x, y = turns(order, case)
        image = build_image(program, [(x, values)])
        made = [entry.instruction for entry in program.entries]
        results = [
            one
            for one in made
            if one.name in ("TENSOR_TENSOR", "TENSOR_COPY", "TENSOR_SCALAR", "TENSOR_REDUCE", "ACTIVATE")
        ]
        assert sum(not one.sum_continue for one in results) == count
        found.append(y.elements(run_golden(image, np.random.default_rng(1)).hbm).copy())
    assert np.array_equal(*found)


LOADS = {
    "the same": 2,
    "of other bytes": 6,
    "in other pieces": 6,
    "in another section": 6,
    "beside written bytes": 2,
    "of written bytes": 6,
    "of a tile that is written": 6,
    "of half the memory": 2,
    "of more than half": 6,
}
"""What differs in each turn of a loop, and how many of six loads, two of each tile, are left."""


def loading(order: str, case: str):
    program = Program(TINY, order=order)
    space = program.space
    half = TINY.sbuf_bytes // 2 // 4
    width = half if case == "of half the memory" else half + 16 if case == "of more than half" else 16
    x, y = (space.hbm(name, FP32, (3, 4, width)) for name in "xy")
    for turn in range(3):
        tile, result = space.sbuf("tile", FP32, (width,)), space.sbuf("result", FP32, (16,))
        start, cut = (turn, 8) if case == "of other bytes" else (0, 8 + turn * (case == "in other pieces"))
        for part in (slice(cut), slice(cut, width)):
            program.append(dma_copy(tile[:, part], x[start][:, part]))
        if case == "of a tile that is written":
            program.append(memset(tile[:, :1], 2.0 + turn))
        program.append(tensor_scalar(result, tile[:, width - 16 :], 1.5 + turn, AluOp.MULTIPLY))
        program.append(dma_copy(y[turn][:, :16], result))
        if "written bytes" in case:
            program.append(dma_copy(x[0 if case.startswith("of") else 1][:, :16], result))
        if case == "in another section":
            program.start_section()
    return program, x, y


@pytest.mark.parametrize(("case", "left"), LOADS.items())
def test_a_load_that_repeats_another_is_removed(rng, case, left):
    found = []
    for order, count in (("program", 6), ("scheduled", left)):
        program, x, y = loading(order, case)
        values = np.random.default_rng(2).integers(0x3F800000, 0x40800000, x.shape)
        image = build_image(program, [(x, values), (y, np.zeros(y.shape, np.uint32))])
        copies = [entry.instruction for entry in program.entries if isinstance(entry.instruction, DmaCopy)]
        assert sum(copy.src.storage == Storage.HBM for copy in copies) == count
        found.append(y.elements(run_golden(image, np.random.default_rng(1)).hbm)[..., :16].copy())
    assert np.array_equal(*found)


@pytest.mark.parametrize("seed", range(20))
def test_kept_tiles_fit_in_their_room(seed):
    rng = np.random.default_rng(seed)
    keys, sizes = rng.integers(0, 12, 200), rng.integers(1, 9, 12) * 64
    tiles = {n: LoadedTile(0, (key,), sizes[key], 2 * n, 2 * n + 1) for n, key in enumerate(keys)}
    before = {n: max((m for m in range(n) if keys[m] == keys[n]), default=None) for n in tiles}
    counts = []
    for room in (0, 256, 1024, 2048, sum(sizes)):
        kept = removal._kept(tiles, room)
        filled = [sum(tiles[n].size for n in kept if before[n] <= place < n) for place in tiles]
        assert max(filled) <= room
        counts.append(len(kept))
    assert counts == sorted(counts) and counts[0] == 0
    assert counts[-1] == sum(one is not None for one in before.values())


@pytest.mark.parametrize("order", ["program", "scheduled"])
def test_a_tile_is_not_read_before_all_its_loads(order):
    program = Program(TINY, order=order)
    space = program.space
    x, y = (space.hbm(name, FP32, (4, 16)) for name in "xy")
    early, late = (space.sbuf(name, FP32, (16,)) for name in ("early", "late"))
    program.append(dma_copy(early[:, :8], x[:, :8]))
    for part in (slice(8), slice(8, 16)):
        program.append(dma_copy(late[:, part], x[:, part]))
    program.append(dma_copy(y, late))
    program.append(dma_copy(early[:, 8:], x[:, 8:]))
    values = np.arange(1, 65).reshape(x.shape)
    found = run_golden(build_image(program, [(x, values)]), np.random.default_rng(1)).hbm
    assert np.array_equal(y.elements(found), values)


def test_if_kept_tiles_do_not_fit_other_repeats_are_removed():
    program = Program(TINY, order="scheduled")
    space, words = program.space, TINY.sbuf_bytes // 4
    x, y = space.hbm("x", FP32, (4, words // 2)), space.hbm("y", FP32, (2, 4, 16))
    early, late = (space.sbuf("tile", FP32, (words // 2,)) for _ in range(2))
    big = space.sbuf("big", FP32, (words * 3 // 4,))
    first, once, again = (space.sbuf(name, FP32, (16,)) for name in ("first", "once", "again"))
    program.append(dma_copy(early, x))
    program.append(tensor_copy(first, early[:, :16]))
    program.append(memset(big[:, 16:], 1.0))
    program.append(tensor_copy(big[:, :16], first))
    for result in (once, again):
        program.append(tensor_scalar(result, big[:, :16], 3.0, AluOp.MULTIPLY))
    program.append(dma_copy(y[0], again))
    program.append(dma_copy(late, x))
    total = space.sbuf("total", FP32, (16,))
    program.append(tensor_tensor(total, late[:, :16], once, AluOp.ADD))
    program.append(dma_copy(y[1], total))
    names = Counter(entry.instruction.name for entry in program.entries)
    assert names["TENSOR_SCALAR"] == 1 and names["DMA_COPY"] == 4
