"""Rotary position embedding (Su et al., "RoFormer", 2021): every pair of features turns by its token's angle."""

import numpy as np

from neuroncore_rtl.kernels.program import Program, Rows, scratch, tiles_of
from neuroncore_rtl.kernels.program.instructions import tensor_tensor
from neuroncore_rtl.spec.formats import Format
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["BASE", "angles", "rope"]

BASE = 10_000.0
"""Of the angles of neighbouring pairs, as published."""


def angles(tokens: int, width: int, base: float = BASE, first: int = 0) -> np.ndarray:
    """Return by how much each pair of a head turns, float64 [tokens, width / 2].

    Arguments:
        tokens: how many.
        width: features of a head, an even number.
        base: the ratio of the fastest to the slowest turn, about.
        first: position of the first token.

    Raises:
        ValueError: if the width is odd.
    """
    if width < 2 or width % 2:
        raise ValueError(f"a head must have an even number of features, not {width}")
    return np.arange(first, first + tokens)[:, np.newaxis] * base ** (-np.arange(0, width, 2) / width)


def rope(
    program: Program, x: Rows, cosines: Rows, sines: Rows, *, name: str = "turned", fmt: Format | None = None
) -> Rows:
    """Append and return x, [tokens, heads * width], with feature i and i + width / 2 of every head turned as a pair.

    Arguments:
        program: what it is appended to.
        x: in SBUF.
        cosines, sines: of `angles`, FP32 [tokens, width / 2], in tiles like those of x.
        name, fmt: of the result; None: the format of x.

    Raises:
        ValueError: if the shapes do not fit.
    """
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
