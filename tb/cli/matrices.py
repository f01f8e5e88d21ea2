"""Matrices of decimal numbers: files, and their codes in a number format."""

import re
from pathlib import Path

import numpy as np

from neuroncore_rtl.golden.arith import round_once
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.spec.formats import Format

__all__ = ["encode_matrix", "read_matrix"]

MOST = 64
"""Largest number of rows and of columns of a matrix."""


def read_matrix(name: str, path: Path) -> np.ndarray:
    """Return the matrix of a file as float64: .npy, or text, one row per line, separated by blanks or commas.

    Text after "#" is a comment.

    Raises:
        UsageError: the file is no matrix of finite numbers, or too large; the message begins with `name`.
    """
    try:
        rows = np.load(path).tolist() if path.suffix == ".npy" else _rows(path.read_text())
        if rows and not isinstance(rows[0], list):
            raise ValueError("it has one dimension, not two")
        matrix = np.array([[float(number) for number in row] for row in rows])
    except (ValueError, TypeError) as error:
        raise UsageError(f"{name} must be a file of rows with equally many numbers, not {path}: {error}") from None
    if matrix.ndim != 2 or not 0 < matrix.size or max(matrix.shape) > MOST:
        shape = " x ".join(map(str, matrix.shape))
        raise UsageError(f"{name} must have 1 to {MOST} rows and columns, not {shape} ({path})")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        place = f"row {row + 1}, column {column + 1} of {path}"
        raise UsageError(f"{name} must have finite numbers, not {matrix[row, column]} in {place}")
    return matrix


def _rows(text: str) -> list[list[str]]:
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    rows = [re.split(r"\s*[,;]\s*|\s+", line.rstrip(",;")) for line in lines if line]
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise ValueError(f"row {number} has {len(row)} numbers, row 1 has {len(rows[0])}")
    return rows


def encode_matrix(matrix: np.ndarray, fmt: Format, name: str = "a matrix") -> np.ndarray:
    """Return the codes of the nearest numbers of a format, uint32.

    Raises:
        UsageError: if a number is beyond the largest one of the format.
    """
    least = getattr(fmt, "min", -fmt.max)
    beyond = (matrix > fmt.max) | (matrix < least)
    if beyond.any():
        worst = matrix[beyond][0]
        raise UsageError(f"{name} must have numbers from {least:g} to {fmt.max:g}, those of {fmt.name}, not {worst:g}")
    return round_once(matrix, fmt).astype(np.uint32)
