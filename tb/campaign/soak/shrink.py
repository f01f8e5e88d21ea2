"""A case that fails, cut down to one that is as small as it can be and fails in the same way.

What disturbs it goes first, then instructions, in halves, quarters and one by one (Zeller's and Hildebrandt's ddmin),
then sizes of what is left, and in the end what of the machine is not as usual, which has to be built each time. Nothing
is random, and the tries are counted.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from neuroncore_rtl.tb.tests.soak.case import Case

__all__ = ["Shrinking", "shrunk"]


@dataclass
class Shrinking:
    """How far a case may be cut down.

    Arguments:
        fails: runs a case, and returns whether it fails as the first one did; ValueError if there is no such program.
        tries: runs at most. builds: of these, on other machines.
        say: is told of what was left out.

    Attributes:
        tried, built: those that there were.
    """

    fails: Callable[[Case], bool]
    tries: int
    builds: int
    say: Callable[[str], object] = print
    tried: int = field(default=0, init=False)
    built: int = field(default=0, init=False)

    @property
    def over(self) -> bool:
        """Whether it may not try again."""
        return self.tried >= self.tries

    def holds(self, case: Case) -> bool:
        """Return whether a case fails as the first one did; what cannot be run costs no try."""
        if self.over:
            return False
        try:
            failed = self.fails(case)
        except ValueError:
            return False
        self.tried += 1
        return failed

    def first(self, cases: Iterable[Case]) -> Case | None:
        """Return the first case that fails as the first one did."""
        return next((case for case in cases if not self.over and self.holds(case)), None)


def shrunk(case: Case, shrinking: Shrinking) -> Case:
    """Return a case that fails as one does, with as little as there can be within the tries."""
    case = _calmed(case, shrinking)
    size = None
    while size != case.size and not shrinking.over:
        size = case.size
        case = _fewer(case, shrinking)
        case = _smaller(case, shrinking)
    return _on_plainer(_calmed(case, shrinking), shrinking)


def _calmed(case: Case, shrinking: Shrinking) -> Case:
    """Return a case with less that disturbs it."""
    while (calmer := shrinking.first(case.calmer())) is not None:
        case = calmer
        shrinking.say(f"{shrinking.tried} tries: less that disturbs it")
    return case


def _fewer(case: Case, shrinking: Shrinking) -> Case:
    """Return a case with fewer instructions: without those of a range, ever shorter ones."""
    length = max(1, case.size // 2)
    while case.size > 1 and not shrinking.over:
        end, before = case.size, case.size
        # What comes last is needed least.
        while end > 0:
            start = max(0, end - length)
            less = None if end - start == case.size else _without(case, range(start, end))
            if less is not None and shrinking.holds(less):
                case = less
                shrinking.say(f"{shrinking.tried} tries: {case.size:,} instructions")
            end = start
        if length == 1 and case.size == before:
            break
        length = max(1, min(length // 2, case.size // 2))
    return case


def _without(case: Case, numbers: range) -> Case | None:
    try:
        return case.without(set(numbers))
    except ValueError:
        return None


def _smaller(case: Case, shrinking: Shrinking) -> Case:
    """Return a case with smaller instructions."""
    for number in range(case.size):
        while (smaller := _first_smaller(case, number, shrinking)) is not None:
            case = smaller
            shrinking.say(f"{shrinking.tried} tries: a smaller instruction {number}")
    return case


def _first_smaller(case: Case, number: int, shrinking: Shrinking) -> Case | None:
    return None if number >= case.size else shrinking.first(case.smaller(number))


def _on_plainer(case: Case, shrinking: Shrinking) -> Case:
    """Return a case on a machine that is more as usual."""
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
                shrinking.say(f"{shrinking.tried} tries: on a plainer machine")
                break
    return case
