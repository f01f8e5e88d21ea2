"""Core model: queues, semaphores and errors."""

from dataclasses import replace
from weakref import ref

import numpy as np
import pytest

from neuroncore_rtl.golden import arith, scalar, tensor
from neuroncore_rtl.golden.core import Core, CoreError, Machine
from neuroncore_rtl.golden.core.engines import Engines
from neuroncore_rtl.run.job import join_images
from neuroncore_rtl.spec import formats, isa, memory_map
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.isa import INSTRUCTIONS, Cause, Engine, Opcode, Rule, Update, UpdateOp, Wait, fields
from neuroncore_rtl.spec.isa.engine import QUEUE_BLOCKS, RECORDS_AHEAD
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from tests.oracles import chains, instructions
from tests.oracles.copies import random_copy, word_copy
from tests.run.harness import core_images as images
from tests.run.harness.core_errors import CASES, HBM_END, HEADERS, works
from tests.run.harness.core_images import DMA0, DMA1, TENSOR, VECTOR

SEED = 6022
CONFIG = PRESETS["tiny"]
HBM_BYTES = 1 << 17
RECORDS = 0x10000


@pytest.fixture
def hbm():
    return np.zeros(HBM_BYTES, np.uint8)


def record(instruction=None, waits=(), updates=()):
    return isa.Record(instruction=instruction or word_copy(0x8000, 0x8004), waits=tuple(waits), updates=tuple(updates))


def write_records(hbm, address, records):
    data = b"".join(record.encode(CONFIG) for record in records)
    hbm[address : address + len(data)] = np.frombuffer(data, np.uint8)


def at(queue, number=0):
    return RECORDS + 0x2000 * queue + isa.RECORD_BYTES * number


def machine(hbm, programs, order=None, config=CONFIG):
    made = Machine(config, hbm, order)
    for queue, records in programs.items():
        write_records(hbm, at(queue), records)
        made.queues[queue].start(at(queue), len(records))
    made.run()
    return made


def test_updates_set_add_and_subtract_in_order(hbm):
    set_, subtract = (Update(5, value, op) for value, op in ((9, UpdateOp.SET), (2, UpdateOp.SUBTRACT)))
    made = machine(hbm, {DMA0: [record(updates=[set_, subtract]), record(updates=[Update(5, 4), Update(6, 65535)])]})
    assert (made.semaphores.values[5], made.semaphores.values[6]) == (11, 65535)


