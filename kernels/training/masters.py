"""Parameters that stay in HBM during training, for networks with more parameters than fit in SBUF."""

from collections.abc import Mapping
from math import prod
from typing import Any, cast

from neuroncore_rtl.kernels.program import Allocator, HbmTensor, Program
from neuroncore_rtl.kernels.program.instructions import activation, tensor_tensor
from neuroncore_rtl.kernels.tiling.rows import Rows, tiles_of
from neuroncore_rtl.kernels.tiling.streamed import streamed
from neuroncore_rtl.kernels.training.adamw import AdamW, Correction, descend, update
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["Masters"]

WIDTH = 256
"""Columns of the matrix of all parameters: long enough for efficient instructions."""

PITCH = 64
"""Alignment of a parameter in elements, so that it starts at a beat of the widest port in any format."""


class Masters:
    """Parameters of a network in FP32, their moments and gradients, and BF16 copies for computation.

    All are stored contiguously, so that the optimiser streams them as one matrix [rows, columns]. The padding between
    them stays zero.

    `values` are the masters in FP32, `first` and `second` AdamW's moments, `copies` the BF16 copies. `gradients` is a
    list of matrices; the optimiser uses their sum.
    """

    def __init__(self, space: Allocator, shapes: Mapping[str, tuple[int, ...]], gradients: int = 1):
        self.shapes, self._starts, end = dict(shapes), {}, 0
        for name, shape in shapes.items():
            self._starts[name] = end
            end += -(-prod(shape) // PITCH) * PITCH
        matrix = -(-end // WIDTH), WIDTH
        self.copies = space.hbm("copies", BF16, matrix)
        self.values, self.first, self.second = (
            space.hbm(name, FP32, matrix) for name in ("masters", "first moments", "second moments")
        )
        self.gradients = [space.hbm(f"gradients {number}", FP32, matrix) for number in range(gradients)]

    def value(self, name: str) -> HbmTensor:
        """Return a parameter's FP32 master."""
        return self._part(self.values, name)

    def copy(self, name: str) -> HbmTensor:
        """Return a parameter's BF16 copy."""
        return self._part(self.copies, name)

    def gradient(self, name: str, number: int = 0) -> HbmTensor:
        """Return one of a parameter's gradients, FP32."""
        return self._part(self.gradients[number], name)

    def _part(self, matrix: HbmTensor, name: str) -> HbmTensor:
        start, shape = self._starts[name], self.shapes[name]
        return matrix.reshape(-1)[start : start + prod(shape)].reshape(*shape)

    def descend(self, program: Program, correction: Correction, options: AdamW) -> None:
        """Append a step of AdamW that updates masters, moments and copies in HBM, a few tiles at a time."""

        def step(program: Program, copies: Rows, values: Rows, first: Rows, second: Rows, *gradients: Rows) -> None:
            for copy, p, m, v, g, *others in tiles_of(copies, values, first, second, *gradients):
                for other in others:
                    program.append(tensor_tensor(g, g, other, AluOp.ADD))
                pace, scale = cast(Any, correction.pace), cast(Any, correction.scale)
                own = Correction(pace[: p.partitions], scale[: p.partitions])
                descend(program, p, *update(program, p, m, v, g, own, options), own, None)
                # The scalar engine is the least busy.
                program.append(activation(copy, p, "identity"))

        changed = [self.values, self.first, self.second]
        streamed(program, step, [self.copies, *changed], [*changed, *self.gradients])
