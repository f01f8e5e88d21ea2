"""Reader for vector files: a user's cases for the MAC and for the rounding unit, one per line.

Blanks separate fields, # starts a comment, numbers are hexadecimal bit patterns with or without 0x:

    FORMAT X W ACC [EXPECTED]                   for mac; X and W in FORMAT, ACC and EXPECTED in FP32
    FORMAT rne|sr VALUE [RANDOM] [EXPECTED]     for round; VALUE in FP32, EXPECTED in FORMAT

RANDOM is the 32-bit random word: required for sr, absent for rne. EXPECTED is compared bit for bit, so an expected NaN
must be canonical.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.spec.formats import FORMATS, FP32, MAC_FORMATS, Format
from neuroncore_rtl.tb.check.comparison import Cases

__all__ = ["MAC_LAYOUT", "ROUND_FORMATS", "ROUND_LAYOUT", "VectorError", "read_mac", "read_round"]

MAC_LAYOUT = "FORMAT X W ACC [EXPECTED]"
ROUND_LAYOUT = "FORMAT rne|sr VALUE [RANDOM] [EXPECTED]"
ROUND_FORMATS: tuple[Format, ...] = tuple(fmt for fmt in FORMATS.values() if fmt != FP32)
_HEXADECIMAL = re.compile(r"(?:0[xX])?[0-9a-fA-F]+", re.ASCII)


class VectorError(UsageError):
    """A rejected vector file; the message names the file, the line, and the rule."""


def read_mac(path: Path) -> Cases:
    """Return x, w and acc of a vector file; VectorError if it breaks a rule or is empty."""
    return _read(path, ("x", "w", "acc"), _mac_case)


def read_round(path: Path) -> Cases:
    """Return cases of a vector file for the rounding unit: stochastic (0 or 1), value, and random (0 for rne)."""
    return _read(path, ("stochastic", "value", "random"), _round_case)


def _read(path: Path, names: tuple[str, ...], parse: Callable[[list[str]], tuple]) -> Cases:
    rows = []
    for number, fields in _lines(path):
        try:
            rows.append((number, *parse(fields)))
        except ValueError as error:
            raise VectorError(f"{path}:{number}: {error}") from None
    if not rows:
        raise VectorError(f"{path}: a vector file must hold at least one case, this one is empty")
    lines, formats, *operands, expected = zip(*rows, strict=True)
    return Cases(
        formats=np.array(formats, np.uint8),
        operands={name: np.array(column, np.uint32) for name, column in zip(names, operands, strict=True)},
        expected=np.array([value or 0 for value in expected], np.uint32),
        has_expected=np.array([value is not None for value in expected]),
        lines=np.array(lines),
    )


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                fields = line.partition("#")[0].split()
                if fields:
                    yield number, fields
    except UnicodeDecodeError:
        raise VectorError(f"{path}: a vector file must be UTF-8 text, this one is not") from None
    except OSError as error:
        raise VectorError(f"{path}: a vector file must be readable, this one is not: {error.strerror}") from None


def _mac_case(fields: list[str]) -> tuple:
    fmt = _format(fields[0], MAC_FORMATS)
    if not 4 <= len(fields) <= 5:
        raise ValueError(f"a case must be {MAC_LAYOUT}, not {len(fields)} fields")
    x, w = _bits("X", fields[1], fmt), _bits("W", fields[2], fmt)
    acc, *expected = (_bits(name, text, FP32) for name, text in zip(("ACC", "EXPECTED"), fields[3:], strict=False))
    return fmt.code, x, w, acc, *(expected or [None])


def _round_case(fields: list[str]) -> tuple:
    fmt = _format(fields[0], ROUND_FORMATS)
    mode = fields[1] if len(fields) > 1 else ""
    if mode not in ("rne", "sr"):
        raise ValueError(f"the rounding mode must be rne or sr, not {mode!r}")
    stochastic = mode == "sr"
    rest = fields[2:]
    needed = 2 if stochastic else 1
    if not needed <= len(rest) <= needed + 1:
        layout = "FORMAT sr VALUE RANDOM [EXPECTED]" if stochastic else "FORMAT rne VALUE [EXPECTED]"
        raise ValueError(f"a case must be {layout}, not {len(fields)} fields")
    value = _bits("VALUE", rest[0], FP32)
    random = _bits("RANDOM", rest[1], FP32) if stochastic else 0
    expected = _bits("EXPECTED", rest[needed], fmt) if len(rest) > needed else None
    return fmt.code, int(stochastic), value, random, expected


def _format(name: str, valid: tuple[Format, ...]) -> Format:
    for fmt in valid:
        if fmt.name == name:
            return fmt
    raise ValueError(f"FORMAT must be one of {', '.join(fmt.name for fmt in valid)}, not {name!r}")


def _bits(name: str, text: str, fmt: Format) -> int:
    if not _HEXADECIMAL.fullmatch(text):
        raise ValueError(f"{name} must be a hexadecimal number, not {text!r}")
    value = int(text, 16)
    if value >> fmt.bits:
        raise ValueError(f"{name} must fit the {fmt.bits} bits of {fmt.name}, not {text!r}")
    padding = fmt.padding_bits if fmt.is_float else 0
    if value & ((1 << padding) - 1):
        raise ValueError(f"{name} must have its low {padding} bits zero ({fmt.name}), not {text!r}")
    return value
