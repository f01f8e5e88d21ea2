"""Running results: the registers of an engine's lanes, which an instruction's elements are reduced into.

The interface has such registers in the scalar and in the vector engine, and commands for them
(:class:`frontends.nki.lowering.reductions.ReduceCommand`). Here they are a column of SBUF, one FP32 element in each
partition: an instruction reduces its own elements into a new column, and another one joins the two. A reduction that
starts anew goes to the kernel's tensor at once, which is the column then.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.operands import common, scalar, written
from neuroncore_rtl.frontends.nki.lowering.reductions import ReduceCommand
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["IDENTITIES", "Running", "column", "keep", "running_reduced", "scalar_place", "started"]

IDENTITIES = {
    AluOp.ADD: 0.0, AluOp.SUBTRACT: 0.0, AluOp.MULTIPLY: 1.0, AluOp.MAX: -inf, AluOp.MIN: inf, AluOp.ABSOLUTE_MAX: 0.0,
}  # fmt: skip
"""What a running result is before any element."""


@dataclass
class Running:
    """The registers of an engine.

    Arguments:
        column: where they are, one element in each partition; None: in none, they are a number.
        number: what all of them are without a column; None: nothing that a kernel may go on from.
        view: the kernel's tensor that the column is part of, if it is; version: how often that was written by then.
    """

    column: Tensor | None = None
    number: float | None = None
    view: View | None = None
    version: int = 0


def running(r: Recording, engine: str) -> Running:
    """Return the registers of an engine."""
    return r.running.setdefault(engine, Running())


def column(r: Recording, name: str, lanes: int) -> Tensor:
    """Return a new column of FP32."""
    return r.program.space.sbuf(name, FP32, (1,), lanes)


def scalar_place(r: Recording, view: View, lanes: int) -> Tensor:
    """Return where a reduction's result goes, one element in each of so many partitions."""
    (result,) = common(r, (lanes, 1), view.fitted((view.size, 1)))
    written(view)
    return result


def keep(r: Recording, engine: str, kept: Tensor, view: View | None = None) -> None:
    """Let a column be the registers; one of a kernel's tensor that rounds them is not."""
    if view is None:
        r.running[engine] = Running(kept)
    elif view.allocation.memory is Memory.sbuf and view.dtype == "float32":
        r.running[engine] = Running(kept, view=view, version=view.allocation.version)
    else:
        r.running[engine] = Running()


def started(r: Recording, engine: str, op: AluOp, command: ReduceCommand, initial, lanes: int) -> float | Tensor:
    """Return what a running result goes on from: a number, or a scalar in each lane.

    Raises:
        ValueError: if it goes on from nothing, from registers of other lanes, or from a tensor that was written since.
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
            rule = "reduce must go on from reset, reset_reduce or load_reduce"
            raise ValueError(f"{rule}, with a reduce_res, if any, of float32 in SBUF")
        return now.number
    if now.column.partitions != lanes:
        raise ValueError(f"reduce must go on in the {now.column.partitions} partitions that it began in, not {lanes}")
    if now.view is not None and now.view.allocation.version != now.version:
        raise ValueError(f"{now.view.name}: what reduce goes on from must not be written in between")
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
    """Append a reduction into the registers, and what stores them.

    Arguments:
        engine: whose registers.
        op: of the reduction.
        command: what is done with the registers; `reset` leaves out the elements.
        result: where they are stored; None: nowhere.
        lanes: partitions that take part.
        append: appends the instruction that reduces its elements into a column.
        initial: number or scalars that `load_reduce` starts from.
        negate: store the registers with the other sign.
    """
    before = started(r, engine, op, command, initial, lanes)
    fresh = before == IDENTITIES[op] and command is not ReduceCommand.reset
    if fresh and result is not None and not negate:
        append(place := scalar_place(r, result, lanes))
        keep(r, engine, place, result)
        return
    if command is ReduceCommand.reset:
        append(column(r, "left out", lanes))
        left = IDENTITIES[op]
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
