"""Front end with Python models of the memories, which stall, and of the lanes, the engine's parallel datapaths.

A result is the sum of the operands and the position in the instruction, so that exchanged words, lanes or steps change
the memories.
"""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from amaranth import Mux, ResetInserter, Signal, Value
from amaranth.lib import data

from neuroncore_rtl.hdl.elementwise import job
from neuroncore_rtl.hdl.elementwise.checker import ElementwiseChecker
from neuroncore_rtl.hdl.elementwise.frontend import ElementwiseCounters, Frontend
from neuroncore_rtl.hdl.elementwise.instruction import ElementwiseOpcode
from neuroncore_rtl.hdl.elementwise.step import ElementwiseStep, Phase
from neuroncore_rtl.hdl.memory.port import ReadPort
from neuroncore_rtl.spec import isa, timing
from neuroncore_rtl.spec.isa import Rule, elementwise
from tests.hdl.elementwise.instructions import CONFIGS, OPCODES, SIZES, copy, legal_fields
from tests.hdl.elementwise.steps import assert_passed_on, numbers, steps_of
from tests.hdl.simulation import drive, packed, pulse, random_bits, simulate, slow, slow_if

SEED = 2024
TINY = CONFIGS["4x4"]

BYTES = 2048
"""Bytes of each partition that the instructions use: each instruction reads one half and writes the other half."""

