"""Cost of an instruction in cycles without memory conflicts, from its fields and the constants of `spec.timing`.

Costs of the vector and scalar engine are exact; at the rates of `spec.pacing` they are within 5 % or 4 cycles.
"""

from collections.abc import Sequence
from math import prod

from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config
from neuroncore_rtl.spec.isa import AluOp, DmaTensor, Elementwise, Instruction, MultiplyMoving, Opcode, Pointer, Storage
from neuroncore_rtl.spec.isa.elementwise import OUTPUTS, VALUES8, transpose_block, uses
from neuroncore_rtl.spec.pacing import PacedInstruction, paced

__all__ = [
    "SEARCHES", "adjacent", "array_latency", "busy_cycles", "checker_period", "dependent_period", "drain", "is_slow",
    "lanes_latency", "latency", "period", "step_cycles", "step_interval", "steps_before", "steps_behind",
    "until_written", "used_by",
]  # fmt: skip

_DIVIDER = timing.DIVIDE_LATENCY, timing.DIVIDE_INTERVAL
_REMAINDER = timing.REMAINDER_LATENCY, timing.REMAINDER_INTERVAL
_UNITS = {
    AluOp.DIVIDE: _DIVIDER,
    AluOp.POWER: (timing.POWER_LATENCY, timing.POWER_INTERVAL),
    AluOp.MOD: _REMAINDER,
    AluOp.FMOD: _REMAINDER,
}

SEARCHES = (Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8)
"""Opcodes that load b before their first element."""

_ENTRY = timing.ELEMENTWISE_CHECKER_LATENCY + timing.SEQUENCER_LATENCY
"""Cycles from an instruction accepted by an idle engine to its first read."""


def step_interval(instruction: Elementwise, config: Config) -> int:
    """Return the minimum cycles from one step of an instruction to the next."""
    first, second = _slow_units(instruction)
    if first and second:
        return first[0] + second[1]
    alone = first or second
    if alone:
        return alone[1]
    intervals = {} if instruction.opcode == Opcode.ACTIVATE else timing.vector_intervals(config.vector_latency)
    return max(intervals.get(instruction.opcode.name, 1), config.lane_partitions)


def is_slow(instruction: Elementwise) -> bool:
    """Return whether an instruction has the datapaths for itself: no other one overlaps it."""
    return instruction.opcode == Opcode.BN_AGGR or any(_slow_units(instruction))


