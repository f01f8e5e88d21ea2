"""Rest of `nki.language`: tensors, loops, grids, index expressions, sizes of the machine."""

from collections.abc import Callable
from contextlib import contextmanager
from math import prod
from numbers import Integral
from os import PathLike
from typing import Any

import ml_dtypes
import numpy as np

from neuroncore_rtl.frontends.nki.dialects.isa_elementwise import CALLS as ELEMENTWISE
from neuroncore_rtl.frontends.nki.dialects.isa_move import CALLS as MOVE
from neuroncore_rtl.frontends.nki.indices.affine import arange, mgrid
from neuroncore_rtl.frontends.nki.indices.arrays import as_numbers, read_array
from neuroncore_rtl.frontends.nki.indices.dtypes import DTYPES, DType, dtype_of
from neuroncore_rtl.frontends.nki.indices.given import as_integer
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel
from neuroncore_rtl.frontends.nki.indices.numbers import Moved
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.loops import dynamic_range, fori_loop, while_loop
from neuroncore_rtl.frontends.nki.trace.recording import recording
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.spec.config import PSUM_BANKS, Config
from neuroncore_rtl.spec.isa.elementwise.opcode import STATS_ELEMENTS

__all__ = ["KEYWORDS", "Range", "TileSize", "names"]

FILL_COLUMNS = 1024
"""Most elements per partition of the tile that fills a tensor in HBM."""

MEMORIES = {**{memory.value: memory for memory in Memory}, "hbm": Memory.private_hbm}


class ParDim(int):
    """Size of a dimension of a shape, marked as the partition dimension; dimensions before it count blocks."""

    def __new__(cls, size):
        return super().__new__(cls, as_integer("par_dim", size))


class Range(dict):
    """Limits of FP32: most negative, largest, and smallest positive normal number."""

    __getattr__ = dict.__getitem__


class TileSize:
    """Machine sizes, as in `nl.tile_size`."""

    def __init__(self, config: Config):
        self.pmax = min(config.partitions, config.columns)
        self.psum_fmax = self.psum_bank_fmax = self.gemm_moving_fmax = config.psum_words
        self.psum_bank_fmax_bytes = config.psum_bank
        self.gemm_stationary_fmax = config.columns
        self.bn_stats_fmax = STATS_ELEMENTS
        self.psum_min_align = self.sbuf_min_align = 1
        self.psum_num_banks = PSUM_BANKS
        self.sbuf_size_bytes = self.total_available_sbuf_size = config.sbuf_bytes


def _memory(buffer) -> Memory:
    if isinstance(buffer, Memory):
        return buffer
    found = getattr(buffer, "memory", None) or (MEMORIES.get(buffer) if isinstance(buffer, str) else None)
    if found is None:
        raise ValueError(f"buffer must be one of {', '.join(MEMORIES)}, not {buffer!r}")
    return found


@from_kernel
def ndarray(shape: Any, dtype, buffer=Memory.sbuf, name="", **options) -> View:
    """Return a new tensor; on chip, par_dim marks its partition dimension, by default the first."""
    current = recording()
    current.flush()
    memory = _memory(buffer)
    shape = (shape,) if isinstance(shape, Integral) else tuple(shape)
    marked = [d for d, n in enumerate(shape) if isinstance(n, ParDim)]
    if len(marked) > 1:
        raise ValueError(f"par_dim must mark one dimension, not {len(marked)} of {shape}")
    return current.allocate(shape, dtype_of(dtype), memory, name, marked[0] if marked else 0)


class Keyword:
    """Memory as a built-in name of files in the second dialect, which they use without an import."""

    def __init__(self, memory: Memory):
        self.memory = memory

    def view(self, dtype, shape, name="") -> View:
        return ndarray(shape, dtype, self.memory, name)


KEYWORDS = {name: Keyword(MEMORIES[name]) for name in ("sbuf", "psum", "hbm")}


@from_kernel
def zeros(shape, dtype, buffer=Memory.sbuf, name="", **options) -> View:
    """Return a new tensor of zeros."""
    result = ndarray(shape, dtype, buffer, name)
    if not result.allocation.memory.on_chip:
        return _filled(result, 0)
    result.allocation.zeros.update(range(prod(result.shape[: result.lanes])))
    return result


@from_kernel
def full(shape, fill_value, dtype, buffer=Memory.sbuf, name="", **options) -> View:
    """Return a new tensor filled with one number."""
    result = ndarray(shape, dtype, buffer, name)
    if not result.allocation.memory.on_chip:
        return _filled(result, fill_value)
    for block in np.ndindex(*result.shape[: result.lanes or 0]):
        ELEMENTWISE["memset"].run(result[block], {"value": fill_value}, None, None)
    return result


