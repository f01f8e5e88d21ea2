"""Causes of stalls in programs with handmade times."""

from dataclasses import replace

import pytest

from neuroncore_rtl.kernels.program import dma_copy, load_stationary, multiply_moving
from neuroncore_rtl.kernels.program.instructions import activation, memset, scalar_tensor_tensor, tensor_copy
from neuroncore_rtl.run.view.profile.stalls import StallCause, causes_of, counted_stalls, spans_of
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.isa import AluOp
from tests.run.view.profile.hand import hand_run, soonest_run

TENSOR, VECTOR, SCALAR, DMA0, DMA1 = range(5)


def tile(program, name="tile", fmt=FP32):
    return program.space.sbuf(name, fmt, (8,), 4)


def loaded(program):
    x, here = program.space.hbm("x", FP32, (4, 8)), tile(program)
    program.append(dma_copy(here, x))
    program.append(tensor_copy(tile(program, "out"), here))


def passed_on(program):
    here = tile(program)
    program.append(memset(here, 1.0))
    program.append(activation(tile(program, "out"), here, "exp"))


def stored(program):
    y, here = program.space.hbm("y", FP32, (4, 8)), tile(program)
    program.append(memset(here, 1.0))
    program.append(dma_copy(y, here))
    program.append(memset(here, 2.0))


def alone(program):
    program.append(memset(tile(program), 1.0))
    program.append(memset(tile(program, "other"), 1.0))


def spans(run, queue):
    return [(begin, end, cause.name) for begin, end, cause in spans_of(causes_of(run, queue))]


STARTED = 0, 100, "START"

CASES = {
    # Stalled queue; cycles of fetch, issue and retirement of records; the stalls of that queue, by hand.
    "data": (loaded, VECTOR, [(90, 100, 400), (95, 404, 450)], [STARTED, (100, 404, "DATA")]),
    "result": (passed_on, SCALAR, [(90, 100, 300), (92, 304, 350)], [STARTED, (100, 304, "RESULT")]),
    "place": (stored, VECTOR, [(90, 100, 120), (90, 124, 500), (101, 504, 550)], [STARTED, (120, 504, "PLACE")]),
    "record": (alone, VECTOR, [(90, 100, 150), (380, 381, 400)], [STARTED, (150, 381, "RECORD")]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_stall_has_its_cause(name):
    kernel, queue, times, stalls = CASES[name]
    run = hand_run(kernel, times)
    assert spans(run, queue) == [*stalls, (times[-1][2], 1000, "END")]
    counts = counted_stalls(causes_of(run, queue))
    assert sum(counts.values()) == run.cycles == 1000
    assert counts[StallCause.BUSY] == run.worked(queue)


def test_an_engine_waits_for_itself_while_it_fills_and_drains():
    def product(program):
        a, b = tile(program, "a", BF16), tile(program, "b", BF16)
        program.append(memset(a, 1.0))
        program.append(memset(b, 1.0))
        program.append(load_stationary(a[:, :4]))
        program.append(multiply_moving(program.space.psum("sums", FP32, (8,), 4), b))

    run = hand_run(product, [(50, 60, 80), (55, 82, 100), (60, 84, 90), (61, 104, 150)], busy={TENSOR: [(110, 118)]})
    waits = [(0, 60, "START"), (60, 104, "RESULT"), (104, 110, "ENGINE"), (118, 150, "ENGINE"), (150, 1000, "END")]
    assert spans(run, TENSOR) == waits


def test_what_is_done_last_is_the_cause():
    def kernel(program):
        x, here, there = program.space.hbm("x", FP32, (4, 8)), tile(program), tile(program, "there")
        program.append(dma_copy(here, x))
        program.append(activation(there, there_first(program), "exp"))
        program.append(scalar_tensor_tensor(tile(program, "out"), here, 1.0, AluOp.ADD, there, AluOp.ADD))

    def there_first(program):
        start = tile(program, "start")
        program.append(memset(start, 0.0))
        return start

    early, late = (40, 100, 200), (40, 100, 600)
    for load, result, cause in ((late, (160, 170, 200), "DATA"), (early, (160, 170, 600), "RESULT")):
        # In program order: the load, the memset, the function, the sum.
        run = hand_run(kernel, [load, (60, 110, 150), result, (161, 604, 700)])
        assert spans(run, VECTOR)[-2:] == [(150, 604, cause), (700, 1000, "END")]


@pytest.mark.parametrize("first", ["its own instruction", "the loads"])
def test_a_wait_that_another_record_has_taken_up_has_the_cause_of_what_it_is_for(first):
    """The instruction needs three waits, a record has two: one wait is in the queue's preceding record or a NOP."""

    def kernel(program):
        factor = program.space.sbuf("factor", FP32, (1,), 4)
        part, start, third = (tile(program, name) for name in ("part", "start", "third"))
        loads = [dma_copy(one, program.space.hbm(one.name, FP32, (4, *one.shape))) for one in (factor, part)]
        steps = [memset(start, 0.0), *loads]
        for step in steps if first == "its own instruction" else [*loads, memset(start, 0.0)]:
            program.append(step)
        program.append(activation(third, start, "exp"))
        program.append(scalar_tensor_tensor(tile(program, "sums"), third, factor, AluOp.ADD, part, AluOp.ADD))

    for slow, cause in ((DMA1, StallCause.DATA), (DMA0, StallCause.DATA), (SCALAR, StallCause.RESULT)):
        run = soonest_run(kernel, lambda entry, slow=slow: 500 if entry.queue == slow and entry.number == 0 else 20)
        spent = counted_stalls(causes_of(run, VECTOR))
        assert sum(spent.values()) == run.cycles
        causes = set(spent) - {StallCause.START, StallCause.END, StallCause.BUSY}
        assert max(causes, key=spent.get) == cause and spent[cause] > 400


def test_between_sections_the_controller_works():
    def kernel(program):
        loaded(program)
        program.start_section()
        loaded(program)

    run = hand_run(kernel, [(90, 100, 150), (90, 154, 200), (590, 600, 700), (590, 704, 750)])
    stalls = [(0, 100, "START"), (100, 154, "DATA"), (200, 600, "START"), (600, 704, "DATA"), (750, 1000, "END")]
    assert spans(run, VECTOR) == stalls
    assert spans(run, DMA0)[:2] == [(0, 100, "START"), (150, 200, "END")]


def test_a_section_may_run_again():
    once = hand_run(loaded, [(90, 100, 150), (90, 154, 200)])
    records = list(once.records)
    for n, ran in enumerate(once.records, 2):
        records.append(replace(ran, number=n, fetched=590, issued=ran.issued + 500, retired=ran.retired + 500))
    twice = replace(once, records=records, busy=once.busy | {VECTOR: [(154, 200), (654, 700)]})
    assert [begin for _, begin, _ in twice.sections] == [100, 600]
    assert twice.awaited(records[3]) == [records[2]]
    assert spans(twice, VECTOR)[2:] == [(200, 600, "START"), (600, 654, "DATA"), (700, 1000, "END")]


def test_a_run_that_broke_off():
    run = hand_run(loaded, [(90, 100, None), (95, 1000, None)])
    assert spans(run, VECTOR) == [(0, 100, "START"), (100, 1000, "DATA")]
    stalls = {StallCause.START: 100, StallCause.END: 900}
    assert counted_stalls(causes_of(run, SCALAR)) == dict.fromkeys(StallCause, 0) | stalls
    assert run.busiest == DMA0
