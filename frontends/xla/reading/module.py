"""Reader of modules: functions are inlined at their calls, composites replaced by their decompositions."""

from dataclasses import dataclass, field
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo

from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.operations import Graph, Operation, Sort, Value
from neuroncore_rtl.frontends.xla.reading.attributes import Attributes, tensor_type, user_line
from neuroncore_rtl.frontends.xla.reading.legal import legalised
from neuroncore_rtl.frontends.xla.reading.operations import READERS, Given
from neuroncore_rtl.frontends.xla.refusal import Refused, refusing_at
from neuroncore_rtl.kernels.source import SourceLine

__all__ = ["parse_artifact", "parse_text", "read_module"]

_SAME = frozenset(
    ("stablehlo.optimization_barrier", "sdy.sharding_constraint", "stablehlo.after_all", "stablehlo.create_token")
)
_RETURNS = frozenset(("func.return", "stablehlo.return", "sdy.return"))
_FUNCTIONS = frozenset(("chlo.erf", "chlo.erfc", "chlo.mulhi"))
"""Functions of CHLO that the machine has."""


def _context() -> ir.Context:
    context = ir.Context()
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    return context


def parse_artifact(portable: bytes) -> ir.Module:
    """Return the module of a portable artifact."""
    return stablehlo.deserialize_portable_artifact(_context(), portable)


def parse_text(text: str | bytes) -> ir.Module:
    """Return the module of StableHLO's text or bytecode; operations of other dialects remain unchanged."""
    context, registry = _context(), ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    context.allow_unregistered_dialects = True
    with context, ir.Location.unknown():
        return ir.Module.parse(text)


def read_module(module: ir.Module, name: str = "main") -> Graph:
    """Return the graph of a module's function; Refused with the user's line if an operation is not supported."""
    legal = legalised(module, _FUNCTIONS)  # its operations live as long as it does
    functions = {
        ir.StringAttr(one.operation.attributes["sym_name"]).value: one.operation
        for one in legal.regions[0].blocks[0].operations
        if one.operation.name == "func.func"
    }
    return _Reader(functions).block(functions[name].regions[0].blocks[0], {})


@dataclass
class _Reader:
    functions: dict[str, ir.Operation]
    callers: list[tuple[str, SourceLine]] = field(default_factory=list)

    def source(self, location: ir.Location) -> SourceLine:
        """Return the user's line; without one, the line of the innermost call."""
        found = user_line(location)
        return self.callers[-1][1] if found.user.number == 0 and self.callers else found

    def block(self, block: ir.Block, known: dict[ir.Value, Value]) -> Graph:
        values = dict(known)
        arguments = tuple(Value(*tensor_type(one.type)) for one in block.arguments)
        values.update(zip(block.arguments, arguments, strict=True))
        operations: list[Operation] = []
        results = self._append(block, values, operations)
        return Graph(arguments=arguments, operations=operations, results=results)

    def _append(self, block: ir.Block, values: dict[ir.Value, Value], operations: list[Operation]) -> tuple[Value, ...]:
        """Append a block's operations; return the values that it returns."""
        for each in block.operations:
            one = each.operation
            operands = tuple(values[operand] for operand in one.operands)
            if one.name in _RETURNS:
                return operands
            source = self.source(one.location)
            with refusing_at(source):
                results = self._operations_of(one, operands, values, operations, source)
            values.update(zip(one.results, results, strict=True))
        return ()

    def _operations_of(
        self,
        one: ir.Operation,
        operands: tuple[Value, ...],
        values: dict[ir.Value, Value],
        operations: list[Operation],
        source: SourceLine,
    ) -> tuple[Value, ...]:
        attributes, name = Attributes(one), one.name
        if name in _SAME:
            return operands
        alias = attributes.text("name" if name == "stablehlo.composite" else "call_target_name")
        if alias in _FUNCTIONS:
            name = alias
        if name in ("stablehlo.composite", "func.call", "call"):
            return self._call(
                attributes.text("decomposition") or attributes.text("callee"), operands, operations, source
            )
        if alias == "dce_sink":  # JAX's own mark of a value as used
            return ()
        if alias == "ApproxTopK":
            return self._top(one, operands, operations, source)
        if name not in READERS:
            raise Refused(_reason(name, attributes))
        results = tuple(Value(*tensor_type(result.type)) for result in one.results)
        blocks = tuple(self.block(region.blocks[0], values) for region in one.regions)
        builder = Builder(source)
        found = READERS[name](builder, Given(name, operands, results, attributes, blocks))
        operations += builder.operations
        return tuple(found)

    def _call(
        self, name: str, operands: tuple[Value, ...], operations: list[Operation], source: SourceLine
    ) -> tuple[Value, ...]:
        if any(name == caller for caller, _ in self.callers):
            raise Refused(f"functions must not call themselves, as {name} does")
        self.callers.append((name, source))
        block = self.functions[name].regions[0].blocks[0]
        results = self._append(block, dict(zip(block.arguments, operands, strict=True)), operations)
        self.callers.pop()
        return results

    def _top(
        self, one: ir.Operation, operands: tuple[Value, ...], operations: list[Operation], source: SourceLine
    ) -> tuple[Value, ...]:
        """Append a sort and slices: the exact results, which an approximation may have."""
        attributes: Any = one.attributes
        body = self.functions[attributes["called_computations"][0].value].regions[0].blocks[0]
        axis = attributes["mhlo.backend_config"]["reduction_dim"].value
        arrays, builder = operands[: len(one.results)], Builder(source, operations=operations)
        results = tuple(Value(each.shape, each.type) for each in arrays)
        operations.append(Sort(operands=arrays, results=results, source=source, axis=axis, body=self.block(body, {})))
        count = tensor_type(one.results[0].type)[0][axis]
        return tuple(builder.part(each, axis, 0, count) for each in results)


def _reason(name: str, attributes: Attributes) -> str:
    short = name.removeprefix("stablehlo.").removeprefix("chlo.")
    if short == "custom_call":
        target = attributes.text("call_target_name")
        return f"operations must be StableHLO's own, not a call of {target}; linear algebra and callbacks need the host"
    if short in ("fft", "complex"):
        return f"operations must be on real numbers without Fourier transforms, not {short}"
    return f"operations must be of docs/jax.md's table, not {short}"
