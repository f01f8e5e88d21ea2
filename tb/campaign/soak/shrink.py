"""Shrinking of a failing case to a small case that fails in the same way.

The order is: disturbances; instructions in ever shorter ranges (ddmin of Zeller and Hildebrandt); their sizes; at last
the machine's parameters, as each change needs a build.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from neuroncore_rtl.tb.tests.soak.case import Case

__all__ = ["Shrinking", "shrink"]


@dataclass
class Shrinking:
    """Limits and progress of shrinking a case: at most `tries` runs, at most `builds` of them on other machines.

    `fails` runs a case and returns whether it fails like the original case.
    """

    fails: Callable[[Case], bool]
    tries: int
    builds: int
    say: Callable[[str], object] = print
    tried: int = field(default=0, init=False)
    built: int = field(default=0, init=False)

    @property
    def over(self) -> bool:
        return self.tried >= self.tries

    def holds(self, case: Case) -> bool:
        """Return whether a case fails like the original case; an invalid case does not count as a try."""
        if self.over:
            return False
        try:
            failed = self.fails(case)
        except ValueError:
            return False
        self.tried += 1
        return failed

    def first(self, cases: Iterable[Case]) -> Case | None:
        return next((case for case in cases if not self.over and self.holds(case)), None)


def shrink(case: Case, shrinking: Shrinking) -> Case:
    """Return the smallest case found that fails like the given one."""
    case = _remove_disturbances(case, shrinking)
    size = None
    while size != case.size and not shrinking.over:
        size = case.size
        case = _remove_instructions(case, shrinking)
        case = _shrink_instructions(case, shrinking)
    return _simplify_machine(_remove_disturbances(case, shrinking), shrinking)


def _remove_disturbances(case: Case, shrinking: Shrinking) -> Case:
    while (calmer := shrinking.first(case.calmer())) is not None:
        case = calmer
        shrinking.say(f"{shrinking.tried} tries: fewer disturbances")
    return case


def _remove_instructions(case: Case, shrinking: Shrinking) -> Case:
    length = max(1, case.size // 2)
    while case.size > 1 and not shrinking.over:
        end, before = case.size, case.size
        # The last instructions are the least likely to be needed for the failure.
        while end > 0:
            start = max(0, end - length)
            less = None
            if end - start < case.size:
                with suppress(ValueError):
                    less = case.without(set(range(start, end)))
            if less is not None and shrinking.holds(less):
                case = less
                shrinking.say(f"{shrinking.tried} tries: {case.size:,} instructions")
            end = start
        if length == 1 and case.size == before:
            break
        length = max(1, min(length // 2, case.size // 2))
    return case


def _shrink_instructions(case: Case, shrinking: Shrinking) -> Case:
    for number in range(case.size):
        while number < case.size and (smaller := shrinking.first(case.smaller(number))) is not None:
            case = smaller
            shrinking.say(f"{shrinking.tried} tries: instruction {number} is smaller")
    return case


def _simplify_machine(case: Case, shrinking: Shrinking) -> Case:
    found = True
    while found and shrinking.built < shrinking.builds and not shrinking.over:
        found = False
        for plainer in case.plainer():
            if shrinking.built >= shrinking.builds:
                break
            tried = shrinking.tried
            failed = shrinking.holds(plainer)
            shrinking.built += shrinking.tried - tried
            if failed:
                case, found = plainer, True
                shrinking.say(f"{shrinking.tried} tries: a simpler machine")
                break
    return case
