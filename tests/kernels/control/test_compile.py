"""Compiler of control programs; other tests run the programs."""

from pathlib import Path

import pytest

from neuroncore_rtl.kernels.control import CompilationFailed, compile, compile_program
from neuroncore_rtl.spec import memory_map as at


def compile_text(tmp_path, text, **options):
    source = tmp_path / "program.c"
    source.write_text(text)
    return compile_program([source], **options)


def test_layout(tmp_path):
    text = """
        #include "core.h"
        uint32_t variable[3], constant = 5;
        int main(void) { variable[0] = constant; return (int)variable[image_arguments[0]]; }
    """
    program = compile_text(tmp_path, text)
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
    small = len(compile_text(tmp_path, text, flags=["-DN=2"]).bytes)
    assert len(compile_text(tmp_path, text, flags=["-DN=4"]).bytes) == pytest.approx(small + 2000, abs=32)
    (tmp_path / "size.h").write_text("#define SIZE 3000\n")
    assert len(compile_text(tmp_path, text, flags=["-DN=2"]).bytes) == pytest.approx(small + 4000, abs=32)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int main(void) { return x; }\n", "program.c cannot be compiled:\n(?s:.*)undeclared identifier 'x'"),
        ("void f(void) {}\n", "undefined symbol: main"),
        ("char data[40000] = {1};\nint main() { return data[1]; }\n", "text and data must .* half of local memory"),
        ("volatile char data[30000];\nint main(void) { return data[1]; }\n", "variables must leave the stack 4 KiB"),
    ],
)
def test_refusals_carry_the_compilers_message(tmp_path, text, message):
    with pytest.raises(CompilationFailed, match=message):
        compile_text(tmp_path, text)


def test_sources_must_exist():
    with pytest.raises(CompilationFailed, match="a source must be an existing .c or .S file, not"):
        compile_program([Path("nowhere.c")])


def test_header_names_every_number():
    header = compile.memory_map_header()
    assert "#define EXIT 0x40002000\n" in header
    assert "#define COUNTER_EXECUTING 0x5\n" in header
