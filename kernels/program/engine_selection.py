"""Engine selection: which of two engines executes an instruction that both can, with the same result.

Such a step has an instruction of the vector engine, and an `other` one of the scalar engine. In program order each goes
to the engine with fewer busy cycles so far.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.costs import busy_cycles
from neuroncore_rtl.spec.isa import Engine, Opcode

__all__ = ["engines_selected"]


def engines_selected(steps: Sequence[ProgramStep], config: Config, repeats: Mapping[int, int]) -> list[ProgramStep]:
    """Return the steps with one instruction each.

    `repeats` maps the number of each step that will be removed to that of the step with the same result: both get the
    same engine, and the cycles count once.
    """
    busy: Counter[Engine] = Counter()
    found: list[ProgramStep] = []
    others: set[int] = set()
    for number, (step, summing) in enumerate(zip(steps, _summing(steps), strict=True)):
        if step.other is not None:
            less = busy[step.other.engine] < busy[step.instruction.engine]
            if not summing and (repeats[number] in others if number in repeats else less):
                others.add(number)
                step = step._replace(instruction=step.other)
        if number not in repeats:
            busy[step.instruction.engine] += busy_cycles(step.instruction, config)
        found.append(step._replace(other=None))
    return found


def _summing(steps: Sequence[ProgramStep]) -> list[bool]:
    """Return for each step whether the scalar engine holds sums that a later step continues.

    Each instruction of the scalar engine restarts the sums of its lanes.
    """
    found, held = [False] * len(steps), False
    for number in reversed(range(len(steps))):
        found[number] = held
        one: Any = steps[number].instruction
        if getattr(one, "opcode", None) == Opcode.ACTIVATE:
            held = one.sum_continue
    return found
