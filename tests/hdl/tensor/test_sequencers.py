from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from amaranth import Value

from neuroncore_rtl.hdl.memory.port import ADDRESS_BITS
from neuroncore_rtl.hdl.memory.psum import Psum
from neuroncore_rtl.hdl.tensor.edge import MOVING_BITS, STATIONARY_BITS
from neuroncore_rtl.hdl.tensor.loader import LoadStepControl, StationaryLoader
from neuroncore_rtl.hdl.tensor.mover import ColumnControl, Mover
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config
from neuroncore_rtl.spec.formats import BF16, FP8E4M3, FP32, INT8, MATMUL_FORMATS
from neuroncore_rtl.spec.isa import TENSOR_FIELDS, Context, MultiplyMoving
from tests.hdl.simulation import drive, simulated
from tests.hdl.streams import play

MOVER = Config(rows=2, columns=4)
LOADER = Config(rows=2, columns=1024)
FORMAT_OF = {fmt.code: fmt for fmt in MATMUL_FORMATS}
COLUMN, STEP = MOVING_BITS // 8, STATIONARY_BITS // 8
"""Bytes per partition of a column of the moving operand, and of one step in which weights are loaded."""

MOVER_OUTPUTS = ("wait_weights", "wait_psum", "wait_operand", "column_valid", "fresh", "swapped")
LOADER_OUTPUTS = ("step_valid", "done", "waiting", "stalled")
"""One-bit outputs besides `idle`."""


@pytest.mark.parametrize("port_latency", (0, 1))
@pytest.mark.parametrize("share", (1.0, 0.7, 0.1))
def test_mover_requests_every_word_once_in_order(share, port_latency):
    config = MOVER.with_overrides(port_latency=port_latency)
    operands = (BF16, 5, 6, 2), (FP32, 4, 8, 12), (FP8E4M3, 7, 3, 1), (INT8, 1, 9, 0), (BF16, 3, 2, 65534)
    moves = [
        MultiplyMoving(format=fmt, k=1, m=4, n=n, address=address, stride=stride, psum=0)
        for fmt, n, address, stride in operands
    ]
    for move in moves:
        move.check(Context(config, loaded=(range(4), True)))
    words = [[(m.address + i * m.stride) % (1 << 18) & ~3 for i in range(m.n)] for m in moves]
    # A word of adjacent elements is read once per instruction.
    expected = [word for of in words for i, word in enumerate(of) if i == 0 or word != of[i - 1]]
    columns = sum(m.n for m in moves)
    dut, inputs = Mover(config), [move.encode() for move in moves]
    memory = SimpleNamespace(valid=dut.memory.valid, ready=dut.memory.ready, payload=dut.memory.address)
    played = play(
        dut, {"i": inputs}, {"memory": len(expected)}, ports={"i": dut.i, "memory": memory}, finished="idle",
        constants={"weights_loaded": 1}, stall={"i": 0, "memory": 1 - share}, seed=1977, watch=[dut.idle],
    )  # fmt: skip
    assert played.payloads["memory"] == expected and len(expected) < columns
    cycles = sum(not idle for (idle,) in played.watched)
    assert (cycles == columns + port_latency) == (share == 1.0)


def random_fields(rng, **chosen) -> dict[str, int]:
    fields = {name: int(rng.integers(1 << width)) for name, width in TENSOR_FIELDS}
    return fields | {"opcode": 0, "dtype": int(rng.choice([fmt.code for fmt in MATMUL_FORMATS]))} | chosen


def element_of(fields, address: int, skip_zero: int) -> dict[str, int]:
    size = FORMAT_OF[fields["dtype"]].bits // 8
    own = {name: fields[name] for name in ("dtype", "half")}
    return {"offset": address % STEP, "size": size.bit_length() - 1, "skip_zero": skip_zero, **own}


def span_of(first: int, count: int) -> dict[str, int]:
    return {"first": first, "end": (first + count) % (1 << 11)}


def move_columns(fields, swap: int) -> Iterator[tuple[int, dict]]:
    for index in range(fields["n"]):
        address = (fields["address"] + index * fields["stride"]) % (1 << ADDRESS_BITS)
        write = {"address": (fields["psum"] + index) % (1 << 12), "accumulate": fields["accumulate"]}
        write |= {"integer": fields["dtype"] == INT8.code, "partitions": span_of(fields["column"], fields["m"])}
        yield address, {
            "element": element_of(fields, address, fields["half"] | fields["transpose"]), "write": write,
            "rows": span_of(fields["row"], fields["k"]), "swap": swap and index == 0,
            "last": index == fields["n"] - 1,
        }  # fmt: skip


def random_moves(rng) -> Iterator[tuple[dict[str, int], int]]:
    for number in range(600):
        n = int(rng.integers(1, 4)) if number % 300 else int(rng.integers(512, 1024))
        if number % 20 == 0:
            psum = int(rng.integers(1 << 12))
        stride = int(rng.choice([0, 1, 2, 1 << rng.integers(16), rng.integers(1 << 16)]))
        neighbour = psum ^ int(rng.choice([0, 0, 1 << rng.integers(12)]))
        yield random_fields(rng, n=n, psum=neighbour, stride=stride), int(rng.random() < 0.3)


