"""The rules of the tensor engine's instructions."""

from collections.abc import Iterator

from neuroncore_rtl.spec.config import LOAD_COLUMNS, PSUM_WORDS, SBUF_BYTES, Config
from neuroncore_rtl.spec.formats import FP32, INT8, MATMUL_FORMATS, format_of
from neuroncore_rtl.spec.isa.rule import Broken, Rule, lowest
from neuroncore_rtl.spec.isa.tensor.layout import LOAD_STATIONARY, MULTIPLY_MOVING

__all__ = ["tensor_violation"]

_CODES = {fmt.code for fmt in MATMUL_FORMATS}


def tensor_violation(values: dict[str, int], config: Config, loaded: tuple[int, bool] | None) -> Broken | None:
    """Return the lowest rule that an instruction breaks, and a message; None if it is legal.

    Arguments:
        values: of every field.
        config: the machine's parameters.
        loaded: columns that the LoadStationary before it filled, and whether they are INT8; None if there was none.
    """
    return lowest(_violations(values, config, loaded))


def _violations(values: dict[str, int], config: Config, loaded: tuple[int, bool] | None) -> Iterator[Broken]:
    moving = values["opcode"] == MULTIPLY_MOVING
    if values["opcode"] not in (LOAD_STATIONARY, MULTIPLY_MOVING):
        yield Rule.OPCODE, f"opcode must be {LOAD_STATIONARY} or {MULTIPLY_MOVING}, not {values['opcode']}"
        return
    if values["dtype"] not in _CODES:
        names = ", ".join(fmt.name for fmt in MATMUL_FORMATS)
        yield Rule.FORMAT, f"format must be the code of one of {names}, not {values['dtype']}"
        return
    fmt = format_of(values["dtype"])
    size = fmt.bits // 8
    if values["half"] and fmt is not FP32:
        yield Rule.OPERATION, f"half must be 0, or for fp32 1, not {values['half']}"
    if not 1 <= values["m"] <= config.columns:
        yield Rule.SHAPE, f"m must be between 1 and {config.columns}, not {values['m']}"
    if not 1 <= values["k"] <= config.rows:
        yield Rule.PARTITIONS, f"k must be between 1 and {config.rows}, not {values['k']}"
    if moving:
        if not 1 <= values["n"] <= PSUM_WORDS:
            yield Rule.SHAPE, f"n must be between 1 and {PSUM_WORDS}, not {values['n']}"
        for name in ("address", "stride"):
            if values[name] % size:
                yield Rule.ALIGNMENT, f"{name} must be a multiple of {size} for {fmt.name}, not {values[name]}"
        end = values["address"] + (max(values["n"], 1) - 1) * values["stride"] + size
        last = values["psum"] % PSUM_WORDS + values["n"]
        if last > PSUM_WORDS:
            yield Rule.RANGE, f"psum + n must stay within a bank of {PSUM_WORDS} words, not {last}"
        if loaded is None:
            yield Rule.STATE, "a MultiplyMoving must come after a LoadStationary"
        elif values["m"] > loaded[0]:
            yield Rule.STATE, f"m must be at most {loaded[0]}, as was loaded, not {values['m']}"
        elif fmt is INT8 and not loaded[1]:
            yield Rule.STATE, "the stationary format must be int8 for int8"
    else:
        columns = -(-values["m"] // LOAD_COLUMNS) * LOAD_COLUMNS
        step = LOAD_COLUMNS * size
        if values["address"] % step:
            yield Rule.ALIGNMENT, f"address must be a multiple of {step} for {fmt.name}, not {values['address']}"
        end = values["address"] + columns * size
    if end > SBUF_BYTES:
        yield Rule.RANGE, f"bytes must lie from 0 to {SBUF_BYTES}, not to {end}"