def chain(rng, ordered=True):
    words = rng.integers(1 << 30, size=8).astype(np.uint32)
    expected, programs = words.copy(), {DMA0: [], DMA1: [], DMA1 + 1: []}
    for queue, one in chains.word_copies(rng, range(DMA0, DMA1 + 2), 40, words=8, base=0x8000):
        source, target = (place.address // 4 % 8 for place in (one.instruction.src, one.instruction.dst))
        expected[target] = expected[source]
        programs[queue].append(one if ordered else replace(one, waits=()))
    return programs, words, expected


def run_in_order(programs, words, order):
    hbm = np.zeros(HBM_BYTES, np.uint8)
    hbm[0x8000:0x8020].view(np.uint32)[:] = words
    assert not machine(hbm, programs, order, CONFIG.with_overrides(dma_engines=3)).is_waiting
    return hbm[0x8000:0x8020].view(np.uint32)


def test_every_order_that_semaphores_allow_has_the_same_result(rng):
    orders = set()
    for _ in range(4):
        programs, words, expected = chain(rng)
        for order in (None, rng, rng, rng):
            result = run_in_order(programs, words, order)
            assert np.array_equal(result, expected)
            orders.add(result.tobytes())
    assert len(orders) == 4


def test_a_race_shows_in_some_order(rng):
    programs, words, expected = chain(rng, ordered=False)
    assert any(not np.array_equal(run_in_order(programs, words, rng), expected) for _ in range(5))


@pytest.mark.parametrize("name", CASES)
def test_what_fails_is_named_and_nothing_behind_it_is_executed(name):
    """HBM ends at the end of the image, so an address in the range of SLVERR responses is out of range here."""
    case, (work,) = CASES[name], works(1)
    image = case.image(work)
    fault = case.fault(image)
    outcome = Core(CONFIG, join_images([image])).run()
    assert outcome.error == CoreError(fault.cause, fault.queue, fault.address, fault.detail)
    caught = case.options.get("case") == images.CATCH
    assert outcome.exit_code == (77 if caught else 0x4000_0000 | fault.cause)
    assert max({address for queue, address in outcome.records if queue == fault.queue}, default=0) <= fault.address
    if case.options.get("gated", True):
        last = {(block.queue, block.address + isa.RECORD_BYTES * (block.count - 1)) for block in image.blocks}
        assert {queue for queue, _ in last & set(outcome.records)} <= {fault.queue}


def test_a_record_beyond_hbm(hbm):
    made = Machine(CONFIG, hbm)
    write_records(hbm, HBM_BYTES - isa.RECORD_BYTES, [record()])
    made.queues[DMA1].start(HBM_BYTES - isa.RECORD_BYTES, 2)
    made.run()
    assert made.errors.first == CoreError(Cause.FETCH, DMA1, HBM_BYTES, 0)
    assert made.queues[DMA1].retired == 1


@pytest.mark.parametrize("update", [Update(3, 1, UpdateOp.SUBTRACT), Update(4, 65535)])
def test_a_semaphore_that_would_leave_its_range(hbm, update):
    records = [record(updates=[Update(4, 1)]), record(updates=[update, Update(8, 7)]), record(updates=[Update(8, 1)])]
    made = machine(hbm, {DMA0: records})
    assert made.errors.first == CoreError(Cause.SEMAPHORE, DMA0, at(DMA0, 1), update.semaphore)
    assert made.semaphores.values[3:5] == [0, 1] and made.semaphores.values[8] == 7


MULTIPLY = isa.MultiplyMoving(format=formats.BF16, k=4, m=4, n=4, address=64, stride=2, psum=0)
LOAD = isa.LoadStationary(format=formats.BF16, k=4, m=4, address=0)


def test_a_multiplication_without_weights(hbm):
    assert machine(hbm, {TENSOR: [record(MULTIPLY)]}).errors.first == CoreError(Rule.STATE, TENSOR, at(TENSOR), 0)


def test_whatever_a_record_says_is_executed_or_refused(hbm, rng):
    engines = Engines(CONFIG, hbm)
    outcomes = []
    while len(outcomes) < 300:
        engine = Engine(int(rng.integers(1, 5)))
        opcodes = {Engine.VECTOR: isa.VECTOR_OPCODES, Engine.SCALAR: isa.SCALAR_OPCODES}
        if engine == Engine.TENSOR:
            body = int(rng.choice([LOAD.encode(), MULTIPLY.encode()]))
        elif engine == Engine.DMA:
            body = random_copy(rng, CONFIG, HBM_BYTES).encode()
        else:
            opcode = Opcode(int(rng.choice(sorted(opcodes[engine]))))
            body = replace(instructions.random_instruction(rng, opcode, CONFIG, (1024, 512)), function=0).encode(CONFIG)
        for bit in rng.integers(fields.width_of(INSTRUCTIONS[engine].layout), size=rng.integers(4)):
            body ^= 1 << int(bit)
        values = INSTRUCTIONS[engine].unpack(body)
        counts = [value for name, value in values.items() if name.startswith("count")]
        if np.prod(counts, dtype=float) < 1e5 and not values.get("function"):  # others are slow to compile
            outcomes.append(engines.execute(engine, body))
    assert 50 < outcomes.count(None) < 250


def test_errors_are_named():
    assert str(CoreError(Cause.INDEX, DMA1, 0x80, 3)) == "INDEX of queue 4, record 0x80, detail 0x3"
    assert str(CoreError(Cause.BOOT, detail=1)) == "BOOT, detail 0x1"


def case(number, *blocks):
    return Core(CONFIG, images.hand_image(CONFIG, 0, blocks, case=number).memory(HBM_BYTES))


def test_all_engines_together(rng):
    (work,) = works(1)
    outcome = Core(CONFIG, join_images([work.finished()])).run()
    assert (outcome.exit_code, outcome.error) == (0, None)
    x = arith.round_fp32(np.frombuffer(work.contents[images.DATA], np.uint32), formats.BF16).reshape(4, 4)
    product = tensor.matrix_product(x.T, x, formats.BF16, CONFIG.rows)
    found = outcome.hbm[images.RESULT : images.RESULT + 64].view(np.uint32).reshape(4, 4)
    assert_same_bits(outcome.psum.view(np.uint32)[:, :4], product)
    assert_same_bits(outcome.sbuf[:, 0x80:0x90].view(np.uint32), found)
    assert_same_bits(found, scalar.activate("identity", product.view(np.float32)).view(np.uint32))
    assert len(outcome.records) == 11


ENDS = {
    "a semaphore wakes": (images.SEMAPHORE, (DMA1, [record(updates=[Update(7)])] * 2), 2 << 8 | 1 << 2, ""),
    "a refused access traps": (images.REFUSED, (DMA0, []), 0, f"7 {memory_map.SEMAPHORE_ADD + 4:08x}\n"),
    "in time for the watchdog": (images.RESCUE, (DMA0, [record(waits=[Wait(9, 1)])]), 0, ""),
}
"""Cases with their block, exit code and console output."""


@pytest.mark.parametrize("number, block, exit_code, console", ENDS.values(), ids=ENDS)
def test_exit_code_and_console(number, block, exit_code, console):
    outcome = case(number, block).run()
    assert (outcome.exit_code, outcome.console.decode()) == (exit_code, console)


def test_windows_show_the_memories():
    core = case(images.WINDOWS)
    sbuf, psum = (memory.view(np.uint32) for memory in (core.machine.engines.sbuf, core.machine.engines.psum))
    sbuf[3, 1], psum[0, -1] = 100, 200
    assert core.run().exit_code == 0
    assert (sbuf[1, 2], psum[2, 0]) == (101, 202)


def test_the_timer_wakes():
    core = case(images.TIMER)
    assert core.run().exit_code < 20
    assert core.hart.csr.instret < 1000 < core.hart.csr.cycle


def test_only_the_host_wakes():
    core = case(images.TWICE)
    assert core.run().exit_code is None
    core.registers.raise_host_interrupt()
    assert core.run().console == b"host"
    core.registers.raise_host_interrupt()
    outcome = core.run()
    assert (outcome.exit_code, outcome.console) == (0, b"hosthost")


def test_polling_for_ever_is_given_up():
    core = case(images.POLL)
    outcome = core.run(instructions=2000)
    assert (outcome.exit_code, outcome.error, core.hart.csr.instret) == (None, None, 2000)


def test_a_doorbell_waits_for_a_place_and_after_an_error_does_not():
    outcome = case(images.DOORBELLS, (DMA0, [record(waits=[Wait(9, 1)])])).run()
    assert (outcome.error.cause, outcome.error.queue, outcome.error.detail) == (Cause.WATCHDOG, DMA0, 9 | 1 << 8)
    assert outcome.exit_code == Cause.WATCHDOG << 8 | QUEUE_BLOCKS + RECORDS_AHEAD[Engine.DMA]


def test_who_waits_for_a_place_ends_at_an_error():
    hanging = DMA0, [record(waits=[Wait(9, 1)])]
    outcome = case(images.RUN, *[hanging] * 12).run()
    assert (outcome.exit_code, outcome.error.cause) == (0x4000_0000 | Cause.WATCHDOG, Cause.WATCHDOG)


def test_places_are_those_of_blocks_not_yet_fetched(hbm):
    queue = Machine(CONFIG, hbm).queues[VECTOR]
    for count, places in ((3, 4), (1, 4), (1, 3), (0, 3), (5, 2), (1, 1)):
        queue.start(RECORDS, count)
        assert queue.places == places


@pytest.mark.parametrize("word, value", HEADERS)
def test_boot_names_the_first_wrong_word(word, value):
    core = case(images.RUN)
    header = core.machine.engines.hbm[:32].view(np.uint32)
    header[7], header[word] = value != HBM_END, value
    outcome = core.run()
    assert outcome.error == CoreError(Cause.BOOT, detail=0 if value == HBM_END else word)
    assert outcome.exit_code is None and core.hart is None


@pytest.mark.parametrize("address", [HBM_BYTES, HBM_BYTES - 128])
def test_boot_reads_beyond_hbm(address):
    core = case(images.RUN)
    if address < HBM_BYTES:
        core.machine.engines.hbm[address : address + 32] = core.machine.engines.hbm[:32]
    assert core.run(address).error == CoreError(Cause.BOOT, detail=0)


def test_memories_are_freed_when_nobody_needs_them(hbm):
    """Without a garbage collection, which takes longer."""
    engines = Engines(CONFIG, hbm)
    freed = ref(engines)
    del engines
    assert freed() is None
