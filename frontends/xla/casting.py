"""Casts of all float32 values to a narrower type, as of neuronx-cc's `--auto-cast=all`."""

from dataclasses import dataclass, field, replace

from neuroncore_rtl.frontends.xla.emit.streamed_products import product_format
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.cloning import rebuilt, renamed
from neuroncore_rtl.frontends.xla.graph.operations import Bitcast, Constant, Convolution, Dot, Graph, Operation, Value
from neuroncore_rtl.frontends.xla.graph.types import FLOAT32, ElementType
from neuroncore_rtl.frontends.xla.options import Options
from neuroncore_rtl.kernels.source import SourceLine

__all__ = ["casted", "rounded_operands"]


def casted(block: Graph, to: ElementType) -> Graph:
    """Return a graph in which operations read and write another type than float32; arguments and results keep theirs.

    Constants and bits are those of float32, converted.
    """
    if not block.operations:
        return block
    casting = _Casting(to, block.operations[0].source)
    inner = casting.block(replace(block, arguments=()), block.arguments)
    last = Builder(casting.source, operations=inner.operations)
    pairs = zip(block.results, inner.results, strict=True)
    results = tuple(old if old in block.arguments else last.convert(new, old.type) for old, new in pairs)
    return replace(block, operations=inner.operations, results=results)


def rounded_operands(block: Graph, to: ElementType) -> Graph:
    """Return a graph in which operations of their own round the operands of float32 products to another type.

    Without them a copy by DMA may round an operand, which it does to nearest.
    """
    operations: list[Operation] = []
    for one in block.operations:
        one = rebuilt(one, {}, lambda inner: rounded_operands(inner, to))
        if isinstance(one, Convolution | Dot) and not getattr(one, "is_exact", False):
            if product_format(Options(), *one.operands) is FLOAT32.format:
                builder = Builder(one.source, operations=operations)
                one = replace(one, operands=tuple(builder.convert(value, to) for value in one.operands))
        operations.append(one)
    return replace(block, operations=operations)


@dataclass
class _Casting:
    to: ElementType
    source: SourceLine
    same: dict[Value, Value] = field(default_factory=dict)

    def block(self, block: Graph, wide: tuple[Value, ...] = ()) -> Graph:
        """Return a block with the other type; values `wide` from outside are converted first."""
        arguments, builder = tuple(map(self._new, block.arguments)), Builder(self.source)
        for value in wide:
            self._convert(builder, value)
        for one in block.operations:
            builder.source = self.source = one.source
            if isinstance(one, Constant | Bitcast):
                operands = tuple(builder.convert(self.same.get(value, value), value.type) for value in one.operands)
                builder.operations.append(replace(one, operands=operands))
                self._convert(builder, one.result)
            else:
                one = rebuilt(one, self.same, self.block)
                builder.operations.append(replace(one, results=tuple(map(self._new, one.results))))
        results = renamed(block.results, self.same)
        return Graph(arguments=arguments, operations=builder.operations, results=results)

    def _convert(self, builder: Builder, value: Value) -> None:
        if value.type == FLOAT32:
            self.same[value] = builder.convert(value, self.to)

    def _new(self, value: Value) -> Value:
        if value.type == FLOAT32:
            self.same[value] = Value(value.shape, self.to)
        return self.same.get(value, value)
