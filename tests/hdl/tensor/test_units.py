# amaranth: UnusedElaboratable=no

"""The engine's units in Amaranth's simulator, elaborated whole: delay lines, array, PSUM, and the two sequencers."""

import numpy as np
import pytest
from amaranth import Module, Signal, Value
from amaranth.sim import Simulator

from neuroncore_rtl.golden.arith import add_fp32, fma_fp32
from neuroncore_rtl.hdl.arith.operand import OPERAND_BIAS, SIGNIFICAND_BITS, Operand
from neuroncore_rtl.hdl.tensor.array import Array, row_skew, tile_count
from neuroncore_rtl.hdl.tensor.loader import Loader
from neuroncore_rtl.hdl.tensor.mover import Mover
from neuroncore_rtl.hdl.tensor.psum import Psum, PsumWrite
from neuroncore_rtl.hdl.tensor.skew import DelayLine
from neuroncore_rtl.hdl.tensor.tile import RowEvents
from neuroncore_rtl.spec.config import LOAD_COLUMNS, PSUM_WORDS, Config
from neuroncore_rtl.spec.formats import BF16, FP8E4M3, FP32, INT8
from neuroncore_rtl.spec.isa import Context, LoadStationary, MultiplyMoving

SEED = 1977


@pytest.fixture
def rng():
    """A generator with a printed seed."""
    print(f"seed {SEED}")
    return np.random.default_rng(SEED)


def simulate(unit, bench):
    """Run `bench`, an asynchronous function of the simulator's context, on a unit with a clock."""
    m = Module()
    m.submodules.unit = unit
    tick = Signal()
    m.d.sync += tick.eq(~tick)
    simulator = Simulator(m)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()


# Delay lines


@pytest.mark.parametrize("delay", range(10))
def test_delay_line_repeats_every_word_after_its_delay(delay, rng):
    words = rng.integers(0, 1 << 40, 50).tolist()
    line = DelayLine(40, delay)
    seen = []

    async def bench(ctx):
        for word in words:
            ctx.set(line.i, word)
            seen.append(ctx.get(line.o))
            await ctx.tick()

    simulate(line, bench)
    assert seen == ([0] * delay + words)[: len(words)]


def test_delay_line_wrong():
    with pytest.raises(ValueError, match="delay must be at least 0, not -1"):
        DelayLine(8, -1)


# The array

ABSENT = Operand.const({"inf": 1, "nan": 1}).as_bits()


def random_operands(rng, shape):
    """Return operand words, their float32 values and whether they are present; products cancel and tie often."""
    significand = rng.integers(1 << 11, 1 << 12, shape) & (-1 << rng.integers(0, 12, shape))
    exponent = rng.integers(-9, 9, shape)
    sign = rng.integers(0, 2, shape)
    kind = rng.choice(4, shape, p=(0.8, 0.1, 0.09, 0.01))  # number, absent, zero, infinity
    significand = np.choose(kind, [significand, 0, 0, 1 << 11])
    biased = np.choose(kind, [exponent + OPERAND_BIAS, 0, 0, OPERAND_BIAS])
    flags = np.choose(kind, [0, 3, 0, 1])
    bits = significand | biased << SIGNIFICAND_BITS | np.where(kind == 1, 0, sign) << 22 | flags << 23
    magnitude = np.where(kind == 3, np.inf, np.ldexp(significand.astype(np.float64), exponent - SIGNIFICAND_BITS + 1))
    return bits, np.where(sign == 1, -magnitude, magnitude).astype(np.float32), kind != 1


ARRAYS = [
    Config(rows=2, columns=2, mac_latency=1),
    Config(rows=3, columns=5, mac_latency=3),
    Config(rows=4, columns=8, mac_latency=2),
    Config(rows=2, columns=10, mac_latency=5),
]


