"""Compiled models: a graph as a program, and its execution on arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroncore_rtl.frontends.xla.emit.block import emit_block
from neuroncore_rtl.frontends.xla.emit.emission import Emission, Options
from neuroncore_rtl.frontends.xla.expand import expanded
from neuroncore_rtl.frontends.xla.graph.operations import Graph, Value
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.frontends.xla.simplify import simplified
from neuroncore_rtl.kernels.program import HbmTensor, Program
from neuroncore_rtl.run import Result, run
from neuroncore_rtl.spec.config import Config

__all__ = ["Compiled", "compile_graph"]


@dataclass(frozen=True)
class Compiled:
    """Program of a model.

    Arguments:
        program: the program.
        graph: the model after its simplification.
        inputs: tensors in HBM of the arguments.
        outputs: those of the results; may be views.
        constants: contents of tensors that are known before a run.
    """

    program: Program
    graph: Graph
    inputs: tuple[HbmTensor, ...]
    outputs: tuple[HbmTensor, ...]
    constants: dict[HbmTensor, np.ndarray]

    def execute(self, arrays: Sequence[np.ndarray], on: Any = "rtl", **variables) -> tuple[list[np.ndarray], Result]:
        """Run the program on arrays; return the results and the run's `Result`."""
        codes: dict[str | HbmTensor, Any] = {**self.constants}
        for tensor, value, array in zip(self.inputs, self.graph.arguments, arrays, strict=True):
            if array.shape != value.shape or array.dtype != value.type.dtype:
                raise Refused(f"an argument must be {value}, not {array.dtype}{list(array.shape)}")
            if array.size:
                codes[tensor] = np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(tensor.shape)
        result = run(self.program, codes, on=on, **variables)
        return [_array(result, *pair) for pair in zip(self.outputs, self.graph.results, strict=True)], result


def _array(result: Result, tensor: HbmTensor, value: Value) -> np.ndarray:
    if not value.size:
        return np.zeros(value.shape, value.type.dtype)
    codes = np.array(tensor.elements(result.memory))
    return codes.astype(np.bool_) if value.type.is_boolean else codes.view(value.type.dtype).reshape(value.shape)


def compile_graph(graph: Graph, config: Config, options: Options = Options(), order: str = "program") -> Compiled:  # noqa: B008
    """Return the program of a graph; Refused with the user's line if the machine cannot run it."""
    graph = simplified(expanded(simplified(graph), config))
    program = Program(config, order=order)
    emission = Emission(program, options)
    inputs = []
    for value in graph.arguments:
        emission.new(value, "argument")
        inputs.append(program.space.hbm_tensors[-1])
    emission.owned.clear()
    emit_block(emission, graph)
    outputs = tuple(emission.tensor(value) for value in graph.results)
    # A report lists results, not the values between passes.
    shown = {tensor.address for tensor in (*inputs, *outputs, *emission.constants)}
    tensors = program.space.hbm_tensors
    tensors[:] = [tensor for tensor in tensors if tensor.address in shown]
    return Compiled(program, graph, tuple(inputs), outputs, emission.constants)
