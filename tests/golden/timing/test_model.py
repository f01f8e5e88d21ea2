"""Rules of the timing model; `tests/run/test_modelled.py` compares it with the RTL."""

from dataclasses import replace

import pytest

from neuroncore_rtl.golden.timing import ControlPath, MemoryTiming, predict
from neuroncore_rtl.kernels.library.matmul import matmul
from neuroncore_rtl.kernels.program import Program, build_image, dma_copy
from neuroncore_rtl.kernels.program.instructions import memset
from neuroncore_rtl.kernels.program.products import load_stationary, multiply_moving
from neuroncore_rtl.spec import formats, isa
from neuroncore_rtl.spec.config import PRESETS

TINY = PRESETS["tiny"]


def product(m=8, k=8, n=12, config=TINY):
    program = Program(config)
    a, b = program.space.hbm("a", formats.BF16, (k, m)), program.space.hbm("b", formats.BF16, (k, n))
    matmul(program, program.space.hbm("c", formats.FP32, (m, n)), a, b)
    return build_image(program)


def test_records_are_timed_in_order_with_the_causes_of_waits_and_always_alike():
    image = product()
    actual = predict(image)
    assert len(actual.records) == sum(map(len, image.records))
    for record in actual.records:
        assert 0 < record.fetched <= record.ready < record.issued < record.retired < actual.cycles
    for queue in {record.queue for record in actual.records}:
        issued = [record.issued for record in actual.records if record.queue == queue]
        assert issued == sorted(issued)
    assert predict(product()) == actual
    assert actual.waits["tensor"]["semaphore"] > 0 and actual.waits["vector"]["fetch"] > 0
    assert actual.busy["tensor"] == 2 * 2 * 12 and actual.busy["scalar"] == 0


def test_slower_memory_takes_longer():
    image = product(32, 32, 32)
    cycles = [predict(image, MemoryTiming(latency=latency)).cycles for latency in (1, 64, 200)]
    assert cycles == sorted(cycles) and cycles[0] + 300 < cycles[-1]
    limited = [predict(image, MemoryTiming(bandwidth=bandwidth)).cycles for bandwidth in (16, 4, 1)]
    assert limited == sorted(limited)
    moved = 2 * 2 * 32 * 32 + 4 * 32 * 32
    assert limited[-1] > moved


def test_a_wait_without_an_update_is_reported():
    image = product()
    first, *others = image.records[0]
    stuck = replace(first, waits=(isa.Wait(200, 1),))
    with pytest.raises(ValueError, match="a record of queue .* waits for ever"):
        predict(replace(image, records=((stuck, *others), *image.records[1:])))


def test_cores_of_an_instance_are_refused():
    with pytest.raises(ValueError, match="cores must be 1"):
        predict(product(config=replace(TINY, cores=2)))


@pytest.mark.parametrize("wrong", [{"latency": 0}, {"bandwidth": -1}], ids=str)
def test_impossible_memories_are_refused(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be at least"):
        MemoryTiming(**wrong)


def two_products():
    program = Program(TINY)
    for name in "ab":
        left, right = program.space.hbm(name, formats.BF16, (8, 8)), program.space.hbm(name, formats.BF16, (8, 12))
        matmul(program, program.space.hbm("c", formats.FP32, (8, 12)), left, right)
        program.start_section()
    return build_image(program)


def test_sections_are_run_as_often_as_named_with_clear_semaphores_and_their_own_path():
    image = two_products()
    both, one = predict(image), predict(image, sections=[0])
    assert len(both.records) == 2 * len(one.records) and one.cycles < both.cycles
    again = predict(image, sections=[1, 0, 1])
    assert len(again.records) == 3 * len(one.records) and again.cycles > both.cycles
    count = len(both.records) // 2
    first, second = ([record.issued for record in part] for part in (both.records[:count], both.records[count:]))
    assert max(first) - min(first) == pytest.approx(max(second) - min(second), abs=8)
    assert predict(image, path=ControlPath(first=32, between=116, last=62)).cycles - both.cycles == 150


def copied(order, m, n, config, latency):
    """Return the cycles of a copy in HBM of n rows of m elements: transposed, or to every other element."""
    program = Program(config)
    if order == "transposed":
        source, target = program.space.hbm("x", formats.FP32, (m, n)).permute(1, 0), (n, m)
    else:
        source, target = program.space.hbm("x", formats.FP32, (n, m)), (n, 2 * m)
    result = program.space.hbm("y", formats.FP32, target)
    program.append(dma_copy(result if order == "transposed" else result[:, ::2], source))
    return predict(build_image(program), MemoryTiming(latency=latency)).cycles


@pytest.mark.parametrize(
    ("order", "preset", "latency", "each"),
    [
        ("transposed", "tiny", 64, 1),
        ("transposed", "tiny", 200, 200 / 64),
        ("transposed", "nano", 64, 2),
        ("transposed", "nano", 200, 200 / 64),
        ("spread", "tiny", 64, 1),
        ("spread", "tiny", 200, 205 / 128),
    ],
)
def test_an_element_takes_the_cycles_of_a_burst(order, preset, latency, each):
    """64 reads are under way, or 128 writes; the address register of `port_latency` takes every other cycle."""
    config, elements = PRESETS[preset], (1024, 4096)
    few, many = (copied(order, 32, count // 32, config, latency) for count in elements)
    assert many - few == pytest.approx(each * (elements[1] - elements[0]), abs=8)


@pytest.mark.parametrize(("interval", "apart"), [(0, 40), (60, 4 * 60)])
def test_products_wait_for_weights_that_load_more_slowly(interval, apart):
    program = Program(replace(PRESETS["small"], load_interval=interval))
    a, b = (program.space.sbuf(name, formats.BF16, (n,)) for name, n in (("a", 16), ("b", 40)))
    result = program.space.psum("result", formats.FP32, (40,))
    for tile in (a, b):
        program.append(memset(tile, 1.0))
    for _ in range(6):
        program.append(load_stationary(a))
        program.append(multiply_moving(result, b))
    began = [record.began for record in predict(build_image(program)).records if record.began >= 0]
    assert len(began) == 6 and began[-1] - began[-2] == apart