@pytest.mark.parametrize("config", ARRAYS, ids=lambda c: f"{c.rows}x{c.columns}-mac{c.mac_latency}")
def test_array_multiplies_with_the_weights_of_the_last_swap_however_loads_fall(config, rng):
    """Swaps and load steps at random, in the same cycle and one behind the other: each column sum is the chain of
    multiply-adds with what was loaded before the latest swap, the swap of its own column included."""
    cycles, rows, columns, tiles = 250, config.rows, config.columns, tile_count(config.columns)
    x_bits, x, x_present = random_operands(rng, (cycles, rows))
    w_bits, w, w_present = random_operands(rng, (cycles, rows, LOAD_COLUMNS))
    swap, load, identity = (rng.random(cycles) < share for share in (0.3, 0.6, 0.2))
    distance = rng.integers(0, tiles, cycles)
    # The first cycles load every tile and swap, so that nothing depends on what the registers held.
    load[:tiles], distance[:tiles], swap[: tiles + 1] = True, range(tiles), [False] * tiles + [True]

    shadow, active = (np.zeros((rows, tiles * LOAD_COLUMNS), np.float32) for _ in range(2))
    shadow_present, active_present = (np.zeros(shadow.shape, bool) for _ in range(2))
    expected = np.zeros((cycles, columns), np.uint32)
    for cycle in range(cycles):
        if swap[cycle]:
            active[:], active_present[:] = shadow, shadow_present
        if load[cycle]:
            tile = slice(distance[cycle] * LOAD_COLUMNS, (distance[cycle] + 1) * LOAD_COLUMNS)
            shadow[:, tile], shadow_present[:, tile] = w[cycle], w_present[cycle]
        sums = np.full(columns, -0.0 if identity[cycle] else 0.0, np.float32)
        for row in range(rows):
            present = x_present[cycle, row] & active_present[row, :columns]
            sums = np.where(present, fma_fp32(x[cycle, row], active[row, :columns], sums), sums)
        expected[cycle] = sums.view(np.uint32)

    layout = RowEvents(tiles)
    array = Array(config)
    seen = np.zeros((cycles, columns), np.uint32)

    def event(cycle, row):
        weights = [int(word) for word in w_bits[cycle, row]]
        fields = {"moving": int(x_bits[cycle, row]), "swap": int(swap[cycle]), "load": int(load[cycle])}
        fields |= {"distance": int(distance[cycle])}
        bits = 0
        for name, value in fields.items():
            bits |= value << layout[name].offset
        for index, word in enumerate(weights):
            bits |= word << layout["weights"].offset + index * Operand.as_shape().size
        return bits

    async def bench(ctx):
        latency = rows * config.mac_latency
        for cycle in range(cycles + latency + tiles):
            for row in range(rows):
                entered = cycle - row_skew(config, row)
                ctx.set(Value.cast(array.events[row]), event(entered, row) if 0 <= entered < cycles else 0)
            ctx.set(array.identity, int(identity[cycle]) if cycle < cycles else 0)
            for column in range(columns):
                entered = cycle - latency - column // LOAD_COLUMNS
                if 0 <= entered < cycles:
                    seen[entered, column] = ctx.get(Value.cast(array.sums).word_select(column, 32))
            await ctx.tick()

    simulate(array, bench)
    settled = slice(tiles, None)
    behind = int((swap[:-1] & load[1:]).sum())
    together = int((swap & load)[settled].sum())
    print(f"{expected[settled].size} sums, {behind} load steps right behind a swap, {together} with one")
    assert behind > 20 and together > 20
    assert np.isfinite(expected[settled].view(np.float32)).mean() > 0.5
    np.testing.assert_array_equal(seen[settled], expected[settled])


# PSUM


def psum_cases(rng, spacing, count):
    """Return (cycle, address, accumulate, integer, sum) of updates, every word used again after `spacing` cycles."""
    cases, free_at, cycle = [], {}, 0
    while len(cases) < count:
        address = int(rng.choice([0, 1, 511, 512, 4095]))
        if free_at.get(address, 0) <= cycle and rng.random() < 0.8:
            # A word stays FP32 or INT32.
            integer = address < 2
            value = (
                float(rng.integers(-(1 << 24), 1 << 24))
                if integer
                else float(rng.standard_normal() * 2.0 ** rng.integers(-3, 4))
            )
            bits = int(np.float32(value).view(np.uint32))
            cases.append((cycle, address, int(rng.random() < 0.7), int(integer), bits))
            free_at[address] = cycle + spacing
        cycle += 1
    return cases