@simulated(lambda: Mover(MOVER))
async def test_mover_outputs_in_every_cycle(ctx, mover, rng):
    seen = dict.fromkeys(("wait_weights", "wait_psum", "wait_operand", "swapped", "again"), 0)
    in_flight = deque(maxlen=Psum.spacing_of(MOVER.add_latency) - 1)
    for fields, swap in random_moves(rng):
        drive(ctx, mover.i, valid=0, payload={"instruction": random_fields(rng), "swap": 1})
        for _ in range(int(rng.choice([0, 0, 0, 0, 1, 3]))):
            ctx.set(mover.memory.ready, 1)
            outputs = {name: ctx.get(getattr(mover, name)) for name in (*MOVER_OUTPUTS, "idle")}
            assert outputs == dict.fromkeys(MOVER_OUTPUTS, 0) | {"idle": 1} and not ctx.get(mover.memory.valid)
            in_flight.appendleft(None)
            await ctx.tick()
        drive(ctx, mover.i, valid=1, payload={"instruction": fields, "swap": swap})
        before = None
        for address, column in move_columns(fields, swap):
            word, stalls = address // COLUMN * COLUMN, True
            while stalls:
                loaded, ready = int(rng.random() < 0.7), int(rng.random() < 0.8)
                ctx.set(mover.weights_loaded, loaded)
                ctx.set(mover.memory.ready, ready)
                weights = bool(column["swap"] and not loaded)
                psum = bool(fields["accumulate"]) and column["write"]["address"] in in_flight and not weights
                requests = not weights and not psum and word != before
                stalls = weights or psum or (requests and not ready)
                expected = {
                    "wait_weights": weights, "wait_psum": psum, "wait_operand": requests and not ready,
                    "column_valid": not stalls, "fresh": requests and bool(ready), "idle": False,
                    "swapped": bool(column["swap"]) and not stalls,
                }  # fmt: skip
                assert {name: ctx.get(getattr(mover, name)) for name in expected} == expected
                assert ctx.get(mover.memory.valid) == requests
                assert not requests or ctx.get(mover.memory.address) == word
                assert ctx.get(mover.i.ready) == (column["last"] and not stalls)
                outputs = ctx.get(Value.cast(mover.column))
                assert stalls or outputs == ColumnControl.const(column).as_bits()
                in_flight.appendleft(None if stalls else column["write"]["address"])
                for name in seen:
                    seen[name] += expected.get(name, not requests and not stalls)
                await ctx.tick()
            before = word
    assert min(seen.values()) > 50


def load_steps(fields) -> Iterator[tuple[int, dict]]:
    size = FORMAT_OF[fields["dtype"]].bits // 8
    for index in range(-(-fields["m"] // LOAD_COLUMNS)):
        address = (fields["address"] + LOAD_COLUMNS * size * index) % (1 << ADDRESS_BITS)
        yield address, {
            "element": element_of(fields, address, fields["half"]), "rows": span_of(fields["row"], fields["k"]),
            "distance": (fields["column"] // LOAD_COLUMNS + index) % 256,
        }  # fmt: skip


@simulated(lambda: StationaryLoader(LOADER))
async def test_loader_outputs_in_every_cycle(ctx, loader, rng):
    layout, seen = LoadStepControl(LOADER), dict.fromkeys(("waiting", "stalled", "done"), 0)
    for number in range(100):
        m = int(rng.integers(1, 30)) if number % 25 else LOADER.columns - number // 25
        fields = random_fields(rng, m=m)
        ctx.set(loader.i.valid, 0)
        drive(ctx, loader, start_allowed=1)
        for _ in range(int(rng.choice([0, 0, 1, 4]))):
            outputs = {name: ctx.get(getattr(loader, name)) for name in (*LOADER_OUTPUTS, "idle")}
            assert outputs == dict.fromkeys(LOADER_OUTPUTS, 0) | {"idle": 1} and not ctx.get(loader.memory.valid)
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
    assert min(seen.values()) > 50


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize(
    ("make", "valid", "allowed", "payload", "addresses"),
    [
        pytest.param(
            lambda: Mover(MOVER), "column_valid", "weights_loaded",
            lambda fields: {"instruction": fields, "swap": 1}, [64, 96, 128, 160], id="mover",
        ),
        pytest.param(
            lambda: StationaryLoader(LOADER), "step_valid", "start_allowed",
            lambda fields: fields, [64, 64, 80, 80], id="loader",
        ),
    ],
)  # fmt: skip
@simulated(lambda make: make())
async def test_a_sequence_restarts_after_a_reset(ctx, unit, reset, make, valid, allowed, payload, addresses, before):
    fields = dict.fromkeys((name for name, _ in TENSOR_FIELDS), 0)
    fields |= {"dtype": BF16.code, "address": 64, "stride": 32, "n": 4, "m": 16, "k": 1, "accumulate": 1}
    drive(ctx, unit.memory, ready=1)
    ctx.set(unit.i.payload, payload(fields))
    seen = []
    for cycle in range(before + 6):
        ctx.set(reset, cycle == before)
        ctx.set(getattr(unit, allowed), cycle != before + 1)
        ctx.set(unit.i.valid, cycle != before)
        if ctx.get(getattr(unit, valid)):
            seen.append(ctx.get(unit.memory.address))
        await ctx.tick()
    assert seen == addresses[:before] + addresses
