"""User programs run by `neuroncore_rtl.run.run`."""

import json
import re

import numpy as np
import pytest

from neuroncore_rtl.kernels.program import HbmTensor, Program, dma_copy, dma_gather, instructions
from neuroncore_rtl.run import report, run
from neuroncore_rtl.run.program import ProgramFailed, ProgramJob
from neuroncore_rtl.spec.config import Config, preset_named
from neuroncore_rtl.spec.formats import BF16, FORMATS, FP8E4M3, FP32, INT8, INT32
from neuroncore_rtl.spec.isa import AluOp

TINY, TWO_CORES = preset_named("tiny"), Config(rows=4, columns=4, cores=2)
VALUES = np.arange(-16, 16, dtype=np.float32).reshape(4, 8)


def double(program):
    x, y = program.space.hbm("x", FP32, (4, 8)), program.space.hbm("y", BF16, (4, 8))
    program.space.hbm("untouched", FP32, (4, 8))
    tile, out = program.space.sbuf("tile", FP32, (8,)), program.space.sbuf("out", BF16, (8,))
    program.append(dma_copy(tile, x))
    program.append(instructions.tensor_scalar(out, tile, 2.0, AluOp.MULTIPLY))
    program.append(dma_copy(y, out))


def copy_kernel(fmt):
    def copy(program):
        x, y = (program.space.hbm(name, fmt, (4, 8)) for name in "xy")
        program.append(dma_copy(y, x))

    return copy


def test_a_kernel_on_the_rtl(tmp_path):
    with report.recording_in(tmp_path):
        result = run(double, {"x": VALUES}, preset="tiny", stall=30, latency=20)
    assert result.bit_exact and result.compared > 4 * VALUES.size
    assert list(result.arrays) == ["y"] and np.array_equal(result.arrays["y"], 2 * VALUES)
    assert result.cycles > 100 and result.program.config == TINY
    assert 0 < result.utilisation["vector"] < 1 and result.utilisation["tensor"] == 0
    assert set(result.stalls) == {"vector", "dma0", "dma1"}
    for causes in result.stalls.values():
        assert set(causes) == {"idle", "wait_fetch", "wait_semaphore", "wait_engine"}
        assert 0 < sum(causes.values()) < result.cycles
    assert result.timeline.is_relative_to(tmp_path) and "double" in result.timeline.name
    assert json.loads(result.timeline.read_text())["traceEvents"]
    assert f"{result.cycles:,}" in str(result) and "bit-exact         yes" in str(result)


def test_a_bit_that_differs_is_told(tmp_path, monkeypatch):
    golden = ProgramJob.golden

    def wrong(job):
        expected = golden(job)
        expected.memories["hbm"][0, -1] ^= 1
        return expected

    monkeypatch.setattr(ProgramJob, "golden", wrong)
    with report.recording_in(tmp_path):
        result = run(double, {"x": VALUES}, preset="tiny")
    assert (result.bit_exact, result.mismatches) == (False, 1) and "bit-exact         no" in str(result)


def test_golden_knows_the_arrays_alone():
    result = run(double, {"x": VALUES}, preset="tiny", on="golden")
    assert np.array_equal(result.arrays["y"], 2 * VALUES) and result.arrays["y"].dtype == np.float32
    assert (result.bit_exact, result.cycles, result.timeline, dict(result.stalls)) == (None, None, None, {})
    assert "cycles" not in str(result)


def test_the_timing_model_adds_cycles_that_no_rtl_has_run(tmp_path):
    model = run(double, {"x": VALUES}, preset="tiny", on="model", latency=100)
    with report.recording_in(tmp_path):
        rtl = run(double, {"x": VALUES}, preset="tiny", latency=100)
    assert np.array_equal(model.arrays["y"], rtl.arrays["y"]) and model.bit_exact is None
    assert abs(model.cycles - rtl.cycles) <= 0.05 * rtl.cycles and set(model.utilisation) == set(rtl.utilisation)
    assert "no RTL has run" in str(model) and "bit-exact" not in str(model)
    with pytest.raises(ValueError, match="STALL must be 0 for TARGET=model, not 10"):
        run(double, {"x": VALUES}, preset="tiny", on="model", stall=10)


