"""Calls of the tensor engine: products and transpositions."""

from math import prod

from neuroncore_rtl.frontends.nki.indices.dtypes import DTYPES
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.calls import Call, instruction
from neuroncore_rtl.frontends.nki.lowering.engines import append_copy
from neuroncore_rtl.frontends.nki.lowering.loops import check_first_product
from neuroncore_rtl.frontends.nki.lowering.operands import (
    as_row,
    common,
    identity_tile,
    in_sbuf,
    lanes_tensor,
    spread,
    step_of,
    tile_places,
    written,
)
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.library.matmul import passes
from neuroncore_rtl.kernels.program import Tensor, dma_copy, load_stationary, multiply_moving
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config
from neuroncore_rtl.spec.formats import BF16, FP16, FP32, INT8, MATMUL_FORMATS, TF32, UINT8, Format
from neuroncore_rtl.spec.isa import Storage
from neuroncore_rtl.spec.isa.access import allowed_start
from neuroncore_rtl.spec.isa.tensor import row_starts

__all__ = ["CALLS", "OPERAND", "stationary_operand", "transposable", "transposed"]

CALLS: dict[str, Call] = {}
"""The calls of this module."""

OPERAND = "operand of the tensor engine"
"""Why a copy is inserted: it is not in SBUF, not in the partitions of the other operand, or not with the steps that the
engine takes."""


def _product(arguments: dict) -> tuple:
    stationary, moving = arguments["stationary"], arguments["moving"]
    dtype = DTYPES["int32" if moving.dtype == "int8" else "float32"]
    first = 2 if _in_double_rows(arguments.get("perf_mode")) else 1
    columns = (view.shape[first:] if view.cut is None else view.cut.shape[first:] for view in (stationary, moving))
    return (prod(next(columns)), *next(columns)), dtype, Memory.psum


@instruction(
    CALLS, "expanded",
    "LOAD_STATIONARY and MULTIPLY_MOVING; FP32 four pairs of halves; tiles of the array, and double rows, in turn",
    result=_product, like="moving", product=True,
)  # fmt: skip
def nc_matmul(
    r: Recording,
    dst: View,
    stationary: View,
    moving: View,
    is_stationary_onezero=False,
    is_moving_onezero=False,
    is_transpose=False,
    accumulate=None,
    tile_position=(),
    tile_size=(),
    perf_mode=None,
) -> None:
    """Dst = stationary.T moving, or dst += it; accumulate=None: what is new in PSUM is overwritten."""
    if _in_double_rows(perf_mode):
        if {stationary.ndim, moving.ndim} != {3} or {stationary.shape[1], moving.shape[1]} != {2}:
            rule = "double rows must be of operands of three dimensions, the second one of 2"
            raise ValueError(f"{rule}, not {stationary.shape} and {moving.shape}")
        r.inserted["second product of double rows"] += 1
        for row, adds in enumerate((accumulate, True)):
            nc_matmul(r, dst, stationary[:, row], moving[:, row], accumulate=adds)
            written(dst)
        return
    dst, stationary, moving = _cut_alike(dst, stationary, moving)
    stationary, moving = _of_bytes(r, stationary, moving), _of_bytes(r, moving, stationary)
    config, columns = r.program.config, prod(stationary.shape[1:])
    if tile_position or tile_size:
        _check_tile(config, tile_position, tile_size, (stationary.shape[0], columns))
    if dst.allocation.memory is not Memory.psum:
        raise ValueError(f"{dst.name}: dst must be in PSUM, not in {dst.allocation.memory.value}")
    if stationary.shape[0] != moving.shape[0] or moving.shape[0] > config.rows:
        rule = f"stationary and moving must have the same partitions, at most {config.rows}"
        raise ValueError(f"{rule}, not {stationary.shape[0]} and {moving.shape[0]}")
    if columns > config.columns:
        raise ValueError(f"{stationary.name}: stationary columns must be at most {config.columns}, not {columns}")
    if prod(moving.shape[1:]) > config.psum_words:
        rule = f"moving columns must be at most {config.psum_words}"
        raise ValueError(f"{moving.name}: {rule}, not {prod(moving.shape[1:])}")
    formats = stationary.dtype.known, moving.dtype.known
    if formats[0] is not formats[1] and {FP32, INT8} & set(formats):
        raise ValueError(f"float32 and int8 must meet their own kind, not {stationary.dtype} and {moving.dtype}")
    a = stationary_operand(r, stationary)
    b = _moving(r, moving, a.partition)
    target, adds = _sums(r, dst, columns, b, accumulate)
    sums, kept = _adjacent(target), target.format is not FP32 and formats[0].is_float
    apart = sums is None
    if kept and adds:
        rule = "sums of floating-point numbers must go on in float32"
        raise ValueError(f"{dst.name}: {rule}, not in {dst.dtype}")
    if apart or kept:
        r.inserted["sums that are apart" if apart else "sums as integers"] += 1
        sums = r.program.space.psum(dst.name, FP32 if kept else target.format, (target.size,), columns)
        if adds and not is_transpose:
            append_copy(r, sums.reshape(*target.shape), target)
    if is_transpose:
        transposed(r, sums, a)
    else:
        for half, other, loaded in passes(formats[0]):
            if loaded:
                r.program.append(load_stationary(a, half=half, column=sums.partition))
            r.program.append(multiply_moving(sums, b, half=other, accumulate=adds))
            adds = True
    if apart or kept:
        append_copy(r, target, sums.reshape(*target.shape))


