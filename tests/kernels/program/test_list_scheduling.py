"""List scheduling: the same bits in fewer cycles."""

from contextlib import nullcontext

import numpy as np
import pytest

from neuroncore_rtl.golden.timing import predict
from neuroncore_rtl.kernels.program import Program, build_image, dma_copy, liveness, load_stationary, multiply_moving
from neuroncore_rtl.kernels.program import units as dependences
from neuroncore_rtl.kernels.program.allocation import OutOfMemory, addresses
from neuroncore_rtl.kernels.program.instructions import activation, memset, tensor_copy, tensor_tensor
from neuroncore_rtl.kernels.program.list_scheduling import schedule
from neuroncore_rtl.kernels.program.program import ORDERS
from neuroncore_rtl.run import run
from neuroncore_rtl.spec.config import Config, preset_named
from neuroncore_rtl.spec.formats import BF16, FP32, INT8
from neuroncore_rtl.spec.isa import AluOp, LoadStationary, MultiplyMoving, Storage
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, CollectiveType, Group
from neuroncore_rtl.tb.stimulus.core_programs import execute_in_order, random_core_program
from tests.kernels.running import run_golden

TINY = preset_named("tiny")
CONFIGS = (TINY, Config(rows=8, columns=8, dma_engines=4, hbm_ports=2), Config(rows=6, columns=5, dma_engines=1))

INPUTS, RESULTS, COLUMNS = 4, 6, 24


class Steps:
    def __init__(self, seed: int, program: Program):
        self.rng, self.program = np.random.default_rng(seed), program
        config, space = program.config, program.space
        self.lanes = config.partitions
        self.x = space.hbm("x", BF16, (INPUTS, self.lanes, COLUMNS))
        self.y = space.hbm("y", BF16, (RESULTS, self.lanes, COLUMNS))
        self.tiles, self.sums = [], []
        self.kinds = (self.load, self.load, self.compute, self.compute, self.part, self.running_sum, self.multiply,
                      self.store, self.store)  # fmt: skip

    def image(self, count: int):
        self.load()
        for _ in range(count):
            self.kinds[self.rng.integers(len(self.kinds))]()
        return build_image(self.program, [(self.x, np.random.default_rng(6174).integers(0, 1 << 16, self.x.shape))])

    def one(self):
        return self.tiles[-1 - self.rng.integers(min(len(self.tiles), 6))]

    def target(self):
        if len(self.tiles) < 3 or self.rng.random() < 0.6:
            self.tiles.append(self.program.space.sbuf(f"t{len(self.tiles)}", BF16, (COLUMNS,)))
            return self.tiles[-1]
        return self.one()

    def queue(self):
        return int(self.rng.choice(self.program.dma_queues)) if self.rng.random() < 0.3 else None

    def load(self):
        source = self.x[self.rng.integers(INPUTS)] if self.rng.random() < 0.8 else self.y[self.rng.integers(RESULTS)]
        self.program.append(dma_copy(self.target(), source), self.queue())

    def store(self):
        self.program.append(dma_copy(self.y[self.rng.integers(RESULTS)], self.one()), self.queue())

    def compute(self):
        a, b = self.one(), self.one()
        self.program.append(tensor_tensor(self.target(), a, b, AluOp.ADD))

    def part(self):
        half = COLUMNS // 2
        self.program.append(tensor_copy(self.one()[:, :half], self.one()[:, half:]))

    def running_sum(self):
        tile, total = self.one(), self.program.space.sbuf("total", FP32, (1,))
        for number in range(self.rng.integers(1, 4)):
            last = {"sum_into": total, "sum_continue": number > 0}
            self.program.append(activation(self.one(), tile, "square", **last))
            if self.rng.random() < 0.3:
                self.compute()
        self.program.append(tensor_copy(self.one()[:, :1], total))

    def multiply(self):
        config = self.program.config
        weights, sums = self.one(), self.program.space.psum("sums", FP32, (COLUMNS,))
        m = config.columns
        self.program.append(load_stationary(weights[: config.rows, :m]))
        for number in range(self.rng.integers(1, 4)):
            self.program.append(multiply_moving(sums[:m], self.one()[: config.rows], accumulate=number > 0))
            if self.rng.random() < 0.3:
                self.program.append(tensor_copy(self.one()[:m], sums[:m]))
        self.program.append(tensor_copy(self.one()[:m], sums[:m]))


@pytest.mark.parametrize("number", range(len(CONFIGS)))
def test_both_orders_leave_the_same_bits(rng, number):
    config, moved, various = CONFIGS[number], 0, 0
    for seed in range(8):
        both = [Steps(seed, Program(config, order=order)) for order in ORDERS]
        expected, found = (steps.y.elements(run_golden(steps.image(60), rng).hbm) for steps in both)
        assert np.array_equal(found, expected)
        names = [[entry.instruction.name for entry in steps.program.entries] for steps in both]
        moved += names[0] != names[1]
        various += len(np.unique(expected)) > 50
    assert moved > 6 and various > 4


