import numpy as np

from neuroncore_rtl.golden.arith import canonical
from neuroncore_rtl.spec.isa.alu import Arithmetic
from neuroncore_rtl.tb.stimulus import operands as stimulus

__all__ = ["flags", "pause", "random_words", "rest"]


def flags(arithmetic: Arithmetic) -> dict[str, bool]:
    """Return the fields of a step that select an arithmetic."""
    return {"integer": arithmetic != Arithmetic.FP32, "uint32": arithmetic == Arithmetic.UINT32}


def random_words(rng: np.random.Generator, count: int, special: float = 0.2) -> np.ndarray:
    """Return random FP32 words with canonical NaNs; a share `special` of the words has any bits."""
    words = rng.normal(3, 2, count).astype(np.float32).view(np.uint32)
    wild = np.where(
        rng.random(count) < 0.5, rng.choice(stimulus.special_fp32(), count), stimulus.random_fp32(rng, count)
    )
    return canonical(np.where(rng.random(count) < special, wild, words).astype(np.uint32))


def pause(rng: np.random.Generator) -> int:
    return int(rng.choice([0, 0, 0, 1, 3]))


async def rest(ctx, cycles: int) -> None:
    for _ in range(cycles):
        await ctx.tick()
