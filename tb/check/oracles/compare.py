"""Comparison of bit patterns: fails if there is nothing to compare, counts differences, shows the first."""

import numpy as np

__all__ = ["assert_same_bits", "mismatches"]


def mismatches(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return the positions where two arrays of bit patterns differ; fail if the arrays are empty."""
    ours, theirs = _bits(ours), _bits(theirs)
    assert ours.shape == theirs.shape, f"shapes differ: {ours.shape} and {theirs.shape}"
    assert ours.size > 0, "nothing was compared"
    return np.flatnonzero(ours != theirs)


def assert_same_bits(ours: np.ndarray, theirs: np.ndarray, *cases: np.ndarray) -> None:
    """Assert that two arrays have the same bits, all NaNs equal; show the first difference with its `cases`."""
    wrong = mismatches(ours, theirs)
    if len(wrong):
        first = wrong[0]
        shown = " ".join(f"{int(_bits(case)[first]):x}" for case in cases)
        ours, theirs = np.ravel(ours)[first], np.ravel(theirs)[first]
        raise AssertionError(f"{len(wrong)} of {np.size(cases[0] if cases else wrong)} differ; first: case {shown}: "
                             f"ours {_format(ours)}, theirs {_format(theirs)}")  # fmt: skip


def _bits(array) -> np.ndarray:
    array = np.ravel(array)
    if array.dtype.kind != "f":
        return array.astype(np.int64)
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        return np.where(np.isnan(array), np.nan, array.astype(np.float64)).view(np.int64)


def _format(value) -> str:
    return f"{value!r}" if value.dtype.kind == "f" else f"{int(value):x}"
