"""The check of a frame: CRC-32 of all its bits at once.

A CRC is the remainder of a polynomial, the frame, by another. Bit 0 of a word is its highest power, so a product by x
makes room for what is lower at the top. Let c[n] be the remainder of the power that word n of the frame ends at; then
the remainder of the frame is that of the sum of word[n] * c[n], which is hardly longer than a word:

    sum over the bits u of: (sum of word[n] over all n whose c[n] has bit u) << u

Written so, and not as a parity of half the frame for each bit of the result, it takes about as many gates, some more
levels of them, and a third of the time in a simulator, which works in words.
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
    """CRC-32 of IEEE 802.3 of so many bits, without latency.

    Arguments:
        width: of what is checked; what lacks to a whole byte counts as zeros behind it.

    Ports:
        i: bits, as bytes from the least significant up. o: the check.
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

        # The powers of the product that are not lower than the divisor's.
        high, low = product[: CRC_BITS - 1], product[CRC_BITS - 1 :]
        effects = _remainders(len(high))
        turned = (bit.replicate(CRC_BITS) & effect for bit, effect in zip(high, effects, strict=True))
        m.d.comb += self.o.eq(reduce(xor, turned, low ^ crc_of_zeros(self.width)))
        return m


def crc_of_zeros(width: int) -> int:
    """Return the check of so many zeros."""
    state = _ONES
    for _ in range(_padded(width)):
        state = _step(state)
    return state ^ _ONES


def _words(bits: Value) -> tuple[list[Value], list[int]]:
    """Return words that the bits are cut into from the end, and the remainder of the power of each word's last bit."""
    ends = range(len(bits), 0, -CRC_BITS)
    words = [Cat(Const(0, max(0, CRC_BITS - end)), bits[max(0, end - CRC_BITS) : end]) for end in ends]
    remainders = _remainders(len(bits))
    return words, [remainders[end - 1] for end in ends]


def _remainders(width: int) -> list[int]:
    """Return the remainder of the power of each bit of so many, the last of which is that of the divisor."""
    remainders = [_REFLECTED]
    for _ in range(width - 1):
        remainders.append(_step(remainders[-1]))
    return remainders[::-1]


def _step(state: int) -> int:
    """Return the remainder of the product by x."""
    return (state >> 1) ^ (_REFLECTED if state & 1 else 0)


def _padded(width: int) -> int:
    """Return a number of bits rounded up to whole bytes."""
    return (width + 7) // 8 * 8
