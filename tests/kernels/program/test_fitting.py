"""Programs whose tiles exceed SBUF or PSUM: another order, pieces of tensors, spilling."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from neuroncore_rtl.kernels.program import Program, build_image, dma_copy, fitting, spilling
from neuroncore_rtl.kernels.program.allocation import OutOfMemory, addresses, lives
from neuroncore_rtl.kernels.program.instructions import memset, tensor_copy, tensor_scalar, tensor_tensor
from neuroncore_rtl.kernels.program.tensor import Tensor
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FP32, INT8, INT32
from neuroncore_rtl.spec.isa import AluOp, Instruction, Storage
from tests.kernels.running import hbm_after

ROWS, COLUMNS, TILES = 4, 48, 24
LARGE = Config(rows=ROWS, columns=ROWS)
SMALL = Config(rows=ROWS, columns=ROWS, sbuf_bytes=2048, psum_words=32)
"""SBUF has room for 10 tiles, PSUM for 4, each in two banks."""


def random_program(seed: int, config: Config, order: str) -> tuple[Program, list, list]:
    """Return a program that keeps many tiles for long, its inputs, and its outputs."""
    rng = np.random.default_rng(seed)
    program = Program(config, order=order)
    space = program.space
    inputs = [space.hbm(f"x{n}", FP32, (ROWS, COLUMNS)) for n in range(TILES)]
    outputs = [space.hbm(f"y{n}", FP32, (ROWS, COLUMNS)) for n in range(TILES)]
    tiles = []
    for x in inputs:
        tiles.append(space.sbuf(f"{x.name} tile", FP32, (COLUMNS,)))
        program.append(dma_copy(tiles[-1], x))
    for _ in range(3 * TILES):
        near = [tile for tile in tiles if tile.storage == Storage.SBUF]  # at most one operand may be in PSUM
        one, other = tiles[rng.integers(len(tiles))], near[rng.integers(len(near))]
        match rng.integers(5):
            case 0:
                tiles.append((space.psum if rng.random() < 0.7 else space.sbuf)("sum", FP32, (COLUMNS,)))
                program.append(tensor_tensor(tiles[-1], one, other, AluOp.ADD))
            case 1 | 4:  # in place, in a part
                first, low = rng.integers(ROWS), int(rng.integers(COLUMNS - 8))
                part = one[: first + 1, low : low + 8]
                program.append(tensor_scalar(part, part, 3.0, AluOp.MULTIPLY))
            case 2:  # even elements, then odd ones
                tiles.append(space.psum("halves", FP32, (COLUMNS // 2, 2)))
                for half in range(2):
                    source = (one, other)[half].reshape(COLUMNS // 2, 2)
                    program.append(tensor_copy(tiles[-1][:, :, half], source[:, :, half]))
                tiles[-1] = tiles[-1].reshape(COLUMNS)
            case 3:
                tiles.append(space.sbuf("copy", FP32, (COLUMNS,)))
                program.append(dma_copy(tiles[-1], one))
    for y, place in zip(outputs, rng.permutation(len(tiles)), strict=False):
        program.append(dma_copy(y, tiles[place]))
    return program, inputs, outputs


def results(seed: int, config: Config, order: str, rng) -> tuple[np.ndarray, Program]:
    program, inputs, outputs = random_program(seed, config, order)
    codes = np.random.default_rng(seed).integers(0, 1 << 31, (TILES, ROWS, COLUMNS), np.uint32)
    hbm = hbm_after(program, list(zip(inputs, codes, strict=True)), rng)
    return np.array([y.elements(hbm) for y in outputs]), program


@pytest.mark.parametrize("order", ["program", "scheduled"])
def test_random_programs_have_the_results_of_a_larger_memory(rng, order):
    compared, spilled = 0, Counter()
    for seed in range(8):
        expected, large = results(seed, LARGE, order, rng)
        found, small = results(seed, SMALL, order, rng)
        assert np.array_equal(found, expected)
        assert not large.spills
        compared += found.size
        spilled.update((one.of, one.to) for one in small.spills)
    leaving = [(Storage.PSUM, Storage.SBUF), (Storage.SBUF, Storage.HBM)]
    assert (
        compared > 30_000 and {*spilled} == {*leaving, *(way[::-1] for way in leaving)} and min(spilled.values()) > 20
    )


@pytest.mark.parametrize("broken", ["boxes of the wrong rows", "changes forgotten", "nearest use first"])
def test_errors_of_spilling_are_noticed(rng, monkeypatch, broken):
    """The last of them costs copies and no results."""
    walk = spilling._Walk
    monkeypatch.setattr(fitting, "demand_order", lambda steps, config: list(steps))
    if broken == "boxes of the wrong rows":
        boxes = spilling._boxes
        monkeypatch.setattr(spilling, "_boxes", lambda written: [(0, 1, *box[2:]) for box in boxes(written)])
    elif broken == "changes forgotten":
        add = walk.add

        def forget(self, number, step):
            add(self, number, step)
            self._changed -= self._copies.keys()

        monkeypatch.setattr(walk, "add", forget)
    else:
        next_use = walk._next_use
        monkeypatch.setattr(walk, "_next_use", lambda self, tile, number: -next_use(self, tile, number))
    same, sizes = [], []
    for seed in range(3):
        expected, _ = results(seed, LARGE, "program", rng)
        try:
            found, program = results(seed, SMALL, "program", rng)
        except AssertionError:  # reads of unwritten bytes
            same.append(False)
            continue
        same.append(np.array_equal(found, expected))
        sizes.append(sum(one.size for one in program.spills))
    if broken == "nearest use first":
        monkeypatch.setattr(walk, "_next_use", next_use)
        assert all(same) and sizes[0] > sum(one.size for one in results(0, SMALL, "program", rng)[1].spills)
    else:
        assert not all(same)


def test_tiles_move_next_to_their_consumers(rng):
    """All tiles are computed in one loop, and stored in another; in program order they would be live at once."""
    program = Program(SMALL)
    x, y = (program.space.hbm(name, FP32, (TILES, ROWS, COLUMNS)) for name in "xy")
    tiles = [program.space.psum("tile", FP32, (COLUMNS,)) for _ in range(TILES)]
    for number, tile in enumerate(tiles):
        loaded = program.space.sbuf("loaded", FP32, (COLUMNS,))
        program.append(dma_copy(loaded, x[number]))
        program.append(tensor_scalar(tile, loaded, 2.0, AluOp.MULTIPLY))
    for number, tile in enumerate(tiles):
        program.append(dma_copy(y[number], tile))
    values = rng.normal(size=x.shape).astype(np.float32)
    hbm = hbm_after(program, [(x, values.view(np.uint32))], rng)
    assert np.array_equal(y.elements(hbm).view(np.float32), 2 * values)
    assert not program.spills and len(program.entries) == 3 * TILES


@pytest.mark.parametrize("memory", ["sbuf", "psum"])
def test_a_tensor_larger_than_memory_is_divided(rng, memory):
    program = Program(SMALL)
    x, y = (program.space.hbm(name, FP32, (ROWS, TILES, COLUMNS)) for name in "xy")
    whole = getattr(program.space, memory)("whole", FP32, (TILES, COLUMNS))
    for number in range(TILES):
        program.append(dma_copy(whole[:, number], x[:, number]))
    for number in range(TILES):
        program.append(dma_copy(y[:, number], whole[:, TILES - 1 - number]))
    values = rng.normal(size=x.shape).astype(np.float32)
    hbm = hbm_after(program, [(x, values.view(np.uint32))], rng)
    assert np.array_equal(y.elements(hbm).view(np.float32), values[:, ::-1])
    assert program.end(Storage.SBUF) <= SMALL.sbuf_bytes and program.end(Storage.PSUM) <= SMALL.psum_bytes


def test_parts_of_a_tensor_that_fits_leave_and_return_alone(rng, monkeypatch):
    """Each of eight turns reads one part of `whole`, and then needs half of SBUF."""
    values = rng.integers(0, 100, (ROWS, 8, COLUMNS)).astype(np.int32)
    returned = []
    for piece in (COLUMNS * 4, fitting.PIECE):
        monkeypatch.setattr(fitting, "PIECE", piece)
        program = Program(SMALL)
        x, y = (program.space.hbm(name, INT32, values.shape) for name in "xy")
        whole = program.space.sbuf("whole", INT32, (8, COLUMNS))
        for number in range(8):
            program.append(dma_copy(whole[:, number], x[:, number]))
        for number in range(8):
            tiles = [program.space.sbuf("tile", INT32, (COLUMNS,)) for _ in range(5)]
            for tile in tiles:
                program.append(tensor_copy(tile, whole[:, number]))
            for tile in tiles[1:]:
                program.append(tensor_tensor(tiles[0], tiles[0], tile, AluOp.ADD))
            program.append(dma_copy(y[:, number], tiles[0]))
        hbm = hbm_after(program, [(x, values.view(np.uint32))], rng)
        assert np.array_equal(y.elements(hbm), 5 * values)
        returned.append(sum(spill.size for spill in program.spills if spill.of == Storage.HBM))
    assert returned[0] == 0 < returned[1]


def test_spills_are_counted_and_named(rng):
    program = Program(SMALL)
    out = program.space.hbm("out", INT32, (TILES, ROWS, COLUMNS))
    tiles = [program.space.sbuf("tile", INT32, (COLUMNS,)) for _ in range(TILES)]
    for number, tile in enumerate(tiles):
        program.append(memset(tile, number))
    for tile in tiles[:0:-1]:
        program.append(tensor_tensor(tiles[0], tiles[0], tile, AluOp.ADD))
    for number, tile in enumerate(tiles):
        program.append(dma_copy(out[number], tile))
    hbm = hbm_after(program, [], rng)
    expected = np.arange(TILES)
    expected[0] = expected.sum()
    assert (out.elements(hbm) == expected[:, np.newaxis, np.newaxis]).all()
    rows = spilling.spill_table(program.spills)
    for row, way in zip(rows, ("SBUF to HBM", "HBM to SBUF"), strict=True):
        assert row["tile"].startswith(f"tile from {way}, test_fitting.py:")
        assert row["copies"] * ROWS * COLUMNS * 4 == row["bytes"] and row["copies"] >= TILES - 10
    assert build_image(program).spills == tuple(program.spills)
    # HBM has one place for each tile that leaves, and none of discarded attempts.
    assert program.end(Storage.HBM) <= out.address + out.size * 4 + TILES * ROWS * COLUMNS * 4


def test_what_no_order_can_fit_is_refused():
    program = Program(SMALL)
    tiles = [program.space.sbuf(name, INT8, (1000,)) for name in "abc"]
    for tile in tiles[:2]:
        program.append(memset(tile, 1))
    program.append(tensor_tensor(*tiles[::-1], AluOp.ADD))
    wanted = r"a 1,008, b 1,008, c 1,008 bytes of a partition, not 2,048 \(test_fitting.py:\d+\)"
    with pytest.raises(ValueError, match=rf"TENSOR_TENSOR: SBUF must have room for its tiles, {wanted}"):
        program.records()


def test_free_bytes_in_pieces_are_no_obstacle(rng):
    """Next fit divides the free 1,024 bytes; packed, the tiles fit without spilling."""
    program = Program(SMALL)
    out = program.space.hbm("out", INT8, (2, ROWS, 1024))
    short, long, short2, long2 = (program.space.sbuf(name, INT8, (512,)) for name in ("s", "l", "s2", "l2"))
    for number, tile in enumerate((short, long, short2, long2)):
        program.append(memset(tile, number))
    for number, tile in enumerate((short, short2)):
        program.append(dma_copy(out[0, :, 512 * number : 512 * (number + 1)], tile))
    large = program.space.sbuf("large", INT8, (1024,))
    program.append(memset(large, 4))
    for number, tile in enumerate((long, long2)):
        program.append(dma_copy(out[1, :, 512 * number : 512 * (number + 1)], tile))
    program.append(dma_copy(out[1], large))
    with pytest.raises(OutOfMemory, match="large: SBUF must have room for 1,024 bytes"):
        addresses(program.steps, program.space, packed=False)
    assert len(addresses(program.steps, program.space)) == 5
    assert (out.elements(hbm_after(program, [], rng))[:, 0, ::512] == [[0, 2], [4, 4]]).all() and not program.spills


def updates(update: Callable[[Tensor, Tensor], Instruction]) -> Program:
    """Return a program that loads 24 tiles, and updates each of 12 results with each of them."""
    program = Program(SMALL)
    x = program.space.hbm("x", INT32, (24, ROWS, COLUMNS))
    y = program.space.hbm("y", INT32, (12, ROWS, COLUMNS))
    results = [program.space.sbuf("result", INT32, (COLUMNS,)) for _ in range(12)]
    for result in results:
        program.append(memset(result, 0))
    for source in range(24):
        loaded = program.space.sbuf("loaded", INT32, (COLUMNS,))
        program.append(dma_copy(loaded, x[source]))
        for result in results:
            program.append(update(result, loaded))
    for number, result in enumerate(results):
        program.append(dma_copy(y[number], result))
    return program


def test_of_two_orders_the_one_with_fewer_copies_is_chosen():
    """By demand every result loads almost all tiles again, though fewer tiles leave SBUF; it has room for ten tiles."""
    program = updates(dma_copy)
    steps, spills = fitting.fitted(program.steps, program.space)
    assert [step.instruction.name for step in steps[:9]] == 9 * ["MEMSET"]
    assert len(spills) <= 2 * (24 + 3) * (12 - 9)


@pytest.mark.parametrize(
    "update, tiles", [(dma_copy, 10), (lambda result, loaded: tensor_tensor(result, result, loaded, AluOp.ADD), 5)]
)
def test_half_of_sbuf_is_left_for_early_loads_unless_copies_are_the_bottleneck(update, tiles):
    program = updates(update)
    steps, _ = fitting.fitted(program.steps, program.space)
    first, last = lives(steps, program.space.buffers)
    assert max(sum(first[one] <= step <= last[one] for one in first) for step in range(len(steps))) == tiles


def test_tiles_of_short_rows_stay(rng):
    program = Program(Config(rows=ROWS, columns=ROWS, sbuf_bytes=4096))
    out, y = (program.space.hbm(*one) for one in (("out", INT32, (ROWS, 8)), ("y", INT32, (6, ROWS, 256))))
    short = [program.space.sbuf("short", INT32, (4,)) for _ in range(2)]
    long = [program.space.sbuf("long", INT32, (256,)) for _ in range(6)]
    for number, tile in enumerate((*short, *long)):
        program.append(memset(tile, number))
    for tile in long:
        program.append(tensor_tensor(tile[:, :4], tile[:, :4], short[0], AluOp.ADD))
    for tile in long[:0:-1]:
        program.append(tensor_tensor(long[0], long[0], tile, AluOp.ADD))
    for number, tile in enumerate(long):
        program.append(dma_copy(y[number], tile))
    for number, tile in enumerate(short):
        program.append(tensor_tensor(tile, tile, long[0][:, :4], AluOp.MULTIPLY))
        program.append(dma_copy(out[:, 4 * number : 4 * number + 4], tile))
    assert (out.elements(hbm_after(program, [], rng)) == [0] * 4 + [27] * 4).all()
    assert {spill.name for spill in program.spills} == {"long"}
