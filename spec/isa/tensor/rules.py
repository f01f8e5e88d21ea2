"""Rules of the tensor engine's instructions."""

from collections.abc import Iterator

from neuroncore_rtl.spec.config import LOAD_COLUMNS, PSUM_BANKS, Config
from neuroncore_rtl.spec.formats import FP32, INT8, format_of
from neuroncore_rtl.spec.isa.access import allowed_start
from neuroncore_rtl.spec.isa.rule import Broken, Rule, lowest
from neuroncore_rtl.spec.isa.tensor.layout import LOAD_STATIONARY, MULTIPLY_MOVING

__all__ = ["column_starts", "row_starts", "tensor_violation"]


def row_starts(config: Config) -> list[int]:
    """Return the array rows at which an operand may start: the quadrants of SBUF."""
    return list(range(0, config.rows, config.quadrant))


def column_starts(config: Config) -> list[int]:
    """Return the array columns at which a result may start: PSUM quadrants, aligned to a load step."""
    return [column for column in range(0, config.columns, config.quadrant) if column % LOAD_COLUMNS == 0]


def tensor_violation(values: dict[str, int], config: Config, loaded: tuple[range, bool] | None) -> Broken | None:
    """Return the lowest broken rule with a message, or None; for `loaded` see `Context`."""
    return lowest(_violations(values, config, loaded))


def _violations(values: dict[str, int], config: Config, loaded: tuple[range, bool] | None) -> Iterator[Broken]:
    moving = values["opcode"] == MULTIPLY_MOVING
    if values["opcode"] not in (LOAD_STATIONARY, MULTIPLY_MOVING):
        yield Rule.OPCODE, f"opcode must be {LOAD_STATIONARY} or {MULTIPLY_MOVING}, not {values['opcode']}"
        return
    if values["dtype"] not in (fmt.code for fmt in config.matmul_formats):
        names = ", ".join(fmt.name for fmt in config.matmul_formats)
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
    for name, counted, starts, limit in (
        ("row", "k", row_starts(config), config.rows),
        ("column", "m", column_starts(config), config.columns),
    ):
        start, end = values[name], values[name] + values[counted]
        allowed = allowed_start(start, values[counted], config.quadrant)
        if start not in starts:
            yield Rule.PARTITIONS, f"{name} must be one of {', '.join(map(str, starts))}, not {start}"
        elif allowed:
            yield Rule.PARTITIONS, f"{name} must be {allowed} {name}s, not {start}"
        elif end > limit:
            yield Rule.PARTITIONS, f"{name} + {counted} must be at most {limit}, not {end}"
    if moving:
        words = config.psum_words
        if not 1 <= values["n"] <= words:
            yield Rule.SHAPE, f"n must be between 1 and {words}, not {values['n']}"
        for name in ("address", "stride"):
            if values[name] % size:
                yield Rule.ALIGNMENT, f"{name} must be a multiple of {size} for {fmt.name}, not {values[name]}"
        end = values["address"] + (max(values["n"], 1) - 1) * values["stride"] + size
        last = values["psum"] % words + values["n"]
        if values["psum"] >= PSUM_BANKS * words:
            yield Rule.RANGE, f"psum must be from 0 to {PSUM_BANKS * words - 1}, not {values['psum']}"
        elif last > words:
            yield Rule.RANGE, f"psum + n must stay within a bank of {words} words, not {last}"
        if loaded is None:
            yield Rule.STATE, "a MultiplyMoving must follow a LoadStationary"
        elif values["column"] < loaded[0].start or values["column"] + values["m"] > loaded[0].stop:
            found = f"{values['column']} to {values['column'] + values['m'] - 1}"
            rule = f"columns must be among the loaded ones, {loaded[0].start} to {loaded[0].stop - 1}"
            yield Rule.STATE, f"{rule}, not {found}"
        elif fmt is INT8 and not loaded[1]:
            yield Rule.STATE, "the loaded format must be int8 if the moving format is int8"
    else:
        columns = -(-values["m"] // LOAD_COLUMNS) * LOAD_COLUMNS
        step = LOAD_COLUMNS * size
        if values["address"] % step:
            yield Rule.ALIGNMENT, f"address must be a multiple of {step} for {fmt.name}, not {values['address']}"
        end = values["address"] + columns * size
    if end > config.sbuf_bytes:
        yield Rule.RANGE, f"bytes must lie from 0 to {config.sbuf_bytes}, not to {end}"
