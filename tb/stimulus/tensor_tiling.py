"""Products of any shape for the tensor engine.

C[M, N] = A[M, K] x B[K, N]. Either operand may be the stationary one, because the product of the transposes is the
transpose. Every output tile is an accumulation group in one PSUM bank; tiles rotate through the banks, so that a
finished tile is read while the next ones are computed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from neuroncore_rtl.kernels.library.matmul import passes
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.run.harness.engines.tensor import Drain, TensorProgram, TensorStep
from neuroncore_rtl.spec.config import LOAD_COLUMNS, PSUM_BANKS, Config
from neuroncore_rtl.spec.formats import Format
from neuroncore_rtl.spec.isa import LoadStationary, MultiplyMoving

__all__ = ["TiledProduct", "tiled_products"]

LOAD_OVERHEAD = 2  # least cycles between the last step of a load and the first step of the next one


@dataclass(frozen=True)
class TiledProduct(TensorProgram):
    """Program for a part of C; `tiles`: by drain, rows and columns of C, and whether it is transposed."""

    tiles: list[tuple[slice, slice, bool]]

    def gather(self, words: np.ndarray, out: np.ndarray) -> None:
        first = 0
        for drain, (rows, columns, transposed) in zip(self.drains, self.tiles, strict=True):
            tile = words[first : first + drain.words]
            first += drain.words
            target = out[rows, columns]
            target[:] = tile[:, : target.shape[1]] if transposed else tile[:, : target.shape[0]].T


def _cycles(p: int, q: int, k: int, config: Config) -> int:
    """Estimate the cycles with `p` stationary and `q` moving columns; loads and multiplications overlap."""
    total = 0
    for columns in cut(0, p, config.columns):
        load = -(-length(columns) // LOAD_COLUMNS) + LOAD_OVERHEAD
        total += sum(max(length(words), load) for words in cut(0, q, config.psum_words))
    return total * -(-k // config.rows)


class _Memory:
    def __init__(self, rows: int, element: int):
        self.rows, self.element, self.size = rows, element, 0
        self.parts: list[np.ndarray] = []

    def place(self, tile: np.ndarray, columns: int) -> int:
        """Append `tile`, elements [k, n], padded to `columns` columns and all rows; return its address."""
        address = self.size
        padded = np.zeros((self.rows, columns), tile.dtype)
        padded[: tile.shape[0], : tile.shape[1]] = tile
        self.parts.append(padded.view(np.uint8))
        self.size += columns * self.element
        return address

    def image(self) -> np.ndarray:
        return np.concatenate(self.parts, axis=1)


def tiled_products(a: np.ndarray, b: np.ndarray, fmt: Format, config: Config) -> Iterator[TiledProduct]:
    """Yield the programs that together compute C; ValueError if a single tile of K exceeds the operand memory."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or 0 in a.shape + b.shape:
        raise ValueError(f"a and b must be matrices of shapes [M, K] and [K, N], not {a.shape} and {b.shape}")
    element = fmt.bits // 8
    dtype = np.dtype(f"<u{element}")
    a, b = a.astype(dtype), b.astype(dtype)
    k = a.shape[1]
    transposed = _cycles(b.shape[1], a.shape[0], k, config) < _cycles(a.shape[0], b.shape[1], k, config)
    stationary, moving = (b, a.T) if transposed else (a.T, b)

    # As many columns as fit, in whole tiles if possible.
    depth = config.sbuf_bytes // (element * -(-k // config.rows))
    p_step, q_step = depth - depth % LOAD_COLUMNS, depth
    if p_step < 1 or q_step < 1:
        longest = config.sbuf_bytes // (element * LOAD_COLUMNS) * config.rows
        raise ValueError(f"K must be at most {longest} for {fmt.name} and {config.rows} rows, not {k}")
    p_step -= p_step % config.columns if p_step > config.columns else 0
    q_step -= q_step % config.psum_words if q_step > config.psum_words else 0
    for q in cut(0, moving.shape[1], q_step):
        for p in cut(0, stationary.shape[1], p_step):
            yield _program(stationary, moving, p, q, transposed, fmt, config)


def _program(stationary, moving, p: slice, q: slice, transposed: bool, fmt: Format, config: Config) -> TiledProduct:
    element = fmt.bits // 8
    k_tiles = cut(0, stationary.shape[0], config.rows)
    weights, data = _Memory(config.rows, element), _Memory(config.rows, element)
    p_tiles, q_tiles = cut(p.start, p.stop, config.columns), cut(q.start, q.stop, config.psum_words)
    weights_at = {
        (pt.start, kt.start): weights.place(stationary[kt, pt], -(-length(pt) // LOAD_COLUMNS) * LOAD_COLUMNS)
        for pt in p_tiles
        for kt in k_tiles
    }
    data_at = {(qt.start, kt.start): data.place(moving[kt, qt], length(qt)) for qt in q_tiles for kt in k_tiles}

    steps, drains, tiles = [], [], []
    moves = 0
    for qt, pt in product(q_tiles, p_tiles):
        group = len(drains)
        psum = group % PSUM_BANKS * config.psum_words
        for n, (kt, (half, moving_half, loads)) in enumerate(product(k_tiles, passes(fmt, transposed))):
            shape = {"format": fmt, "k": length(kt), "m": length(pt)}
            if loads:
                steps.append(TensorStep(LoadStationary(**shape, half=half, address=weights_at[pt.start, kt.start]), 0))
            operand = {"half": moving_half, "n": length(qt), "address": data_at[qt.start, kt.start], "stride": element}
            move = MultiplyMoving(**shape, **operand, psum=psum, accumulate=n > 0)
            steps.append(TensorStep(move, max(0, group - PSUM_BANKS + 1)))
            moves += 1
        drains.append(Drain(moves, psum, length(qt)))
        tiles.append((qt, pt, True) if transposed else (pt, qt, False))
    return TiledProduct(steps, drains, weights.image(), data.image(), tiles)
