"""The two sequencers beside a memory that stalls: what they ask for, and all that they say in every cycle."""

from collections import deque
from collections.abc import Iterator

import pytest
from amaranth import ResetInserter, Signal, Value

from neuroncore_rtl.hdl.memory.port import ADDRESS_BITS
from neuroncore_rtl.hdl.memory.psum import Psum
from neuroncore_rtl.hdl.tensor.edge import MOVING_BITS, STATIONARY_BITS
from neuroncore_rtl.hdl.tensor.loader import LoadStepControl, StationaryLoader
from neuroncore_rtl.hdl.tensor.mover import ColumnControl, Mover
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config
from neuroncore_rtl.spec.formats import BF16, FP8E4M3, FP32, INT8, MATMUL_FORMATS
from neuroncore_rtl.spec.isa import TENSOR_FIELDS, Context, LoadStationary, MultiplyMoving
from tests.hdl.simulation import drive, offer, simulate, simulated

SEED = 1977
MOVER = Config(rows=2, columns=4)
LOADER = Config(rows=2, columns=1024)
FORMAT_OF = {fmt.code: fmt for fmt in MATMUL_FORMATS}
COLUMN, STEP = MOVING_BITS // 8, STATIONARY_BITS // 8
"""Bytes of a partition that the memory gives for a moving column, and for a load step."""

MOVER_SAYS = ("wait_weights", "wait_psum", "wait_operand", "column_valid", "fresh", "swapped")
LOADER_SAYS = ("step_valid", "done", "waiting", "stalled")
"""Outputs of one bit besides `idle`."""


def run_sequencer(unit, go, instructions, share, rng):
    """Return the addresses that a memory took from a loader or mover and the cycles that this lasted.

    The memory is ready in `share` of the cycles at random; the input `go` is held. That a request stays until it is
    taken is asserted.
    """
    taken = []
    cycles = 0

    async def memory(ctx):
        nonlocal cycles
        waiting = None
        while True:
            ready = bool(rng.random() < share)
            ctx.set(unit.memory.ready, ready)
            *_, valid, address = await ctx.tick().sample(unit.memory.valid, unit.memory.address)
            assert waiting is None or (valid and address == waiting), "a request must stay until it is taken"
            waiting = address if valid and not ready else None
            taken.extend([address] * (valid and ready))
            cycles += 1

    async def bench(ctx):
        ctx.set(go, 1)
        layout = unit.i.payload.shape()
        await offer(ctx, unit.i, [layout.from_bits(instruction.encode()) for instruction in instructions])
        while not ctx.get(unit.idle):
            await ctx.tick()

    simulate(unit, bench, background=[memory])
    return taken, cycles


@pytest.mark.parametrize("port_latency", (0, 1))
@pytest.mark.parametrize("share", (1.0, 0.7, 0.1))
def test_mover_asks_for_every_word_once_in_order_however_the_memory_stalls(share, port_latency, rng):
    config = MOVER.with_overrides(port_latency=port_latency)
    operands = (BF16, 5, 6, 2), (FP32, 4, 8, 12), (FP8E4M3, 7, 3, 1), (INT8, 1, 9, 0), (BF16, 3, 2, 65534)
    moves = [
        MultiplyMoving(format=fmt, k=1, m=4, n=n, address=address, stride=stride, psum=0)
        for fmt, n, address, stride in operands
    ]
    for move in moves:
        move.check(Context(config, loaded=(range(4), True)))
    mover = Mover(config)
    taken, cycles = run_sequencer(mover, mover.weights_loaded, moves, share, rng)
    words = [[(m.address + i * m.stride) % (1 << 18) & ~3 for i in range(m.n)] for m in moves]
    # Adjacent elements in one word are read once, but what belongs to another instruction is read again.
    expected = [word for of in words for i, word in enumerate(of) if i == 0 or word != of[i - 1]]
    columns = sum(m.n for m in moves)
    print(f"{len(taken)} words for {columns} columns in {cycles} cycles")
    assert taken == expected
    assert len(expected) < columns
    assert (cycles == columns + port_latency) == (share == 1.0)


