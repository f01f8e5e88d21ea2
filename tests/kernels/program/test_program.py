"""Programs of the core: results do not depend on the order of execution."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.program import (
    Program,
    build_image,
    dma_copy,
    dma_gather,
    dma_scatter,
    load_stationary,
    multiply_moving,
)
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.kernels.program.footprint import runs_of
from neuroncore_rtl.spec.config import Config, preset_named
from neuroncore_rtl.spec.formats import BF16, FP32, INT8, INT32
from neuroncore_rtl.spec.isa import AluOp, DmaCopy, Elementwise, LoadStationary, MultiplyMoving, Nop, Record, UpdateOp
from neuroncore_rtl.spec.memory_map import IMAGE_MAGIC
from neuroncore_rtl.tb.stimulus.core_programs import CoreChoices, execute_in_order, garbled_image, random_core_program
from tests.kernels import running
from tests.kernels.program.loops import join_image
from tests.oracles.touched import touched

SEED = 8128
TINY = preset_named("tiny")
CONFIGS = (
    TINY,
    Config(rows=8, columns=8, dma_engines=4, hbm_ports=2),
    Config(rows=6, columns=5, dma_engines=1),
    Config(rows=4, columns=8, dma_engines=16, hbm_ports=4),
)


def new_program(columns, hbm="x", sbuf="t", config=TINY, **options):
    program = Program(config, **options)
    rows = (program.space.hbm(name, FP32, (4, columns)) for name in hbm)
    return program, *rows, *(program.space.sbuf(name, FP32, (columns,), kept=True) for name in sbuf)


def copy_by_rows(program, dst, src):
    for row in range(4):
        program.append(dma_copy(dst[row : row + 1], src[row : row + 1]), queue=3 + row)


def test_footprints_are_those_of_every_element(rng):
    for config in CONFIGS:
        for entry in random_core_program(rng, config, 60).program.entries[5:-2]:
            mine = entry.instruction.reads, entry.instruction.writes
            for regions, expected in zip(mine, touched(entry.instruction, config), strict=True):
                found = set()
                for region in regions:
                    starts, length = runs_of(region)
                    octets = (starts[:, np.newaxis] + np.arange(length)).reshape(-1)
                    found |= {(region.storage, row, int(octet)) for row in region.rows for octet in octets}
                assert found == expected, entry.instruction


def completed_before(program, records):
    """Return for every record the set of records that have completed when it starts, as bits of an integer.

    This follows only from the properties of queues and semaphores: a queue starts its records in order; a lane,
    an in-order stream of an engine, completes its records in order; a semaphore is at least n after the n-th addition
    if one lane makes all additions. The tensor engine's loads are a separate lane; when a multiplication has completed,
    the loads before it have completed, too.
    """
    queues, lanes = {}, {}  # by queue: known at the last start; by lane: completed up to each record
    additions, adders, before, complete = {}, {}, [], []
    for number, (entry, record) in enumerate(zip(program.entries, records, strict=True)):
        known = queues.get(entry.queue, 0)
        lane = LoadStationary if isinstance(entry.instruction, LoadStationary) else entry.queue
        for wait in record.waits:
            known |= complete[additions[wait.semaphore][wait.value - 1]]
        if isinstance(entry.instruction, DmaCopy) or not getattr(entry.instruction, "overlap", True):
            known |= lanes.get(lane, 0)
        queues[entry.queue] = known
        before.append(known)
        lanes[lane] = lanes.get(lane, 0) | known | 1 << number
        if isinstance(entry.instruction, MultiplyMoving):
            lanes[lane] |= lanes[LoadStationary]
        complete.append(lanes[lane])
        for update in record.updates:
            assert (update.op, update.value) == (UpdateOp.ADD, 1)
            assert adders.setdefault(update.semaphore, lane) == lane
            additions.setdefault(update.semaphore, []).append(number)
    return before


def test_every_conflict_is_ordered(rng):
    conflicts = waits = 0
    for config in CONFIGS:
        program = random_core_program(rng, config, 60, CoreChoices(nops=0)).program
        records = program.records()
        before = completed_before(program, records)
        cells_of = [touched(entry.instruction, config) for entry in program.entries]
        touching, writing = {}, {}  # by cell, the instructions so far
        for later, (entry, (reads, writes)) in enumerate(zip(program.entries, cells_of, strict=True)):
            pairs = {(earlier, "read") for cell in reads for earlier in writing.get(cell, ())}
            pairs |= {(earlier, "write") for cell in writes for earlier in touching.get(cell, ())}
            for earlier, how in pairs:
                # The order within a queue suffices, except between reads of the vector and the scalar engine.
                own = program.entries[earlier].queue == entry.queue
                if not own or (how == "read" and isinstance(entry.instruction, Elementwise)):
                    conflicts += 1
                    assert before[later] >> earlier & 1, (earlier, later)
            for cell in reads | writes:
                touching.setdefault(cell, []).append(later)
            for cell in writes:
                writing.setdefault(cell, []).append(later)
        waits += sum(len(record.waits) for record in records)
        assert all(len(record.waits) <= 2 for record in records)
    assert conflicts > 2 * waits > 200


@pytest.mark.parametrize("number", range(len(CONFIGS)))
def test_any_order_that_the_semaphores_allow_gives_the_same_memory(rng, number):
    config, differing = CONFIGS[number], 0
    program = random_core_program(rng, config, 80)
    image = program.image()
    expected = execute_in_order(image, program.program).hbm
    for _ in range(3):
        outcome = running.run_golden(garbled_image(rng, image), rng)
        differing += [image.locate(address)[1] for _, address in outcome.records] != program.program.records()
        for tensor in program.results.values():
            assert np.array_equal(tensor.elements(outcome.hbm), tensor.elements(expected))
    assert differing == 3


def test_waits_that_follow_from_others_are_left_out():
    program, x, y, t, u = new_program(8, "xy", "tu")
    program.append(dma_copy(t, x), queue=3)
    program.append(isa.tensor_copy(u, t))
    program.append(dma_copy(y, u), queue=4)
    program.append(dma_copy(x, t), queue=4)  # follows the copy to t through the vector engine
    program.append(isa.memset(t, 1.0))
    assert [entry.waits for entry in program.entries] == [[], [(4, 1)], [(2, 1)], [], [(5, 2)]]
    assert [len(record.updates) for record in program.records()] == [1, 1, 0, 1, 0]
    assert program.entries[-1].instruction.overlap


def test_a_third_wait_goes_to_the_record_before():
    program, x, t, u = new_program(4, "x", "tu", config=Config(rows=4, columns=4, dma_engines=4))
    copy_by_rows(program, t, x)
    program.append(isa.memset(u, 0.0))
    program.append(isa.tensor_copy(u, t))
    assert [len(entry.waits) for entry in program.entries] == [0, 0, 0, 0, 2, 2]


def test_no_record_waits_for_one_that_comes_after_it():
    program, x, t = new_program(4, config=Config(rows=4, columns=4, dma_engines=4))
    program.append(isa.memset(t, 0.0))
    copy_by_rows(program, x, t)
    program.append(isa.memset(t, 1.0))
    assert [len(entry.waits) for entry in program.entries] == [0, 1, 1, 1, 1, 2, 2]
    for entry in program.entries:
        for lane, count in entry.waits:
            awaited = next(e for e in program.entries if (e.lane, e.number) == (lane, count - 1))
            assert awaited.position < entry.position


def test_what_does_not_fit_goes_to_nops(rng):
    program, x, y, t, u = new_program(4, "xy", "tu", config=Config(rows=4, columns=4, dma_engines=6))
    copy_by_rows(program, t, x)
    program.append(isa.activation(u, t, "identity", scale=2.0))
    assert [(entry.queue, len(entry.waits)) for entry in program.entries[4:]] == [(2, 2), (2, 2)]
    assert [entry.instruction.name for entry in program.entries[4:]] == ["NOP", "ACTIVATE"]
    program.append(dma_copy(y, u), queue=3)
    values = np.arange(16, dtype=np.float32).reshape(4, 4)
    image = build_image(program, [(x, values.view(np.uint32))])
    for order in (None, rng, rng):
        assert np.array_equal(y.elements(running.run_golden(image, order).hbm).view(np.float32), 2 * values)


@pytest.mark.parametrize("engines", [1, 2, 5, 8])
def test_an_instruction_waits_for_every_other_lane(rng, engines):
    image, results = join_image(Config(rows=4, columns=4, dma_engines=engines))
    (joined,) = (part for block, part in zip(image.blocks, image.records, strict=True) if block.queue == 1)
    # Both lanes of the tensor queue, the scalar queue, and all DMA queues.
    assert sum(len(record.waits) for record in joined) == 3 + engines and not any(r.updates for r in joined[:-1])
    assert [record.instruction.name for record in joined] == ["NOP"] * ((2 + engines) // 2) + ["MEMSET"]
    for order in (None, *[rng] * 5):
        hbm = running.run_golden(image, order).hbm
        assert all((tensor.elements(hbm) == code).all() for tensor, code in results)


def test_a_full_semaphore_is_followed_by_a_fresh_one(monkeypatch):
    monkeypatch.setattr("neuroncore_rtl.kernels.program.entries.SEMAPHORE_MAX", 3)
    program, x, t = new_program(9, semaphores=range(5, 9))
    for n in range(9):
        program.append(dma_copy(t[:, n : n + 1], x[:, n : n + 1]), queue=3)
        program.append(isa.tensor_scalar(t[:, n : n + 1], t[:, n : n + 1], 1.0, AluOp.ADD))
    waits = [record.waits[0] for record in program.records() if record.waits]
    assert [(wait.semaphore, wait.value) for wait in waits] == [(5 + n // 3, 1 + n % 3) for n in range(9)]
    program.append(dma_copy(x, t))
    program.semaphores = range(5, 8)
    with pytest.raises(ValueError, match="semaphores must be more than 3 for 10 awaited instructions"):
        program.records()


def test_refusals():
    program, x, t = new_program(8)
    u, foreign = t[:, 1:], Program(TINY).space.sbuf("t", FP32, (8,))
    small, result = program.space.sbuf("small", INT8, (8,)), program.space.psum("result", FP32, (8,))
    for wrong, message in (
        (lambda: program.append(dma_copy(t, x), queue=1), "queue must be one of dma0, dma1, not 1"),
        (lambda: program.append(isa.memset(t, 0.0), queue=2), "queue must be one of vector, not 2"),
        (lambda: program.append(Nop()), "instruction must be of an engine, not NOP"),
        (lambda: program.append(dma_copy(t[:, 1:], t[:, :7])), "DMA_COPY: dst must be apart from src"),
        (lambda: program.append(multiply_moving(result, t)), "MULTIPLY_MOVING: a .* must follow a LoadStationary"),
        (lambda: dma_copy(t, x[:, :3]), r"x: shape must broadcast to \(4, 8\) of t, not \(4, 3\)"),
        (lambda: dma_copy(t, x, order=(0, 0)), r"order must be a permutation of the 2 dimensions of x, not \(0, 0\)"),
        (lambda: dma_gather(t, x, small[:, 0]), "small: row numbers must be 4 .* of int32 or uint32, not 4 of int8"),
        (lambda: dma_gather(t, x[:, :4], t[:, 0]), r"x: rows must have the shape \(8,\) of t, not \(4,\)"),
        (lambda: program.append(None), "instruction must be of an engine, not None"),
        (lambda: dma_copy(t, 3.0), "the operands of a copy must be tensors, not 3.0"),
        (lambda: isa.tensor_copy(t, x), "x: an engine's operand must be a tensor in SBUF or PSUM, not in HBM"),
        (lambda: multiply_moving(result, x), "x: an engine's operand must be a tensor in SBUF or PSUM, not in HBM"),
        (lambda: isa.tensor_scalar(t, t, None, isa.AluOp.ADD), "s0 must be a number or a tensor, not None"),
        (
            lambda: program.append(isa.activation(u, u, "exp", sum_into=t[:, 0].reshape(), sum_continue=True)),
            "ACTIVATE: there must be an earlier instruction in the section to continue from",
        ),
        (lambda: program.append(isa.memset(foreign, 0.0)), "MEMSET: a tensor is a temporary of another program"),
        (lambda: program.space.hbm("y", FP32, (-16,)), r"y: shape must be integers of at least 0, .*, not \(-16,\)"),
        (lambda: program.space.sbuf("y", FP32, 4), r"y: shape must be integers of at least 0, .*, not 4"),
        (lambda: Program(TINY, core=1), "core must be between 0 and 0, not 1"),
        (lambda: Program(TINY, base=64), "base must be a multiple of 128, not 64"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


def test_copies_are_those_of_numpy(rng):
    program = Program(TINY)
    space = program.space
    values, entries = rng.integers(0, 1 << 16, (4, 6)), rng.integers(0, 1 << 16, (9, 6))
    chosen, some = np.array([7, 0, 3, 8]), np.array([9, 2, -1, 8])
    scattered, partly, skipping = np.zeros((9, 6)), np.zeros((9, 6)), entries[chosen]
    scattered[chosen] = values
    partly[[2, 8]], skipping[[1, 3]] = values[[1, 3]], entries[[2, 8]]
    x, table, numbers = space.hbm("x", BF16, (4, 6)), space.hbm("table", BF16, (9, 6)), space.hbm("n", INT32, (4, 2))
    t, picked, rows = space.sbuf("t", BF16, (6,)), space.sbuf("picked", BF16, (6,)), space.sbuf("rows", INT32, (2,))
    turned, chip, row = (space.sbuf(name, BF16, shape) for name, shape in (("u", (4,)), ("v", (4,)), ("w", (2, 6))))
    expected = {
        "copy": values,
        "turned": values[:, 1:5].T,
        "chip": values[:, :4].T,
        "row": np.broadcast_to(values[2], (4, 2, 6)),
        "gathered": entries[chosen],
        "scattered": scattered,
        "skipping": skipping,
        "partly scattered": partly,
    }
    results = {name: space.hbm(name, BF16, array.shape) for name, array in expected.items()}
    for copy in (
        dma_copy(t, x),
        dma_copy(results["copy"][:, ::-1], t[:, ::-1]),
        dma_copy(turned, x[:, 1:5].permute(1, 0)),
        dma_copy(results["turned"], turned),
        dma_copy(chip, t[:, :4], order=(1, 0)),
        dma_copy(results["chip"], chip),
        dma_copy(row, x[2]),
        dma_copy(results["row"], row),
        dma_copy(rows, numbers),
        dma_gather(picked, table, rows[:, 0]),
        dma_copy(results["gathered"], picked),
        dma_scatter(results["scattered"], t, rows[:, 0]),
        dma_gather(picked, table, rows[:, 1], skip=True),
        dma_copy(results["skipping"], picked),
        dma_scatter(results["partly scattered"], t, rows[:, 1], skip=True),
    ):
        program.append(copy)
    image = build_image(program, [(x, values), (table, entries), (numbers, np.stack([chosen, some], 1))])
    hbm = running.run_golden(image, rng).hbm
    for name, array in expected.items():
        assert np.array_equal(results[name].elements(hbm), array), name


@pytest.mark.parametrize("chosen", [(0, 1, 2), (0, 2), (1,), (), (1, 1, 0, 2, 1), 30 * (2, 0)], ids=len)
def test_any_section_can_be_left_out_or_run_again(rng, chosen):
    program, x, t = new_program(8)
    for number in range(3):
        for _ in range(2):
            program.append(dma_copy(t, x))
            program.append(isa.tensor_scalar(t, t, 10**number, AluOp.ADD))
            program.append(dma_copy(x, t))
            # An instruction that starts too early reads wrong numbers.
            program.append(isa.memset(t, -1e6))
        if number < 2:
            program.start_section()
    lane_sections = {(e.lane, e.number + 1): e.section for e in program.entries}
    assert all(lane_sections[wait] == entry.section for entry in program.entries for wait in entry.waits)
    records = zip(program.entries, program.records(), strict=True)
    used = {(e.section, one.semaphore) for e, record in records for one in (*record.waits, *record.updates)}
    assert {section for section, _ in used} == {0, 1, 2} and len({semaphore for _, semaphore in used}) < len(used)
    image = build_image(program, [(x, np.zeros((4, 8)))], runs=chosen)
    expected = 2 * sum(10**number for number in chosen)
    for order in (None, rng, rng):
        assert (x.elements(running.run_golden(image, order).hbm).view(np.float32) == expected).all()


def test_sections_without_limit(rng):
    """Each section starts again with the same few semaphores."""
    program, x, t = new_program(8, semaphores=range(7, 11))
    for _ in range(100):
        program.append(dma_copy(t, x))
        program.append(isa.tensor_scalar(t, t, 1.0, AluOp.ADD))
        program.append(dma_copy(x, t))
        program.start_section()
    image = build_image(program, [(x, np.zeros((4, 8)))])
    assert (x.elements(running.run_golden(image, rng).hbm).view(np.float32) == 100).all()
    with pytest.raises(ValueError, match=r"runs must name sections that have blocks, \[.* 99\], not \[100, 200\]"):
        build_image(program, runs=[0, 100, 200, 3])


def test_a_section_loads_its_own_weights():
    program = Program(TINY)
    a, result = program.space.sbuf("a", BF16, (4,)), program.space.psum("result", FP32, (4,))
    multiply = multiply_moving(result, a)
    program.append(load_stationary(a))
    program.append(multiply)
    program.start_section()
    with pytest.raises(ValueError, match="MULTIPLY_MOVING: "):
        program.append(multiply)


def test_an_image_has_a_header_and_its_records_at_their_addresses(monkeypatch):
    monkeypatch.setattr("neuroncore_rtl.kernels.program.image.MOST_RECORDS", 2)
    program, x, t = new_program(8, base=0x400)
    for _ in range(5):
        program.append(dma_copy(t, x), queue=3)
        program.append(isa.tensor_scalar(t, t, 1.0, AluOp.ADD))
        program.append(dma_copy(x, t), queue=3)
    image = build_image(program, [(x, np.zeros((4, 8)))])
    header = np.frombuffer(image.data[:32], "<u4")
    assert header[0] == IMAGE_MAGIC and list(header[3:]) == [4, 4, 2, 1, 0] and header[2] % 128 == 0
    assert [(block.queue, block.count) for block in image.blocks] == [(3, 2), (1, 2), (3, 2), (3, 2), (1, 2), (3, 2),
                                                                      (3, 2), (1, 1)]  # fmt: skip
    memory = image.memory()
    for block in image.blocks:
        for address in range(block.address, block.address + 128 * block.count, 128):
            queue, record = image.locate(address)
            assert queue == block.queue and memory[address : address + 128].tobytes() == record.encode(TINY)
            assert Record.decode(memory[address : address + 128].tobytes(), TINY).encode(TINY) == record.encode(TINY)
    with pytest.raises(KeyError, match="no record starts at address 0x400"):
        image.locate(0x400)
    assert (x.elements(running.run_golden(image).hbm).view(np.float32) == 5).all()


def test_results_that_are_late_are_awaited_one_by_one():
    """With a latency of results, an instruction waits for the one that it reads, not for all of its engine."""
    found = {}
    for latency in (0, 9):
        program = Program(preset_named("tiny").with_overrides(result_latency=latency))
        x, y, z = (program.space.sbuf(name, FP32, (8,)) for name in "xyz")
        for instruction in (isa.memset(x, 1.0), isa.memset(y, 2.0), isa.tensor_copy(z, x), isa.tensor_copy(y, z)):
            program.append(instruction)
        found[latency] = [(entry.instruction.overlap, entry.waits) for entry in program.entries]
    assert found[0] == [(True, []), (True, []), (False, []), (False, [])]
    [lane] = {entry.lane for entry in program.entries}
    assert found[9] == [(True, []), (True, []), (True, [(lane, 1)]), (True, [(lane, 3)])]
