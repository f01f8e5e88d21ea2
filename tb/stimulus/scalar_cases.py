"""Cases of scalar operations with the results that an external suite expects, from any file format."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = ["Reading", "ScalarCases"]


@dataclass(frozen=True, kw_only=True)
class ScalarCases:
    """Cases of one operation; each array has one element per case.

    Arguments:
        operation: name of the operation in `tb.tests.oracle.units.ORACLE_OPERATIONS`.
        operands: uint32 words, right-aligned.
        expected: uint32 words of the results, right-aligned; any NaN stands for all.
        origin: returns the source of a case, as text.
    """

    operation: str
    operands: Sequence[np.ndarray]
    expected: np.ndarray
    origin: Callable[[int], str]

    def __len__(self) -> int:
        return len(self.expected)


class Reading(NamedTuple):
    """A suite that is being read in blocks of cases, to bound the memory.

    The number of skipped cases by reason is complete when `cases` is exhausted.
    """

    cases: Iterator[ScalarCases]
    left_out: Counter[str]
