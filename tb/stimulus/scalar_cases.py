"""Cases of scalar operations with the results that somebody else expects of them, whatever file they came from."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = ["Reading", "ScalarCases"]


@dataclass(frozen=True, kw_only=True)
class ScalarCases:
    """Cases of one operation; all arrays have one element a case.

    Arguments:
        operation: its name, one of `tb.tests.oracle.units.ORACLE_OPERATIONS`.
        operands: words (uint32), right-aligned.
        expected: words (uint32) of the results, right-aligned; any NaN stands for all.
        origin: says where a case came from.
    """

    operation: str
    operands: Sequence[np.ndarray]
    expected: np.ndarray
    origin: Callable[[int], str]

    def __len__(self) -> int:
        return len(self.expected)


class Reading(NamedTuple):
    """A suite that is being read.

    Arguments:
        cases: its cases in pieces, so that not all of them are in memory at once.
        left_out: how many cases were left out by why; whole when `cases` is at its end.
    """

    cases: Iterator[ScalarCases]
    left_out: Counter[str]