@pytest.mark.parametrize("fmt", FORMATS.values())
def test_numbers_and_codes_of_every_format(rng, fmt):
    codes = rng.integers(0, 1 << fmt.bits, (4, 8)).astype(f"uint{fmt.bits}")
    result = run(copy_kernel(fmt), {"x": codes}, preset="tiny", on="golden")
    assert np.array_equal(result.codes["y"], codes) and result.codes["y"].dtype == codes.dtype
    array = result.arrays["y"]
    assert array.dtype == (np.float32 if fmt.is_float else fmt.name)
    again = run(copy_kernel(fmt), {"x": array}, preset="tiny", on="golden").arrays["y"]
    assert np.array_equal(again, array, equal_nan=fmt.is_float)


def test_numbers_are_rounded_to_nearest_even():
    values = np.zeros((4, 8))
    values[0, :5] = 1 + 2**-8, 1 + 3 * 2**-8, 300, 1e39, -0.0
    narrow = run(copy_kernel(FP8E4M3), {"x": values}, preset="tiny", on="golden").arrays["y"]
    assert narrow[0, :4].tolist() == [1, 1, np.inf, np.inf]
    result = run(copy_kernel(BF16), {"x": values}, preset="tiny", on="golden")
    assert result.codes["y"][0, :5].tolist() == [0x3F80, 0x3F82, 0x4396, 0x7F80, 0x8000]


def test_a_program_of_ones_own_and_tensors_as_inputs():
    program = Program(TINY, base=0x400)
    double(program)
    x, y, _ = program.space.hbm_tensors
    result = run(program, {x[:, :4]: VALUES[:, :4], "untouched": np.ones((4, 8), int)}, preset="tiny", on="golden")
    assert np.array_equal(result.arrays["y"][:, :4], 2 * VALUES[:, :4]) and (result.arrays["y"][:, 4:] == 0).all()
    assert np.array_equal(result.read(y[1:, ::2]), result.arrays["y"][1:, ::2])
    assert np.array_equal(result.read_codes(y.permute(1, 0)), result.codes["y"].T)


REFUSED = {
    "PRESET must be one of nano, .*, full, .*not 'huge'": {"preset": "huge"},
    "TARGET must be one of rtl, golden, model, board, not 'chip'": {"on": "chip"},
    "the target of a run is its argument `on`, not `target`": {"target": "golden"},
    r"a variable of run must be an existing one, not 'speed'; did you mean seed\?": {"speed": 3},
    r"a variable of run must be an existing one, not 'rowss'; did you mean rows\?": {"rowss": 3},
    "rows must be an integer, not 'x'": {"rows": "x"},
    "PRESET must be one of .*, or a Config, not 3": {"preset": 3},
    "on must be the name of a target, or a Target, not 3": {"on": 3},
    "STALL must be an integer from 0 to 240, not '999'": {"stall": 999},
    r"an input must be one of the program's tensors in HBM \(x, y, untouched\), not 'z'": {"inputs": {"z": VALUES}},
    r"x: shape must be \(4, 8\), not \(8, 4\)": {"inputs": {"x": VALUES.T}},
    "y: elements must be numbers, or codes of bf16 as uint16, not uint8": {"inputs": {"y": VALUES.astype(np.uint8)}},
    "x: elements must be numbers, or codes of fp32 as uint32, not complex64": {"inputs": {"x": VALUES * 1j}},
    "inputs must be arrays by names of tensors, .*, not 3": {"inputs": 3},
    "an input must be named by a tensor in HBM or by its name, not by 3": {"inputs": {3: VALUES}},
    "x: elements must form an array of shape .4, 8.; ": {"inputs": {"x": [[1.0, 2.0], [3.0]]}},
    r"x: shape must be \(4, 8\), not \(\)": {"inputs": {"x": "abc"}},
    "rows must be an integer, not": {"rows": 4.5},
    "SEED must be an integer from 0 to .*, not '1.5'": {"seed": 1.5},
    "WAVES must be an integer from 0 to 1, not 'yes'": {"waves": "yes"},
    "ORDER must be one of program, scheduled, not": {"order": 3},
    "gone: an input must be in the program's HBM, not at 0x8000": {
        "inputs": {HbmTensor(name="gone", format=FP32, address=0x8000, shape=(1,)): [1.0]}
    },
    "f: an input must be in the program's HBM, not at 0x80": {
        "inputs": {Program(TINY).space.hbm("f", FP32, (1 << 22,)): np.zeros(1 << 22)}
    },
    "the machine must be the program's, .*rows=4.*, not Config": {"program": Program(TINY), "preset": "small"},
    "a program must be of a core that is alone": {"program": Program(TWO_CORES), "preset": None},
    "an input's name must name one tensor, not 2: give the tensor 'x' instead": {
        "program": lambda program: (double(program), double(program)), "inputs": {"x": VALUES}
    },
    "inputs must be arrays by names of tensors, .* not \\[": {"inputs": [("x", VALUES)]},
    "WAVES must be 0 for TARGET=golden, not 1": {"waves": 1},
    "tensors in HBM must have at most 536,870,912 bytes to be simulated, not 537,": {
        "program": lambda program: program.space.hbm("large", INT8, (513 << 20,))
    },
}  # fmt: skip
"""Message of `run`, and its arguments where they are not `double` on golden's tiny core."""


