"""Filters of convolutions as stationary operands, with the channels of some taps along the partitions."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from math import prod

from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.emit.images import copy_long
from neuroncore_rtl.frontends.xla.emit.relayout import transposed
from neuroncore_rtl.frontends.xla.emit.taps import TapBlock
from neuroncore_rtl.kernels.program import HbmTensor, Tensor
from neuroncore_rtl.kernels.tiling.blocks import length
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config
from neuroncore_rtl.spec.formats import INT8, Format

__all__ = ["ConvolutionFilter", "is_turned"]

_SHARE = 4
"""Fraction of SBUF for the filter: 1 / 4."""


def is_turned(config: Config, filter_: HbmTensor, fmt: Format) -> bool:
    """Return whether the array transposes a filter [..., channels, planes, rows, columns, outputs].

    Adjacent elements are then of one output, and there is room for both layouts.
    """
    channels, *taps, outputs = filter_.shape[-5:]
    inner = [step for extent, step in zip(filter_.shape[-5:-1], filter_.steps[-5:-1], strict=True) if extent > 1]
    columns = -(-outputs // config.rows) * channels + outputs * -(-channels // config.rows)
    room = columns * prod(taps) * fmt.bits * _SHARE <= config.sbuf_bytes * 8
    return outputs > 1 and filter_.steps[-1] != 1 and min(inner, default=0) == 1 and room and fmt is not INT8


@dataclass
class ConvolutionFilter:
    """A group's filter.

    Arguments:
        emission: the emission.
        tensor: [channels, planes, rows, columns, outputs].
        format: format of the stationary operand.
        turned: whether the array transposes it.
        tiles: its parts in SBUF.
    """

    emission: Emission
    tensor: HbmTensor
    format: Format
    turned: bool
    tiles: dict[tuple, Tensor] = field(default_factory=dict)

    def prepare(self, blocks: Sequence[TapBlock], outputs: Sequence[slice]) -> None:
        """Append the transpositions of all parts, which have to come before products in order."""
        for block, few in product(blocks, outputs) if self.turned else ():
            self.stationary(block, few)

    def stationary(self, block: TapBlock, few: slice) -> Tensor:
        """Return a block's part of some outputs, which is loaded once, or at each use if the filter has no room."""
        outputs, config = self.tensor.shape[-1], self.emission.program.config
        wide = -(-outputs // LOAD_COLUMNS) * LOAD_COLUMNS
        size = -(-self.tensor.size // (outputs * block.height)) * wide * self.format.bits
        fits = self.turned or size * _SHARE <= config.sbuf_bytes * 8
        own = few if self.turned or not fits else slice(0, outputs)
        key = block.rows.start, block.taps, own.start
        if key not in self.tiles or not fits:
            self.tiles[key] = self._transposed(block, few) if self.turned else self._loaded(block, own)
        return self.tiles[key][:, few.start - own.start : few.stop - own.start]

    def _new(self, shape: tuple[int, ...], partitions: int) -> Tensor:
        return self.emission.program.space.sbuf(self.tensor.name, self.format, shape, partitions)

    def _transposed(self, block: TapBlock, few: slice) -> Tensor:
        """Append and return a block's part, transposed from a load with outputs along the partitions."""
        key, channels = (few.start,), length(block.rows)
        if key not in self.tiles:
            order = sorted(range(4), key=lambda d: -self.tensor.steps[d])
            source = self.tensor[..., few].permute(4, *order)
            tile = self._new(source.shape[1:], length(few))
            copy_long(self.emission.program, tile, source)
            self.tiles[key] = tile.permute(*(order.index(d) for d in range(4)))
        # The engines gather the taps, since the array transposes adjacent columns.
        flat = self._new((block.height,), length(few))
        for place, (tap, _) in enumerate(block.taps):
            part = self.tiles[key][(slice(None), block.rows, *tap)]
            self.emission.move(flat[:, place * channels : (place + 1) * channels], part)
        found = self._new((length(few),), block.height)
        self.emission.move(found, transposed(self.emission, [flat]))
        return found

    def _loaded(self, block: TapBlock, few: slice) -> Tensor:
        """Append the load of a block's part, of adjacent taps together if channels are not outermost; return it."""
        tile, channels = self._new((length(few),), block.height), length(block.rows)
        taps = self.tensor[block.rows][..., few].permute(1, 2, 3, 0, 4)
        numbers = [(plane * taps.shape[1] + row) * taps.shape[2] + column for (plane, row, column), _ in block.taps]
        parts = [(place * channels, taps[tap]) for place, (tap, _) in enumerate(block.taps)]
        if numbers == [*range(numbers[0], numbers[0] + len(numbers))]:
            with suppress(ValueError):
                flat = taps.reshape(prod(taps.shape[:4]), length(few))
                parts = [(0, flat[numbers[0] * channels :][: block.height])]
        for first, part in parts:
            copy_long(self.emission.program, tile[first : first + part.shape[0]], part)
        return tile
