"""Readers for suites of scalar operations: cases with the results that the suite expects.

IBM's floating-point test generator FPgen has files *.fptest, one case per line:

    b32*+ =0 x +1.402957P-114 +1.2AD267P1 -1.003963P-112 -> +Zero xu

The hexadecimal digits of a significand such as 1.402957 are the 23 bits of the mantissa; a NaN is Q or S.

Berkeley TestFloat prints one case per line, here `testfloat_gen f32_mulAdd`:

    4F951295 41E00002 4F951295 01

The fields are hexadecimal: operands, result and exceptions; bit 4 of the exceptions marks an invalid operation. The
outputs are files named after the functions, such as f32_mulAdd.txt or f32_roundToInt-rmin.txt.
"""

import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.spec.formats import FP32

__all__ = ["PROGRAM", "TESTFLOAT_FUNCTIONS", "Reading", "ScalarCases", "read_fpgen", "read_testfloat"]


@dataclass(frozen=True, kw_only=True)
class ScalarCases:
    """Cases of one of `tb.tests.oracle.units.ORACLE_OPERATIONS`, as uint32; an expected NaN matches any NaN."""

    operation: str
    operands: Sequence[np.ndarray]
    expected: np.ndarray
    origin: Callable[[int], str]

    def __len__(self) -> int:
        return len(self.expected)


class Reading(NamedTuple):
    """A suite in blocks of cases; the counts of skipped cases are complete when all `cases` have been read."""

    cases: Iterator[ScalarCases]
    left_out: Counter[str]


FPGEN_OPERATIONS = {
    "b32+": "add",
    "b32-": "subtract",
    "b32*": "multiply",
    "b32/": "divide",
    "b32*+": "multiply-add",
    "b32>C": "max",
    "b32<C": "min",
    "b32>A": "larger magnitude",
}

_OTHERS = {"V": "square roots", "b64cff": "longer formats", "b128cff": "longer formats"}
"""Operations that the machine does not compute. Operations in neither table are not arithmetic."""

_OPERATION = re.compile(r"[bd]\d+\S+")
_NUMBER = re.compile(r"([+-])(?:([01])\.([0-7][0-9A-F]{5})P(-?\d+)|(Zero|Inf))")
_NANS = {"Q": FP32.nan, "S": FP32.infinity + 1}
_TRAPS = re.compile(r"[xuozi]+")


def read_fpgen(files: Sequence[Path]) -> Reading:
    """Return the cases of files by operation. Iteration raises UsageError at the first malformed line."""
    left_out = Counter()
    return Reading(_fpgen_cases(files, left_out), left_out)


def _fpgen_cases(files: Sequence[Path], left_out: Counter) -> Iterator[ScalarCases]:
    found = defaultdict(list)
    for path in files:
        for number, line in enumerate(path.read_text(encoding="utf-8-sig", errors="replace").splitlines(), start=1):
            fields = line.split()
            if len(fields) < 2 or not _OPERATION.fullmatch(fields[0]):
                continue
            where = f"{path.name}:{number}"
            try:
                words = _case(fields, left_out)
            except ValueError as error:
                raise UsageError(f"{where}: {error}") from None
            if words:
                found[FPGEN_OPERATIONS[fields[0]]].append((where, *words))
    for operation, rows in found.items():
        places, *columns = zip(*rows, strict=True)
        *operands, expected = (np.array(column, np.uint32) for column in columns)
        yield ScalarCases(operation=operation, operands=operands, expected=expected, origin=places.__getitem__)


def _case(fields: list[str], left_out: Counter) -> list[int] | None:
    """Return operands and result; None, and a count of the reason, if the case is skipped."""
    operation, rounding, *rest = fields
    if "->" not in rest[1:-1]:
        raise ValueError(f"a case must have operands, -> and a result, not {' '.join(fields)!r}")
    arrow = rest.index("->")
    trapped = set(rest[0]) if _TRAPS.fullmatch(rest[0]) else set()
    operands, (result, *raised) = rest[bool(trapped) : arrow], rest[arrow + 1 :]
    reason = None
    if not operation.startswith("b32"):
        reason = "another format than binary32"
    elif operation not in FPGEN_OPERATIONS:
        reason = _OTHERS.get(operation.removeprefix("b32"), "classification, copies, signs")
    elif rounding != "=0":
        reason = "another rounding"
    elif result == "#" or trapped & set("".join(raised)) & set("uo"):
        reason = "result of a trap"
    if reason:
        left_out[reason] += 1
        return None
    return [_word(text) for text in (*operands, result)]


def _word(text: str) -> int:
    if text in _NANS:
        return _NANS[text]
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(f"a number must be such as +1.402957P-114, -Zero, +Inf, Q or S, not {text!r}")
    sign, leading, digits, exponent, name = found.groups()
    if name:
        word = FP32.infinity if name == "Inf" else 0
    else:
        field = int(exponent) + FP32.bias if leading == "1" else 0
        smallest = leading == "1" or int(exponent) == 1 - FP32.bias
        if not (smallest and (leading == "0" or 0 < field < 2 * FP32.bias + 1)):
            raise ValueError(f"a number must be representable in binary32, not {text!r}")
        word = field << FP32.mantissa_bits | int(digits, 16)
    return word | (sign == "-") << 31


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
    return Reading(_testfloat_cases(path, seed, left_out), left_out)


def _testfloat_cases(path: Path, seed: int, left_out: Counter) -> Iterator[ScalarCases]:
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