@pytest.mark.parametrize("share", (1.0, 0.7, 0.1))
def test_loader_asks_for_every_step_once_in_order_however_the_memory_stalls(share, rng):
    config = Config(rows=2, columns=19)
    loads = [
        LoadStationary(format=fmt, k=1, m=m, address=address)
        for fmt, m, address in ((BF16, 19, 8), (FP32, 4, 16), (FP8E4M3, 13, 4), (INT8, 1, 12))
    ]
    for load in loads:
        load.check(Context(config))
    loader = StationaryLoader(config)
    taken, cycles = run_sequencer(loader, loader.start_allowed, loads, share, rng)
    steps = [(load, step) for load in loads for step in range(-(-load.m // LOAD_COLUMNS))]
    whole = -config.load_bytes
    expected = [(load.address + step * LOAD_COLUMNS * load.format.bits // 8) & whole for load, step in steps]
    print(f"{len(taken)} steps in {cycles} cycles")
    assert taken == expected
    assert (cycles == len(expected)) == (share == 1.0)


# All that they say, in every cycle


def random_fields(rng, **chosen) -> dict[str, int]:
    """Return an instruction with anything in its fields, but for those chosen and a format that can be multiplied."""
    fields = {name: int(rng.integers(1 << width)) for name, width in TENSOR_FIELDS}
    return fields | {"opcode": 0, "dtype": int(rng.choice([fmt.code for fmt in MATMUL_FORMATS]))} | chosen


def element_of(fields, address: int, skip_zero: int) -> dict[str, int]:
    """Return how to read the elements at an address."""
    size = FORMAT_OF[fields["dtype"]].bits // 8
    own = {name: fields[name] for name in ("dtype", "half")}
    return {"offset": address % STEP, "size": size.bit_length() - 1, "skip_zero": skip_zero, **own}


def span_of(first: int, count: int) -> dict[str, int]:
    """Return rows or columns."""
    return {"first": first, "end": (first + count) % (1 << 11)}


def move_columns(fields, swap: int) -> Iterator[tuple[int, dict]]:
    """Return the address of every column of a move, and what accompanies it."""
    for index in range(fields["n"]):
        address = (fields["address"] + index * fields["stride"]) % (1 << ADDRESS_BITS)
        write = {"address": (fields["psum"] + index) % (1 << 12), "accumulate": fields["accumulate"]}
        write |= {"integer": fields["dtype"] == INT8.code, "partitions": span_of(fields["column"], fields["m"])}
        yield address, {
            "element": element_of(fields, address, fields["half"] | fields["transpose"]), "write": write,
            "rows": span_of(fields["row"], fields["k"]), "swap": swap and index == 0, "identity": fields["transpose"],
            "last": index == fields["n"] - 1,
        }  # fmt: skip


def random_moves(rng) -> Iterator[tuple[dict[str, int], int]]:
    """Return moves, mostly short, whose words of SBUF and of PSUM are often those of a column before but for a bit."""
    for number in range(600):
        n = int(rng.integers(1, 4)) if number % 300 else int(rng.integers(512, 1024))
        if number % 20 == 0:
            psum = int(rng.integers(1 << 12))
        stride = int(rng.choice([0, 1, 2, 1 << rng.integers(16), rng.integers(1 << 16)]))
        beside = psum ^ int(rng.choice([0, 0, 1 << rng.integers(12)]))
        yield random_fields(rng, n=n, psum=beside, stride=stride), int(rng.random() < 0.3)


@simulated(lambda: Mover(MOVER))
async def test_mover_says_of_every_cycle_what_it_does(ctx, mover, rng):
    """Which column it issues, or what that waits for: its weights, its sum that is still on the way, its words."""
    seen = dict.fromkeys(("wait_weights", "wait_psum", "wait_operand", "swapped", "again"), 0)
    on_the_way = deque(maxlen=Psum.spacing_of(MOVER.add_latency) - 1)
    for fields, swap in random_moves(rng):
        drive(ctx, mover.i, valid=0, payload={"instruction": random_fields(rng), "swap": 1})
        for _ in range(int(rng.choice([0, 0, 0, 0, 1, 3]))):
            ctx.set(mover.memory.ready, 1)
            said = {name: ctx.get(getattr(mover, name)) for name in (*MOVER_SAYS, "idle")}
            assert said == dict.fromkeys(MOVER_SAYS, 0) | {"idle": 1} and not ctx.get(mover.memory.valid)
            on_the_way.appendleft(None)
            await ctx.tick()
        drive(ctx, mover.i, valid=1, payload={"instruction": fields, "swap": swap})
        before = None  # what was read for another instruction is read again
        for address, column in move_columns(fields, swap):
            word, waits = address // COLUMN * COLUMN, True
            while waits:
                loaded, ready = int(rng.random() < 0.7), int(rng.random() < 0.8)
                ctx.set(mover.weights_loaded, loaded)
                ctx.set(mover.memory.ready, ready)
                weights = bool(column["swap"] and not loaded)
                psum = bool(fields["accumulate"]) and column["write"]["address"] in on_the_way and not weights
                asks = not weights and not psum and word != before
                waits = weights or psum or (asks and not ready)
                expected = {
                    "wait_weights": weights, "wait_psum": psum, "wait_operand": asks and not ready,
                    "column_valid": not waits, "fresh": asks and bool(ready), "idle": False,
                    "swapped": bool(column["swap"]) and not waits,
                }  # fmt: skip
                assert {name: ctx.get(getattr(mover, name)) for name in expected} == expected
                assert ctx.get(mover.memory.valid) == asks
                assert not asks or ctx.get(mover.memory.address) == word
                assert ctx.get(mover.i.ready) == (column["last"] and not waits)
                said = ctx.get(Value.cast(mover.column))
                assert waits or said == ColumnControl.const(column).as_bits()
                on_the_way.appendleft(None if waits else column["write"]["address"])
                for name in seen:
                    seen[name] += expected.get(name, not asks and not waits)
                await ctx.tick()
            before = word
    print(seen)
    assert min(seen.values()) > 50


def load_steps(fields) -> Iterator[tuple[int, dict]]:
    """Return the address of every step of a load, and what accompanies it."""
    size = FORMAT_OF[fields["dtype"]].bits // 8
    for index in range(-(-fields["m"] // LOAD_COLUMNS)):
        address = (fields["address"] + LOAD_COLUMNS * size * index) % (1 << ADDRESS_BITS)
        yield address, {
            "element": element_of(fields, address, fields["half"]), "rows": span_of(fields["row"], fields["k"]),
            "distance": (fields["column"] // LOAD_COLUMNS + index) % 256,
        }  # fmt: skip


@simulated(lambda: StationaryLoader(LOADER))
async def test_loader_says_of_every_cycle_what_it_does(ctx, loader, rng):
    """Which step it issues, or that it waits: to be allowed to start, or for the memory."""
    layout, seen = LoadStepControl(LOADER), dict.fromkeys(("waiting", "stalled", "done"), 0)
    for number in range(100):
        m = int(rng.integers(1, 30)) if number % 25 else LOADER.columns - number // 25
        fields = random_fields(rng, m=m)
        ctx.set(loader.i.valid, 0)
        drive(ctx, loader, start_allowed=1)
        for _ in range(int(rng.choice([0, 0, 1, 4]))):
            said = {name: ctx.get(getattr(loader, name)) for name in (*LOADER_SAYS, "idle")}
            assert said == dict.fromkeys(LOADER_SAYS, 0) | {"idle": 1} and not ctx.get(loader.memory.valid)
            await ctx.tick()
        drive(ctx, loader.i, valid=1, payload=fields)
        steps = list(load_steps(fields))
        for index, (address, step) in enumerate(steps):
            taken = False
            while not taken:
                allowed, ready = int(rng.random() < 0.5), int(rng.random() < 0.7)
                ctx.set(loader.start_allowed, allowed)
                ctx.set(loader.memory.ready, ready)
                waiting = index == 0 and not allowed
                taken = not waiting and bool(ready)
                last = taken and index == len(steps) - 1
                expected = {
                    "step_valid": taken, "done": last, "waiting": waiting, "idle": False,
                    "stalled": not waiting and not ready,
                }  # fmt: skip
                assert {name: ctx.get(getattr(loader, name)) for name in expected} == expected
                assert (ctx.get(loader.memory.valid), ctx.get(loader.i.ready)) == (not waiting, last)
                assert waiting or ctx.get(loader.memory.address) == address // STEP * STEP
                assert not taken or ctx.get(Value.cast(loader.step)) == layout.const(step).as_bits()
                for name in seen:
                    seen[name] += expected[name]
                await ctx.tick()
    print(seen)
    assert min(seen.values()) > 50


def addresses_around_a_reset(unit, valid, allowed, payload, before: int) -> list[int]:
    """Return the addresses that a sequencer asks for if it is reset after so many, and those of the cycles behind it.

    In the first of these it is not allowed to start.
    """
    reset, fields = Signal(), dict.fromkeys((name for name, _ in TENSOR_FIELDS), 0)
    fields |= {"dtype": BF16.code, "address": 64, "stride": 32, "n": 4, "m": 16, "k": 1, "accumulate": 1}

    async def bench(ctx):
        drive(ctx, unit.memory, ready=1)
        ctx.set(unit.i.payload, payload(fields))
        seen = []
        for cycle in range(before + 6):
            ctx.set(reset, cycle == before)
            ctx.set(allowed, cycle != before + 1)
            ctx.set(unit.i.valid, cycle != before)
            if ctx.get(valid):
                seen.append(ctx.get(unit.memory.address))
            await ctx.tick()
        return seen

    return simulate(ResetInserter(reset)(unit), bench)


@pytest.mark.parametrize("before", range(4))
def test_mover_that_is_reset_starts_from_the_first_column(before):
    """And knows of no sum on its way."""
    mover, columns = Mover(MOVER), [64, 96, 128, 160]
    found = addresses_around_a_reset(
        mover, mover.column_valid, mover.weights_loaded, lambda fields: {"instruction": fields, "swap": 1}, before
    )
    assert found == columns[:before] + columns


@pytest.mark.parametrize("before", range(4))
def test_loader_that_is_reset_starts_from_the_first_step(before):
    loader, steps = StationaryLoader(LOADER), [64, 64, 80, 80]
    found = addresses_around_a_reset(loader, loader.step_valid, loader.start_allowed, lambda fields: fields, before)
    assert found == steps[:before] + steps