@pytest.mark.parametrize("order", ORDERS)
def test_a_program_is_laid_out_in_one_way(order):
    def image():
        program = Program(TINY, order=order)
        for _ in range(9):
            tile, out = (program.space.sbuf(name, FP32, (COLUMNS,)) for name in ("tile", "out"))
            program.append(memset(tile, 1.0))
            program.append(activation(out, tile, "exp", sum_into=program.space.sbuf("sum", FP32, ())))
        return build_image(program)

    images = [image() for _ in range(20)]
    assert {image.data for image in images} == {images[0].data}


def test_random_instructions_of_every_kind_leave_the_same_bits(rng):
    for config in CONFIGS:
        seed = int(rng.integers(1 << 30))
        program, scheduled = (random_core_program(np.random.default_rng(seed), config, 80, order=o) for o in ORDERS)
        expected = execute_in_order(program.image(), program.program).hbm
        found = run_golden(scheduled.image(), rng).hbm
        for name, tensor in program.results.items():
            assert np.array_equal(scheduled.results[name].elements(found), tensor.elements(expected))


@pytest.mark.parametrize("written", [True, False], ids=["what is read", "what is overwritten"])
def test_a_dependence_that_is_left_out_is_seen(rng, monkeypatch, written):
    class Forgetful(liveness.LiveRegions):
        def last(self, regions, known=None, **options):
            found = super().last(regions, known, **options)
            return {} if options["written"] == written else found

    monkeypatch.setattr(dependences, "LiveRegions", Forgetful)
    seen = 0
    for seed in range(8):
        both = [Steps(seed, Program(TINY, order=order)) for order in ORDERS]
        try:
            expected, found = (steps.y.elements(run_golden(steps.image(60)).hbm) for steps in both)
            seen += not np.array_equal(found, expected)
        except ValueError as refusal:
            assert "must be written before" in str(refusal)
            seen += 1
    assert seen > 4


MOST = 100_000, 8_000  # bytes in the largest tile in SBUF and in PSUM


def tight(rng, program: Program) -> None:
    space = program.space
    x = space.hbm("x", INT8, (4, 4096))
    before = []
    for _ in range(15):
        new = space.sbuf if rng.random() < 0.6 else space.psum
        tile = new("tile", INT8, (int(rng.integers(8, MOST[new == space.psum])),))
        program.append(memset(tile[:, :8], 1))
        program.append(memset(tile[:, -8:], 1))  # of the whole tile one piece remains
        for other in before[-int(rng.integers(1, 3)) :]:
            program.append(tensor_copy(tile[:, :8], other[:, :8]))
        program.append(dma_copy(x[:, :8], tile[:, :8]))
        before.append(tile)


def test_what_fits_in_program_order_is_not_refused(rng):
    fits = 0
    for _ in range(40):
        seed = int(rng.integers(1 << 30))
        program, scheduled = (Program(TINY, order=order) for order in ORDERS)
        for one in (program, scheduled):
            tight(np.random.default_rng(seed), one)
        try:
            program.records()
        except OutOfMemory:
            continue
        assert len(scheduled.records()) >= 60
        fits += 1
    assert 8 < fits < 40


def test_what_does_not_fit_keeps_the_order_of_the_program(rng, monkeypatch):
    program = Program(TINY, order="scheduled")
    t, u = (program.space.sbuf(name, FP32, (8,)) for name in "tu")
    x = program.space.hbm("x", FP32, (2, 4, 8))
    for number, tile in enumerate((t, u)):
        program.append(memset(tile, 1.0))
        program.append(dma_copy(x[number], tile))

    shares = []

    def full(steps, space, **_):
        if steps == program.steps:
            return addresses(steps, space)
        raise OutOfMemory("full", Storage.PSUM)

    def recorded(steps, space, share):
        shares.append((share[Storage.SBUF], share[Storage.PSUM]))
        return schedule(steps, space, share)

    monkeypatch.setattr("neuroncore_rtl.kernels.program.program.addresses", full)
    monkeypatch.setattr("neuroncore_rtl.kernels.program.program.schedule", recorded)
    assert [entry.instruction.name for entry in program.entries] == ["MEMSET", "DMA_COPY"] * 2
    assert shares == [(0.9, 0.9), (0.9, 0.6), (0.9, 0.3)]  # of SBUF and of PSUM, which is full


def test_an_order_is_one_of_two():
    with pytest.raises(ValueError, match="order must be one of program, scheduled, not 'any'"):
        Program(TINY, order="any")


def pipeline(program: Program) -> None:
    """Append 12 tiles: two products, between them an activation, which stalls the tensor engine if not scheduled."""
    space, lanes, columns = program.space, program.config.partitions, 128
    x, y = (space.hbm(name, BF16, (12, lanes, columns)) for name in "xy")
    weights = space.sbuf("weights", BF16, (lanes,))
    program.append(memset(weights, 0.25))
    for number in range(12):
        tile, powers, out = (space.sbuf(name, BF16, (columns,)) for name in ("tile", "powers", "out"))
        first, second = (space.psum(name, FP32, (columns,)) for name in ("first", "second"))
        program.append(dma_copy(tile, x[number]))
        program.append(load_stationary(weights))
        program.append(multiply_moving(first, tile))
        program.append(activation(powers, first, "exp"))
        program.append(load_stationary(weights))
        program.append(multiply_moving(second, powers))
        program.append(tensor_copy(out, second))
        program.append(dma_copy(y[number], out))


