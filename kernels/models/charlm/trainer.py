"""Training step: forward and backward pass of several windows of the text, and AdamW.

Starts of windows are in HBM, and each step advances the index of its first window. So one section, run repeatedly, is
the whole training. Everything except the parameters is in SBUF.
"""

from typing import NamedTuple

from neuroncore_rtl.kernels.library.linear import linear
from neuroncore_rtl.kernels.library.transpose import identity, transpose
from neuroncore_rtl.kernels.models.charlm.network import Sizes, dense_of, layer_of
from neuroncore_rtl.kernels.models.transformer.encoder import encoder
from neuroncore_rtl.kernels.models.transformer.encoder_backward import encoder_backward
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_gather, dma_scatter
from neuroncore_rtl.kernels.program.instructions import iota, memset, tensor_scalar, tensor_tensor
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.rows import Rows, scratch, tiles_of
from neuroncore_rtl.kernels.tiling.transfer import load, store
from neuroncore_rtl.kernels.training.adamw import AdamW, first_powers, next_correction
from neuroncore_rtl.kernels.training.crossentropy import crossentropy
from neuroncore_rtl.kernels.training.embedding import embedding, embedding_backward
from neuroncore_rtl.kernels.training.linear_backward import bias_gradient, input_gradient, weight_gradient
from neuroncore_rtl.kernels.training.masters import Masters
from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from neuroncore_rtl.spec.isa import AluOp, Index

__all__ = ["CharlmTrainer", "Windows"]


class Windows(NamedTuple):
    """Training data and losses in HBM.

    `text` has the number of each character, INT32 [characters, 1]; `starts` the position in it of the first character
    of each window, for all steps, INT32 [windows, 1]. At least one character follows each window. `losses` receives the
    cross entropy of every character, FP32 [windows * context, 1].
    """

    text: HbmTensor
    starts: HbmTensor
    losses: HbmTensor


class CharlmTrainer:
    """Two sections of a program: the setup, appended at construction, and a step.

    `masters` has one gradient for each window of a step, so the length of its `gradients` is the number of windows.
    """

    def __init__(self, program: Program, masters: Masters, windows: Windows, sizes: Sizes, options: AdamW):
        self._program, self._masters, self._windows = program, masters, windows
        self._sizes, self._options = sizes, options
        lanes = program.lanes
        self._tiles = cut(0, sizes.context, lanes)
        self._powers = first_powers(program, program.config.partitions)
        self._identity = identity(program, BF16)
        # Index of the next window, in every partition. For each character of a window: its offset, and the row of its
        # loss.
        self._window = program.space.sbuf("window", INT32, (1,), lanes)
        self._offsets, self._places = (
            program.space.sbuf(name, INT32, (len(self._tiles),), lanes) for name in ("offsets", "places")
        )
        program.append(memset(self._window, 0))
        for counter in (self._offsets, self._places):
            program.append(iota(counter, Index(partition=1, steps=(lanes,))))

    def append_step(self) -> None:
        """Append the instructions of one training step."""
        program = self._program
        for number in range(len(self._masters.gradients)):
            self._window_gradients(number)
            program.append(tensor_scalar(self._window, self._window, 1, AluOp.ADD))
            program.append(tensor_scalar(self._places, self._places, self._sizes.context, AluOp.ADD))
        correction = next_correction(program, self._powers, self._options)
        self._masters.descend(program, correction, self._options)

    def _window_gradients(self, number: int) -> None:
        program, sizes, copy = self._program, self._sizes, self._masters.copy
        inputs, labels = self._characters()
        x = _sum(program, embedding(program, copy("embedding"), inputs), load(program, copy("position")))
        layers, output = [layer_of(copy, layer) for layer in range(sizes.layers)], dense_of(copy, "output")
        passed = []
        for weights in layers:
            passed.append((x, encoder(program, x, weights, sizes.heads, causal=True)))
            x = passed[-1][1].last.y
        logits = linear(program, transpose(program, x, self._identity), *output, name="logits", fmt=FP32)
        losses, dlogits = scratch(program.space, "loss", x, 1), scratch(program.space, "dlogits", logits, fmt=BF16)
        crossentropy(program, losses, dlogits, logits, labels, 1 / (sizes.context * len(self._masters.gradients)))
        for tile, places in tiles_of(losses, self._column(self._places)):
            program.append(dma_scatter(self._windows.losses, tile, places), next(program.stores))

        def gradient(name: str) -> HbmTensor:
            return self._masters.gradient(name, number)

        store(program, gradient("output.w"), weight_gradient(program, x, dlogits))
        store(program, gradient("output.bias").reshape(1, -1), bias_gradient(program, dlogits))
        dx = input_gradient(program, transpose(program, dlogits, self._identity), output.w, self._identity)
        for layer in reversed(range(sizes.layers)):
            x, encoded = passed[layer]
            dx = encoder_backward(program, x, encoded, layers[layer], dx, layer_of(gradient, layer), causal=True)
        store(program, gradient("position"), dx)
        store(program, gradient("embedding"), embedding_backward(program, sizes.characters, inputs, dx))

    def _characters(self) -> tuple[Rows, Rows]:
        program, text = self._program, self._windows.text
        start, rows, behind = (
            program.space.sbuf(name, INT32, shape, self._window.partitions)
            for name, shape in (("start", (1,)), ("rows", self._offsets.shape), ("behind", self._offsets.shape))
        )
        program.append(dma_gather(start, self._windows.starts, self._window), next(program.loads))
        program.append(tensor_scalar(rows, self._offsets, start, AluOp.ADD))
        program.append(tensor_scalar(behind, rows, 1, AluOp.ADD))
        inputs, labels = (embedding(program, text, self._column(counter)) for counter in (rows, behind))
        return inputs, labels

    def _column(self, counter: Tensor) -> Rows:
        return Rows(tuple(counter[: length(part), tile : tile + 1] for tile, part in enumerate(self._tiles)))


def _sum(program: Program, characters: Rows, positions: Rows) -> Rows:
    result = scratch(program.space, "x", characters, fmt=BF16)
    for out, one, other in tiles_of(result, characters, positions):
        program.append(tensor_tensor(out, one, other, AluOp.ADD))
    return result
