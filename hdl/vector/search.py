"""Search unit of a lane: its eight largest elements, and the positions of eight values.

Words are compared as signed integers after an order-preserving mapping: UINT32 gets its top bit inverted, a negative
float the bits below its sign. The canonical NaN is above infinity. -0 is stored as +0 with a flag.
"""

from amaranth import Array, Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.spec.isa.elementwise import SEARCH_ELEMENTS, VALUES8

__all__ = ["POSITION_BITS", "Probe", "Search"]

POSITION_BITS = (SEARCH_ELEMENTS[1] - 1).bit_length()

_NEGATIVE_ZERO = 1 << 31


class Probe(data.Struct):
    """Operation on the word of this cycle.

    Fields:
        load: store the word as value `number` to search for; `number` 0 starts a search.
        insert: insert the word into the list of the eight largest words.
        match: compare the word with the stored values to search for.
    """

    load: unsigned(1)
    insert: unsigned(1)
    match: unsigned(1)


class Search(wiring.Component):
    """Eight words in order, or eight values to search for. Throughput: one element per cycle.

    Ports:
        word: an integer, or FP32 with canonical NaN.
        probe: operation on the word (`Probe`); zero for none.
        integer: the word is an integer, else FP32.
        uint32: with `integer`, UINT32 instead of INT32.
        position: row-major position of the word in the instruction.
        number: index of the value to load, or of the result.
        hit: the word equals a stored value that was not found before; in the same cycle.
        largest: entry `number` of the words inserted so far, in descending order, equal words in order of arrival.
        found: INT32 position at which the stored value `number` was found, or -1.
    """

    word: In(32)
    probe: In(Probe)
    integer: In(1)
    uint32: In(1)
    position: In(POSITION_BITS)
    number: In(range(VALUES8))
    hit: Out(1)
    largest: Out(32)
    found: Out(32)

    def elaborate(self, platform):
        m = Module()
        keys = [Signal(32, name=f"key_{k}", reset_less=True) for k in range(VALUES8)]
        places = [Signal(POSITION_BITS, name=f"place_{k}", reset_less=True) for k in range(VALUES8)]
        negative_zeros, founds = Signal(VALUES8, reset_less=True), Signal(VALUES8, reset_less=True)

        key = Signal(32)
        negative_zero = Signal()
        m.d.comb += negative_zero.eq(~self.integer & (self.word == _NEGATIVE_ZERO))
        with m.If(self.probe.as_value().any()):
            m.d.comb += key.eq(Mux(negative_zero, 0, self._key(self.word)))

        # Words above a new word keep their slots, and the others shift down. A value to search for uses the slot
        # `number`.
        above = [Const(0, 1)]
        for k in range(VALUES8):
            is_above = Signal(name=f"above_{k}")
            m.d.comb += is_above.eq((self.position <= k) | (key.as_signed() > keys[k].as_signed()))
            above.append(is_above)
        for k in range(VALUES8):
            with m.If((self.probe.insert & above[k + 1]) | (self.probe.load & (self.number == k))):
                moves = self.probe.insert & above[k]
                m.d.sync += [
                    keys[k].eq(Mux(moves, keys[max(0, k - 1)], key)),
                    negative_zeros[k].eq(Mux(moves, negative_zeros[max(0, k - 1)], negative_zero)),
                ]
        with m.If(self.probe.load):
            m.d.sync += founds.eq(0)

        with m.If(self.probe.match):
            equal, chosen = Signal(VALUES8), Signal(VALUES8)
            m.d.comb += [
                equal.eq(Cat(key == keys[k] for k in range(VALUES8)) & ~founds),
                chosen.eq(equal & -equal),
                self.hit.eq(equal.any()),
            ]
            m.d.sync += founds.eq(founds | chosen)
            for k in range(VALUES8):
                with m.If(chosen[k]):
                    m.d.sync += places[k].eq(self.position)

        named = Signal(32)
        m.d.comb += [
            named.eq(Array(keys)[self.number]),
            self.largest.eq(Mux(Array(negative_zeros)[self.number], _NEGATIVE_ZERO, self._key(named))),
            self.found.eq(Mux(Array(founds)[self.number], Array(places)[self.number], Const(-1, 32))),
        ]
        return m

    def _key(self, word):
        """Return a signed integer with the same order as the words.

        Applied to this integer, the function returns the word.
        """
        return word ^ Cat((word[31] & ~self.integer).replicate(31), self.uint32)