def _filled(result: View, value) -> View:
    """Fill a tensor in HBM by copies of a tile, in the first program of a grid that makes it, and return it."""
    if result.allocation.version:
        return result
    lanes = recording().program.lanes
    width = min(FILL_COLUMNS, -(-result.size // lanes))
    tile, flat = full((lanes, width), value, result.dtype), result.reshape((result.size,))
    for part in cut(0, result.size // width, lanes):
        rows = flat[part.start * width : part.stop * width].reshape((length(part), width))
        MOVE["dma_copy"].run(rows, {"src": tile[: length(part)]}, None, None)
    if rest := result.size % width:
        MOVE["dma_copy"].run(flat[-rest:].reshape((1, rest)), {"src": tile[0:1, :rest]}, None, None)
    return result


def ones(shape, dtype, buffer=Memory.sbuf, name="", **options) -> View:
    return full(shape, 1, dtype, buffer, name)


def empty_like(x: View, dtype=None, buffer=None, name="") -> View:
    return ndarray(x.shape, x.dtype if dtype is None else dtype, x.buffer if buffer is None else buffer, name)


def zeros_like(x: View, dtype=None, buffer=None, name="") -> View:
    return zeros(x.shape, x.dtype if dtype is None else dtype, x.buffer if buffer is None else buffer, name)


@from_kernel
def shared_constant(constant, dtype=None, **options) -> View:
    """Return a tensor in HBM that is initialised with an array or a .npy file."""
    values = read_array(constant) if isinstance(constant, str | PathLike) else np.asarray(constant)
    current = recording()
    current.flush()
    return current.constant(*as_numbers(values, dtype))


@from_kernel
def shared_identity_matrix(n: int, dtype="uint8", dst: View | None = None) -> View:
    """Return an identity matrix in SBUF, or in HBM if it has too many rows."""
    matrix = shared_constant(np.eye(n), dtype)
    if dst is None and n > recording().program.lanes:
        return matrix
    dst = ndarray((n, n), dtype) if dst is None else dst
    MOVE["dma_copy"].run(dst, {"src": matrix}, None, None)
    return dst


@from_kernel
def _range(start, stop=None, step=1, **options) -> range:
    bounds = (0, start, step) if stop is None else (start, stop, step)
    if not all(isinstance(number, Integral) for number in bounds):
        rule = "a loop's bounds must be Python integers, except in nl.fori_loop and nl.dynamic_range"
        raise ValueError(f"{rule}, not {bounds!r}")
    return range(*bounds)


@from_kernel
def ds(start: int | View, size: int) -> slice | Moved:
    """Return the slice of `size` indices from `start` on; `start` may be a number in SBUF."""
    if isinstance(start, View):
        return Moved(arange(size), start.single())
    if not isinstance(start, Integral) or not isinstance(size, Integral):
        raise ValueError(f"a slice's start and size must be Python integers, not {start!r} and {size!r}")
    return slice(start, start + size)


@from_kernel
def program_id(axis: int = 0) -> int:
    """Return the current program's index along an axis of the grid; 0 without a grid."""
    place = recording().place
    if place and not 0 <= axis < len(place):
        raise ValueError(f"axis must be one of the grid's {len(place)} axes, not {axis!r}")
    return place[axis] if place else 0


def num_programs(axes: Any = 0) -> int:
    """Return the number of programs along axes of the grid."""
    grid = recording().grid or (1,)
    axes = range(len(grid)) if axes is None else (axes,) if isinstance(axes, Integral) else axes
    wrong = [axis for axis in axes if not 0 <= axis < len(grid)]
    if wrong:
        raise ValueError(f"axes must be among the grid's {len(grid)} axes, not {wrong[0]!r}")
    return prod(grid[axis] for axis in axes)


def program_ndim() -> int:
    return len(recording().grid)


def spmd_dim(programs: int, cores: int = 1) -> int:
    """Return the size of a grid axis; the interface shares its programs among `cores`, but here one core runs all."""
    return as_integer("programs", programs) * as_integer("cores", cores)


def finfo(dtype):
    """Return numpy's limits of a floating-point type."""
    return ml_dtypes.finfo(dtype_of(dtype).dtype)


def device_print(*words, **options) -> None:
    """Do nothing: while a kernel is recorded, tensors have no values."""


@contextmanager
def no_reorder():
    """Keep program order in this context; it is always kept here."""
    yield


def _in(*memories: Memory) -> Callable[[object], bool]:
    return from_kernel(lambda buffer: _memory(buffer) in memories)


def names(config: Config) -> dict[str, object]:
    """Return a machine's names of `nki.language` other than functions on tiles."""
    single = np.finfo(np.float32)
    functions = (
        ndarray, zeros, full, ones, empty_like, zeros_like, shared_constant, shared_identity_matrix, ds, program_id,
        num_programs, program_ndim, spmd_dim, finfo, device_print, no_reorder, dynamic_range, fori_loop, while_loop,
    )  # fmt: skip
    return {
        **{function.__name__: from_kernel(function) for function in functions},
        **MEMORIES,
        **DTYPES,
        **dict.fromkeys(("affine_range", "sequential_range", "static_range"), _range),
        "is_sbuf": _in(Memory.sbuf),
        "is_psum": _in(Memory.psum),
        "is_on_chip": _in(Memory.sbuf, Memory.psum),
        "is_hbm": _in(Memory.shared_hbm, Memory.private_hbm),
        "arange": arange,
        "mgrid": mgrid,
        "dslice": ds,
        "par_dim": from_kernel(ParDim),
        "nc": int,
        "empty": ndarray,
        "tile_size": TileSize(config),
        "bool": DTYPES["bool_"],
        "fp32": Range(min=float(single.min), max=float(single.max), tiny=float(single.tiny)),
        "MemoryRegion": Memory,
        "DType": DType,
        "NkiTensor": View,
    }
