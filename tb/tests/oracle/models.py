"""Tests of StableHLO's interpreter: their functions, as programs of golden, return the values that they expect.

Most are of 64-bit types, which the machine does not have. Their values and constants become 32-bit ones if these fit
and no operation depends on the number of bits.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np

from neuroncore_rtl.frontends.xla.compiled import compile_graph
from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.operations import Graph, Operation, Value
from neuroncore_rtl.frontends.xla.graph.types import FLOAT32, INTEGER32, UNSIGNED32
from neuroncore_rtl.frontends.xla.reading.module import parse_text, read_module
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.tb.stimulus.stablehlo import CheckedFunction, read_checks

__all__ = ["run_models"]

_OTHERS = {
    r"complex<": "complex numbers",
    r"!quant": "quantised numbers",
    r"interpreter\.|replica_id|partition_id|infeed|outfeed|send|recv|collective|all_": "several processes, or the host",
    r"tensor<[^>]*\?|!stablehlo\.token|tuple<": "shapes that are not constant, tokens, tuples",
    r"[x<]u?i[24]>": "integers of 2 and 4 bits",
    r"f8E\w+(?:FN|FNUZ|FNU)>|f[46]E|f8E8": "floats that the machine does not have",
}
"""What the machine does not have, by patterns of a module's text."""
_EXCEPT = {
    "reduce_precision_op_test_f64_zero_mantissa_bits": "NaN without mantissa, on XLA's CPU and here NaN",
    "tan_op_test_f64": "constants that need 64 bits",
}
"""Functions with other results: the tangents there are next to poles."""
_USUAL = 1e-4
"""Tolerance for numbers that became FP32."""
_NARROW = {"i64": INTEGER32, "ui64": UNSIGNED32, "f64": FLOAT32}
_OF_BITS = {"popcnt", "count_leading_zeros", "shift_left", "shift_right_logical", "shift_right_arithmetic"}
_SUMS = r"stablehlo\.(?:convolution|dot|reduce|scatter|select_and_scatter|triangular_solve)"
"""Operations that add in an order of their own: their last places are counted at the largest result."""
_COUNTS = "functions", "passed", "refused", "wrong", "crashed", "elements"
_SHOWN = 20


class _LeftOut(Exception):
    """A module that the machine or the reader cannot run, and why."""


def run_models(settings: Settings, files: Sequence[Path]) -> Report:
    """Run every function with its constants as arguments, then as constants."""
    table, left_out, failures = defaultdict(Counter), Counter(), []
    for one in read_checks(files):
        row = table[one.group]
        row.update(dict.fromkeys(_COUNTS, 0))
        row["functions"] += 1
        try:
            elements, differences = _run(one)
        except _LeftOut as why:
            left_out[str(why)] += 1
            row["refused"] += 1
        except Exception as crash:  # noqa: BLE001 (one module must not end the suite)
            row["crashed"] += 1
            failures.append(f"{one.origin}: {type(crash).__name__}: {crash}")
        else:
            row["elements"] += elements
            row["wrong" if differences else "passed"] += 1
            failures += [f"{one.origin}: {text}" for text in differences[:_SHOWN]]
    return Report(
        compared=sum(row["elements"] for row in table.values()),
        rows={
            "functions": [{"operation": name, **row} for name, row in table.items()],
            "left_out": [{"why": why, "functions": count} for why, count in left_out.most_common()],
        },
        failures=tuple(failures),
    )


def _run(one: CheckedFunction) -> tuple[int, list[str]]:
    """Return the number of compared elements, and the differences."""
    if not one.text:
        raise _LeftOut("nothing is compared with constants")
    if one.name in _EXCEPT:
        raise _LeftOut(_EXCEPT[one.name])
    for pattern, why in _OTHERS.items():
        if re.search(pattern, one.text):
            raise _LeftOut(why)
    try:
        module = parse_text(one.text)
    except Exception as error:
        raise _LeftOut(f"not in this version of StableHLO: {_unknown(str(error))}") from None
    compared, differences, is_sum = 0, [], bool(re.search(_SUMS, one.text))
    for as_arguments in (True, False):
        try:
            expected = [_narrow_array(*constant) for constant in _constants(read_module(module, "what_it_must_be"))]
            block = read_module(module, one.name)
            rounds = _narrow(block)
            arrays = _made_arguments(block) if as_arguments else []
            results, _ = compile_graph(block, PRESETS["tiny"]).execute(arrays, "golden")
        except Refused as refusal:
            raise _LeftOut(re.sub(r" \([^()]*:\d+\)$", "", str(refusal))) from None
        for found, other, (tolerance, places) in zip(results, expected, one.tolerances, strict=True):
            compared += found.size
            usual = _USUAL if rounds and found.dtype.kind == "f" else 0.0
            differences += _differences(found, other, max(tolerance, usual), places, is_sum)
    return compared, differences


