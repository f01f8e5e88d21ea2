from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, islice
from types import SimpleNamespace

import pytest
from amaranth import Value

from neuroncore_rtl.hdl.memory.port import ADDRESS_BITS
from neuroncore_rtl.hdl.memory.psum import Psum
from neuroncore_rtl.hdl.tensor.edge import MOVING_BITS, STATIONARY_BITS
from neuroncore_rtl.hdl.tensor.loader import LoadStepControl, StationaryLoader
from neuroncore_rtl.hdl.tensor.mover import ColumnControl, Mover
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config
from neuroncore_rtl.spec.formats import INT8, MATMUL_FORMATS
from neuroncore_rtl.spec.isa import TENSOR_FIELDS
from neuroncore_rtl.spec.isa.fields import pack
from tests.hdl.simulation import drive, expect, pulse, simulated
from tests.hdl.streams import play

MOVER = Config(rows=2, columns=4)
LOADER = Config(rows=2, columns=1024)
FORMAT_OF = {fmt.code: fmt for fmt in MATMUL_FORMATS}
COLUMN, STEP = MOVING_BITS // 8, STATIONARY_BITS // 8
"""Bytes per partition of a column of the moving operand, and of one step in which weights are loaded."""

MOVER_OUTPUTS = ("wait_weights", "wait_psum", "wait_operand", "column_valid", "fresh", "swapped", "memory.valid")
LOADER_OUTPUTS = ("step_valid", "done", "waiting", "stalled", "memory.valid")
"""One-bit outputs besides `idle`."""


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
async def test_mover_outputs_in_every_cycle(ctx, mover, reset, rng):
    seen = dict.fromkeys(("wait_weights", "wait_psum", "wait_operand", "swapped", "again"), 0)
    in_flight = deque(maxlen=Psum.spacing_of(MOVER.add_latency) - 1)
    for fields, swap in random_moves(rng):
        drive(ctx, mover.i, valid=0, payload={"instruction": random_fields(rng), "swap": 1})
        for _ in range(int(rng.choice([0, 0, 0, 0, 1, 3]))):
            ctx.set(mover.memory.ready, 1)
            expect(ctx, mover, idle=1, **dict.fromkeys(MOVER_OUTPUTS, 0))
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
                expect(ctx, mover, **expected)
                expect(ctx, mover, **{"memory.valid": requests, "i.ready": column["last"] and not stalls})
                assert not requests or ctx.get(mover.memory.address) == word
                outputs = ctx.get(Value.cast(mover.column))
                assert stalls or outputs == ColumnControl.const(column).as_bits()
                in_flight.appendleft(None if stalls else column["write"]["address"])
                for name in seen:
                    seen[name] += expected.get(name, not requests and not stalls)
                await ctx.tick()
            before = word
            if fields["n"] < 4 and rng.random() < 0.05:
                await pulse(ctx, reset)
                in_flight.clear()
                break
    assert min(seen.values()) > 50


@pytest.mark.parametrize("stall", (0.0, 0.3, 0.9))
def test_a_mover_with_port_latency_requests_every_word_once_per_instruction(stall, rng):
    moves = [fields | {"accumulate": 0} for fields, _ in islice(random_moves(rng), 1, 60)]
    columns = [[address // COLUMN * COLUMN for address, _ in move_columns(fields, 0)] for fields in moves]
    expected = [word for addresses in columns for word, _ in groupby(addresses)]
    dut = Mover(MOVER.with_overrides(port_latency=1))
    memory = SimpleNamespace(valid=dut.memory.valid, ready=dut.memory.ready, payload=dut.memory.address)
    played = play(
        dut, {"i": [pack(TENSOR_FIELDS, fields, "tensor") for fields in moves]}, {"memory": len(expected)},
        ports={"i": dut.i, "memory": memory}, finished="idle", stall={"i": 0, "memory": stall}, watch=[dut.idle],
    )  # fmt: skip
    assert played.payloads["memory"] == expected and len(expected) < sum(map(len, columns))
    cycles = sum(not idle for (idle,) in played.watched)
    assert (cycles == sum(map(len, columns)) + 1) == (stall == 0)


def load_steps(fields) -> Iterator[tuple[int, dict]]:
    size = FORMAT_OF[fields["dtype"]].bits // 8
    for index in range(-(-fields["m"] // LOAD_COLUMNS)):
        address = (fields["address"] + LOAD_COLUMNS * size * index) % (1 << ADDRESS_BITS)
        yield address, {
            "element": element_of(fields, address, fields["half"]), "rows": span_of(fields["row"], fields["k"]),
            "distance": (fields["column"] // LOAD_COLUMNS + index) % 256,
        }  # fmt: skip


@pytest.mark.parametrize("interval", [0, 5])
@simulated(lambda interval: StationaryLoader(replace(LOADER, load_interval=interval)))
async def test_loader_outputs_in_every_cycle(ctx, loader, reset, rng, interval):
    layout, seen, rest = LoadStepControl(LOADER), dict.fromkeys(("waiting", "stalled", "done"), 0), 0
    for number in range(100):
        m = int(rng.integers(1, 30)) if number % 25 else LOADER.columns - number // 25
        fields = random_fields(rng, m=m)
        ctx.set(loader.i.valid, 0)
        drive(ctx, loader, start_allowed=1)
        for _ in range(int(rng.choice([0, 0, 1, 4]))):
            expect(ctx, loader, idle=1, **dict.fromkeys(LOADER_OUTPUTS, 0))
            await ctx.tick()
            rest -= 1
        drive(ctx, loader.i, valid=1, payload=fields)
        steps = list(load_steps(fields))
        for index, (address, step) in enumerate(steps):
            taken = False
            while not taken:
                allowed, ready = int(rng.random() < 0.5), int(rng.random() < 0.7)
                ctx.set(loader.start_allowed, allowed)
                ctx.set(loader.memory.ready, ready)
                waiting = index == 0 and not allowed
                begins = not waiting and rest <= 0
                taken = begins and bool(ready)
                last = taken and index == len(steps) - 1
                expected = {
                    "step_valid": taken, "done": last, "waiting": waiting, "idle": False,
                    "stalled": begins and not ready,
                }  # fmt: skip
                expect(ctx, loader, **expected, **{"memory.valid": begins, "i.ready": last})
                assert not begins or ctx.get(loader.memory.address) == address // STEP * STEP
                assert not taken or ctx.get(Value.cast(loader.step)) == layout.const(step).as_bits()
                for name in seen:
                    seen[name] += expected[name]
                await ctx.tick()
                rest = interval - 1 if taken else rest - 1
            if m < 30 and rng.random() < 0.05:
                await pulse(ctx, reset)
                rest = 0
                break
    assert min(seen.values()) > 50
