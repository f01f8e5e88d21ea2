"""Random bits of JAX's keys "rbg": Philox and Threefry in integer operations, with the bits of XLA's CPU.

Both are functions of a key and a counter (Salmon et al., Parallel random numbers: as easy as 1, 2, 3). The state is the
key, then the next counter, of 64 bits each as words of 32, lowest first.
"""

from math import prod

from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.operations import RandomBits, Value
from neuroncore_rtl.frontends.xla.graph.types import UNSIGNED32

__all__ = ["expand_random_bits"]

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_INCREMENTS = 0x9E3779B9, 0xBB67AE85
_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
_PARITY = 0x1BD11BDA

Words = list[Value]


def expand_random_bits(builder: Builder, operation: RandomBits) -> tuple[Value, ...]:
    """Return the next state and the bits."""
    (state,), (_, result) = operation.operands, operation.results
    flat = builder.reshape(state, 4)
    words = [builder.part(flat, 0, at, at + 1) for at in range(4)]
    if not result.size:
        return state, builder.number(0, result.shape, result.type)
    generate = _threefry_bits if operation.is_threefry else _philox_bits
    bits, count = generate(builder, words, result.shape)
    after = _sum(builder, words[2:], builder.number(count, (1,), UNSIGNED32))
    new = builder.reshape(builder.concatenate([*words[:2], *after], 0), 2, 2)
    return new, builder.convert(bits, result.type)


def _sum(builder: Builder, words: Words, addend: Value) -> Words:
    """Append the words of a sum with a number of one word."""
    found = []
    for word in words:
        found.append(builder.apply("add", builder.broadcast(word, addend.shape, (0,)), addend))
        addend = builder.convert(builder.apply("less", found[-1], addend), UNSIGNED32)
    return found


def _philox_bits(builder: Builder, words: Words, shape: tuple[int, ...]) -> tuple[Value, int]:
    """Append four words of each counter, whose upper half is the key; return them and the number of counters."""
    size = prod(shape)
    count = -(-size // 4)
    x = _sum(builder, [*words[2:], *words[:2]], builder.iota((count,), 0, UNSIGNED32))
    keys = [builder.broadcast(word, (count,), (0,)) for word in words[:2]]
    for _ in range(10):
        (high, low), (high2, low2) = (
            [builder.apply(name, one, factor) for name in ("mulhi", "multiply")]
            for one, factor in zip(x[::2], _MULTIPLIERS, strict=True)
        )
        x = [builder.combine("xor", (high2, x[1], keys[0])), low2, builder.combine("xor", (high, x[3], keys[1])), low]
        keys = [builder.apply("add", key, more) for key, more in zip(keys, _INCREMENTS, strict=True)]
    columns = builder.concatenate([builder.reshape(one, count, 1) for one in x], 1)
    flat = builder.part(builder.reshape(columns, 4 * count), 0, 0, size)
    return builder.reshape(flat, *shape), count


def _threefry_bits(builder: Builder, words: Words, shape: tuple[int, ...]) -> tuple[Value, int]:
    """Append two words of each counter, side by side in the first even dimension, or else in the first longest one."""
    full = shape or (1,)
    axis = next((d for d, n in enumerate(full) if n % 2 == 0), full.index(max(full)))
    half = [*full]
    half[axis] = -(-half[axis] // 2)
    count = prod(half)
    x = _threefry(builder, _sum(builder, words[2:], builder.iota((count,), 0, UNSIGNED32)), words[:2])
    half.insert(axis + 1, 1)
    both = builder.concatenate([builder.reshape(one, *half) for one in x], axis + 1)
    half[axis : axis + 2] = [2 * half[axis]]
    return builder.reshape(
        builder.part(builder.reshape(both, *half), axis, 0, full[axis] if shape else 1), *shape
    ), count


def _threefry(builder: Builder, x: Words, key: Words) -> Words:
    keys = [builder.broadcast(one, x[0].shape, (0,)) for one in key]
    keys.append(builder.combine("xor", (_PARITY, *keys)))
    x = [builder.apply("add", one, word) for one, word in zip(x, keys, strict=False)]
    for five in range(5):
        for distance in _ROTATIONS[five % 2]:
            high = builder.apply("shift_left", x[1], distance)
            low = builder.apply("shift_right_logical", x[1], 32 - distance)
            first = builder.apply("add", *x)
            x = [first, builder.apply("xor", first, builder.apply("or", high, low))]
        one, other = keys[(five + 1) % 3], keys[(five + 2) % 3]
        x = [builder.apply("add", x[0], one), builder.combine("add", (x[1], other, five + 1))]
    return x
