"""Compiling control programs, and the stock program, run by the golden hart with queues that this file plays."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from neuroncore_rtl.golden.controller import AccessFault, Hart, LocalMemory
from neuroncore_rtl.kernels.control import Block, CompilationFailed, compile_program, run_arguments, run_program
from neuroncore_rtl.kernels.control.compile import memory_map_header
from neuroncore_rtl.spec import memory_map as at


class Queues:
    """The registers that the stock program uses: queues retire a record with every read; an error comes on demand."""

    def __init__(self, error_after=None):
        self.rung, self.unfinished, self.address = [], [], {}
        self.count, self.retired = Counter(), Counter()
        self.reads, self.error_after = 0, error_after
        self.code = None

    def load(self, address, size):
        self.reads += 1
        stuck = self.error_after is not None and self.reads > self.error_after
        if address == at.ERROR_CAUSE:
            return 36 if stuck else 0
        queue, offset = divmod(address - at.QUEUES, at.QUEUE_STRIDE)
        if not stuck and self.retired[queue] < self.count[queue]:
            self.retired[queue] += 1
        waiting = self.count[queue] - self.retired[queue]
        places = 0 if stuck or waiting > 5 else 1
        reads = {at.QUEUE_PLACES: places, at.QUEUE_RETIRED: self.retired[queue], at.QUEUE_COUNT: self.count[queue]}
        return reads[offset]

    def store(self, address, size, value):
        if address == at.EXIT:
            self.code = value
            return
        queue, offset = divmod(address - at.QUEUES, at.QUEUE_STRIDE)
        if offset == at.QUEUE_START:
            self.unfinished.append(self.count.total() - self.retired.total())
            low, high = self.address[queue, at.QUEUE_LOW], self.address[queue, at.QUEUE_HIGH]
            self.rung.append(Block(queue, high << 32 | low, value))
            self.count[queue] += value
        elif offset in (at.QUEUE_LOW, at.QUEUE_HIGH):
            self.address[queue, offset] = value
        else:
            raise AccessFault


def run_stock(blocks, **options):
    queues = Queues(**options)
    hart = Hart(LocalMemory(run_program().image(run_arguments(blocks))), queues)
    for _ in range(20_000):
        if queues.code is not None:
            return queues
        assert hart.step().cause is None
    raise AssertionError("the program does not end")


BLOCKS = [Block(0, 0x12_3456_7880, 7), Block(3, 0x80, 65_535 % 100), Block(0, 0x4000, 9), Block(2, 0x100, 1)]


def test_stock_program_rings_in_order_and_waits_for_all():
    queues = run_stock(BLOCKS)
    assert queues.code == 0 and queues.rung == BLOCKS
    assert queues.retired == queues.count == {0: 16, 3: 35, 2: 1}


def test_a_section_starts_when_the_one_before_has_retired():
    sections = [replace(block, section=number // 2) for number, block in enumerate(BLOCKS)]
    queues = run_stock(sections)
    assert queues.code == 0 and queues.rung == BLOCKS
    assert [count == 0 for count in queues.unfinished] == [True, False, True, False]
    assert 0 not in run_stock(BLOCKS).unfinished[1:]


@pytest.mark.parametrize("reads", (0, 6, 20))
def test_stock_program_reports_an_error_wherever_it_comes(reads):
    assert run_stock(BLOCKS, error_after=reads).code == 0x4000_0000 | 36


def test_stock_program_without_blocks_ends():
    assert run_stock([]).code == 0


def compiled(tmp_path, text, name="program.c", **options):
    source = tmp_path / name
    source.write_text(text)
    return compile_program([source], **options)


def test_layout(tmp_path):
    text = """
        #include "core.h"
        uint32_t variable[3], constant = 5;
        int main(void) { variable[0] = constant; return (int)variable[image_arguments[0]]; }
    """
    program = compiled(tmp_path, text)
    symbols = program.symbols
    assert symbols["_start"] == at.LOCAL_BASE
    assert symbols["image_arguments"] == at.LOCAL_BASE + len(program.bytes) and len(program.bytes) % 16 == 0
    assert symbols["bss_start"] <= symbols["variable"] < symbols["bss_end"] < symbols["stack_top"]
    assert symbols["stack_top"] == at.LOCAL_BASE + at.LOCAL_BYTES
    assert program.image([1, 0xFFFF_FFFF])[-8:] == bytes([1, 0, 0, 0, 255, 255, 255, 255])
    with pytest.raises(ValueError, match="program and arguments must have at most 36864 bytes"):
        program.image([0] * 0x2400)


def test_flags_and_headers_beside_the_source_count(tmp_path):
    text = '#include "size.h"\nunsigned char data[SIZE * N] = {1};\nint main(void) { return data[N]; }\n'
    (tmp_path / "size.h").write_text("#define SIZE 1000\n")
    small = len(compiled(tmp_path, text, flags=["-DN=2"]).bytes)
    assert len(compiled(tmp_path, text, flags=["-DN=4"]).bytes) == pytest.approx(small + 2000, abs=32)
    (tmp_path / "size.h").write_text("#define SIZE 3000\n")
    assert len(compiled(tmp_path, text, flags=["-DN=2"]).bytes) == pytest.approx(small + 4000, abs=32)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int main(void) { return x; }\n", "program.c cannot be compiled:\n(?s:.*)undeclared identifier 'x'"),
        ("void f(void) {}\n", "undefined symbol: main"),
        ("char data[40000] = {1};\nint main(void) { return data[1]; }\n", "text and data must have at most 32 KiB"),
        ("volatile char data[30000];\nint main(void) { return data[1]; }\n", "variables must leave the stack 4 KiB"),
    ],
)
def test_refusals_carry_the_compilers_message(tmp_path, text, message):
    with pytest.raises(CompilationFailed, match=message):
        compiled(tmp_path, text)


def test_sources_must_exist():
    with pytest.raises(CompilationFailed, match="a source must be an existing .c or .S file, not"):
        compile_program([Path("nowhere.c")])


def test_header_names_every_number():
    header = memory_map_header()
    assert "#define EXIT 0x40002000\n" in header
    assert "#define COUNTER_EXECUTING 0x5\n" in header
