"""Options of a compilation: arguments of `jit`, or else flags of neuronx-cc and variables of Neuron's runtime."""

import os
import shlex
import sys
from dataclasses import dataclass
from functools import cache

from neuroncore_rtl.frontends.xla.refusal import Refused

__all__ = ["Options", "options_of", "rounding_seed_of"]

VARIABLE = "NEURON_CC_FLAGS"
ROUNDING, ROUNDING_SEED = "NEURON_RT_STOCHASTIC_ROUNDING_EN", "NEURON_RT_STOCHASTIC_ROUNDING_SEED"

_VALUES = {"auto_cast": ("none", "matmult", "all"), "auto_cast_type": ("bf16", "fp16", "tf32", "fp8_e4m3")}
_ROUNDINGS = {"0": "nearest", "1": "stochastic"}
_IGNORED = (
    "-O", "-lnc", "--lnc", "--cache_dir", "--distribution-strategy", "--dump", "--enable-", "--framework",
    "--implicit-integer-downcast", "--internal-", "--logfile", "--logical-nc-config", "--model-type", "--native-int64",
    "--optlevel", "--output", "--retry_failed_compilation", "--target", "--tensorizer-options", "--verbose",
)  # fmt: skip
"""Beginnings of other flags of neuronx-cc and of its callers."""


@dataclass(frozen=True)
class Options:
    """Options of a compilation; Refused if one is unknown.

    Arguments:
        auto_cast: which float32 values the machine may round: "none"; "matmult", the operands of products; or "all".
        auto_cast_type: their format: "bf16", "fp16", "tf32", "fp8_e4m3".
        rounding: how results are rounded to floats narrower than float32: "nearest", to even, or "stochastic".
    """

    auto_cast: str = "none"
    auto_cast_type: str = "bf16"
    rounding: str = "nearest"

    @property
    def is_stochastic(self) -> bool:
        return self.rounding == "stochastic"

    def __post_init__(self):
        for name, known in {**_VALUES, "rounding": tuple(_ROUNDINGS.values())}.items():
            if getattr(self, name) not in known:
                raise Refused(f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}")


def options_of(**given: str | None) -> Options:
    """Return the options; those that are None are the environment's."""
    found = dict(_options_in(os.environ.get(VARIABLE, "")))
    if (word := os.environ.get(ROUNDING, "0")) not in _ROUNDINGS:
        raise Refused(f"{ROUNDING} must be 0 or 1, not {word!r}")
    found["rounding"] = _ROUNDINGS[word]
    return Options(**{**found, **{name: value for name, value in given.items() if value is not None}})


def rounding_seed_of(given: int | None) -> int:
    """Return the seed of stochastic rounding, 32 bits; None for the environment's, or 0."""
    word = os.environ.get(ROUNDING_SEED, "0") if given is None else given
    try:
        if 0 <= (seed := int(word)) < 1 << 32:
            return seed
    except ValueError:
        pass
    raise Refused(f"the seed of stochastic rounding ({ROUNDING_SEED}) must be from 0 to {(1 << 32) - 1}, not {word!r}")


@cache
def _options_in(flags: str) -> dict[str, str]:
    """Return the options among flags; say on stderr, once, which other flags have no effect."""
    found, ignored, unknown = {}, [], []
    try:
        words = shlex.split(flags)
        while words:
            flag, equals, value = words.pop(0).partition("=")
            if not equals and words and not words[0].startswith("-"):
                value = words.pop(0)
            if (name := flag.removeprefix("--").replace("-", "_")) in _VALUES:
                found[name] = value
            else:
                (ignored if flag.startswith(_IGNORED) else unknown).append(flag)
        Options(**found)
    except ValueError as error:  # of shlex, or Refused
        raise Refused(f"{VARIABLE}, {flags!r}: {error}") from None
    for some, what in ((ignored, "without effect here"), (unknown, "unknown, and ignored")):
        if some:
            print(f"{VARIABLE}: {', '.join(some)}: {what}", file=sys.stderr)
    return found
