"""Registers and loops with dynamic bounds on golden."""

from dataclasses import replace

import numpy as np
import pytest

from neuroncore_rtl.golden import core, timing
from neuroncore_rtl.kernels.control import ROUNDS_CODE, trace_operations
from neuroncore_rtl.kernels.program import Program, build_image, dma_copy, dma_gather, dma_scatter
from neuroncore_rtl.kernels.program.instructions import memset, tensor_copy, tensor_scalar, tensor_tensor
from neuroncore_rtl.spec.config import preset_named
from neuroncore_rtl.spec.formats import FP32, INT8, INT16, INT32, UINT8, UINT32
from neuroncore_rtl.spec.isa import AluOp
from tests.kernels.program.loops import TINY, triangle
from tests.kernels.running import hbm_after


def run(program, contents, rng, results):
    found = []
    for order in (None, rng):
        hbm = hbm_after(program, contents, order)
        found.append([tensor.elements(hbm).view(np.int32).copy() for tensor in results])
    assert all((one == other).all() for one, other in zip(*found, strict=True))
    return found[0]


@pytest.mark.parametrize("order", ["program", "scheduled"])
@pytest.mark.parametrize("lower, upper, step", [(0, 0, 1), (0, 1, 1), (0, 5, 1), (3, 14, 4), (-3, 4, 3), (5, 2, 1)])
@pytest.mark.parametrize("known", [False, True])
def test_a_loop_runs_as_often_as_a_range_has_numbers(rng, lower, upper, step, known, order):
    program = Program(TINY, order=order)
    space, flow = program.space, program.flow
    bounds, log = space.hbm("bounds", INT32, (2, 1)), space.hbm("log", INT32, (16, 1))
    number, total = (space.sbuf(name, INT32, (1,), 1) for name in ("number", "total"))
    first, end = (lower, upper) if known else (flow.register(), flow.register())
    for register, bound in () if known else ((first, bounds[0:1]), (end, bounds[1:2])):
        flow.load(register, bound)
    program.append(memset(total, 0))
    with flow.loop(first, end, step) as index:
        flow.store(number, index)
        row = space.sbuf("row", INT32, (1,), 1)
        program.append(tensor_scalar(row, total, 0, AluOp.ADD))
        program.append(tensor_scalar(total, total, 1, AluOp.ADD))
        program.append(dma_scatter(log, number, row))
    expected = list(range(lower, upper, step))
    (found,) = run(program, [(bounds, np.array([[lower], [upper]]) & 0xFFFF_FFFF)], rng, [log])
    assert list(found[: len(expected), 0]) == expected and not found[len(expected) :].any()


@pytest.mark.parametrize("count", [0, 1, 4])
def test_loops_within_loops(rng, count):
    program, given, log = triangle()
    (found,) = run(program, [(given, np.array([count]))], rng, [log])
    pairs = [10 * outer + inner for outer in range(count) for inner in range(outer)]
    assert list(found[: len(pairs), 0]) == pairs and not found[len(pairs) :].any()


@pytest.mark.parametrize("number, rounds", [(0, 0), (1, 1), (12, 4), (255, 8)])
def test_a_loop_goes_on_while_what_it_computes_is_not_zero(rng, number, rounds):
    program = Program(TINY)
    space, flow = program.space, program.flow
    given, out = space.hbm("given", INT32, (1,)), space.hbm("out", INT32, (1,))
    value, count = (space.sbuf(name, INT32, (1,), 1) for name in ("value", "count"))
    program.append(dma_copy(value[:, 0], given.reshape(1)))
    program.append(memset(count, 0))
    left = flow.register()
    flow.load(left, value)
    with flow.loop_while(left):
        program.append(tensor_scalar(value, value, 1, AluOp.LOGICAL_SHIFT_RIGHT))
        program.append(tensor_scalar(count, count, 1, AluOp.ADD))
        flow.load(left, value)
    program.append(dma_copy(out.reshape(1), count[:, 0]))
    (found,) = run(program, [(given, np.array([number]))], rng, [out])
    assert list(found) == [rounds]


def test_bounds_are_read_once(rng):
    program = Program(TINY)
    flow, out = program.flow, program.space.hbm("out", INT32, (1, 1))
    bound, sum_ = flow.register(3), program.space.sbuf("sum", INT32, (1,), 1)
    program.append(memset(sum_, 0))
    with flow.loop(0, bound):
        flow.set(bound, 100)
        program.append(tensor_scalar(sum_, sum_, 1, AluOp.ADD))
    flow.set(bound, bound)
    program.append(tensor_tensor(sum_, sum_, bound.word, AluOp.ADD))
    program.append(dma_copy(out, sum_))
    (found,) = run(program, [], rng, [out])
    assert found == 103


