"""Tensor-parallel linear layer: Y[M, N] = X[M, K] x W[K, N], with K split over the ranks of a group.

Every rank multiplies its columns of X by its rows of W, an FP32 partial product as large as Y. ALL_REDUCE adds the
partial products in FP32, with the same bits on every rank. Y is cut into strips of rows. The collective of a strip
depends only on the stores of this strip, so it overlaps with the products of the next ones; only the last collective
remains when the array has finished.
"""

from itertools import pairwise
from math import gcd, lcm
from typing import NamedTuple

import numpy as np

from neuroncore_rtl.kernels.library.matmul import matmul
from neuroncore_rtl.kernels.program import HbmTensor, Image, Program, build_image
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32, Format
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa.collective import (
    COLLECTIVE_ALIGNMENT,
    Collective,
    CollectiveKind,
    CollectiveType,
    Group,
    best_chunk,
)

__all__ = ["Shard", "row_strips", "tensor_parallel_programs"]

WORD = FP32.bits // 8


class Shard(NamedTuple):
    """Program and image of one rank of a tensor-parallel product Y = X W.

    `y`, [M, N] in the rank's HBM, is the partial product if there are no collectives; `partial` is always that product.
    """

    image: Image
    y: HbmTensor
    partial: HbmTensor
    program: Program


@located
def row_strips(m: int, n: int, strips: int, columns: int) -> list[slice]:
    """Split the rows of an FP32 matrix [m, n] into strips, as evenly as possible.

    All strips except the last have a multiple of `columns` rows, and start at a legal address of a collective. Raises
    ValueError if so many strips are not possible.
    """
    words = COLLECTIVE_ALIGNMENT // WORD
    step = lcm(columns, words // gcd(n, words))
    units = -(-m // step)
    if not 1 <= strips <= units:
        raise ValueError(f"strips must be between 1 and {units}, of {step} rows or more, not {strips!r}")
    bounds = [min(m, step * (number * units // strips)) for number in range(strips + 1)]
    return [slice(first, end) for first, end in pairwise(bounds)]


@located
def tensor_parallel_programs(
    machine: Config | Instance,
    group: Group,
    x: np.ndarray,
    w: np.ndarray,
    *,
    fmt: Format = BF16,
    strips: int = 4,
    reduce: bool = True,
    base: int = 0,
    order: str = Program.order,
) -> list[Shard]:
    """Return the program of every rank of a group, in order of ranks.

    `machine` is the instance, or the parameters of one of its cores. x [M, K] and w [K, N] are codes of `fmt`, which
    the tensor engine multiplies with FP32 sums; K is at least the number of ranks. `strips` is the number of strips of
    Y. `reduce` False omits only the collectives. `base` is the HBM address of every image; `order` is as in `Program`.
    """
    config = machine.core if isinstance(machine, Instance) else machine
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[0]:
        raise ValueError(f"x and w must be [M, K] and [K, N], not {x.shape!r} and {w.shape!r}")
    (m, depth), n = x.shape, w.shape[1]
    if depth < group.ranks:
        raise ValueError(f"K must be at least the {group.ranks} ranks, not {depth}")
    bounds = [rank * depth // group.ranks for rank in range(group.ranks + 1)]
    cuts = row_strips(m, n, strips, config.columns)

    def shard(rank: int, part: slice) -> Shard:
        program = Program(config, base, core=group.cores[rank], order=order)
        space, k = program.space, part.stop - part.start
        partial, y = space.hbm("partial", FP32, (m, n)), space.hbm("y", FP32, (m, n))
        left, right = space.hbm("x", fmt, (k, m)), space.hbm("w", fmt, (k, n))

        def all_reduce(rows: slice) -> None:
            count = (rows.stop - rows.start) * n
            program.append(
                Collective(
                    kind=CollectiveKind.ALL_REDUCE,
                    group=group,
                    rank=rank,
                    count=count,
                    dtype=CollectiveType.FP32,
                    src=partial[rows].address,
                    dst=y[rows].address,
                    chunk=best_chunk(count, group.ranks),
                )
            )

        matmul(program, partial, left, right, strips=cuts, stored=all_reduce if reduce else None)
        image = build_image(program, [(left, x[:, part].T), (right, w[part])])
        return Shard(image, y if reduce else partial, partial, program)

    return [shard(rank, slice(*ends)) for rank, ends in enumerate(pairwise(bounds))]