def test_an_engine_goes_on_with_the_next_tile():
    cycles = []
    for order in ORDERS:
        program = Program(TINY, order=order)
        pipeline(program)
        cycles.append(predict(build_image(program)).cycles)
    assert cycles[1] < 0.85 * cycles[0]


def test_weights_stay_with_their_products():
    program = Program(TINY, order="scheduled")
    pipeline(program)
    tensor = [type(entry.instruction) for entry in program.entries if entry.queue == 0]
    assert tensor == [LoadStationary, MultiplyMoving] * 24


def lines(program):
    own = (entry for entry in program.entries if entry.queue == 0 and entry.lane is not None)
    return [entry.source.kernel.number for entry in own]


def test_a_kernel_may_keep_its_own_order():
    queues = []
    for own in (True, False):
        program = Program(TINY, order="scheduled")
        with program.in_order() if own else nullcontext():
            pipeline(program)
        scheduled = lines(program)
        program.order = "program"
        queues.append(scheduled == lines(program))
    assert queues == [True, False]


def test_copies_keep_their_queues_and_sections_their_borders():
    program = Program(Config(rows=4, columns=4, dma_engines=4, hbm_ports=2), order="scheduled")
    x = program.space.hbm("x", FP32, (40, 4, 8))
    for number in range(40):
        tile = program.space.sbuf("tile", FP32, (8,))
        program.append(memset(tile, 1.0))
        program.append(dma_copy(x[number], tile), queue=3 + number % 2 if number < 20 else None)
        if number == 29:
            program.start_section()
    copies = [entry for entry in program.entries if entry.instruction.name == "DMA_COPY"]
    places = {entry.instruction.dst.address: entry for entry in copies}
    assert [places[x[number].address].queue for number in range(20)] == [3, 4] * 10
    assert {places[x[number].address].queue for number in range(20, 40)} == {3, 4, 5, 6}
    assert [entry.section for entry in program.entries] == [0] * 60 + [1] * 20


def test_collectives_keep_their_order():
    """Other cores use this order, so it remains even if the first collective must wait for its operand."""
    program = Program(Config(rows=4, columns=4, cores=4), order="scheduled")
    x = program.space.hbm("x", FP32, (4, 64))
    tile = program.space.sbuf("tile", FP32, (64,), 1)
    common = {"kind": CollectiveKind.BROADCAST, "group": Group(0, 1, 4), "rank": 0, "dtype": CollectiveType.FP32}
    program.append(memset(tile, 1.0))
    program.append(dma_copy(x[:1], tile))
    for row in x[0], x[1], x[2]:
        program.append(Collective(**common, count=32, src=row.address, dst=row.address))
    own = [entry.instruction for entry in program.entries if entry.instruction.name == "BROADCAST"]
    assert [instruction.src for instruction in own] == [row.address for row in (x[0], x[1], x[2])]


def test_loads_run_ahead_until_memory_is_full():
    program = Program(TINY, order="scheduled")
    x = program.space.hbm("x", INT8, (20, 4, 30_000))
    for number in range(20):
        tile = program.space.sbuf("tile", INT8, (30_000,))
        program.append(dma_copy(tile, x[number]))
        program.append(tensor_copy(tile, tile))
        program.append(dma_copy(x[number], tile))
    names = [entry.instruction.src.storage.name if entry.queue > 2 else "compute" for entry in program.entries]
    ahead = [names[:place].count("HBM") - names[:place].count("SBUF") for place in range(len(names))]
    assert 4 <= max(ahead) <= 6


def test_loads_leave_memory_for_the_results_of_other_tiles():
    """An engine with late results goes on with another tile, also after loads have filled their part of the memory."""
    program = Program(TINY.with_overrides(result_latency=1000, vector_speed=40), order="scheduled")
    x, y = (program.space.hbm(name, BF16, (240, 4, 1000)) for name in "xy")
    for number in range(240):
        tile, once, twice = (program.space.sbuf(name, BF16, (1000,)) for name in ("tile", "once", "twice"))
        program.append(dma_copy(tile, x[number]))
        program.append(tensor_copy(once, tile))
        program.append(tensor_copy(twice, once))
        program.append(dma_copy(y[number], twice))
    found = predict(build_image(program))
    assert found.cycles < 1.01 * found.busy["vector"]


def test_on_the_rtl(rng):
    values = rng.normal(size=(12, 4, 128))
    alone = run(pipeline, {"x": values}, preset="tiny", order="program")
    result = run(pipeline, {"x": values}, preset="tiny", order="scheduled")
    assert alone.bit_exact and result.bit_exact and np.array_equal(result.codes["y"], alone.codes["y"])
    assert result.cycles < 0.9 * alone.cycles
