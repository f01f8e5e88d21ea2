"""Frame check: CRC-32 over all bits of a frame in one cycle.

A CRC is the remainder of a polynomial, the bits of the frame, divided by the CRC's polynomial. Bit 0 of a word is the
coefficient of its highest power; multiplying by x shifts towards bit 0, and lower powers enter at the top.

Let c[n] be the remainder of the power of x that the last bit of word n stands for. The frame has the same remainder as
the sum of word[n] * c[n], a polynomial of less than two words:

    sum over the bits u of: (sum of word[n] over all n with bit u set in c[n]) << u

A parity tree per result bit has about as many gates and fewer levels, but takes a simulator, which computes in words,
three times as long.
"""

from functools import reduce
from operator import xor

from amaranth import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.spec.link import CRC_BITS, CRC_POLYNOMIAL

__all__ = ["Crc32", "crc_of_zeros"]

_ONES = (1 << CRC_BITS) - 1
_REFLECTED = int(f"{CRC_POLYNOMIAL:0{CRC_BITS}b}"[::-1], 2)


class Crc32(wiring.Component):
    """CRC-32 of IEEE 802.3 over `width` bits, without latency.

    Arguments:
        width: number of bits to check; zeros after them complete the last byte.

    Ports:
        i: the bits to check; bit 0 is the least significant bit of the first byte.
        o: the CRC.
    """

    def __init__(self, width: int):
        self.width = width
        super().__init__({"i": In(width), "o": Out(CRC_BITS)})

    def elaborate(self, platform):
        m = Module()
        words, remainders = _words(Cat(self.i, Const(0, _padded(self.width) - self.width)))
        product = Signal(2 * CRC_BITS - 1)
        terms = []
        for bit in range(CRC_BITS):
            chosen = [word for word, remainder in zip(words, remainders, strict=True) if remainder >> bit & 1]
            terms += [Cat(Const(0, bit), reduce(xor, chosen))] if chosen else []
        m.d.comb += product.eq(reduce(xor, terms))

        # Reduce the powers of the product that are not below the divisor's.
        high, low = product[: CRC_BITS - 1], product[CRC_BITS - 1 :]
        effects = _remainders(len(high))
        turned = (bit.replicate(CRC_BITS) & effect for bit, effect in zip(high, effects, strict=True))
        m.d.comb += self.o.eq(reduce(xor, turned, low ^ crc_of_zeros(self.width)))
        return m


def crc_of_zeros(width: int) -> int:
    """Return the CRC of `width` zero bits."""
    state = _ONES
    for _ in range(_padded(width)):
        state = _step(state)
    return state ^ _ONES


def _words(bits: Value) -> tuple[list[Value], list[int]]:
    ends = range(len(bits), 0, -CRC_BITS)
    words = [Cat(Const(0, max(0, CRC_BITS - end)), bits[max(0, end - CRC_BITS) : end]) for end in ends]
    remainders = _remainders(len(bits))
    return words, [remainders[end - 1] for end in ends]


def _remainders(width: int) -> list[int]:
    """Return for each bit of a frame the remainder of its power of x, times x**32. The last bit stands for x**0."""
    remainders = [_REFLECTED]
    for _ in range(width - 1):
        remainders.append(_step(remainders[-1]))
    return remainders[::-1]


def _step(state: int) -> int:
    return (state >> 1) ^ (_REFLECTED if state & 1 else 0)


def _padded(width: int) -> int:
    return (width + 7) // 8 * 8
