"""Reader for the test suite of IBM's floating-point test generator FPgen: files *.fptest, one case per line.

    b32*+ =0 x +1.402957P-114 +1.2AD267P1 -1.003963P-112 -> +Zero xu

The hexadecimal digits of a significand such as 1.402957 are the 23 bits of the mantissa; a NaN is Q or S.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.tb.stimulus.scalar_cases import Reading, ScalarCases

__all__ = ["read_fpgen"]

OPERATIONS = {
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
    return Reading(_cases(files, left_out), left_out)


def _cases(files: Sequence[Path], left_out: Counter) -> Iterator[ScalarCases]:
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
                found[OPERATIONS[fields[0]]].append((where, *words))
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
    elif operation not in OPERATIONS:
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
