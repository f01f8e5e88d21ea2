"""Reader for Berkeley TestFloat: `testfloat_gen f32_mulAdd` prints one case per line.

    4F951295 41E00002 4F951295 01

The fields are hexadecimal: operands, result and exceptions; bit 4 of the exceptions marks an invalid operation. The
outputs are files named after the functions, such as f32_mulAdd.txt or f32_roundToInt-rmin.txt.
"""

import subprocess
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.tb.stimulus.scalar_cases import Reading, ScalarCases

__all__ = ["PROGRAM", "TESTFLOAT_FUNCTIONS", "read_testfloat"]

PROGRAM = "testfloat_gen"

TESTFLOAT_FUNCTIONS = {
    "f32_add": "add",
    "f32_sub": "subtract",
    "f32_mul": "multiply",
    "f32_div": "divide",
    "f32_mulAdd": "multiply-add",
    "f32_eq": "equal",
    "f32_le": "less or equal",
    "f32_lt": "less",
    "f32_roundToInt-rmin": "floor",
    "f32_roundToInt-rmax": "ceil",
    "f32_roundToInt-rminMag": "trunc",
    "f16_to_f32": "fp16 to fp32",
    "bf16_to_f32": "bf16 to fp32",
    "i32_to_f32": "int32 to fp32",
    "ui32_to_f32": "uint32 to fp32",
    "f32_to_f16": "fp32 to fp16",
    "f32_to_bf16": "fp32 to bf16",
    "f32_to_i32": "fp32 to int32",
    "f32_to_ui32": "fp32 to uint32",
}
"""Operations by TestFloat's function, with its rounding option."""

CHUNK = 1_000_000  # bounds the memory
_INVALID = 16
_COMPARISONS = ("equal", "less", "less or equal")
_TRUE = FP32.bias << FP32.mantissa_bits  # TestFloat's is 1
_DIGITS = np.full(256, 16, np.uint8)
_DIGITS[np.frombuffer(b"0123456789ABCDEFabcdef", np.uint8)] = [*range(16), *range(10, 16)]  # 16 marks other characters


def read_testfloat(path: Path, seed: int) -> Reading:
    """Return the cases of the program or of a folder of its outputs; iteration raises UsageError if it fails."""
    left_out = Counter()
    return Reading(_cases(path, seed, left_out), left_out)


def _cases(path: Path, seed: int, left_out: Counter) -> Iterator[ScalarCases]:
    for name, operation in TESTFLOAT_FUNCTIONS.items():
        if path.is_dir() and not (path / f"{name}.txt").is_file():
            continue
        first, lines = 1, _lines(path, name, seed)
        while chunk := list(islice(lines, CHUNK)):
            *operands, expected, exceptions = _words(chunk, f"{name}, lines from {first:,}")
            if operation in _COMPARISONS:
                expected *= np.uint32(_TRUE)
            # Invalid conversions to integers have implementation-defined results; other invalid operations give a NaN.
            kept = (exceptions & _INVALID == 0) | (not operation.endswith("int32"))
            if not kept.all():
                left_out["invalid conversions to integers"] += int((~kept).sum())
            places = first + np.flatnonzero(kept)
            yield ScalarCases(
                operation=operation,
                operands=[operand[kept] for operand in operands],
                expected=expected[kept],
                origin=lambda case, name=name, places=places: f"{name}, line {places[case]:,}",
            )
            first += len(chunk)
        if first == 1:
            left_out[f"{name}: no case of it"] += 1


def _lines(path: Path, name: str, seed: int) -> Iterator[bytes]:
    """Yield a function's lines from the program or from its output file; none if the program rejects the function."""
    if path.is_dir():
        with (path / f"{name}.txt").open("rb") as file:
            yield from file
        return
    function, _, rounding = name.partition("-")
    command = [str(path), "-seed", str(seed), *([f"-{rounding}"] if rounding else []), function]
    lines = 0
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            for line in process.stdout:
                lines += 1
                yield line
    except OSError as error:
        raise UsageError(f"FROM must be a program that can be run, not {path}: {error.strerror}") from error
    if process.returncode and lines:
        said = f"ended with {process.returncode} after {lines:,} lines"
        raise UsageError(f"{' '.join(command)} must print its cases and end, but {said}")


def _words(lines: list[bytes], where: str) -> list[np.ndarray]:
    widths = [len(field) for field in lines[0].split()]
    text = b"".join(lines)
    length = sum(widths) + len(widths)
    characters = np.frombuffer(text, np.uint8)
    if len(widths) < 3 or max(widths) > 8 or len(characters) != len(lines) * length:
        raise UsageError(f"{where}: each must have operands, a result and exceptions, not {lines[0][:80]!r}")
    table, columns, start = _DIGITS[characters.reshape(len(lines), length)], [], 0
    for width in widths:
        word = np.zeros(len(lines), np.uint32)
        for digit in table[:, start : start + width].T:
            word = word << np.uint32(4) | digit
        columns.append(word)
        if (table[:, start : start + width] > 15).any() or (table[:, start + width] < 16).any():
            raise UsageError(f"{where}: each must have hexadecimal numbers of {widths} digits, separated by blanks")
        start += width + 1
    return columns
