"""Training of the digits network on the core: one image runs many steps without a host.

Weights (BF16), biases, moments and gradients (FP32) stay in SBUF. The controller runs the sections of the program, some
repeatedly (`runs` of `kernels.program.build_image`):

* The first section loads the initial parameters.
* A step gathers its images from HBM by row numbers, which it then advances. It runs forward and backward through both
  layers, and computes the AdamW update of every parameter.
* Stochastic rounding of the weights is a separate section for each step: the stream of random words is a field of the
  instruction, and must differ between steps.
* The last section stores the parameters.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from neuroncore_rtl.kernels.library.product import product
from neuroncore_rtl.kernels.library.transpose import identity, transpose
from neuroncore_rtl.kernels.program import HbmTensor, Image, Program, Tensor, build_image, dma_scatter
from neuroncore_rtl.kernels.program.instructions import (
    activation,
    iota,
    memset,
    tensor_scalar,
    tensor_tensor,
)
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.rows import Rows, scratch, tiles_of
from neuroncore_rtl.kernels.training.adamw import AdamW, descend, first_powers, next_correction, update
from neuroncore_rtl.kernels.training.crossentropy import crossentropy
from neuroncore_rtl.kernels.training.embedding import embedding
from neuroncore_rtl.kernels.training.parameter import Parameter
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32, INT32, Format
from neuroncore_rtl.spec.isa import AluOp, Index

__all__ = ["DigitsTrainer"]

SETUP, STEP = 0, 1
"""Numbers of the sections."""


@dataclass(frozen=True)
class _Layer:
    weight: Parameter
    bias: Parameter
    """The same row in every partition."""


class DigitsTrainer:
    """Program that trains the network.

    `examples` is the number of images in the training set, `sizes` the numbers of pixels, of hidden units and of
    digits, `batch` the images per step. `seed` selects stochastic rounding of the weights, None rounding to nearest
    even. `tile` is as in `Program`. Raises ValueError if a batch is larger than the training set, or SBUF has no room.

    Attributes:
        losses: cross entropy of every image in every step, FP32 [steps * batch, 1] in HBM.
        parameters: weight BF16 [in, out] and bias FP32 [out] of both layers, alternating, in HBM; initial and final
            values.
    """

    def __init__(
        self,
        config: Config,
        examples: int,
        sizes: tuple[int, int, int],
        batch: int,
        steps: int,
        options: AdamW,
        seed: int | None = None,
        tile: int | None = None,
    ):
        if not 1 <= batch <= examples:
            raise ValueError(f"batch must be between 1 and the {examples} images, not {batch!r}")
        self.program = Program(config, tile=tile)
        self.batch = batch
        self._options, self._steps, self._seed = options, steps, seed
        self._tiles = cut(0, batch, self.program.lanes)
        space, lanes = self.program.space, self.program.lanes
        self.losses = space.hbm("losses", FP32, (steps * batch, 1))
        self._images = space.hbm("images", BF16, (examples, sizes[0]))
        self._labels = space.hbm("labels", INT32, (examples, 1))
        self.parameters, self._layers = [], []
        for number, (inputs, outputs) in enumerate(pairwise(sizes)):
            weight, bias = f"weight {number}", f"bias {number}"
            self.parameters += [space.hbm(weight, BF16, (inputs, outputs)), space.hbm(bias, FP32, (outputs,))]
            self._layers.append(
                _Layer(
                    Parameter(space, weight, BF16, inputs, outputs, lanes),
                    Parameter(space, bias, FP32, lanes, outputs, lanes),
                )
            )
        self._set_up()
        self.program.start_section()
        self._step()
        self.program.start_section()
        self._store()

    def image(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        parameters: Sequence[np.ndarray],
        encode: Callable[[np.ndarray, Format], np.ndarray],
    ) -> Image:
        """Return the image; the steps cycle through the images in order.

        Images and labels are as in `training_set`, parameters as of `initial_digits`; `encode` converts numbers to
        codes.
        """
        tensors = [self._images, self._labels, *self.parameters]
        arrays = [images, labels[:, None], *parameters]
        contents = [(tensor, encode(array, tensor.format)) for tensor, array in zip(tensors, arrays, strict=True)]
        return build_image(self.program, contents, runs=self.runs)

    @property
    def _all(self) -> Iterator[tuple[Parameter, HbmTensor]]:
        own = [one for layer in self._layers for one in (layer.weight, layer.bias)]
        return zip(own, self.parameters, strict=True)

    def _set_up(self) -> None:
        program, space, lanes = self.program, self.program.space, self.program.lanes
        for own, source in self._all:
            own.load(program, source)
        self._powers = first_powers(program, lanes)
        self._identity = identity(program, BF16)
        self._ones = space.sbuf("ones", BF16, (lanes,), lanes)
        program.append(memset(self._ones, 1.0))
        # For each image of a batch: its row in the training set, and its index counted from the first step.
        self._rows, self._numbers = (
            space.sbuf(name, INT32, (len(self._tiles),), lanes) for name in ("rows", "numbers")
        )
        for counter in (self._rows, self._numbers):
            program.append(iota(counter, Index(partition=1, steps=(lanes,))))

    def _column(self, counter: Tensor) -> Rows:
        return Rows(tuple(counter[: length(part), tile : tile + 1] for tile, part in enumerate(self._tiles)))

    def _advance(self) -> None:
        program, examples = self.program, self._images.shape[0]
        beyond = program.space.sbuf("beyond", INT32, self._rows.shape, self._rows.partitions)
        for counter in (self._rows, self._numbers):
            program.append(tensor_scalar(counter, counter, self.batch, AluOp.ADD))
        program.append(tensor_scalar(beyond, self._rows, examples, AluOp.IS_GE, examples, AluOp.MULTIPLY))
        program.append(tensor_tensor(self._rows, self._rows, beyond, AluOp.SUBTRACT))

    def _step(self) -> None:
        program, (first, second) = self.program, self._layers
        rows = self._column(self._rows)
        images, labels = embedding(program, self._images, rows), embedding(program, self._labels, rows)
        sums = self._forward(first, images)
        hidden, slopes = scratch(program.space, "hidden", sums, fmt=BF16), scratch(program.space, "slopes", sums)
        for out, slope, tile in tiles_of(hidden, slopes, sums):
            program.append(activation(out, tile, "gelu"))
            program.append(activation(slope, tile, "dgelu"))
        scores = self._forward(second, hidden)
        loss, errors = scratch(program.space, "loss", scores, 1), scratch(program.space, "errors", scores, fmt=BF16)
        crossentropy(program, loss, errors, scores, labels, 1 / self.batch)
        for tile, places in tiles_of(loss, self._column(self._numbers)):
            program.append(dma_scatter(self.losses, tile, places), next(program.stores))
        hidden_errors = self._backward(second, errors, slopes)
        self._gradients(second, hidden, errors)
        self._gradients(first, images, hidden_errors)
        self._advance()
        self._descend()

    def _forward(self, layer: _Layer, x: Rows) -> Rows:
        program, bias = self.program, layer.bias.values

        def finish(out: Tensor, sums: Tensor, rows: slice, columns: slice) -> None:
            program.append(tensor_tensor(out, sums, bias[: sums.partitions, 0, columns], AluOp.ADD))

        x_t = transpose(program, x, self._identity)
        return product(program, x_t, layer.weight.rows, name="sums", fmt=FP32, finish=finish)

    def _backward(self, layer: _Layer, errors: Rows, slopes: Rows) -> Rows:
        errors_t = transpose(self.program, errors, self._identity, "errors_t")
        w_t = transpose(self.program, layer.weight.rows, self._identity, "w_t")
        return product(self.program, errors_t, w_t, name="errors", factors=slopes)

    def _gradients(self, layer: _Layer, x: Rows, errors: Rows) -> None:
        ones = Rows(tuple(self._ones[: tile.partitions] for tile in errors.tiles))
        layer.weight.set_gradient(self.program, x, errors)
        layer.bias.set_gradient(self.program, ones, errors)

    def _descend(self) -> None:
        program, options = self.program, self._options
        correction = next_correction(program, self._powers, options)
        rounded: list[tuple[Any, tuple[Any, Any]]] = []
        for one, _ in self._all:
            parts = update(program, one.values, one.first, one.second, one.gradient, correction, options)
            if self._seed is None or one.values.format is FP32:
                descend(program, one.values, *parts, correction, None)
            else:
                rounded.append((one, parts))
        for step in range(self._steps if rounded else 0):
            program.start_section()
            for number, (one, parts) in enumerate(rounded):
                draw = one.draw(self._seed, step * len(rounded) + number)
                descend(program, one.values, *parts, correction, draw)

    def _store(self) -> None:
        for own, target in self._all:
            own.store(self.program, target)

    @property
    def runs(self) -> list[int]:
        """Indices of the sections, in the order in which the controller runs the sections."""
        if self._seed is None:
            return [SETUP, *self._steps * [STEP], STEP + 1]
        rounding = range(STEP + 1, STEP + 1 + self._steps)
        return [SETUP, *(section for own in rounding for section in (STEP, own)), rounding.stop]
