"""Cases of scalar operations with the results that an external suite expects."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = ["Reading", "ScalarCases"]


@dataclass(frozen=True, kw_only=True)
class ScalarCases:
    """Cases of one of `tb.tests.oracle.units.ORACLE_OPERATIONS`, as uint32; an expected NaN matches any NaN."""

    operation: str
    operands: Sequence[np.ndarray]
    expected: np.ndarray
    origin: Callable[[int], str]

    def __len__(self) -> int:
        return len(self.expected)


class Reading(NamedTuple):
    """A suite in blocks of cases; the counts of skipped cases are complete when all `cases` have been read."""

    cases: Iterator[ScalarCases]
    left_out: Counter[str]
