"""Values of a graph as tensors in HBM, and the program that computes them."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from neuroncore_rtl.frontends.xla.emit.copies import copy_dense
from neuroncore_rtl.frontends.xla.fuse.placement import kept_dimensions
from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.types import check_narrow
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.program import HbmTensor, Program

__all__ = ["Emission", "Options", "dense_steps"]

_VIEWS = (graph.Broadcast, graph.Reshape, graph.Transpose, graph.StridedSlice, graph.Reverse)


@dataclass(frozen=True)
class Options:
    """Options of a compilation; Refused if one is unknown.

    Arguments:
        auto_cast: which float32 values the machine may round: "none", or "matmult", the operands of products.
        auto_cast_type: their format: "bf16", "fp16", "tf32", "fp8e4".
    """

    auto_cast: str = "none"
    auto_cast_type: str = "bf16"

    def __post_init__(self):
        for name, known in (("auto_cast", ("none", "matmult")), ("auto_cast_type", ("bf16", "fp16", "tf32", "fp8e4"))):
            if getattr(self, name) not in known:
                raise Refused(f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}")


@dataclass
class Emission:
    """A program under construction.

    Arguments:
        program: where instructions are appended.
        options: options of the compilation.
        makers: the operation that defines each value.
        tensors: tensors in HBM of values, views included.
        constants: contents of tensors that are known before the program runs.
        readers: the operations that read each value; None for the end of a block.
        owned: values of the current block with tensors that no value outside shares.
        numbers: their tensors.
        rounds: limit of the repetitions of an instruction by the loops around.
    """

    program: Program
    options: Options = Options()
    makers: dict[graph.Value, graph.Operation] = field(default_factory=dict)
    tensors: dict[graph.Value, HbmTensor] = field(default_factory=dict)
    constants: dict[HbmTensor, np.ndarray] = field(default_factory=dict)
    numbers: dict[tuple, HbmTensor] = field(default_factory=dict)
    readers: dict[graph.Value, set[graph.Operation | None]] = field(default_factory=lambda: defaultdict(set))
    owned: set[graph.Value] = field(default_factory=set)
    rounds: int = 1

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Forget the tensors made in the context, which may be skipped or repeated, at its end."""
        outside = dict(self.tensors)
        yield
        self.tensors = outside

    def learn(self, block: graph.Graph) -> None:
        """Note the operations that define or read the values of a block and of the blocks inside it."""
        for value in block.results:
            self.readers[value].add(None)
        for operation in block.operations:
            self.makers.update(dict.fromkeys(operation.results, operation))
            for operand in operation.operands:
                self.readers[operand].add(operation)
            for inner in operation.blocks:
                self.learn(inner)

    def new(self, value: graph.Value, name: str = "value") -> HbmTensor:
        """Return a new tensor in HBM for a value; one without elements has no place."""
        check_narrow(value.type)
        tensor = self.program.space.hbm(f"{name}{value.number}", value.type.format, value.shape or (1,))
        self.tensors[value] = replace(tensor, shape=value.shape, steps=dense_steps(value.shape))
        self.owned.add(value)
        return self.tensors[value]

    def is_last(self, value: graph.Value, reader: graph.Operation) -> bool:
        """Return whether `reader` may overwrite the tensor of a value, since nothing else reads it."""
        if self.readers[value] != {reader}:
            return False
        maker = self.makers.get(value)
        return self.is_last(maker.operands[0], maker) if isinstance(maker, graph.Reshape) else value in self.owned

    def tensor(self, value: graph.Value) -> HbmTensor:
        """Return a value's tensor in HBM, a view if possible; it may repeat elements."""
        if value not in self.tensors:
            maker = self.makers.get(value)
            if not value.size:
                self.new(value)
            elif isinstance(maker, graph.Constant | graph.Iota):
                self.tensors[value] = self._constant_tensor(value, maker)
            elif isinstance(maker, _VIEWS):
                self.tensors[value] = self._view(maker)
            elif isinstance(maker, graph.Bitcast) and maker.operands[0].type.bits == value.type.bits:
                self.tensors[value] = self.tensor(maker.operands[0]).bitcast(value.type.format)
            else:
                raise Refused(f"a value must be computed before its use, not {value}", maker and maker.source)
        return self.tensors[value]

    def dense(self, value: graph.Value) -> HbmTensor:
        """Return a value's tensor in HBM in row-major order, without gaps."""
        tensor = self.tensor(value)
        if tensor.steps == dense_steps(value.shape):
            return tensor
        return self.copied(tensor)

    def copied(self, tensor: HbmTensor) -> HbmTensor:
        """Append and return a copy in row-major order."""
        new = self.scratch(tensor.format, tensor.shape, f"{tensor.name}_dense")
        copy_dense(self.program, new, tensor)
        return new

    def scratch(self, fmt, shape: tuple[int, ...], name: str = "scratch") -> HbmTensor:
        """Return a new tensor in HBM."""
        tensor = self.program.space.hbm(name, fmt, shape or (1,))
        return replace(tensor, shape=shape, steps=dense_steps(shape))

    def constant(self, array: np.ndarray, fmt, name: str = "constant") -> HbmTensor:
        """Return a tensor in HBM with these elements; equal ones share a tensor, repeated elements are stored once."""
        if array.dtype == np.bool_:
            array = array.astype(np.uint8)
        stored = array[tuple(slice(0, 1) if s == 0 else slice(None) for s in array.strides)] if array.size else array
        stored = np.asarray(stored, order="C")
        key = fmt, stored.shape, stored.tobytes()
        if key not in self.numbers:
            self.numbers[key] = self.program.space.hbm(name, fmt, stored.shape or (1,))
            codes = stored.view(f"u{stored.itemsize}").reshape(stored.shape or (1,))
            self.constants[self.numbers[key]] = codes
        tensor = self.numbers[key]
        tensor = replace(tensor, shape=stored.shape, steps=dense_steps(stored.shape))
        return tensor if stored.shape == array.shape else broadcast_view(tensor, array.shape)

    def _constant_tensor(self, value: graph.Value, maker: graph.Constant | graph.Iota) -> HbmTensor:
        check_narrow(value.type)
        if isinstance(maker, graph.Constant):
            array = maker.array
            if maker.splat is not None and array.ndim:
                array = np.broadcast_to(array[(0,) * array.ndim], array.shape)
            return self.constant(array, value.type.format)
        column = np.arange(value.shape[maker.axis]).astype(value.type.dtype)
        shape = [-1 if d == maker.axis else 1 for d in range(value.rank)]
        return self.constant(np.broadcast_to(column.reshape(shape), value.shape), value.type.format, "indices")

    def _view(self, maker: graph.Operation) -> HbmTensor:
        (operand,) = maker.operands
        tensor, shape = self.tensor(operand), maker.results[0].shape
        match maker:
            case graph.Broadcast(axes=axes):
                steps = [0] * len(shape)
                for axis, extent, step in zip(axes, operand.shape, tensor.steps, strict=True):
                    steps[axis] = step if extent != 1 else 0
                return replace(tensor, shape=shape, steps=tuple(steps))
            case graph.Transpose(order=order):
                return tensor.permute(*order)
            case graph.StridedSlice(starts=starts, ends=ends, steps=steps):
                return tensor[tuple(map(slice, starts, ends, steps))] if shape else tensor
            case graph.Reverse(axes=axes):
                return tensor[tuple(slice(None, None, -1 if d in axes else None) for d in range(operand.rank))]
            case graph.Reshape():
                return self._reshaped(maker, tensor, shape)
        raise AssertionError(maker)

    def _reshaped(self, maker: graph.Reshape, tensor: HbmTensor, shape: tuple[int, ...]) -> HbmTensor:
        if (pairs := kept_dimensions(maker)) is not None:
            steps = [0] * len(shape)
            for old, new in pairs:
                steps[new] = tensor.steps[old]
            return replace(tensor, shape=shape, steps=tuple(steps))
        try:
            return tensor.reshape(*shape)
        except ValueError:
            return self.copied(tensor).reshape(*shape)


def dense_steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the steps of row-major order."""
    return tuple(prod(shape[d + 1 :]) for d in range(len(shape)))


def broadcast_view(tensor: HbmTensor, shape: tuple[int, ...]) -> HbmTensor:
    """Return a view that repeats dimensions of one element."""
    steps = tuple(step if n != 1 else 0 for n, step in zip(tensor.shape, tensor.steps, strict=True))
    return replace(tensor, shape=shape, steps=steps)
