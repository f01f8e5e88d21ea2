"""LLVM code of a pass of the array: tiles of column sums in vector registers, finally added to PSUM."""

from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value

from neuroncore_rtl.golden.arith.machine_code import (
    FLAG,
    FLOAT,
    INDEX,
    WORD_TYPE,
    canonical_word,
    counted_range,
    local,
    multiply_add,
    new_function,
)

__all__ = ["TILE", "build_pass"]

TILE = 4
"""Stationary columns of a tile: the number of uses of each loaded moving vector."""


def build_pass(width: int, masked: bool, integer: bool, fused: bool) -> IRBuilder:
    """Return the builder of the function behind `golden.tensor.kernel.multiply_tiles`.

    The function's arguments: pointers to the stationary operand [tiles, rows, TILE], the moving operand [blocks, rows,
    width], their masks, and PSUM; the rows to multiply; partitions and columns of PSUM; for each of the five arrays the
    elements from one tile, block or partition to the next; whether to accumulate.

    `width` is the moving columns of a block, which LLVM splits into the processor's vectors. If `integer`, PSUM holds
    INT32. For `fused` see `golden.arith.machine_code.multiply_add`.
    """
    pointers = FLOAT, FLOAT, FLAG, FLAG, WORD_TYPE if integer else FLOAT
    kinds = *(kind.as_pointer() for kind in pointers), *[INDEX] * 8, FLAG
    builder, arguments = new_function("multiply", *kinds)
    _Pass(builder, width, masked, integer, fused, *arguments).build()
    return builder


class _Pass:
    def __init__(self, builder, width: int, masked: bool, integer: bool, fused: bool, *arguments: Value):
        self.builder, self.width, self.masked, self.integer, self.fused = builder, width, masked, integer, fused
        self.stationary, self.moving, self.stationary_present, self.moving_present, self.psum = arguments[:5]
        self.rows, self.partitions, self.columns = arguments[5:8]
        self.steps = dict(zip(arguments[:5], arguments[8:13], strict=True))
        (self.accumulate,) = arguments[13:]
        self.floats, self.words, self.flags = (ir.VectorType(kind, width) for kind in (FLOAT, WORD_TYPE, FLAG))

    def build(self) -> None:
        builder = self.builder
        with counted_range(builder, self.pieces(self.columns, self.width)) as block:
            with counted_range(builder, self.pieces(self.partitions, TILE)) as tile:
                totals = [local(builder, self.floats) for _ in range(TILE)]
                for total in totals:
                    builder.store(self.spread(FLOAT(-0.0)), total)
                with counted_range(builder, self.rows) as row:
                    self.add_row(block, tile, row, totals)
                for number, total in enumerate(totals):
                    partition = builder.add(builder.mul(tile, INDEX(TILE)), INDEX(number))
                    with builder.if_then(builder.icmp_signed("<", partition, self.partitions)):
                        self.write(builder.load(total), partition, builder.mul(block, INDEX(self.width)))

    def add_row(self, block: Value, tile: Value, row: Value, totals: list[Value]) -> None:
        builder = self.builder
        x = self.moving_row(self.moving, block, row, self.floats)
        present = self.moving_row(self.moving_present, block, row, self.flags) if self.masked else None
        for number, place in enumerate(totals):
            total = builder.load(place)
            found = multiply_add(builder, x, self.weight(self.stationary, tile, row, number), total, self.fused)
            if self.masked:
                both = builder.and_(present, self.weight(self.stationary_present, tile, row, number))
                found = builder.select(builder.icmp_unsigned("!=", both, self.flags(None)), found, total)
            builder.store(found, place)

    def moving_row(self, array: Value, block: Value, row: Value, kind: ir.VectorType) -> Value:
        place = self.place(array, block, self.builder.mul(row, INDEX(self.width)))
        return self.builder.load(self.builder.bitcast(place, kind.as_pointer()), align=1)

    def weight(self, array: Value, tile: Value, row: Value, number: int) -> Value:
        inside = self.builder.add(self.builder.mul(row, INDEX(TILE)), INDEX(number))
        return self.spread(self.builder.load(self.place(array, tile, inside)))

    def write(self, sums: Value, partition: Value, column: Value) -> None:
        builder, kind = self.builder, self.words if self.integer else self.floats
        place = builder.bitcast(self.place(self.psum, partition, column), kind.as_pointer())
        align = WORD_TYPE(4)
        numbers = ir.VectorType(INDEX, self.width)(list(range(self.width)))
        inside = builder.icmp_signed("<", numbers, self.spread(builder.sub(self.columns, column)))
        old = builder.call(self.masked_access("load", kind), (place, align, inside, kind(None)))
        accumulate = builder.icmp_unsigned("!=", self.accumulate, FLAG(0))
        if self.integer:
            sums = builder.fptosi(sums, kind)
            new = builder.select(accumulate, builder.add(old, sums), sums)
        else:
            new = canonical_word(builder, builder.select(accumulate, builder.fadd(old, sums), sums))
        builder.call(self.masked_access("store", kind), (new, place, align, inside))

    def masked_access(self, what: str, kind: ir.VectorType) -> ir.Function:
        name = f"llvm.masked.{what}.v{self.width}{'i32' if self.integer else 'f32'}.p0"
        flags, place = ir.VectorType(ir.IntType(1), self.width), kind.as_pointer()
        loads = ir.FunctionType(kind, [place, WORD_TYPE, flags, kind])
        stores = ir.FunctionType(ir.VoidType(), [kind, place, WORD_TYPE, flags])
        module = self.builder.module
        return module.globals.get(name) or ir.Function(module, loads if what == "load" else stores, name)

    def pieces(self, count: Value, size: int) -> Value:
        return self.builder.sdiv(self.builder.add(count, INDEX(size - 1)), INDEX(size))

    def place(self, array: Value, number: Value, inside: Value) -> Value:
        return self.builder.gep(array, [self.builder.add(self.builder.mul(number, self.steps[array]), inside)])

    def spread(self, value: Any) -> Value:
        kind = ir.VectorType(value.type, self.width)
        one = self.builder.insert_element(kind(ir.Undefined), value, WORD_TYPE(0))
        return self.builder.shuffle_vector(one, kind(ir.Undefined), self.words(None))