def _of_bytes(r: Recording, view: View, other: View) -> View:
    """Return an operand; one of bytes without a sign, which the array does not multiply, as a copy in the other's
    floating-point format, or in BF16, which hold them exactly.
    """
    if view.dtype.known is not UINT8:
        return view
    dtype = other.dtype if other.dtype.known in (FP32, TF32, BF16, FP16) else DTYPES["bfloat16"]
    copy = r.allocate(view.shape, dtype, Memory.sbuf, view.name)
    r.inserted["bytes as floating-point numbers"] += 1
    append_copy(r, *common(r, view.shape, copy, view))
    return copy


@instruction(
    CALLS, "expanded", "by the tensor engine, and from PSUM where dst is in SBUF; integers by DMA",
    result=lambda given: ((prod(given["data"].shape[1:]), given["data"].shape[0]), given["data"].dtype, Memory.psum),
    along=lambda given, dst: (1, 0) if dst.ndim == given["data"].ndim == 2 else None,
)  # fmt: skip
def nc_transpose(r: Recording, dst: View, data: View) -> None:
    """Dst = data.T, free dimensions of data as one."""
    rows, columns = data.shape[0], prod(data.shape[1:])
    if (dst.shape[0], prod(dst.shape[1:])) != (columns, rows):
        raise ValueError(f"{dst.name}: shape must be ({columns}, {rows}), that of data turned, not {dst.shape}")
    if columns > r.program.config.columns or rows > r.program.config.rows:
        limits = f"{r.program.config.rows} partitions and {r.program.config.columns} columns"
        raise ValueError(f"{data.name}: what is transposed must have at most {limits}, not {rows} and {columns}")
    target = lanes_tensor(r, dst)
    if not transposable(data.dtype.known):
        _transposed_by_dma(r, target, lanes_tensor(r, spread(r, data)))
        return
    source = stationary_operand(r, data)
    if target.storage == Storage.PSUM and target.format is FP32 and (whole := _adjacent(target)) is not None:
        transposed(r, whole, source)
        return
    sums = r.program.space.psum(dst.name, FP32, (rows,), columns)
    transposed(r, sums, source)
    r.inserted["PSUM to dst"] += 1
    row = as_row(target)
    append_copy(r, *((target, sums.reshape(*target.shape)) if row is None else (row, sums)))


def _transposed_by_dma(r: Recording, target: Tensor, source: Tensor) -> None:
    """Append target = source.T, free dimensions of either as one: by way of SBUF where those are in no equal steps."""
    flat, held = as_row(source), target
    if flat is None:
        flat = in_sbuf(r, source, "rows side by side").reshape(source.size)
    if as_row(target) is None:
        held = r.program.space.sbuf(target.name, target.format, target.shape, target.partitions)
    r.inserted["transposition by DMA"] += 1
    r.program.append(dma_copy(held.reshape(held.size), flat, (1, 0)))
    if held is not target:
        append_copy(r, target, held)


def _cut_alike(dst: View, stationary: View, moving: View) -> tuple[View, View, View]:
    """Return dst and the operands of a product without the rows and columns that a mask has left out of one of them."""
    for own, other, columns in ((stationary, moving, ()), (moving, stationary, (slice(None),))):
        if own.cut is None:
            continue
        rows, *rest = own.cut.part
        if other.shape[0] == own.cut.shape[0]:
            stationary, moving = (view if view is own else view[rows] for view in (stationary, moving))
        if dst.shape[len(columns) : len(columns) + len(rest)] == own.cut.shape[1:]:
            dst = dst[(*columns, *rest)]
    return dst, stationary, moving


def _in_double_rows(mode) -> bool:
    """Return whether a product is of two rows of numbers in each of the array, which NeuronCore-v3 has.

    Raises:
        ValueError: if a mode is none of the interface's.
    """
    name = getattr(mode, "value", mode)
    if name not in (None, "none", "double_row", "double_row_gen3"):
        raise ValueError(f"perf_mode must be none or double_row, not {name!r}")
    return str(name).startswith("double_row")