def run_psum(add_latency, cases):
    """Return what updates left, by their cycle, read at the first cycle in which it can be; without the reads that had
    to give way, which happens exactly where an update reads the same bank."""
    psum = Psum(1, add_latency)
    by_cycle = {case[0]: case for case in cases}
    last = cases[-1][0] + psum.spacing + 2
    left = {}

    async def bench(ctx):
        taken = False
        for cycle in range(last + 1):
            case, before = by_cycle.get(cycle), by_cycle.get(cycle - 1)
            ctx.set(psum.valid, case is not None)
            if case is not None:
                write = {"address": case[1], "accumulate": case[2], "integer": case[3], "partitions": 1}
                ctx.set(Value.cast(psum.write), PsumWrite.const(write).as_bits())
            ctx.set(psum.sums, before[4] if before else 0xDEADBEEF)
            if taken:
                left[cycle - 1 - psum.spacing] = ctx.get(psum.reads.data)
            readable = by_cycle.get(cycle - psum.spacing)
            ctx.set(psum.reads.valid, readable is not None)
            if readable is not None:
                ctx.set(psum.reads.address, 4 * readable[1])
                meets = case is not None and case[2] and case[1] // PSUM_WORDS == readable[1] // PSUM_WORDS
                assert ctx.get(psum.reads.ready) == (not meets)
            taken = readable is not None and bool(ctx.get(psum.reads.ready))
            await ctx.tick()

    simulate(psum, bench)
    return left


def psum_expected(cases):
    memory, expected = {}, {}
    for cycle, address, accumulate, integer, bits in cases:
        value = np.array([bits], np.uint32).view(np.float32)
        old = np.array([memory.get(address, 0)], np.uint32)
        if integer:
            word = value.astype(np.int64) + (old.view(np.int32) if accumulate else 0)
        else:
            word = add_fp32(old.view(np.float32), value).view(np.uint32) if accumulate else value.view(np.uint32)
        memory[address] = int(word[0]) & 0xFFFFFFFF
        expected[cycle] = memory[address]
    return expected


@pytest.mark.parametrize("add_latency", (1, 2, 3, 4))
def test_psum_adds_and_overwrites_with_the_least_spacing(add_latency, rng):
    spacing = Psum.spacing_of(add_latency)
    cases = psum_cases(rng, spacing, 200)
    tight = sum(
        any(other[1] == case[1] and other[0] == case[0] - spacing for other in cases[max(0, i - spacing) : i])
        for i, case in enumerate(cases)
    )
    print(f"{len(cases)} updates, {tight} of them exactly {spacing} cycles behind the one before on their word")
    assert tight > 10
    left, expected = run_psum(add_latency, cases), psum_expected(cases)
    assert len(cases) / 2 < len(left) < len(cases)
    assert left == {cycle: expected[cycle] for cycle in left}


@pytest.mark.parametrize("add_latency", (1, 2, 3, 4))
def test_psum_needs_its_spacing(add_latency):
    """One cycle less, and an update is lost: the hazard rule is not longer than it must be."""
    spacing = Psum.spacing_of(add_latency) - 1
    one = int(np.float32(1).view(np.uint32))
    cases = [(0, 7, 0, 0, one), (spacing, 7, 1, 0, one), (4 * spacing, 7, 1, 0, one)]
    assert psum_expected(cases)[4 * spacing] == int(np.float32(3).view(np.uint32))
    assert run_psum(add_latency, cases)[4 * spacing] == int(np.float32(2).view(np.uint32))


def test_psum_is_written_from_outside_byte_by_byte_beside_the_sums(rng):
    """Random writes of bytes, which give way exactly where a sum is written to the same bank; then all is read back."""
    psum, count, columns = Psum(3, 1), 300, 3
    writes_sum = psum.spacing - 1  # cycles from `valid` to the write
    memory = np.zeros((columns, 4096, 4), np.uint8)
    words = [0, 1, 511, 512, 4095]
    updates = {cycle: int(rng.choice(words)) for cycle in range(count) if rng.random() < 0.5}
    stalled = 0

    async def bench(ctx):
        nonlocal stalled
        for cycle in range(count + psum.spacing):
            ctx.set(psum.valid, cycle in updates)
            write = {"address": updates.get(cycle, 0), "partitions": 2}
            ctx.set(Value.cast(psum.write), PsumWrite.const(write).as_bits())
            ctx.set(psum.sums, sum((cycle + (column << 8)) << 32 * column for column in range(columns)))
            address, enable, mask = int(rng.choice(words)), int(rng.integers(8)), int(rng.integers(16))
            octets = rng.integers(0, 256, (columns, 4), np.uint8)
            ctx.set(psum.writes.valid, 1)
            ctx.set(psum.writes.address, 4 * address)
            ctx.set(psum.writes.enable, enable)
            ctx.set(psum.writes.mask, mask)
            ctx.set(psum.writes.data, int.from_bytes(octets.tobytes(), "little"))
            updated = updates.get(cycle - writes_sum)
            meets = updated is not None and updated // PSUM_WORDS == address // PSUM_WORDS
            assert ctx.get(psum.writes.ready) == (not meets)
            stalled += meets
            if not meets:
                chosen = np.array([[enable >> c & mask >> b & 1 for b in range(4)] for c in range(columns)], bool)
                memory[:, address] = np.where(chosen, octets, memory[:, address])
            if updated is not None:
                for column in range(2):
                    word = cycle - writes_sum + 1 + (column << 8)
                    memory[column, updated] = np.frombuffer(word.to_bytes(4, "little"), np.uint8)
            await ctx.tick()
        ctx.set(psum.writes.valid, 0)
        ctx.set(psum.reads.valid, 1)
        for address in words:
            ctx.set(psum.reads.address, 4 * address)
            await ctx.tick()
            seen = ctx.get(psum.reads.data).to_bytes(4 * columns, "little")
            assert seen == memory[:, address].tobytes()

    simulate(psum, bench)
    print(f"{count} writes, {stalled} of them had to wait")
    assert count / 10 < stalled < count / 2


