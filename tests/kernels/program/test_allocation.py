"""Allocation of temporaries."""

import inspect
import re

import numpy as np
import pytest

from neuroncore_rtl.kernels.program import Program, allocation, build_image, dma_copy
from neuroncore_rtl.kernels.program.allocator import Allocator, buffer_of, buffers_of
from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.kernels.program.instructions import memset, tensor_copy
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FP32, INT8
from neuroncore_rtl.spec.isa import Storage
from tests.kernels.running import run_golden

CONFIG = Config(rows=4, columns=4)
BANK = CONFIG.psum_bank


def random_steps(rng, space, count, storage, most):
    steps, live, lives = [], [], {}
    for number in range(count):
        touched = [live[rng.integers(len(live))] for _ in range(2 * (len(live) > 2))]
        if len(live) < 3 or rng.random() < 0.4:
            new = space.sbuf if storage == Storage.SBUF else space.psum
            live.append(new(f"t{number}", FP32, (int(rng.integers(1, most)),)))
            touched = [live[-1], *touched[1:]]
        # The first use of one temporary may be the last use of another.
        instruction = tensor_copy(*(tensor[:, :1] for tensor in touched)) if touched[1:] else memset(touched[0], 1.0)
        live = [tensor for tensor in live if tensor not in touched[-2:] or rng.random() < 0.5]
        steps.append(ProgramStep(instruction, 0, None, None, buffers_of((*instruction.writes, *instruction.reads))))
        for tensor in touched:
            buffer = buffer_of(tensor.address)
            lives[buffer] = lives.get(buffer, (number, number))[0], number
    return steps, lives


@pytest.mark.parametrize("storage, most", [(Storage.SBUF, 5000), (Storage.PSUM, 300), (Storage.PSUM, 700)])
def test_random_lifetimes_are_apart_and_aligned(rng, storage, most):
    compared = reused = 0
    for _ in range(40):
        space = Allocator(CONFIG)
        steps, lives = random_steps(rng, space, 80, storage, most)
        try:
            found = allocation.addresses(steps, space)
        except ValueError as refusal:
            assert "must have room for" in str(refusal)
            continue
        places = {number: (found[number], space.buffers[number].size, *lives[number]) for number in lives}
        for number, (start, size, first, last) in places.items():
            assert start % space.buffers[number].alignment == 0
            assert 0 <= start <= start + size <= (CONFIG.sbuf_bytes, CONFIG.psum_bytes)[storage]
            if storage == Storage.PSUM:
                assert start % BANK == 0 if size > BANK else start // BANK == (start + size - 1) // BANK
            for other, (start2, size2, first2, last2) in places.items():
                if other != number and start < start2 + size2 and start2 < start + size:
                    assert last < first2 or last2 < first
                    reused += 1
                compared += 1
    assert compared > 3_000 and reused > 100


def test_a_place_is_taken_again_as_late_as_possible():
    program = Program(CONFIG)
    x = program.space.hbm("x", FP32, (4, 1000))
    for _ in range(60):
        t = program.space.sbuf("t", FP32, (1000,))
        program.append(memset(t, 1.0))
        program.append(dma_copy(x, t))
    places = [entry.instruction.dst.address for entry in program.entries[::2]]
    room = CONFIG.sbuf_bytes // 4032
    assert len(set(places[:room])) == room and places[room:] == places[: 60 - room]
    assert program.end(Storage.SBUF) <= CONFIG.sbuf_bytes and program.end(Storage.PSUM) == 0


def test_what_is_kept_late_takes_room_from_temporaries():
    program = Program(CONFIG)
    program.append(memset(program.space.sbuf("t", FP32, (8,)), 1.0))
    assert program.entries[0].instruction.dst.address == 0
    kept = program.space.sbuf("kept", FP32, (8,), kept=True)
    assert kept.address == 0 and program.entries[0].instruction.dst.address == 64


def test_what_two_sections_touch_keeps_its_place(rng):
    program = Program(CONFIG)
    x, y = (program.space.hbm(name, FP32, (4, 8)) for name in "xy")
    shared = program.space.sbuf("shared", FP32, (8,))
    for number in range(3):
        if number == 1:
            program.append(dma_copy(shared, x))
            program.start_section()
        own = program.space.sbuf("own", FP32, (8,))
        program.append(memset(own, 7.0))
        program.append(dma_copy(y, own))
        program.start_section()
    program.append(dma_copy(y, shared))
    assert len({entry.instruction.dst.address for entry in program.entries if entry.instruction.name == "MEMSET"}) == 3
    values = np.arange(32, dtype=np.float32).reshape(4, 8)
    image = build_image(program, [(x, values.view(np.uint32))])
    assert np.array_equal(y.elements(run_golden(image, rng).hbm).view(np.float32), values)


def test_what_is_read_was_written():
    program = Program(CONFIG)
    x, t = program.space.hbm("x", FP32, (4, 8)), program.space.sbuf("t", FP32, (8,))
    program.append(dma_copy(x, t))
    with pytest.raises(ValueError, match="t must be written before DMA_COPY reads it"):
        program.records()


def test_what_is_in_the_way_is_named():
    program = Program(CONFIG)
    sizes = {"a": 12_500, "b": 22_500, "c": 15_000}
    tensors = [program.space.sbuf(name, INT8, (4, size)) for name, size in sizes.items()]
    for tensor in (*tensors, *tensors):
        program.append(memset(tensor, 0))
    with pytest.raises(ValueError) as refusal:
        allocation.addresses(program.steps, program.space)
    line = rf"\(test_allocation.py:{inspect.currentframe().f_lineno - 3}\)"
    beside = "c: SBUF must have room for 60,000 bytes of a partition beside 140,000 of 196,608 that are live"
    assert re.fullmatch(rf"{beside} {line}:\n  b: 90,000 bytes {line}\n  a: 50,000 bytes {line}", str(refusal.value))
    # The message names the line of the first use, also for a tensor that is live in two sections.
    program = Program(CONFIG)
    out = program.space.hbm("out", INT8, (4, 10))
    sizes = {"s": 10, "l": 30_000, "h": 20_000}
    small, large, huge = (program.space.sbuf(name, INT8, (4, size)) for name, size in sizes.items())
    program.append(memset(small, 0))
    program.append(memset(large, 0))
    line = inspect.currentframe().f_lineno - 1
    program.start_section()
    program.append(memset(huge, 0))
    program.append(dma_copy(out, large[:, 0, :10]))
    with pytest.raises(ValueError, match=rf"h: SBUF .* \(test_allocation.py:{line + 3}\):\n  l: .*:{line}\)$"):
        allocation.addresses(program.steps, program.space)
    beside = "h 80,000 bytes of a partition, beside 120,000 of tiles that several sections use, not 196,608"
    with pytest.raises(
        ValueError, match=rf"SBUF must have room for its tiles, {beside} \(test_allocation.py:{line + 3}"
    ):
        program.records()
