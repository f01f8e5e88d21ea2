"""Parameters that stay in HBM while they are trained, for networks of which SBUF does not hold the moments."""

from collections.abc import Mapping
from math import prod
from typing import Any, cast

from neuroncore_rtl.kernels.program import Allocator, HbmTensor, Program, Rows, tiles_of
from neuroncore_rtl.kernels.program.instructions import activation, tensor_tensor
from neuroncore_rtl.kernels.tiling.streamed import streamed
from neuroncore_rtl.kernels.training.adamw import AdamW, Correction, descend, update
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["Masters"]

WIDTH = 256
"""Columns of the matrix that all parameters make: enough that an instruction is long."""

PITCH = 64
"""A parameter starts at a multiple of so many elements, where a beat of the widest port starts in any format."""


class Masters:
    """Parameters of a network in FP32, their moments and gradients, and copies in BF16 that the network computes with.

    All lie end to end, so that the optimiser streams them as one matrix, whatever their shapes. Where nothing lies
    there are zeros, which stay.

    Arguments:
        space: where they are named.
        shapes: of the parameters, by name.
        gradients: how many there are of each parameter, which the optimiser adds up.

    Attributes:
        values, first, second: masters and moments, FP32 [rows, columns].
        copies: BF16, likewise.
        gradients: FP32, likewise each.
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
        """Return a parameter's master, FP32 of its shape."""
        return self._part(self.values, name)

    def copy(self, name: str) -> HbmTensor:
        """Return a parameter's copy, BF16 of its shape."""
        return self._part(self.copies, name)

    def gradient(self, name: str, number: int = 0) -> HbmTensor:
        """Return where one of a parameter's gradients goes, FP32 of its shape."""
        return self._part(self.gradients[number], name)

    def _part(self, matrix: HbmTensor, name: str) -> HbmTensor:
        start, shape = self._starts[name], self.shapes[name]
        return matrix.reshape(-1)[start : start + prod(shape)].reshape(*shape)

    def descend(self, program: Program, correction: Correction, options: AdamW) -> None:
        """Append a step of AdamW: masters, moments and copies, a few tiles at a time.

        Arguments:
            program: what it is appended to.
            correction: of the step; tensors are in every partition.
            options: hyperparameters.
        """

        def step(program: Program, copies: Rows, values: Rows, first: Rows, second: Rows, *gradients: Rows) -> None:
            for copy, p, m, v, g, *others in tiles_of(copies, values, first, second, *gradients):
                for other in others:
                    program.append(tensor_tensor(g, g, other, AluOp.ADD))
                pace, scale = cast(Any, correction.pace), cast(Any, correction.scale)
                own = Correction(pace[: p.partitions], scale[: p.partitions])
                descend(program, p, *update(program, p, m, v, g, own, options), own, None)
                # The scalar engine has the least to do. Adding -0.0 changes nothing, not even the sign of a zero.
                program.append(activation(copy, p, "identity", bias=-0.0))

        changed = [self.values, self.first, self.second]
        streamed(program, step, [self.copies, *changed], [*changed, *self.gradients])