HALVES = (0, BYTES // 2), (BYTES // 2, BYTES)

SLOW, SLOW_LATENCY = isa.Opcode.RECIPROCAL, 9
"""An opcode that may not be in the datapaths together with others, and its additional latency in cycles."""

RESTS, LONGEST = isa.Opcode.TENSOR_TENSOR_SCAN, isa.Opcode.DROPOUT
"""Opcodes with gaps between their steps: three cycles, or as many as the field `seed` says."""


def memories(rng, config, size):
    return [rng.integers(0, 256, (rows, size)).astype(np.uint8) for rows in (config.partitions, config.columns)]


def lane_results(phase, number, position, a, b, size):
    salt = number if phase == Phase.RESULT else position
    return [(x + 3 * y + salt) % (1 << 8 * size) for x, y in zip(a, b, strict=True)]


def is_enabled(result):
    return result % 8 != 0


def execute(values, config, stored):
    lanes = values["partitions"]

    def rows(column):
        start = column.quadrant * config.quadrant
        return slice(start, start + lanes), slice(column.address, column.address + column.size)

    def elements(column):
        if column is None:
            return [0] * lanes
        return [int.from_bytes(row.tobytes(), "little") for row in stored[column.storage][rows(column)]]

    writes = []
    for step in steps_of(values, config):
        if step.write is not None:
            operands = elements(step.a), elements(step.b)
            results = lane_results(step.phase, step.number, step.position or 0, *operands, step.write.size)
            writes.append((step.write, results))
    for column, results in writes:
        raw = b"".join(result.to_bytes(column.size, "little") for result in results)
        enabled = [is_enabled(result) for result in results]
        kept = np.frombuffer(raw, np.uint8).reshape(lanes, column.size)[enabled]
        partitions, place = rows(column)
        stored[column.storage][partitions, place][enabled] = kept


class Command:
    """Bench of a front end for all opcodes, with models of the memories and lanes around it."""

    PATIENCE = 100_000

    def __init__(self, config, words, stored, rng, stall=0.0, latency=3, longest=3):
        self.longest = longest
        self.config, self.words, self.stored = config, words, stored
        self.rng, self.stall, self.latency = rng, stall, latency
        self.dut = Frontend(config, OPCODES, latency=latency, slow=self._is_slow, interval=self._interval)
        lists = ("taken", "requests", "steps", "results", "writes", "retired", "busy", "active", "lanes")
        self.seen = SimpleNamespace(**{name: [] for name in lists}, reads=0, waits=[0, 0], counters={}, error=())

    @staticmethod
    def _is_slow(instruction):
        return instruction.opcode == ElementwiseOpcode(SLOW.value)

    @staticmethod
    def _interval(instruction):
        longest = Mux(instruction.opcode == ElementwiseOpcode(LONGEST.value), instruction.seed[: job.INTERVAL_BITS], 1)
        return Mux(instruction.opcode == ElementwiseOpcode(RESTS.value), 3, longest)

    def run(self, before=None, cycles=0):
        """Run the instructions, after `cycles` cycles of another bench and a reset if `before` is given."""
        reset = Signal()

        async def bench(ctx):
            if before:
                before.dut = self.dut
                await before._bench(ctx, cycles)
                await pulse(ctx, reset)
            return await self._bench(ctx)

        return simulate(ResetInserter(reset)(self.dut), bench)

    async def _bench(self, ctx, cycles=None):
        dut, seen = self.dut, self.seen
        ports = dut.sbuf, dut.psum
        words = [[0, 0]] * (ReadPort.LATENCY[self.config.port_latency] - 1)
        held = {}
        lanes = []
        cycle = idle = 0
        while idle < 12 + self.longest:
            sent, last = len(seen.taken), len(self.words) - 1
            drive(ctx, dut.instructions, valid=sent <= last, payload=self.words[min(sent, last)])
            for port in (*ports, dut.write):
                ctx.set(port.ready, int(self.rng.random() >= self.stall))
            self._give_result(ctx, lanes, cycle)
            if ctx.get(dut.instructions.valid) & ctx.get(dut.instructions.ready):
                seen.taken.append(cycle)

            words.append([self._serve_read(ctx, port, storage, held, cycle) for storage, port in enumerate(ports)])
            self._take_step(ctx, lanes, cycle)
            self._serve_write(ctx, held, cycle)
            if ctx.get(dut.retired):
                seen.retired.append(cycle)
            seen.busy.append(ctx.get(dut.busy))
            seen.active.append(ctx.get(dut.active))
            waits = len(seen.taken) < len(self.words) and not ctx.get(dut.error.valid)
            idle = 0 if ctx.get(dut.busy) or waits else idle + 1
            assert cycle < self.PATIENCE, "the front end does not finish"
            cycle += 1
            await ctx.tick()
            for port, value in zip(ports, words.pop(0), strict=True):
                ctx.set(port.data, value)
            if cycle == cycles:
                return seen
        assert not lanes and not held
        seen.error = tuple(ctx.get(dut.error[name]) for name in ("valid", "cause", "number"))
        seen.counters = {name: ctx.get(dut.counters[name]) for name, _ in data.Layout.cast(ElementwiseCounters)}
        return seen

    def _check_stable(self, held, name, offered, taken):
        assert name not in held or held[name] == offered, f"{name} changed before it was accepted"
        held.pop(name, None)
        if offered is not None and not taken:
            held[name] = offered

    def _serve_read(self, ctx, port, storage, held, cycle):
        valid, ready, address = (ctx.get(x) for x in (port.valid, port.ready, port.address))
        self._check_stable(held, f"read{storage}", (address,) if valid else None, ready)
        if valid:
            self.seen.requests.append(cycle)
            self.seen.waits[storage] += not ready
        rows = self.stored[storage]
        if not valid & ready:
            return random_bits(self.rng, 32 * len(rows))
        self.seen.reads += 1
        assert address % 4 == 0
        return int.from_bytes(rows[:, address : address + 4].tobytes(), "little")

    def _take_step(self, ctx, lanes, cycle):
        dut = self.dut
        if not ctx.get(dut.lanes_valid):
            return
        self.seen.steps.append(cycle)
        self.seen.lanes.append(ctx.get(Value.cast(dut.lanes_step)))
        names = ("phase", "opcode", "number", "position", "writes", "a_dtype", "b_dtype", "dst_dtype")
        step = {name: ctx.get(Value.cast(getattr(dut.lanes_step, name))) for name in names}
        slow = step["opcode"] == SLOW
        assert all(other_slow == slow for _, _, other_slow in lanes), "slow and other results are in flight together"
        if not step["writes"]:
            return
        used = elementwise.uses({"opcode": step["opcode"], "sum_store": 1})
        element = step["phase"] == Phase.ELEMENT.value
        searches = step["opcode"] in (isa.Opcode.FIND_INDEX8, isa.Opcode.MATCH_REPLACE8)
        reads = element and "a" in used, element and "b" in used and not searches
        operands = []
        for read, name in zip(reads, ("a", "b"), strict=True):
            word = ctx.get(getattr(dut, f"lanes_{name}"))
            mask = (1 << 8 * SIZES[step[f"{name}_dtype"]]) - 1 if read else 0
            operands.append([word >> 32 * lane & mask for lane in range(self.config.partitions)])
        position = step["position"] if element else 0
        results = lane_results(Phase(step["phase"]), step["number"], position, *operands, SIZES[step["dst_dtype"]])
        lanes.append((cycle + self.latency + SLOW_LATENCY * slow, results, slow))

    def _give_result(self, ctx, lanes, cycle):
        valid, count = bool(lanes) and lanes[0][0] == cycle, self.config.partitions
        result, enable = random_bits(self.rng, 32 * count), random_bits(self.rng, count)
        if valid:
            _, results, _ = lanes.pop(0)
            enable = sum(is_enabled(word) << lane for lane, word in enumerate(results))
            result = packed(results)
            self.seen.results.append(cycle)
        drive(ctx, self.dut, result_valid=valid, result_enable=enable, result=result)

    def _serve_write(self, ctx, held, cycle):
        port = self.dut.write
        names = ("valid", "ready", "storage", "enable", "mask", "address", "data")
        valid, ready, storage, enable, mask, address, words = (ctx.get(Value.cast(getattr(port, x))) for x in names)
        self._check_stable(held, "write", (storage, address, enable, mask, words) if valid else None, ready)
        if not valid & ready:
            return
        self.seen.writes.append(cycle)
        rows = self.stored[storage]
        assert enable >> len(rows) == 0 and address % 4 == 0
        for partition in range(len(rows)):
            for byte in range(4):
                if enable >> partition & mask >> byte & 1:
                    rows[partition, address + byte] = words >> 32 * partition + 8 * byte & 0xFF


def program(rng, config, count):
    """Return legal instructions; an instruction with `overlap` reads no result that may still be pending."""
    instructions, direction = [], 0
    for _ in range(count):
        turns = rng.random() < 0.3
        direction ^= turns
        windows = {"source": HALVES[direction], "result": HALVES[1 - direction]}
        values = legal_fields(rng, config, OPCODES - {LONGEST}, elements=4, windows=windows)
        constants = {f"scalar{k}": int(random_bits(rng, 32)) for k in (0, 1) if not values[f"pointer{k}"]}
        instructions.append(values | constants | {"overlap": 0 if turns else int(rng.random() < 0.7)})
    return instructions


def assert_runs(config, instructions, rng, legal=None, size=BYTES, before=None, cycles=0, **options):
    stored = memories(rng, config, size)
    expected = [rows.copy() for rows in stored]
    words = [elementwise.Elementwise.pack(values) for values in instructions]
    seen = Command(config, words, stored, rng, **options).run(before, cycles)
    for values in instructions[:legal]:
        execute(values, config, expected)
    for name, got, want in zip(("SBUF", "PSUM"), stored, expected, strict=True):
        wrong = np.argwhere(got != want)
        assert not len(wrong), f"{len(wrong)} bytes of {name} differ, the first at [partition, byte] {wrong[0]}"
    return seen


def assert_program_runs(config, instructions, rng, **options):
    seen = assert_runs(config, instructions, rng, **options)
    steps = [steps_of(values, config) for values in instructions]
    assert len(seen.taken) == len(seen.retired) == len(instructions) > 0
    assert len(seen.steps) == sum(map(len, steps))
    assert seen.reads == sum((step.a is not None) + (step.b is not None) for each in steps for step in each)
    writes = [sum(step.write is not None for step in each) for each in steps]
    assert len(seen.writes) == len(seen.results) == sum(writes)
    for last, retired in zip(np.cumsum(writes) - 1, seen.retired, strict=True):
        assert retired == seen.writes[last] + 1
    assert seen.counters["instructions"] == len(instructions)
    assert seen.counters["elements"] == sum(step.phase == Phase.ELEMENT for each in steps for step in each)
    assert seen.counters["busy"] == sum(seen.busy)
    assert [seen.counters[f"wait_{memory}"] for memory in ("sbuf", "psum")] == seen.waits
    cycles = np.arange(len(seen.busy))
    taken, retired = (np.searchsorted(events, cycles) for events in (seen.taken, seen.retired))
    assert seen.busy == ((cycles <= seen.taken[-1]) | (taken > retired)).astype(int).tolist()
    assert all(active >= busy for active, busy in zip(seen.active, seen.busy, strict=True)) and not seen.active[-1]
    of_steps = [values for values, each in zip(instructions, steps, strict=True) for _ in each]
    for values, step, got in zip(of_steps, (step for each in steps for step in each), seen.lanes, strict=True):
        assert_passed_on(values, step, numbers(ElementwiseStep.as_shape(), got))
    assert seen.error == (0, 0, 0)
    return seen


@pytest.mark.parametrize("stall", [*slow(0.0), 0.4])
@pytest.mark.parametrize("shape", slow_if(lambda shape: shape in ("6x4", "4x8"), CONFIGS))
def test_programs_have_the_results_of_the_definition(shape, stall, rng):
    config = CONFIGS[shape]
    seen = assert_program_runs(config, program(rng, config, 50 if config is TINY else 25), rng, stall=stall)
    assert (seen.counters["wait_sbuf"] > 0) == (seen.counters["wait_psum"] > 0) == (stall > 0)
    assert seen.counters["wait_write"] > 0


def test_long_lanes_and_stalled_writes_keep_all_results(rng):
    assert_program_runs(TINY, program(rng, TINY, 25), rng, stall=0.7, latency=11)


@pytest.mark.parametrize("cycles", [35, *slow(50, 65), 80])
def test_a_reset_discards_steps_and_results(cycles, rng):
    words = [elementwise.Elementwise.pack(values) for values in program(rng, TINY, 20)]
    before = Command(TINY, words, memories(rng, TINY, BYTES), rng, stall=0.6)
    assert_program_runs(TINY, program(rng, TINY, 10), rng, before=before, cycles=cycles)
    assert len(before.seen.steps) > 5


def test_every_bit_of_an_address(rng):
    size = TINY.sbuf_bytes
    places = [size - 16, *(1 << bit for bit in range(6, size.bit_length() - 1)), size // 3 & ~15]
    program = [copy(4, a_address=a, dst_address=b, overlap=0) for a, b in pairwise(places)]
    assert_program_runs(TINY, program, rng, size=size)


def test_latency_is_that_of_the_units(rng):
    seen = assert_program_runs(TINY, [copy(4)], rng, latency=5)
    first = seen.taken[0] + Frontend.LATENCY
    assert Frontend.LATENCY == ElementwiseChecker.LATENCY + 1
    assert seen.requests == [first + n for n in range(4)]
    assert seen.steps == [cycle + ReadPort.LATENCY[0] for cycle in seen.requests]
    assert seen.writes == [cycle + 5 + timing.STORE_LATENCY[0] for cycle in seen.steps]


@pytest.mark.parametrize("latency", [1, *slow(2, 3), 12])
def test_overlapping_instructions_have_no_bubble(latency, rng):
    seen = assert_program_runs(TINY, [copy(n) for n in (5, 4, 30, 6, 4)], rng, latency=latency)
    assert set(np.diff(seen.steps)) == set(np.diff(seen.writes)) == {1}
    assert seen.counters["wait_write"] == 0


@pytest.mark.parametrize("latency", [3, 5])
def test_an_instruction_without_overlap_waits_for_earlier_writes(latency, rng):
    second = copy(4, a_address=BYTES // 2, dst_address=0, overlap=0)
    seen = assert_program_runs(TINY, [copy(4), second], rng, latency=latency)
    assert seen.requests[4] == seen.writes[3] + 1
    assert seen.counters["wait_write"] == seen.requests[4] - seen.requests[3] - 1


@pytest.mark.parametrize(("a", "b", "apart"), [(0, 0, 2), (1, 0, 1), (0, 1, 1)])
def test_two_sources_cost_two_cycles_from_one_memory(a, b, apart, rng):
    values = copy(12, isa.Opcode.TENSOR_TENSOR, b_address=512, a_storage=a, b_storage=b)
    seen = assert_program_runs(TINY, [values, values], rng)
    assert set(np.diff(seen.steps)) == {apart}


@pytest.mark.parametrize(
    ("opcode", "interval"),
    [(RESTS, 3), *((LONGEST, interval) for interval in (2, 39, 255)), *slow((LONGEST, 84), (LONGEST, 152))],
)
def test_an_interval_is_kept(opcode, interval, rng):
    values = copy(4, opcode, b_address=512, seed=interval)
    seen = assert_program_runs(TINY, [values], rng, longest=interval)
    assert set(np.diff(seen.steps)) == {interval}
    assert np.flatnonzero(seen.active)[-1] == max(np.flatnonzero(seen.busy)[-1], seen.steps[-1] + interval - 2)
    seen = assert_program_runs(TINY, [values], rng, stall=0.3, longest=interval)
    assert min(np.diff(seen.steps)) == interval


@pytest.mark.parametrize("legal", [2, 45])
def test_instructions_before_an_illegal_one_finish_and_none_after_it_starts(legal, rng):
    before = [copy(20), copy(3), *[copy(1)] * (legal - 2)]
    seen = assert_runs(TINY, [*before, copy(4, dst_address=1), *before[:2]], rng, legal=legal, stall=0.3)
    assert seen.error == (1, Rule.ALIGNMENT, legal)
    assert len(seen.taken) == legal + 1 and len(seen.retired) == legal
