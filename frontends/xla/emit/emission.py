"""Values of a graph as tensors in HBM, and the program that computes them."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import cycle
from typing import TypeGuard

import numpy as np

from neuroncore_rtl.frontends.xla.emit.residents import Home, copy_tile
from neuroncore_rtl.frontends.xla.fuse.placement import same_dimensions
from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.types import check_narrow, dense_steps
from neuroncore_rtl.frontends.xla.options import Options
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.library.copy_hbm import copied, made_adjacent
from neuroncore_rtl.kernels.library.transpose import ChipMoves
from neuroncore_rtl.kernels.program import HbmTensor, Program
from neuroncore_rtl.spec.formats import Format

__all__ = ["VIEWS", "Emission", "is_view"]

VIEWS = (graph.Broadcast, graph.Reshape, graph.Transpose, graph.StridedSlice, graph.Reverse)


def is_view(operation: graph.Operation | None) -> TypeGuard[graph.Operation]:
    """Return whether an operation reads its operand in another order, or as a type of the same bits."""
    if isinstance(operation, graph.Bitcast):
        return operation.operands[0].type.bits == operation.result.type.bits
    return isinstance(operation, VIEWS)


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
        homes: tensors in HBM by their addresses, in order.
        wanted: the value for which there is no room, after such a refusal.
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
    homes: dict[int, Home] = field(default_factory=dict)
    wanted: graph.Value | None = None
    _addresses: list[int] = field(default_factory=list)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Forget the tensors made in the context, which may be skipped or repeated, at its end."""
        outside = dict(self.tensors)
        self.forget()
        yield
        self.forget()
        self.tensors = outside

    def forget(self) -> None:
        """Forget all values in SBUF, before and after instructions that may be skipped or repeated."""
        self.chip.matrices.clear()
        for home in self.homes.values():
            home.residents.clear()

    @cached_property
    def ports(self) -> Iterator[int]:
        return cycle(self.program.load_queues[: max(2, self.program.config.hbm_ports)])

    @cached_property
    def chip(self) -> ChipMoves:
        """Moves on chip."""
        return ChipMoves(self.program)

    def home(self, view: HbmTensor) -> Home:
        """Return the tensor of a view."""
        return self.homes[self._addresses[bisect_right(self._addresses, view.address) - 1]]

    def _at_home(self, tensor: HbmTensor) -> HbmTensor:
        self.homes[tensor.address] = Home(tensor)
        self._addresses.append(tensor.address)
        return tensor

    def settled(self, view: HbmTensor) -> HbmTensor:
        """Return a view, after it has been stored in HBM."""
        home = self.home(view)
        if not home.is_stored:
            if home.pending is not None:
                home.pending.finish()
            if not home.is_stored:
                # Readers of a value that is in SBUF in a narrow format only round it to this format.
                exact = [one for one in home.residents if one.format is home.tensor.format]
                for target, tile in (exact or home.residents)[0].source(home.tensor):
                    copy_tile(self.program, target, tile, self.program.stores)
            home.is_stored = True
        return view

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
        maker = self.makers.get(value)
        check_narrow(value.type, source=maker and maker.source)
        self.wanted = value
        tensor = self.program.space.hbm(f"{name}{value.number}", value.type.format, value.shape or (1,))
        self.wanted = None
        self.tensors[value] = self._at_home(replace(tensor, shape=value.shape, steps=dense_steps(value.shape)))
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
        view = self.view(value)
        if view is None:
            maker = self.makers.get(value)
            if not isinstance(maker, (*VIEWS, graph.Bitcast)):
                raise Refused(f"a value must be computed before its use, not {value}", maker and maker.source)
            tensor = self.tensor(maker.operands[0])
            view = self._viewed(maker, tensor) or self.copied(tensor).reshape(*value.shape)
            self.tensors[value] = view
        return self.settled(view) if value.size else view

    def view(self, value: graph.Value) -> HbmTensor | None:
        """Return a value's place in HBM, which may not have the elements yet; None if it is not known, or no view."""
        if value not in self.tensors:
            maker = self.makers.get(value)
            if not value.size:
                self.new(value)
            elif isinstance(maker, graph.Constant | graph.Iota):
                self.tensors[value] = self._constant_tensor(value, maker)
            elif is_view(maker):
                inner = self.view(maker.operands[0])
                found = inner and self._viewed(maker, inner)
                if found is None:
                    return None
                self.tensors[value] = found
        return self.tensors.get(value)

    def dense(self, value: graph.Value) -> HbmTensor:
        """Return a value's tensor in HBM in row-major order, without gaps."""
        tensor = self.tensor(value)
        if tensor.steps == dense_steps(value.shape):
            return tensor
        return self.copied(tensor)

    def copied(self, tensor: HbmTensor) -> HbmTensor:
        """Append and return a copy in row-major order."""
        return self._at_home(copied(self.program, self.settled(tensor)))

    def adjacent(self, tensor: HbmTensor, fmt: Format) -> HbmTensor:
        """Return a tensor in a format, with adjacent innermost elements; a copy if it is not."""
        found = made_adjacent(self.program, self.settled(tensor), fmt)
        return found if found is tensor else self._at_home(found)

    def constant(self, array: np.ndarray, fmt, name: str = "constant") -> HbmTensor:
        """Return a tensor in HBM with these elements; equal ones share a tensor, repeated elements are stored once."""
        if array.dtype == np.bool_:
            array = array.astype(np.uint8)
        stored = array[tuple(slice(0, 1) if s == 0 else slice(None) for s in array.strides)] if array.size else array
        stored = np.asarray(stored, order="C")
        key = fmt, stored.shape, stored.tobytes()
        if key not in self.numbers:
            self.numbers[key] = self._at_home(self.program.space.hbm(name, fmt, stored.shape or (1,)))
            codes = stored.view(f"u{stored.itemsize}").reshape(stored.shape or (1,))
            self.constants[self.numbers[key]] = codes
        steps = dense_steps(stored.shape)
        if stored.shape != array.shape:
            steps = tuple(step if n != 1 else 0 for n, step in zip(stored.shape, steps, strict=True))
        return replace(self.numbers[key], shape=array.shape, steps=steps)

    def _constant_tensor(self, value: graph.Value, maker: graph.Constant | graph.Iota) -> HbmTensor:
        check_narrow(value.type, source=maker.source)
        array = maker.array
        if isinstance(maker, graph.Iota):
            return self.constant(array, value.type.format, "indices")
        if maker.splat is not None and array.ndim:
            array = np.broadcast_to(array[(0,) * array.ndim], array.shape)
        return self.constant(array, value.type.format)

    def _viewed(self, maker: graph.Operation, tensor: HbmTensor) -> HbmTensor | None:
        """Return the view of a tensor that an operation makes, if it makes one."""
        (operand,), shape = maker.operands, maker.results[0].shape
        match maker:
            case graph.Bitcast():
                return tensor.bitcast(maker.result.type.format)
            case graph.Broadcast() | graph.Reshape() if (pairs := same_dimensions(maker)) is not None:
                places = dict.fromkeys(range(len(shape)), 0) | {at: tensor.steps[d] for d, at in pairs}
                return replace(tensor, shape=shape, steps=tuple(places.values()))
            case graph.Reshape():
                with suppress(ValueError):
                    return tensor.reshape(*shape)
                return None
            case graph.Transpose(order=order):
                return tensor.permute(*order)
            case graph.StridedSlice(starts=starts, ends=ends, steps=steps):
                return tensor[tuple(map(slice, starts, ends, steps))]
            case graph.Reverse(axes=axes):
                return tensor[tuple(slice(None, None, -1 if d in axes else None) for d in range(operand.rank))]
        raise AssertionError(maker)
