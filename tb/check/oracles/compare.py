"""One way to compare bits: the count is above zero, every difference is counted, the first one is shown."""

import numpy as np

__all__ = ["assert_same_bits", "mismatches"]


def mismatches(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return the positions where two arrays of bit patterns differ.

    Raises:
        AssertionError: if there is nothing to compare, or shapes differ.
    """
    ours, theirs = _bits(ours), _bits(theirs)
    assert ours.shape == theirs.shape, f"shapes differ: {ours.shape} and {theirs.shape}"
    assert ours.size > 0, "nothing was compared"
    return np.flatnonzero(ours != theirs)


def assert_same_bits(ours: np.ndarray, theirs: np.ndarray, *cases: np.ndarray) -> None:
    """Assert that two arrays hold the same bits; `cases` are the operands, shown in hex for the first difference.

    Floats are compared by their bits too, so that -0 is not 0, but any NaN equals any other.
    """
    wrong = mismatches(ours, theirs)
    if len(wrong):
        first = wrong[0]
        shown = " ".join(f"{int(_bits(case)[first]):x}" for case in cases)
        ours, theirs = np.ravel(ours)[first], np.ravel(theirs)[first]
        raise AssertionError(f"{len(wrong)} of {np.size(cases[0] if cases else wrong)} differ; first: case {shown}: "
                             f"ours {_shown(ours)}, theirs {_shown(theirs)}")  # fmt: skip


def _bits(array) -> np.ndarray:
    array = np.ravel(array)
    if array.dtype.kind != "f":
        return array.astype(np.int64)
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        return np.where(np.isnan(array), np.nan, array.astype(np.float64)).view(np.int64)


def _shown(value) -> str:
    return f"{value!r}" if value.dtype.kind == "f" else f"{int(value):x}"
