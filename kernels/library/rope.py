"""Rotary position embedding (Su et al., "RoFormer", 2021): rotates pairs of features by the angle of their token."""

import numpy as np

from neuroncore_rtl.kernels.program import Program
from neuroncore_rtl.kernels.program.instructions import tensor_tensor
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.rows import Rows, as_rows, scratch, tiles_of
from neuroncore_rtl.spec.formats import Format
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["BASE", "angles", "rope"]

BASE = 10_000.0
"""Base of the angles, as published."""


@located
def angles(tokens: int, width: int, base: float = BASE, first: int = 0) -> np.ndarray:
    """Return the angle of each pair of features, float64 [tokens, width / 2].

    `first` is the position of the first token, `base` about the ratio of the fastest to the slowest rotation. Raises
    ValueError if the width is odd.
    """
    if width < 2 or width % 2:
        raise ValueError(f"a head must have an even number of features, not {width}")
    return np.arange(first, first + tokens)[:, np.newaxis] * base ** (-np.arange(0, width, 2) / width)


@located
def rope(
    program: Program, x: Rows, cosines: Rows, sines: Rows, *, name: str = "turned", fmt: Format | str | None = None
) -> Rows:
    """Append and return x, [tokens, heads * width], with the pair of features i and i + width / 2 rotated.

    Cosines and sines of `angles` are FP32 [tokens, width / 2], in tiles like x. The result has the format of x by
    default.
    """
    x, cosines, sines = as_rows(x, "x"), as_rows(cosines, "cosines"), as_rows(sines, "sines")
    (tokens, features), half = x.shape, cosines.shape[1]
    if cosines.shape != sines.shape or cosines.shape[0] != tokens or features % (2 * half):
        found = f"{list(x.shape)}, {list(cosines.shape)} and {list(sines.shape)}"
        raise ValueError(f"{name}: x, cosines and sines must be [T, heads * 2 W], [T, W] and [T, W], not {found}")
    heads = features // (2 * half)
    turned = scratch(program.space, name, x, fmt=fmt or x.format)
    straight, crossed = scratch(program.space, "straight", x), scratch(program.space, "crossed", x)
    for *matrices, cosine, sine in tiles_of(x, turned, straight, crossed, cosines, sines):
        tile, out, same, other = (one.reshape(heads, 2, half) for one in matrices)
        program.append(tensor_tensor(same, tile, cosine, AluOp.MULTIPLY))
        program.append(tensor_tensor(other, tile[:, :, ::-1], sine, AluOp.MULTIPLY))
        program.append(tensor_tensor(out[:, :, 0], same[:, :, 0], other[:, :, 0], AluOp.SUBTRACT))
        program.append(tensor_tensor(out[:, :, 1], same[:, :, 1], other[:, :, 1], AluOp.ADD))
    return turned