def step_cycles(instruction: Elementwise, config: Config) -> int:
    """Return the cycles from the first step of an instruction to the first step of the next one."""
    cycles, pace = _steps_apart(instruction, config), paced(instruction, config)
    if pace is None:
        return cycles
    before, behind = steps_before(instruction), steps_behind(instruction, config)
    own = -(-(pace.start + prod(instruction.shape) * pace.element + pace.readout + pace.access) // pace.ticks)
    # In a unit slower than the pace the last step is offered one cycle after the step before it was accepted.
    offered = cycles - 2 * step_interval(instruction, config) + 1
    after = offered + (pace.access + (0 if behind else pace.element)) // pace.ticks
    return max(cycles, own + before + behind, after, _least_cycles(pace))


def _least_cycles(pace: PacedInstruction) -> int:
    return -(-(pace.least + pace.readout) // pace.ticks)


def _steps_apart(instruction: Elementwise, config: Config) -> int:
    interval = step_interval(instruction, config)
    others = (steps_before(instruction) + steps_behind(instruction, config)) * interval
    return others + prod(instruction.shape) * max(interval, _sbuf_reads(instruction))


def busy_cycles(instruction: Instruction, config: Config) -> int:
    """Return the cycles for which an instruction occupies its engine; 0 for LoadStationary, DMA and collectives."""
    return step_cycles(instruction, config) if isinstance(instruction, Elementwise) else instruction.columns


def period(instruction: Instruction, config: Config) -> int:
    """Return the cycles from an instruction to the next one of its kind, if both may overlap."""
    if isinstance(instruction, MultiplyMoving):
        return max(busy_cycles(instruction, config), min(config.least_interval, instruction.m))
    if not isinstance(instruction, Elementwise):
        return busy_cycles(instruction, config)
    if is_slow(instruction):
        return dependent_period(instruction, config)
    return max(checker_period(config), step_cycles(instruction, config))


def checker_period(config: Config) -> int:
    """Return the minimum cycles between instructions in the checker of the vector or scalar engine."""
    late = config.port_latency
    return timing.ELEMENTWISE_CHECKER_INTERVAL + timing.ELEMENTWISE_CHECKER_REGISTERS[late] + late


def dependent_period(instruction: Elementwise, config: Config) -> int:
    """Return the cycles from an instruction to the next of its kind if each waits until the previous one is written."""
    written = until_written(instruction, config)
    return written if paced(instruction, config) is None else max(written, step_cycles(instruction, config))


def until_written(instruction: Elementwise, config: Config) -> int:
    """Return the cycles from an instruction's first step to the first cycle after all its writes."""
    behind, count = steps_behind(instruction, config), prod(instruction.shape)
    reads = 1 if behind else max(1, _sbuf_reads(instruction))
    # The last step only waits for its reads; no step follows after its interval.
    last = max(step_interval(instruction, config), reads) - reads
    cycles = _steps_apart(instruction, config) - last + drain(instruction, config)
    pace = paced(instruction, config)
    if pace is None:
        return cycles
    own = pace.start + pace.readout + (count if behind else count - 1) * pace.element
    steps = steps_before(instruction) + (behind or reads)
    return max(cycles, own // pace.ticks + steps + drain(instruction, config), _least_cycles(pace))


def latency(instruction: Elementwise, config: Config) -> int:
    """Return the cycles from an instruction accepted by an idle engine to the pulse that retires it."""
    late = config.port_latency
    return _ENTRY + timing.ELEMENTWISE_CHECKER_REGISTERS[late] + late + until_written(instruction, config)


def drain(instruction: Elementwise, config: Config) -> int:
    """Return the cycles from an instruction's last step to the first step after all its writes."""
    units = [_DIVIDER] if instruction.opcode == Opcode.BN_AGGR else filter(None, _slow_units(instruction))
    slow = sum(unit[0] - config.vector_latency for unit in units)
    memories = timing.READ_LATENCY[config.port_latency] + timing.STORE_LATENCY[config.port_latency]
    return memories + lanes_latency(instruction, config) + slow


def lanes_latency(instruction: Elementwise, config: Config) -> int:
    """Return the cycles from a step of an instruction to the step's result, if no operation is iterative."""
    turns = timing.turns_latency(config.lane_partitions)
    if instruction.opcode == Opcode.ACTIVATE:
        return turns + timing.SCALAR_LANES_LATENCY[config.scalar_depth > 1]
    return turns + timing.vector_lanes_latency(config.vector_latency)


def _sbuf_reads(instruction: Elementwise) -> int:
    tensors = ("a",) if instruction.opcode in SEARCHES else ("a", "b")
    used = used_by(instruction)
    return sum(name in used and getattr(instruction, name).storage == Storage.SBUF for name in tensors)


def used_by(instruction: Elementwise) -> frozenset[str]:
    """Return the operands that an instruction uses."""
    return uses({"opcode": instruction.opcode, "sum_store": instruction.sum_store})


def steps_behind(instruction: Elementwise, config: Config) -> int:
    """Return the steps of an instruction after the step of its last element."""
    if instruction.opcode == Opcode.TRANSPOSE:
        return transpose_block(config)
    return OUTPUTS.get(instruction.opcode, int("result" in used_by(instruction)))


def _slow_units(instruction: Elementwise) -> Sequence[tuple[int, int] | None]:
    """Return (latency, interval) of the iterative units of op0 and op1, or None."""
    if instruction.opcode == Opcode.RECIPROCAL:
        return _DIVIDER, None
    used = used_by(instruction)
    return [_UNITS.get(getattr(instruction, name)) if name in used else None for name in ("op0", "op1")]


def steps_before(instruction: Elementwise) -> int:
    """Return the steps of an instruction before the step of its first element."""
    loads = sum(
        isinstance(getattr(instruction, name), Pointer) for name in ("s0", "s1") if name in used_by(instruction)
    )
    return loads + (VALUES8 if instruction.opcode in SEARCHES else 0)


def array_latency(config: Config) -> int:
    """Return the cycles from the last column of a MultiplyMoving to the pulse that retires it."""
    tiles = -(-config.columns // LOAD_COLUMNS)
    read = timing.READ_LATENCY[config.port_latency]
    return read + config.edge_latency + config.rows * config.mac_latency + tiles + config.add_latency


def adjacent(tensor: DmaTensor, shape: tuple[int, ...], rows: bool) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return the length in bytes of a copy's contiguous runs, and (count, step in bytes) of the other dimensions.

    The dimensions are innermost first; a step of partitions counts as 0. With `rows`, row numbers index the outermost
    dimension, which is then not contiguous.
    """
    element = tensor.format.bits // 8
    together, merging, jumps = 1, True, []
    for d in reversed(range(len(shape))):
        count, step, is_axis = shape[d], tensor.steps[d], d == tensor.axis
        if merging and (count == 1 or (step == together and not is_axis and not (rows and d == 0))):
            together *= count
        else:
            merging = False
            if count > 1:
                jumps.append((count, 0 if is_axis else step * element))
    return together * element, tuple(jumps)