# The sequencers and the read port


def run_sequencer(unit, go, instructions, share, rng):
    """Return the addresses that a memory took from a loader or mover and the cycles that this lasted.

    The memory is ready in `share` of the cycles at random; the input `go` is held. That a request stays until it is
    taken is asserted.
    """
    taken = []
    cycles = 0

    async def bench(ctx):
        nonlocal cycles
        ctx.set(go, 1)
        for word in instructions:
            ctx.set(Value.cast(unit.i.payload), word)
            ctx.set(unit.i.valid, 1)
            finished, waiting = False, None
            while not finished:
                ready = bool(rng.random() < share)
                ctx.set(unit.memory.ready, ready)
                request = (ctx.get(unit.memory.valid), ctx.get(unit.memory.address))
                if waiting is not None:
                    assert request == waiting, "a request must stay until it is taken"
                waiting = request if request[0] and not ready else None
                if request[0] and ready:
                    taken.append(request[1])
                finished = bool(ctx.get(unit.i.ready))
                cycles += 1
                await ctx.tick()
        ctx.set(unit.i.valid, 0)

    simulate(unit, bench)
    return taken, cycles


@pytest.mark.parametrize("share", (1.0, 0.7, 0.1))
def test_mover_asks_for_every_word_once_in_order_however_the_memory_stalls(share, rng):
    config = Config(rows=2, columns=4)
    moves = [
        MultiplyMoving(format=fmt, k=1, m=4, n=n, address=address, stride=stride, psum=0)
        for fmt, n, address, stride in (
            (BF16, 5, 6, 2),
            (FP32, 4, 8, 12),
            (FP8E4M3, 7, 3, 1),
            (INT8, 1, 9, 0),
            (BF16, 3, 2, 65534),
        )
    ]
    for move in moves:
        move.check(Context(config, loaded=(4, True)))
    mover = Mover(config)
    taken, cycles = run_sequencer(mover, mover.weights_loaded, [m.encode() for m in moves], share, rng)
    words = [[(m.address + i * m.stride) % (1 << 18) & ~3 for i in range(m.n)] for m in moves]
    # Adjacent elements in one word are read once, but what belongs to another instruction is read again.
    expected = [word for of in words for i, word in enumerate(of) if i == 0 or word != of[i - 1]]
    columns = sum(m.n for m in moves)
    print(f"{len(taken)} words for {columns} columns in {cycles} cycles")
    assert taken == expected
    assert len(expected) < columns
    assert (cycles == columns) == (share == 1.0)


@pytest.mark.parametrize("share", (1.0, 0.7, 0.1))
def test_loader_asks_for_every_step_once_in_order_however_the_memory_stalls(share, rng):
    config = Config(rows=2, columns=19)
    loads = [
        LoadStationary(format=fmt, k=1, m=m, address=address)
        for fmt, m, address in ((BF16, 19, 8), (FP32, 4, 16), (FP8E4M3, 13, 4), (INT8, 1, 12))
    ]
    for load in loads:
        load.check(Context(config))
    loader = Loader(config)
    taken, cycles = run_sequencer(loader, loader.start_allowed, [load.encode() for load in loads], share, rng)
    steps = [(load, step) for load in loads for step in range(-(-load.m // LOAD_COLUMNS))]
    expected = [(load.address + step * LOAD_COLUMNS * load.format.bits // 8) & ~15 for load, step in steps]
    print(f"{len(taken)} steps in {cycles} cycles")
    assert taken == expected
    assert (cycles == len(expected)) == (share == 1.0)
