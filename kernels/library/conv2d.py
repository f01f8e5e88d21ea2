"""Two-dimensional convolution without im2col: one product per filter position, accumulated in PSUM.

Channels lie along the partitions. The moving operand of a filter position is a shifted view of the image. With stride
1, several rows pass through the array together; results at the padding between two rows are ignored. With other
strides, each row is a separate product.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as places_of
from math import ceil

from neuroncore_rtl.kernels.library.linear import column_of
from neuroncore_rtl.kernels.library.matmul import add_products
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy
from neuroncore_rtl.kernels.program.instructions import activation, memset, tensor_copy
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.kernels.tiling.transfer import aligned
from neuroncore_rtl.spec.formats import BF16, FP32, INT8, Format

__all__ = ["ConvWindow", "conv2d"]


@dataclass(frozen=True, kw_only=True)
class ConvWindow:
    """Stride and padding of a convolution, (vertical, horizontal); the padding is zeros on each side of the image."""

    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)

    def __post_init__(self):
        for name, least in (("stride", 1), ("padding", 0)):
            match getattr(self, name):
                case (int(down), int(across)) if min(down, across) >= least:
                    pass
                case other:
                    raise ValueError(f"{name} must be two integers of at least {least}, not {other!r}")

    def places(self, image: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
        """Return the height and width of the output; ValueError if the filter is larger than the padded image."""
        padded = tuple(pixels + 2 * more for pixels, more in zip(image, self.padding, strict=True))
        if padded[0] < size[0] or padded[1] < size[1]:
            raise ValueError(f"a filter must fit the padded image {list(padded)}, not be {list(size)}")
        height, width = ((p - s) // step + 1 for p, s, step in zip(padded, size, self.stride, strict=True))
        return height, width


@located
def conv2d(
    program: Program,
    x: HbmTensor | Rows,
    w: HbmTensor,
    bias: HbmTensor | None = None,
    window: ConvWindow = ConvWindow(),  # noqa: B008 (it is frozen)
    function: str = "identity",
    *,
    name: str = "y",
    fmt: Format | str = BF16,
) -> Rows:
    """Append and return y = function(w * x + bias), in tiles of channels of shape [height, width].

    x is [channels, height, width] in HBM, or in SBUF in tiles of channels like the result of this kernel. w is [height,
    width, channels of x, channels of y], in the floating-point format of x; the bias is [channels of y]. `function` is
    a function of the scalar engine, applied to the FP32 sum.
    """
    image, channels = _image(x), x.shape[0]
    if len(w.shape) != 4 or w.shape[2] != channels:
        raise ValueError(f"{w.name}: shape must be [height, width, {channels}, channels], not {list(w.shape)}")
    if x.format != w.format or x.format not in program.config.matmul_formats or x.format is INT8:
        names = ", ".join(one.name for one in program.config.matmul_formats if one is not INT8)
        found = f"{x.format.name} and {w.format.name}"
        raise ValueError(f"{name}: operands must have the same format of {names}, not {found}")
    height, width = window.places(image, w.shape[:2])
    padded = _padded(program, x, image, window)
    weights = [_filter(program, w, part) for part in padded.parts]
    biases = column_of(program, bias, w.shape[3]) if bias else {}
    tiles = []
    for part in cut(0, w.shape[3], program.lanes):
        out = program.space.sbuf(f"{name}[{part.start}:{part.stop}]", fmt, (height, width), length(part))
        for rows, columns in _pieces(program.config.psum_words, padded.tiles[0].shape[1], height, width, window):
            sums = _sums(program, padded.tiles, weights, part, (rows, columns), window)
            # Adding -0.0 preserves even the sign of a zero.
            shift = biases.get(part.start, -0.0)
            program.append(activation(out[:, rows, columns], sums, function, bias=shift))
        tiles.append(out)
    return Rows(tuple(tiles))


def _image(x: HbmTensor | Rows) -> tuple[int, int]:
    shape = x.tiles[0].shape if isinstance(x, Rows) else x.shape[1:]
    if len(shape) != 2:
        name = x.tiles[0].name if isinstance(x, Rows) else x.name
        raise ValueError(f"{name}: shape must be [channels, height, width], not with images {list(shape)}")
    return shape


def _padded(program: Program, x: HbmTensor | Rows, image: tuple[int, int], window: ConvWindow) -> Rows:
    (down, across), (height, width), tiles = window.padding, image, []
    parts = x.parts if isinstance(x, Rows) else cut(0, x.shape[0], program.config.rows)
    for number, part in enumerate(parts):
        if isinstance(x, Rows) and not down and not across:
            tiles.append(x.tiles[number])
            continue
        shape = height + 2 * down, width + 2 * across
        tile = program.space.sbuf(f"image[{part.start}:{part.stop}]", x.format, shape, length(part))
        if down or across:
            program.append(memset(tile, 0.0))
        inside = tile[:, down : down + height, across : across + width]
        if isinstance(x, Rows):
            program.append(tensor_copy(inside, x.tiles[number]))
        else:
            for rows in cut(0, height, ceil(height / len(program.load_queues))):
                program.append(dma_copy(inside[:, rows], x[part, rows]), next(program.loads))
        tiles.append(tile)
    return Rows(tuple(tiles))


def _filter(program: Program, w: HbmTensor, part: slice) -> Tensor:
    down, across, _, channels = w.shape
    tile = program.space.sbuf(w.name, w.format, (down, across, channels), length(part))
    for y, x in places_of(range(down), range(across)):
        program.append(dma_copy(tile[:, y, x], w[y, x, part]), next(program.loads))
    return tile


def _pieces(words: int, pitch: int, height: int, width: int, window: ConvWindow) -> list[tuple[slice, slice]]:
    line = pitch if window.stride == (1, 1) else width
    if line > words:
        return [(row, part) for row in cut(0, height, 1) for part in cut(0, width, words)]
    return [(rows, slice(0, width)) for rows in cut(0, height, words // line)]


def _sums(
    program: Program,
    image: Sequence[Tensor],
    weights: Sequence[Tensor],
    part: slice,
    piece: tuple[slice, slice],
    window: ConvWindow,
) -> Tensor:
    (rows, columns), (down, across) = piece, window.stride
    together = window.stride == (1, 1) and length(rows) > 1
    pitch = image[0].shape[1] if together else length(columns)
    sums = program.space.psum("sums", FP32, (length(rows), pitch), length(part))
    flat, accumulate = sums.reshape(sums.size), False
    for tile, own in zip(image, weights, strict=True):
        for y, x in places_of(range(own.shape[0]), range(own.shape[1])):
            filter_ = aligned(program, own[:, y, x, part])
            if together:
                first = (rows.start + y) * pitch + x
                count = sums.size - pitch + length(columns)
                targets, moved = [flat[:, :count]], [tile.reshape(tile.size)[:, first : first + count]]
            else:
                at = slice(columns.start * across + x, (columns.stop - 1) * across + x + 1, across)
                targets = [sums[:, row] for row in range(length(rows))]
                moved = [tile[:, row * down + y, at] for row in range(rows.start, rows.stop)]
            add_products(program, targets, filter_, moved, accumulate=accumulate)
            accumulate = True
    return sums[:, :, : length(columns)]
