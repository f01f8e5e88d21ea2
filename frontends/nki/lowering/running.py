"""Running results: emulation of NeuronCore's reduction registers, which continue a reduction in a later instruction.

Here they are a column in SBUF, one FP32 element per partition. An instruction reduces its elements into a new column,
and a second one combines it with the previous column. A reduction that starts from its identity writes directly to the
kernel's tensor, which then serves as the column.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.operands import common, mark_written, scalar
from neuroncore_rtl.frontends.nki.lowering.reductions import ReduceCommand
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["IDENTITIES", "Running", "column", "keep", "running_reduced", "scalar_place", "start_value"]

IDENTITIES = {
    AluOp.ADD: -0.0, AluOp.SUBTRACT: 0.0, AluOp.MULTIPLY: 1.0, AluOp.MAX: -inf, AluOp.MIN: inf, AluOp.ABSOLUTE_MAX: 0.0,
}  # fmt: skip
"""Initial value of a running result by operation. -0 is neutral in an addition, while +0 turns -0 into +0."""


@dataclass
class Running:
    """Running results of an engine.

    Without a column, the result of every partition is `number`; without both, it is undefined. `view` is the kernel's
    tensor that contains the column, if any, and `version` its version when the column was written.
    """

    column: Tensor | None = None
    number: float | None = None
    view: View | None = None
    version: int = 0


def running(r: Recording, engine: str) -> Running:
    return r.running.setdefault(engine, Running())


def column(r: Recording, name: str, lanes: int) -> Tensor:
    """Allocate a tensor of one FP32 element in each of `lanes` partitions of SBUF."""
    return r.program.space.sbuf(name, FP32, (1,), lanes)


def scalar_place(r: Recording, view: View, lanes: int) -> Tensor:
    """Return the destination of a reduction, one element in each of `lanes` partitions, and mark it as written."""
    (result,) = common(r, (lanes, 1), view.fitted((view.size, 1)))
    mark_written(view)
    return result


def keep(r: Recording, engine: str, kept: Tensor, view: View | None = None) -> None:
    """Let the column `kept` contain the running results of an engine.

    Unless `view`, the kernel's tensor that contains the column, is float32 in SBUF, the running results
    become undefined.
    """
    if view is None:
        r.running[engine] = Running(kept)
    elif view.allocation.memory is Memory.sbuf and view.dtype == "float32":
        r.running[engine] = Running(kept, view=view, version=view.allocation.version)
    else:
        r.running[engine] = Running()


def start_value(r: Recording, engine: str, op: AluOp, command: ReduceCommand, initial, lanes: int) -> float | Tensor:
    """Return the number, or the scalar in each partition, that a running result continues from.

    Raises:
        ValueError: if it is undefined, is in other partitions, or its tensor was written since.
    """
    if op not in IDENTITIES:
        names = ", ".join(known.name.lower() for known in IDENTITIES)
        raise ValueError(f"a running result's operation must be one of {names}, not {op.name.lower()}")
    if command is ReduceCommand.load_reduce:
        if initial is None:
            raise ValueError("load_reduce must have a value to start from, not None")
        return scalar(r, initial, lanes)
    if command is not ReduceCommand.reduce:
        return IDENTITIES[op]
    now = running(r, engine)
    if now.column is None:
        if now.number is None:
            rule = "reduce must continue a reset, reset_reduce or load_reduce"
            raise ValueError(f"{rule}, with a reduce_res, if any, of float32 in SBUF")
        return now.number
    if now.column.partitions != lanes:
        raise ValueError(
            f"reduce must continue in the {now.column.partitions} partitions that it began in, not {lanes}"
        )
    if now.view is not None and now.view.allocation.version != now.version:
        raise ValueError(f"{now.view.name}: a tensor that reduce continues from must not be written in between")
    return now.column


def running_reduced(
    r: Recording,
    engine: str,
    op: AluOp,
    command: ReduceCommand,
    result: View | None,
    lanes: int,
    append: Callable[[Tensor], None],
    *,
    initial=None,
    negate: bool = False,
) -> None:
    """Append a reduction that updates an engine's running results, and the store of these to `result`.

    `append` appends the instruction that reduces its elements into a column; with command `reset` this column is
    ignored. `initial` is the start value of `load_reduce`. `negate` stores the results with inverted sign.
    """
    before = start_value(r, engine, op, command, initial, lanes)
    fresh = before == IDENTITIES[op] and command is not ReduceCommand.reset
    if fresh and result is not None and not negate:
        append(place := scalar_place(r, result, lanes))
        keep(r, engine, place, result)
        return
    if command is ReduceCommand.reset:
        append(column(r, "left out", lanes))
        left = IDENTITIES[op] + 0.0  # The sum of no numbers is +0.
        r.running[engine] = Running(number=left)
        if result is not None:
            r.program.append(isa.memset(scalar_place(r, result, lanes), -left if negate else left))
        return
    append(now := column(r, "running", lanes))
    if not fresh:
        joined = column(r, "running", lanes)
        r.inserted["column of running results"] += 1
        r.program.append(isa.tensor_scalar(joined, now, before, op))
        now = joined
    keep(r, engine, now)
    if result is not None:
        place = scalar_place(r, result, lanes)
        r.inserted["column of running results"] += 1
        r.program.append(isa.tensor_scalar(place, now, -1.0 if negate else 1.0, AluOp.MULTIPLY))
