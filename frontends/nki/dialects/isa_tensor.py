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
    mark_written,
    spread,
    step_of,
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

OPERAND = "operand of the tensor engine"
"""Reason of an inserted copy: an operand's memory, partitions or steps do not suit the engine."""


def _product(arguments: dict) -> tuple:
    stationary, moving = arguments["stationary"], arguments["moving"]
    dtype = DTYPES["int32" if moving.dtype == "int8" else "float32"]
    first = 2 if _in_double_rows(arguments.get("perf_mode")) else 1
    columns = (view.shape[first:] if view.cut is None else view.cut.shape[first:] for view in (stationary, moving))
    return (prod(next(columns)), *next(columns)), dtype, Memory.psum


@instruction(
    CALLS, "expanded",
    "LOAD_STATIONARY and MULTIPLY_MOVING; FP32 as four products of halves; array tiles and double rows serially",
    result=_product, like="moving", product=True, rows=("stationary",),
    along=lambda given, dst: (None, *range(1, dst.ndim)) if dst.ndim == given["moving"].ndim else None,
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
    """Compute dst = stationary.T moving, or add it to dst; accumulate=None: add if dst has been written.

    With is_transpose, zeros of moving contribute nothing, so that an identity matrix passes infinities and NaN, and
    accumulate=None overwrites dst.
    """
    if _in_double_rows(perf_mode):
        if {stationary.ndim, moving.ndim} != {3} or {stationary.shape[1], moving.shape[1]} != {2}:
            rule = "operands of double rows must have three dimensions, the second of size 2"
            raise ValueError(f"{rule}, not {stationary.shape} and {moving.shape}")
        r.inserted["second product of double rows"] += 1
        for row, adds in enumerate((accumulate, True)):
            nc_matmul(r, dst, stationary[:, row], moving[:, row], accumulate=adds)
            mark_written(dst)
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
    formats = stationary.dtype.machine_format, moving.dtype.machine_format
    if formats[0] is not formats[1] and {FP32, INT8} & set(formats):
        raise ValueError(
            f"float32 and int8 must be multiplied by the same type, not {stationary.dtype} and {moving.dtype}"
        )
    a = stationary_operand(r, stationary)
    b = _moving(r, moving, a.partition)
    target, adds = _sums(r, dst, columns, b, accumulate is True if is_transpose else accumulate)
    sums, kept = _adjacent(target), target.format is not FP32 and formats[0].is_float
    apart = sums is None
    if kept and adds:
        rule = "floating-point sums must accumulate in float32"
        raise ValueError(f"{dst.name}: {rule}, not in {dst.dtype}")
    if apart or kept:
        r.inserted["sums that are apart" if apart else "sums as integers"] += 1
        sums = r.program.space.psum(dst.name, FP32 if kept else target.format, (target.size,), columns)
        if adds:
            append_copy(r, sums.reshape(*target.shape), target)
    for half, other, loaded in passes(formats[0]):
        if loaded:
            r.program.append(load_stationary(a, half=half, column=sums.partition))
        if other and is_transpose and is_moving_onezero:
            continue  # the low halves of zeros and ones are zeros
        r.program.append(multiply_moving(sums, b, half=other, accumulate=adds, transpose=is_transpose))
        adds = True
    if apart or kept:
        append_copy(r, target, sums.reshape(*target.shape))


def _of_bytes(r: Recording, view: View, other: View) -> View:
    """Return an operand of a product; copy unsigned bytes, which the array cannot multiply, to floating point.

    The copy has the other operand's format, or BF16 if that format cannot hold bytes exactly.
    """
    if view.dtype.machine_format is not UINT8:
        return view
    dtype = other.dtype if other.dtype.machine_format in (FP32, TF32, BF16, FP16) else DTYPES["bfloat16"]
    copy = r.allocate(view.shape, dtype, Memory.sbuf, view.name)
    r.inserted["bytes as floating-point numbers"] += 1
    append_copy(r, *common(r, view.shape, copy, view))
    return copy


@instruction(
    CALLS, "expanded", "by the tensor engine, with a copy from PSUM if dst is in SBUF; integers by DMA",
    result=lambda given: ((prod(given["data"].shape[1:]), given["data"].shape[0]), given["data"].dtype, Memory.psum),
    along=lambda given, dst: (1, 0) if dst.ndim == given["data"].ndim == 2 else None,
)  # fmt: skip
def nc_transpose(r: Recording, dst: View, data: View) -> None:
    """Transpose data to dst, with the free dimensions of data merged."""
    rows, columns = data.shape[0], prod(data.shape[1:])
    if (dst.shape[0], prod(dst.shape[1:])) != (columns, rows):
        raise ValueError(f"{dst.name}: shape must be ({columns}, {rows}), data transposed, not {dst.shape}")
    if columns > r.program.config.columns or rows > r.program.config.rows:
        limits = f"{r.program.config.rows} partitions and {r.program.config.columns} columns"
        raise ValueError(f"{data.name}: a transposed tensor must have at most {limits}, not {rows} and {columns}")
    target = lanes_tensor(r, dst)
    if not transposable(data.dtype.machine_format):
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
    """Append target = source.T by DMA; without a constant step of source, through SBUF."""
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
    """Return dst and both operands of a product without the rows and columns that a mask excludes from an operand."""
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
    """Return whether a product uses NeuronCore-v3's double rows: two numbers per row of the array."""
    name = getattr(mode, "value", mode)
    if name not in (None, "none", "double_row", "double_row_gen3"):
        raise ValueError(f"perf_mode must be none or double_row, not {name!r}")
    return str(name).startswith("double_row")


def transposed(r: Recording, sums: Tensor, source: Tensor) -> None:
    """Append sums = source.T, bit for bit; source is a stationary operand."""
    lanes = slice(source.partition, source.partition + source.partitions)
    matrix = identity_tile(r, source.format)[lanes, lanes]
    for half in (0, 1) if source.format is FP32 else (0,):
        r.program.append(load_stationary(source, half=half, column=sums.partition))
        r.program.append(multiply_moving(sums, matrix, accumulate=half > 0, transpose=True))


def stationary_operand(r: Recording, view: View) -> Tensor:
    """Return a view as a stationary operand, copied if necessary: contiguous in SBUF, as the array loads it."""
    tensor, fmt = lanes_tensor(r, spread(r, view)), view.dtype.machine_format
    flat = as_row(tensor)
    step = LOAD_COLUMNS * tensor.format.bits // 8
    if _in_rows(r, tensor) and flat is not None and tensor.address % step == 0:
        if flat.size == 1 or flat.steps == (1,):
            return flat
    return in_sbuf(r, tensor, OPERAND, fmt).reshape(tensor.size)


def _moving(r: Recording, view: View, row: int) -> Tensor:
    """Return a view as a moving operand, copied if necessary: of constant step, in SBUF, in partitions from `row` on.

    `row` must be the first partition of the stationary operand.
    """
    tensor, fmt = lanes_tensor(r, spread(r, view)), view.dtype.machine_format
    flat = as_row(tensor)
    if tensor.storage == Storage.SBUF and tensor.partition == row and flat is not None and step_of(flat) >= 0:
        return flat
    return in_sbuf(r, tensor, OPERAND, fmt, row).reshape(tensor.size)


def _in_rows(r: Recording, tensor: Tensor) -> bool:
    config, start = r.program.config, tensor.partition
    if tensor.storage != Storage.SBUF or start not in row_starts(config) or start + tensor.partitions > config.rows:
        return False
    return allowed_start(start, tensor.partitions, config.quadrant) is None


def _check_tile(config: Config, position: tuple, size: tuple, shape: tuple[int, int]) -> None:
    """Check position and size (rows, columns) of a call's array tile; the actual position follows from the operands."""
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
    flat = as_row(tensor)
    return flat if flat is not None and (flat.size == 1 or flat.steps == (1,)) else None


def _sums(r: Recording, dst: View, columns: int, moving: Tensor, accumulate: bool | None) -> tuple[Tensor, bool]:
    """Return the tensor for the sums of a product, and whether the product is added to its contents."""
    if (dst.shape[0], prod(dst.shape[1:])) != (columns, moving.size):
        raise ValueError(f"{dst.name}: shape must be ({columns}, {moving.size}), not {dst.shape}")
    allocation, block, part = dst.allocation, dst.one_block(), dst.places()
    before = allocation.written_elements(block)[part]
    check_first_product(r, allocation, accumulate, not before.any() and block not in allocation.zeros)
    if (
        block in allocation.zeros
        and before.shape == allocation.written_elements(block).shape
        and accumulate is not False
    ):
        allocation.zeros.remove(block)
        accumulate = False
    sums = lanes_tensor(r, dst)
    if accumulate is None:
        before = allocation.written_elements(block)[part]
        if before.any() and not before.all():
            rule = "all elements that a product adds to must have been written before, or none"
            raise ValueError(f"{dst.name}: {rule}, not {before.sum()} of {before.size} elements")
        accumulate = bool(before.all())
    elif accumulate and not allocation.written_elements(block)[part].any():
        accumulate = False
    return sums, bool(accumulate)


def transposable(fmt: Format) -> bool:
    """Return whether a product with an identity matrix returns numbers of a format unchanged."""
    return fmt in MATMUL_FORMATS and fmt is not INT8