@pytest.mark.parametrize("message", REFUSED)
def test_bad_arguments_are_refused(message):
    given = {"preset": "tiny", "on": "golden", **REFUSED[message]}
    with pytest.raises(ValueError, match=f"^{message}"):
        run(given.pop("program", double), given.pop("inputs", {}), **given)


def test_parameters_of_the_machine_are_variables():
    for given in (
        {"preset": "tiny", "dma_engines": 3, "hbm_bytes": 32},
        {"preset": TINY.with_overrides(dma_engines=3, hbm_bytes=32)},
    ):
        result = run(double, on="golden", **given)
        assert (result.image.config.rows, result.image.config.dma_engines, result.image.config.hbm_bytes) == (4, 3, 32)
    program = Program(TINY)
    double(program)
    with pytest.raises(ValueError, match="the machine must be the program's"):
        run(program, dma_engines=1, on="golden")
    with pytest.raises(ValueError, match="a program must be a Program, a kernel or an Image, not 3"):
        run(3)


@pytest.mark.parametrize("machine", [None, 3, "tiny", Config])
def test_machine_of_a_program_is_a_config(machine):
    with pytest.raises(TypeError, match=r"the machine must be a Config, such as PRESETS\['small'\], not "):
        Program(machine)


def test_tensors_have_formats_by_name():
    space = Program(TINY).space
    assert [space.hbm("x", "bf16", (4, 8)).format, space.sbuf("y", "fp8e4m3", (8,)).format] == [BF16, FP8E4M3]
    with pytest.raises(ValueError, match="z: format must be one of fp32, .*, not 'float'"):
        space.psum("z", "float", (8,))


def test_print_shows_the_cycles_of_lines():
    lines = str(run(double, {"x": VALUES}, preset="tiny", on="model")).splitlines()
    shown = [line for line in lines if line.startswith("  test_program_run.py:")]
    assert len(shown) >= 3 and all(
        re.search(r" [\d,]+ +[\d.]+% +[\d,]+ instructions  program.append", line) for line in shown
    )
    assert shown[1].endswith("program.append(instructions.tensor_scalar(out, tile, 2.0,...")


@pytest.mark.parametrize(("fmt", "value"), [(INT8, 128), (INT8, 0.5), (INT32, np.nan), (INT32, -(2.0**31) - 512)])
def test_integers_that_do_not_fit_are_refused(fmt, value):
    values = np.zeros((4, 8))
    values[2, 3] = value
    message = f"x: elements must be integers from {fmt.min} to {fmt.max}, not {value}"
    with pytest.raises(ValueError, match=message):
        run(copy_kernel(fmt), {"x": values}, preset="tiny", on="golden")


def gather(program):
    table, rows = program.space.hbm("table", FP32, (4, 8)), program.space.hbm("rows", INT32, (4, 1))
    tile, numbers = program.space.sbuf("tile", FP32, (8,)), program.space.sbuf("numbers", INT32, (1,))
    program.append(dma_copy(numbers, rows))
    program.append(dma_gather(tile, table, numbers[:, 0]))
    program.append(instructions.tensor_copy(tile, tile))


def forgetful(program):
    y, tile = program.space.hbm("y", FP32, (4, 8)), program.space.sbuf("tile", FP32, (8,))
    program.append(instructions.memset(tile[:, :6], 1.0))
    program.append(dma_copy(y, tile))


UNWRITTEN = r"src must be written before it is read, but SBUF partition 0, byte 24 is not \(test_program_run.py:\d+\)"


@pytest.mark.parametrize("kernel, message", [(gather, r"INDEX.* \(row 4\)"), (forgetful, UNWRITTEN)])
@pytest.mark.parametrize("target", ("golden", "rtl"))
def test_a_program_with_an_error_fails(target, kernel, message, tmp_path):
    inputs = {"rows": [[1], [4], [0], [0]]} if kernel is gather else {}
    with pytest.raises(ProgramFailed, match=message), report.recording_in(tmp_path):
        run(kernel, inputs, preset="tiny", on=target)