def transposed(r: Recording, sums: Tensor, source: Tensor) -> None:
    """Append sums = source.T, bit for bit but for the sign of zeros of FP32; source is a stationary operand."""
    lanes = slice(source.partition, source.partition + source.partitions)
    matrix = identity_tile(r, source.format)[lanes, lanes]
    for half in (0, 1) if source.format is FP32 else (0,):
        r.program.append(load_stationary(source, half=half, column=sums.partition))
        r.program.append(multiply_moving(sums, matrix, accumulate=half > 0, transpose=True))


def stationary_operand(r: Recording, view: View) -> Tensor:
    """Return a stationary operand: columns side by side, from a multiple of four on, in SBUF where a row may start."""
    tensor, fmt = lanes_tensor(r, spread(r, view)), view.dtype.known
    flat = as_row(tensor)
    step = LOAD_COLUMNS * tensor.format.bits // 8
    if _in_rows(r, tensor) and flat is not None and tensor.address % step == 0:
        if flat.size == 1 or flat.steps == (1,):
            return flat
    return in_sbuf(r, tensor, OPERAND, fmt).reshape(tensor.size)


def _moving(r: Recording, view: View, row: int) -> Tensor:
    """Return a moving operand: elements in equal steps, in SBUF from the stationary one's first partition on."""
    tensor, fmt = lanes_tensor(r, spread(r, view)), view.dtype.known
    flat = as_row(tensor)
    if tensor.storage == Storage.SBUF and tensor.partition == row and flat is not None and step_of(flat) >= 0:
        return flat
    return in_sbuf(r, tensor, OPERAND, fmt, row).reshape(tensor.size)


def _in_rows(r: Recording, tensor: Tensor) -> bool:
    """Return whether the rows of the array can start where a tensor does."""
    config, start = r.program.config, tensor.partition
    if tensor.storage != Storage.SBUF or start not in row_starts(config) or start + tensor.partitions > config.rows:
        return False
    return allowed_start(start, tensor.partitions, config.quadrant) is None


def _check_tile(config: Config, position: tuple, size: tuple, shape: tuple[int, int]) -> None:
    """Check the part of the array that a call names, by the interface's rules; operands and dst say where they are.

    Arguments:
        position: its first row and column.
        size: its rows and columns.
        shape: of the stationary operand.
    """
    if len(position) != 2 or len(size) != 2:
        raise ValueError(f"tile_position and tile_size must both be pairs, not {position!r} and {size!r}")
    limits = config.rows, config.columns
    for name, start, most, count, limit in zip(("row", "column"), position, size, shape, limits, strict=True):
        sizes = [limit // parts for parts in (4, 2, 1) if limit % parts == 0]
        if most not in sizes:
            raise ValueError(f"tile_size must be {' or '.join(map(str, sizes))} {name}s, not {most!r}")
        if start not in range(0, limit, most):
            raise ValueError(f"tile_position must be a multiple of {most} {name}s below {limit}, not {start!r}")
        if count > most:
            raise ValueError(f"the stationary operand must have at most the {most} {name}s of tile_size, not {count}")


def _adjacent(tensor: Tensor) -> Tensor | None:
    """Return a tensor as one dimension of elements side by side, as sums of products are; None if they are apart."""
    flat = as_row(tensor)
    return flat if flat is not None and (flat.size == 1 or flat.steps == (1,)) else None


def _sums(r: Recording, dst: View, columns: int, moving: Tensor, accumulate: bool | None) -> tuple[Tensor, bool]:
    """Return the sums of a product, and whether it adds to them."""
    if (dst.shape[0], prod(dst.shape[1:])) != (columns, moving.size):
        raise ValueError(f"{dst.name}: shape must be ({columns}, {moving.size}), not {dst.shape}")
    allocation, block, part = dst.allocation, dst.one_block(), tile_places(dst)
    before = allocation.written(block)[part]
    check_first_product(r, allocation, accumulate, not before.any() and block not in allocation.zeros)
    if block in allocation.zeros and before.shape == allocation.written(block).shape and accumulate is not False:
        allocation.zeros.remove(block)
        accumulate = False
    sums = lanes_tensor(r, dst)
    if accumulate is None:
        before = allocation.written(block)[part]
        if before.any() and not before.all():
            rule = "what a product adds to must all have been written before, or none of it"
            raise ValueError(f"{dst.name}: {rule}, not {before.sum()} of {before.size} elements")
        accumulate = bool(before.all())
    elif accumulate and not allocation.written(block)[part].any():
        accumulate = False
    return sums, bool(accumulate)


def transposable(fmt: Format) -> bool:
    """Return whether the tensor engine passes numbers of a format through."""
    return fmt in MATMUL_FORMATS and fmt is not INT8