def _unknown(message: str) -> str:
    found = re.search(r"(?:op|operation|Operation) [`'\"]?([\w.]+)", message)
    return found[1] if found else message.splitlines()[-1][:80]


def _constants(block: Graph) -> Iterator[tuple[np.ndarray, Value]]:
    makers = {value: one for one in block.operations for value in one.results}
    for value in block.results:
        if not isinstance(maker := makers[value], graph.Constant):
            raise _LeftOut("nothing is compared with constants")
        yield maker.array, value


def _made_arguments(block: Graph) -> list[np.ndarray]:
    """Make the constants of a block its arguments; return their arrays."""
    constants = [one for one in block.operations if isinstance(one, graph.Constant)]
    block.arguments = tuple(one.result for one in constants)
    block.operations = [one for one in block.operations if not isinstance(one, graph.Constant)]
    return [np.array(one.array) for one in constants]


def _narrow(block: Graph) -> bool:
    """Replace the 64-bit types of a block; return whether a float type was among them."""
    operations = [*_operations(block)]
    values = {value for one in operations for value in (*one.operands, *one.results)} | {*block.results}
    values |= {value for one in operations for inner in one.blocks for value in inner.arguments}
    wide = {value for value in values if value.type.is_wide}
    for one in operations:
        depends = isinstance(one, graph.Bitcast) or getattr(one, "function", "") in _OF_BITS
        if depends and wide.intersection((*one.operands, *one.results)):
            raise _LeftOut("operations on the bits of 64-bit numbers")
        if isinstance(one, graph.Constant):
            one.array = _narrow_array(one.array, one.result)
    rounds = any(value.type.is_float for value in wide)
    for value in wide:
        value.type = _NARROW[value.type.name]
    return rounds


def _operations(block: Graph) -> Iterator[Operation]:
    for one in block.operations:
        yield one
        for inner in one.blocks:
            yield from _operations(inner)


def _narrow_array(array: np.ndarray, value: Value) -> np.ndarray:
    if value.type.name not in _NARROW:
        return array
    with np.errstate(all="ignore"):
        new = array.astype(_NARROW[value.type.name].dtype)
        fits = (new == array) if array.dtype.kind in "iu" else (np.isfinite(new) == np.isfinite(array)) & (
            (np.abs(new) >= 2.0**-126) | (array == 0) | np.isnan(array)
        )  # fmt: skip
    if not fits.all():
        raise _LeftOut("constants that need 64 bits")
    return new


def _differences(found: np.ndarray, expected: np.ndarray, tolerance: float, places: float, is_sum: bool) -> list[str]:
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return [f"{found.dtype}{list(found.shape)}, not {expected.dtype}{list(expected.shape)}"]
    with np.errstate(all="ignore"):
        one, other = (array.astype(np.float64) for array in (found, expected))
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        if tolerance:
            same |= np.abs(one - other) <= tolerance * np.maximum(1, np.abs(other))
        if places and not same.all():
            info = ml_dtypes.finfo(expected.dtype)
            exponents = np.where(np.isfinite(other) & (other != 0), np.frexp(other)[1] - 1, info.minexp)
            last = np.ldexp(float(info.eps), np.maximum(exponents.max() if is_sum else exponents, info.minexp))
            same |= np.abs(one - other) <= places * last
    wrong = [tuple(map(int, at)) for at in np.argwhere(~same)]
    return [f"element {list(at)} is {found[at]}, not {expected[at]}" for at in wrong]