def test_registers_hold_integers_of_all_sizes_from_everywhere(rng):
    program = Program(TINY)
    space, flow = program.space, program.flow
    results, contents = [], []
    for fmt, number in ((INT8, -7), (INT16, -30_000), (INT32, -(1 << 31)), (UINT8, 200), (UINT32, -2)):
        given = space.hbm("given", fmt, (4, 3))
        contents.append((given, np.full((4, 3), number) & ((1 << fmt.bits) - 1)))
        tile = space.sbuf("tile", fmt, (3,))
        program.append(dma_copy(tile, given))
        sums = space.psum("sums", INT32, (3,))
        program.append(tensor_copy(sums, tile if fmt is not UINT32 else tile.bitcast(INT32)))
        for place in (given[1:2, 2:3], tile[3:4, 1:2], sums[2:3, 0:1]):
            register, copy = flow.register(), flow.register(5)
            flow.load(register, place)
            flow.set(copy, register)
            flow.set(register, 1)
            out = space.hbm("out", INT32, (1, 1))
            flow.store(out, copy)
            results.append((out, number))
    found = run(program, contents, rng, [out for out, _ in results])
    assert [int(one[0, 0]) for one in found] == [number for _, number in results]


def test_a_loop_that_does_not_end_is_ended():
    program = Program(TINY)
    flow, t = program.flow, program.space.sbuf("t", FP32, (8,))
    flow.rounds = 7
    with flow.loop(0, 3), flow.loop_while(flow.register(1)):
        program.append(memset(t, 0.0))
    image = build_image(program)
    outcome = core.Core(TINY, image.memory()).run()
    assert outcome.exit_code & ROUNDS_CODE and outcome.error is None and len(outcome.records) == 8
    assert "test_flow.py" in str(image.flow[outcome.exit_code ^ ROUNDS_CODE].source)


def test_the_operations_of_a_run_are_told_from_what_the_controller_read():
    program, given, _ = triangle()
    image = build_image(program, [(given, np.array([3]))])
    outcome = core.Core(TINY, image.memory()).run()
    names = [operation.code.name for operation, _ in trace_operations(image.flow, outcome.loaded)]
    assert names.count("AGAIN") == 3 + 3 and names[-1] == "END" and names.count("UNLESS_LESS") == 4 + 3 + 3
    assert len([*trace_operations(image.flow, outcome.loaded[:-1])]) < len(names)
    with pytest.raises(ValueError, match="sections and path must be given for an image with registers or loops"):
        timing.predict(image)


def test_a_program_without_registers_has_no_flow():
    program = Program(TINY)
    x, t = program.space.hbm("x", FP32, (4, 8)), program.space.sbuf("t", FP32, (8,))
    for _ in range(2):
        program.append(dma_copy(t, x))
        program.start_section()
    image = build_image(program, runs=[0, 1, 0])
    assert image.flow is None and image.runs == (0, 1, 0)


def test_what_is_kept_from_round_to_round_keeps_its_place(rng):
    program = Program(TINY)
    space, flow = program.space, program.flow
    table, out = space.hbm("table", INT32, (6, 8)), space.hbm("out", INT32, (1, 8))
    total = space.sbuf("total", INT32, (8,), 1)
    program.append(memset(total, 1))
    with flow.loop(1, 5) as index:
        row = space.sbuf("row", INT32, (8,), 1)
        program.append(dma_gather(row, table, index.word))
        flow.set(flow.register(), 9)  # another section
        program.append(tensor_tensor(total, total, row, AluOp.ADD))
        program.append(memset(row, -1))
    program.append(dma_copy(out, total))
    values = np.arange(48).reshape(6, 8)
    (found,) = run(program, [(table, values)], rng, [out])
    assert (found[0] == 1 + values[1:5].sum(0)).all()


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda p, r, t: p.flow.load(r, t), r"t: the tensor of a register must be one integer, not \(4, 8\) of fp32"),
        (lambda p, r, t: p.flow.set(r, 1 << 31), "a register's value must be a 32-bit integer or a register"),
        (lambda p, r, t: p.flow.set(r, 0.5), "a register's value must be .* not 0.5"),
        (lambda p, r, t: p.flow.set(p.flow.register(), r), "a register must have a value before it is read"),
        (lambda p, r, t: p.flow.loop_while(r), "a register must have a value before it is read"),
        (lambda p, r, t: p.flow.loop(0, 3, 0), "a loop's step must be a constant integer of at least 1"),
        (lambda p, r, t: p.flow.loop(0, 3, p.flow.register(1)), "a loop's step must be a constant integer"),
        (lambda p, r, t: p.flow.set(p.flow.loop(0, 3).__enter__(), 1), "the counter of a loop must not be written"),
    ],
)
def test_refused_with_the_line(wrong, message):
    program = Program(TINY)
    register, t = program.flow.register(), program.space.sbuf("t", FP32, (8,))
    with pytest.raises(ValueError, match=message) as refused:
        wrong(program, register, t)
    assert "(test_flow.py:" in str(refused.value)


def test_a_program_with_loops_is_whole_and_has_its_own_order():
    program = Program(TINY)
    program.flow.register(4)
    with pytest.raises(ValueError, match="runs and control must be None for a program with registers or loops"):
        build_image(program, runs=[0])
    program.flow.loop(0, 3).__enter__()
    with pytest.raises(ValueError, match=r"the program must end outside of loops, but the loop at test_flow"):
        build_image(program)


def test_other_machines_run_loops_alike(rng):
    machines = [replace(preset_named("small"), dma_engines=engines) for engines in (1, 3)]
    found = []
    for config in (TINY, *machines):
        program, given, log = triangle(config)
        found += run(program, [(given, np.array([4]))], rng, [log])
    assert all((one == found[0]).all() for one in found)
