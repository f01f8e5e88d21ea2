"""Threefry-2x32, a counter-based random number generator: the output depends on key and counter only.

Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC11), and its Random123
library; constants and known answers are from there.
"""

from amaranth import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ROUNDS", "Threefry2x32"]

ROUNDS = 20
ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
"""Left rotation of the second word in rounds 0 to 7; later rounds repeat these eight."""
ROUNDS_PER_KEY = 4
PARITY = 0x1BD1_1BDA
"""Constant XORed with the first two key words to make the third; with it, a key of zeros still changes the counter."""

_PAIR = data.ArrayLayout(32, 2)


class Threefry2x32(wiring.Component):
    """20 rounds of Threefry-2x32. Throughput: one pair of words per cycle.

    Arguments:
        rounds_per_stage: rounds between two registers, 1 to 20.

    Ports:
        key, counter: two 32-bit words each, word 0 first.
        out: the two random words, `latency` = ceil(20 / rounds_per_stage) cycles later, registered.
    """

    key: In(_PAIR)
    counter: In(_PAIR)
    out: Out(_PAIR)

    def __init__(self, rounds_per_stage: int = 4):
        if not 1 <= rounds_per_stage <= ROUNDS:
            raise ValueError(f"rounds_per_stage must be 1 to {ROUNDS}, not {rounds_per_stage!r}")
        self.rounds_per_stage = rounds_per_stage
        self.latency = -(-ROUNDS // rounds_per_stage)
        super().__init__()

    def elaborate(self, platform):
        m = Module()

        def register(name: str, values: list[Value]) -> list[Value]:
            registers = [Signal(32, name=f"{name}_{i}", reset_less=True) for i in range(len(values))]
            m.d.sync += [target.eq(value) for target, value in zip(registers, values, strict=True)]
            return registers

        def wire(name: str, value: Value) -> Signal:
            signal = Signal(32, name=name)
            m.d.comb += signal.eq(value)
            return signal

        keys = [self.key[0], self.key[1], self.key[0] ^ self.key[1] ^ PARITY]
        x = [wire("start_0", self.counter[0] + keys[0]), wire("start_1", self.counter[1] + keys[1])]
        for number in range(1, ROUNDS + 1):
            first = wire(f"sum_{number}", x[0] + x[1])
            second = wire(f"mix_{number}", x[1].rotate_left(ROTATIONS[(number - 1) % len(ROTATIONS)]) ^ first)
            x = [first, second]
            if number % ROUNDS_PER_KEY == 0:
                turn = number // ROUNDS_PER_KEY
                x = [
                    wire(f"keyed_{number}_0", first + keys[turn % 3]),
                    wire(f"keyed_{number}_1", second + keys[(turn + 1) % 3] + turn),
                ]
            if number == ROUNDS:
                x = register("out", x)
            elif number % self.rounds_per_stage == 0:
                x, keys = register(f"x{number}", x), register(f"key{number}", keys)
        m.d.comb += [self.out[i].eq(x[i]) for i in range(2)]
        return m
