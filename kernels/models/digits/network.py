"""Digits network on the core: classifies a batch of images, from pixels in HBM to probabilities and digits in HBM.

Both layers are products (`kernels.library.matmul`), finished between PSUM and HBM:

* The hidden layer has units along the partitions, so the GELU activation adds the bias as a scalar per partition.
* The output layer has images along the partitions; bias, softmax, largest probability and its index are row-wise.

One section has BF16 operands, the other one FP32 operands. The controller starts the second one only if the first one
gives an uncertain result (`control.c`); its results replace the first ones.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from neuroncore_rtl.kernels.control import Block, compile_program, section_words, semaphores_word
from neuroncore_rtl.kernels.library.matmul import matmul
from neuroncore_rtl.kernels.library.softmax import softmax
from neuroncore_rtl.kernels.models.digits import Layer
from neuroncore_rtl.kernels.program import Image, Program, Tensor, build_image, dma_copy
from neuroncore_rtl.kernels.program.instructions import (
    activation,
    find_index8,
    iota,
    max8,
    scalar_tensor_tensor,
    tensor_reduce,
    tensor_scalar,
    tensor_tensor,
)
from neuroncore_rtl.kernels.tiling.blocks import cut
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32, INT32, FloatFormat, Format
from neuroncore_rtl.spec.isa import AluOp, Index
from neuroncore_rtl.spec.isa.elementwise import VALUES8

__all__ = ["NETWORK_PASSES", "Classifier"]

NETWORK_PASSES = (BF16, FP32)
"""Formats of the operands, one section each."""


class Classifier:
    """Program that classifies a batch of images of digits.

    `sizes` are the numbers of pixels, of hidden units and of digits; `order` is as in `Program`. `probabilities`, FP32
    [batch, digits], and `digits`, the most probable ones, INT32 [batch], are in HBM. Raises ValueError if SBUF has no
    room for the batch, or a row of probabilities is more than one piece of a product.
    """

    def __init__(self, config: Config, batch: int, sizes: tuple[int, int, int], order: str = Program.order):
        self.config, self.batch = config, batch
        pixels, hidden, digits = sizes
        self.program = Program(config, order=order)
        space = self.program.space
        self.probabilities = space.hbm("probabilities", FP32, (batch, digits))
        self.digits = space.hbm("digits", INT32, (batch,))
        self._images = {fmt: space.hbm("images", fmt, (pixels, batch)) for fmt in NETWORK_PASSES}
        self._weights = {fmt: [space.hbm("weight", fmt, shape) for shape in pairwise(sizes)] for fmt in NETWORK_PASSES}
        self._hidden = {fmt: space.hbm("hidden", fmt, (hidden, batch)) for fmt in NETWORK_PASSES}
        self._biases = [space.hbm("bias", FP32, (size,)) for size in sizes[1:]]

        self._tiles = cut(0, batch, config.columns)
        lanes = config.columns
        self._bias_of_units = space.sbuf(
            "bias_of_units", FP32, (len(cut(0, hidden, config.columns)),), lanes, kept=True
        )
        self._bias_of_digits = space.sbuf("bias_of_digits", FP32, (digits,), lanes)
        self._largest = space.sbuf("largest", FP32, (len(self._tiles), VALUES8), lanes, kept=True)
        self._places = space.sbuf("places", INT32, (len(self._tiles), VALUES8), lanes)

        for tile, units in enumerate(cut(0, hidden, config.columns)):
            bias = self._biases[0][units, None]
            self.program.append(dma_copy(self._bias_of_units[: bias.shape[0], tile : tile + 1], bias))
        self.program.append(dma_copy(self._bias_of_digits, self._biases[1]))
        self._classify(BF16)
        self.program.start_section()
        self._classify(FP32)

    def image(
        self,
        layers: list[Layer],
        images: np.ndarray,
        encode: Callable[[np.ndarray, Format], np.ndarray],
        threshold: float = 0.5,
    ) -> Image:
        """Return the image that classifies a batch of images, float32 [batch, pixels].

        `encode` converts float32 values to codes of a format. An image is uncertain if its largest probability is below
        `threshold`.
        """
        contents = [(self._biases[n], encode(layer.bias, FP32)) for n, layer in enumerate(layers)]
        for fmt in NETWORK_PASSES:
            contents.append((self._images[fmt], encode(images.T, fmt)))
            contents += [(self._weights[fmt][n], encode(layer.weight, fmt)) for n, layer in enumerate(layers)]

        def arguments(blocks: Sequence[Block]) -> list[int]:
            pitch = VALUES8 * FP32.bits // 8
            limit = int(np.float32(threshold).view(np.uint32))
            first, again = section_words(blocks).values()
            clear = semaphores_word(blocks[-1].semaphores)
            return [self.batch, self.config.columns, self._largest.address, pitch, limit, clear, *first, *again]

        control = compile_program([Path(__file__).with_name("control.c")], local_bytes=self.config.local_bytes)
        return build_image(self.program, contents, control=control, arguments=arguments)

    def _classify(self, fmt: FloatFormat) -> None:
        hidden, (first, second) = self._hidden[fmt], self._weights[fmt]
        matmul(self.program, hidden, first, self._images[fmt], self._finish_hidden)
        matmul(self.program, self.probabilities, hidden, second, self._finish_output)
        for tile, images in enumerate(self._tiles):
            target = self.digits[images, None]
            self.program.append(dma_copy(target, self._places[: target.shape[0], tile, :1]))

    def _finish_hidden(self, out: Tensor, sums: Tensor, units: slice, images: slice) -> None:
        tile = units.start // self.config.columns
        self.program.append(activation(out, sums, "gelu", bias=self._bias_of_units[: out.partitions, tile]))

    def _finish_output(self, out: Tensor, sums: Tensor, images: slice, digits: slice) -> None:
        if out.shape != self.probabilities.shape[1:]:
            columns = self.probabilities.shape[1]
            raise ValueError(
                f"probabilities must have at most {out.size} columns, one piece of a product, not {columns}"
            )
        space, lanes = self.program.space, slice(out.partitions)
        tile = images.start // self.config.columns
        largest, places = self._largest[lanes, tile], self._places[lanes, tile]
        scores = space.sbuf("scores", FP32, out.shape, out.partitions)
        self.program.append(tensor_tensor(scores, sums, self._bias_of_digits[lanes], AluOp.ADD))
        softmax(self.program, Rows((out,)), Rows((scores,)))
        if "search" in self.config.vector_units:
            self.program.append(max8(largest, out))
            self.program.append(find_index8(places, out, largest))
        else:
            self._find(places[:, :1], largest[:, :1], out)

    def _find(self, place: Tensor, largest: Tensor, out: Tensor) -> None:
        """Append the search for the first index of the largest element of each row, without the hardware's search unit.

        With m = index - length at the `largest` elements and m = 0 elsewhere, the first index is min(m) + length.
        """
        space = self.program.space
        numbers = space.sbuf("numbers", INT32, out.shape, out.partitions)
        marked = space.sbuf("marked", FP32, out.shape, out.partitions)
        first = space.sbuf("first", FP32, (1,), out.partitions)
        behind = out.shape[-1]
        for instruction in (
            tensor_reduce(largest, out, AluOp.MAX),
            iota(numbers, Index(base=-behind, steps=(1,))),
            scalar_tensor_tensor(marked, out, largest, AluOp.IS_EQUAL, numbers, AluOp.MULTIPLY),
            tensor_reduce(first, marked, AluOp.MIN),
            tensor_scalar(place, first, float(behind), AluOp.ADD),
        ):
            self.program.append(instruction)
