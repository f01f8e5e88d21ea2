"""The modules that kernels import: `nki`, `nki.isa`, `nki.language`, and below `neuronxcc` those of the first dialect.

What the machine does not have is there by name, so that a file can import it, and is refused when it is called.
"""

import difflib
from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from types import ModuleType

import numpy as np

from neuroncore_rtl.frontends.nki import host, language_memory, unsupported
from neuroncore_rtl.frontends.nki.calls import Call
from neuroncore_rtl.frontends.nki.engines import Engine
from neuroncore_rtl.frontends.nki.isa_elementwise import CALLS as ELEMENTWISE
from neuroncore_rtl.frontends.nki.isa_gather import CALLS as GATHER
from neuroncore_rtl.frontends.nki.isa_generate import CALLS as GENERATE
from neuroncore_rtl.frontends.nki.isa_generate import OLDER
from neuroncore_rtl.frontends.nki.isa_move import CALLS as MOVE
from neuroncore_rtl.frontends.nki.isa_reduce import CALLS as REDUCE
from neuroncore_rtl.frontends.nki.isa_register import REGISTERS
from neuroncore_rtl.frontends.nki.isa_tensor import CALLS as TENSOR
from neuroncore_rtl.frontends.nki.kernel import jit, simulate_kernel
from neuroncore_rtl.frontends.nki.language_math import FUNCTIONS, accumulate, assign
from neuroncore_rtl.frontends.nki.lines import from_kernel, kernel_line
from neuroncore_rtl.frontends.nki.loops import DoWhile
from neuroncore_rtl.frontends.nki.reductions import ReduceCommand
from neuroncore_rtl.frontends.nki.registers import VirtualRegister
from neuroncore_rtl.frontends.nki.storage import Memory
from neuroncore_rtl.spec.config import Config

__all__ = ["CALLS", "OPERATORS", "modules"]

CALLS: dict[str, Call] = TENSOR | ELEMENTWISE | REDUCE | MOVE | GATHER | GENERATE
"""The calls of `nki.isa` in the second dialect."""

OPERATORS: Mapping[str, Callable] = {**FUNCTIONS, "assign": assign, "accumulate": accumulate}
"""The functions behind the operators of tensors."""


class NcVersion(IntEnum):
    """`nisa.nc_version`: generations of the core."""

    gen2 = 2
    gen3 = 3
    gen4 = 4


class Choice(Enum):
    """Ways of making descriptors and of multiplying, which are hints, and of treating indices beyond a tensor."""

    unknown = "unknown"
    none = "none"
    swdge = "swdge"
    hwdge = "hwdge"
    error = "error"
    skip = "skip"
    double_row = "double_row"


class _Places:
    """Where a kernel wants its tiles, which is chosen here: `nki.compiler.sbuf` and `psum`."""

    def __init__(self, memory: Memory):
        self.memory = memory

    def _any(self, *args, **options) -> "_Places":
        return self

    alloc = mod_alloc = auto_alloc = _any


class _Annotation:
    """A type that annotations index: `tensor[128, 512]`."""

    def __class_getitem__(cls, key):
        return cls


def modules(config: Config) -> dict[str, ModuleType]:
    """Return the modules for a machine, by their names."""
    functions = FUNCTIONS | language_memory.names(config) | {"static_cast": _static_cast}
    language = _module("nki.language", functions, unsupported.LANGUAGE, "nl")
    newer = _isa({name: call.function(older=False) for name, call in CALLS.items()})
    older = _isa({name: call.function(older=True) for name, call in (CALLS | OLDER).items()} | {"memset": _memset})
    places = {"sbuf": _Places(Memory.sbuf), "psum": _Places(Memory.psum), "no_reorder": language.no_reorder}
    compiler = _module("nki.compiler", places | dict.fromkeys(DECORATORS, _decorator), {}, "nki.compiler")
    typing = _module("nki.typing", dict.fromkeys(("tensor", "mutable_tensor"), _Annotation), {}, "nki.typing")
    found: dict[str, ModuleType] = {}
    for name, isa in (("nki", newer), ("neuronxcc.nki", older)):
        wrappers = dict.fromkeys(("jit", "baremetal", "benchmark", "profile", "trace", "simulate"), jit)
        wrappers |= {"simulate_kernel": simulate_kernel, "tensor": _Annotation}
        parts = {"isa": isa, "language": language, "compiler": compiler, "typing": typing}
        found[name] = _module(name, wrappers | parts, {}, "nki")
        found |= {f"{name}.{part}": module for part, module in parts.items()}
        found |= {f"{name}.compiler.backends": _module("backends", {}, {}, "backends")}
        private = _module("private_api", {"do_while": DoWhile}, {}, "nki._private.private_api")
        found |= {
            f"{name}._private": _module("_private", {}, {}, "nki._private"),
            f"{name}._private.private_api": private,
        }
        found |= {f"{name}.isa.constants": _module("constants", {"oob_mode": Choice}, {}, "nki.isa.constants")}
    found["neuronxcc"] = _module("neuronxcc", {"nki": found["neuronxcc.nki"]}, {}, "neuronxcc")
    return found


DECORATORS = (
    "skip_middle_end_transformations", "enable_stack_allocator", "force_auto_alloc", "multi_buffer",
    "skip_all_middle_end_transformations",
)  # fmt: skip
"""Wishes to the vendor's compiler, which change nothing here."""


def _decorator(function: Callable | None = None, **options) -> Callable:
    return _decorator if function is None else function


def _memset(shape, value, dtype, mask=None, engine=None):
    """Return a new tile of one number: `memset` of the first dialect."""
    return language_memory.full(shape, value, dtype)


def _static_cast(x, dtype, mask=None):
    """Return a tile, or an array of numpy, in another type."""
    if isinstance(x, np.ndarray):
        return host.static_cast(x, dtype)
    return FUNCTIONS["static_cast"](x, dtype=dtype, mask=mask)


def _isa(calls: dict[str, Callable]) -> ModuleType:
    hints = {f"{engine.name}_engine": engine for engine in Engine}
    kinds = dict.fromkeys(("dge_mode", "oob_mode", "matmul_perf_mode"), Choice)
    own = {"engine": Engine, "reduce_cmd": ReduceCommand, "nc_version": NcVersion, "dma_engine": Engine}
    own |= {"get_nc_version": lambda: NcVersion.gen2, "VirtualRegister": VirtualRegister}
    own |= {name: call.function for name, call in REGISTERS.items()}
    return _module("nki.isa", calls | hints | kinds | own, unsupported.ISA, "nisa")


def _module(name: str, contents: Mapping[str, object], missing: Mapping[str, str], short: str) -> ModuleType:
    module = ModuleType(name, f"{name} as this machine answers it.")
    module.__path__ = []
    module.__dict__.update(contents)
    module.__dict__.update(
        {key: _refusal(f"{short}.{key}", why) for key, why in missing.items() if key not in contents}
    )

    def unknown(key: str):
        if key.startswith("__"):
            raise AttributeError(key)
        near = difflib.get_close_matches(key, [known for known in contents if not known.startswith("_")], 3)
        rest = f"; there is {', '.join(near)}" if near else ""
        rule = "is not a name of the interface that this machine has"
        raise AttributeError(f"{short}.{key} {rule}{rest} ({kernel_line()})")

    module.__getattr__ = unknown
    return module


def _refusal(name: str, why: str) -> Callable:
    @from_kernel
    def refused(*args, **options):
        raise ValueError(f"{name} must be replaced, as this machine does not have it: {why}")

    refused.__name__ = refused.__qualname__ = name.rpartition(".")[2]
    return refused
