"""A tile of column sums in vector registers, in LLVM's intermediate language: Numba has no vectors of its own."""

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from neuroncore_rtl.spec.formats import FP32

__all__ = ["TILE", "compile_tile"]

TILE = 4
"""Stationary columns of a tile: each moving vector that is loaded is used so many times."""


def compile_tile(width: int, masked: bool, fused: bool):
    """Return tile(stationary, moving, stationary_present, moving_present, sums, first), for compiled functions.

    It continues the chains of `sums` [TILE, width] in place along K, with rows of the moving operand [K, width] and
    columns of the stationary operand from `first` on, and makes NaN canonical. All arrays are contiguous.

    Arguments:
        width: moving columns of a tile; the processor's vectors are as many as that takes.
        masked: whether it looks at the masks, of the shapes of their operands.
        fused: True for a fused multiply-add, False for a float64 sum and a cast.
    """

    def generate(context, builder, signature, arguments):
        *arrays, first = arguments
        *kinds, _ = signature.args
        arrays = [context.make_array(kind)(context, builder, array) for kind, array in zip(kinds, arrays, strict=True)]
        _Tile(builder, width, fused, first).generate(*arrays, masked=masked)
        return context.get_dummy_value()

    @intrinsic
    def tile(typing_context, stationary, moving, stationary_present, moving_present, sums, first):
        return types.void(stationary, moving, stationary_present, moving_present, sums, first), generate

    return tile


class _Tile:
    """The code of a tile, whose first stationary column is the value `first`."""

    def __init__(self, builder: IRBuilder, width: int, fused: bool, first: Value):
        self.builder, self.width, self.fused, self.first = builder, width, fused, first
        self.floats, self.doubles, self.flags = (
            ir.VectorType(kind, width) for kind in (ir.FloatType(), ir.DoubleType(), ir.IntType(8))
        )

    def generate(self, stationary, moving, stationary_present, moving_present, sums, *, masked: bool) -> None:
        builder = self.builder
        rows, pitch = (builder.extract_value(stationary.shape, axis) for axis in (0, 1))
        places = [self.row(sums, ir.Constant(self.first.type, m), self.floats) for m in range(TILE)]
        # LLVM makes registers of them.
        totals = [cgutils.alloca_once_value(builder, builder.load(place, align=4)) for place in places]
        with cgutils.for_range(builder, rows) as loop:
            x = builder.load(self.row(moving, loop.index, self.floats), align=4)
            present = builder.load(self.row(moving_present, loop.index, self.flags), align=1) if masked else None
            own = builder.add(builder.mul(loop.index, pitch), self.first)
            for m, place in enumerate(totals):
                column = builder.add(own, ir.Constant(own.type, m))
                total = builder.load(place)
                found = self.multiply_add(x, self.spread(stationary, column, self.floats), total)
                if masked:
                    both = builder.and_(present, self.spread(stationary_present, column, self.flags))
                    found = builder.select(builder.icmp_unsigned("!=", both, self.flags(None)), found, total)
                builder.store(found, place)
        for total, place in zip(totals, places, strict=True):
            builder.store(self.canonical(builder.load(total)), place, align=4)

    def row(self, array, number: Value, kind: ir.VectorType) -> Value:
        """Return the pointer to a row of an array of `width` columns."""
        place = self.builder.gep(array.data, [self.builder.mul(number, ir.Constant(number.type, self.width))])
        return self.builder.bitcast(place, kind.as_pointer())

    def spread(self, array, place: Value, kind: ir.VectorType) -> Value:
        """Return a vector that has one value of an array everywhere."""
        value, nothing = self.builder.load(self.builder.gep(array.data, [place])), kind(ir.Undefined)
        one = self.builder.insert_element(nothing, value, ir.IntType(32)(0))
        return self.builder.shuffle_vector(one, nothing, ir.VectorType(ir.IntType(32), self.width)(None))

    def multiply_add(self, x: Value, w: Value, total: Value) -> Value:
        """Return total + x * w, rounded once."""
        if self.fused:
            kind = ir.FunctionType(self.floats, [self.floats] * 3)
            name = f"llvm.fma.v{self.width}f32"
            return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), (x, w, total))
        x, w, total = (self.builder.fpext(value, self.doubles) for value in (x, w, total))
        return self.builder.fptrunc(self.builder.fadd(self.builder.fmul(x, w), total), self.floats)

    def canonical(self, value: Value) -> Value:
        """Return the value with every NaN replaced by the canonical one."""
        words = ir.VectorType(ir.IntType(32), self.width)
        nan = self.builder.bitcast(words([FP32.nan] * self.width), self.floats)
        return self.builder.select(self.builder.fcmp_unordered("uno", value, value), nan, value)
