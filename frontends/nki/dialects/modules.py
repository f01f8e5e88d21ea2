"""Modules that kernels import: `nki`, `nki.isa`, `nki.language`, and for the first dialect those of `neuronxcc`."""

import difflib
from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from functools import cache
from types import ModuleType

import numpy as np

from neuroncore_rtl.frontends.nki.dialects import language_math, language_memory, language_moves, unsupported
from neuroncore_rtl.frontends.nki.dialects.inner_modules import NKIObject, inner, refusal, starfish
from neuroncore_rtl.frontends.nki.dialects.isa_elementwise import CALLS as ELEMENTWISE
from neuroncore_rtl.frontends.nki.dialects.isa_gather import CALLS as GATHER
from neuroncore_rtl.frontends.nki.dialects.isa_generate import CALLS as GENERATE
from neuroncore_rtl.frontends.nki.dialects.isa_generate import OLDER
from neuroncore_rtl.frontends.nki.dialects.isa_move import CALLS as MOVE
from neuroncore_rtl.frontends.nki.dialects.isa_partitions import CALLS as PARTITIONS
from neuroncore_rtl.frontends.nki.dialects.isa_random import CALLS as RANDOM
from neuroncore_rtl.frontends.nki.dialects.isa_reduce import CALLS as REDUCE
from neuroncore_rtl.frontends.nki.dialects.isa_register import REGISTER_CALLS
from neuroncore_rtl.frontends.nki.dialects.isa_running import CALLS as RUNNING
from neuroncore_rtl.frontends.nki.dialects.isa_search import CALLS as SEARCH
from neuroncore_rtl.frontends.nki.dialects.isa_tensor import CALLS as TENSOR
from neuroncore_rtl.frontends.nki.indices.dtypes import DType
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel, kernel_line
from neuroncore_rtl.frontends.nki.indices.registers import VirtualRegister
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.lowering.calls import Call
from neuroncore_rtl.frontends.nki.lowering.engines import LoweredEngine
from neuroncore_rtl.frontends.nki.lowering.reductions import ReduceCommand
from neuroncore_rtl.frontends.nki.lowering.scalars import Scalar
from neuroncore_rtl.frontends.nki.trace import host
from neuroncore_rtl.frontends.nki.trace.kernel import jit, simulate_kernel
from neuroncore_rtl.spec.config import Config

__all__ = ["CALLS", "MODULE_FUNCTIONS", "OPERATION_NAMES", "OPERATORS", "modules"]

CALLS: dict[str, Call] = (
    TENSOR | ELEMENTWISE | REDUCE | RUNNING | PARTITIONS | SEARCH | MOVE | GATHER | GENERATE | RANDOM
)  # fmt: skip
"""Calls of `nki.isa` in the second dialect."""

MODULE_FUNCTIONS: dict[str, Callable] = language_math.MATH_FUNCTIONS | language_moves.MOVE_FUNCTIONS

OPERATORS: Mapping[str, Callable] = {
    **MODULE_FUNCTIONS, "assign": language_moves.assign, "accumulate": language_moves.accumulate_tile,
}  # fmt: skip
"""Implementations of tensor operators."""


class DmaEngine(Enum):
    """Engines of copies between cores, as in `nisa.dma_engine`; without effect here."""

    dma = 1
    gpsimd_dma = 2


class NcVersion(IntEnum):
    """Generations of the core, as in `nisa.nc_version`."""

    gen2 = 2
    gen3 = 3
    gen4 = 4


class Choice(Enum):
    """Names of modes: of descriptors and multiplications, without effect here, and for indices out of bounds."""

    unknown = "unknown"
    none = "none"
    swdge = "swdge"
    hwdge = "hwdge"
    error = "error"
    skip = "skip"
    double_row = "double_row"


class _Places:
    """Placement of tiles as in `nki.compiler.sbuf`; ignored, because the program itself allocates addresses."""

    def __init__(self, memory: Memory):
        self.memory = memory

    def _any(self, *args, **options) -> "_Places":
        return self

    alloc = mod_alloc = auto_alloc = _any


class _Annotation:
    """Value of a name that kernels index in annotations, such as `tensor[128, 512]`."""

    def __class_getitem__(cls, key):
        return cls


def modules(config: Config) -> dict[str, ModuleType]:
    """Return the interface's modules for a machine, by name."""
    functions = MODULE_FUNCTIONS | language_memory.names(config) | {"static_cast": _static_cast, "NKIObject": NKIObject}
    functions |= {name: refusal(f"nl.{name}", why) for name, why in OPERATION_NAMES.items()}
    language = _module("nki.language", functions, unsupported.LANGUAGE, "nl")
    newer, older = _isa(_calls(older=False)), _isa(_calls(older=True) | {"memset": _memset})
    places = {"sbuf": _Places(Memory.sbuf), "psum": _Places(Memory.psum), "no_reorder": language.no_reorder}
    compiler = _module("nki.compiler", places | dict.fromkeys(DECORATORS, _decorator), {}, "nki.compiler")
    typing = _module("nki.typing", dict.fromkeys(ANNOTATIONS, _Annotation) | {"scalar": Scalar}, {}, "nki.typing")
    found: dict[str, ModuleType] = {}
    for name, isa in (("nki", newer), ("neuronxcc.nki", older)):
        wrappers = dict.fromkeys(("jit", "baremetal", "benchmark", "profile", "trace", "simulate"), jit)
        wrappers |= {"simulate_kernel": simulate_kernel, "tensor": _Annotation, "dtype": DType}
        parts = {"isa": isa, "language": language, "compiler": compiler, "typing": typing}
        found[name] = _module(name, wrappers | parts, {}, "nki")
        found |= {f"{name}.{part}": module for part, module in parts.items()}
        found |= inner(name, isa, language)
    found |= starfish()
    found["neuronxcc"] = _module("neuronxcc", {"nki": found["neuronxcc.nki"]}, {}, "neuronxcc")
    return found


@cache  # each load of a file makes the modules anew
def _calls(older: bool) -> dict[str, Callable]:
    return {name: call.function(older) for name, call in (CALLS | OLDER if older else CALLS).items()}


ANNOTATIONS = "tensor", "mutable", "mutable_tensor"
"""Names of `nki.typing` that only annotate arguments and have no effect."""

OPERATION_NAMES = {
    "average": "it is an op of nisa.tensor_partition_reduce", "bypass": "it is an op without effect",
    "prelu": "it is an op of nisa.activate2, with its relu_param",
}  # fmt: skip
"""Names that are operations of calls, not functions."""

DECORATORS = (
    "skip_middle_end_transformations", "enable_stack_allocator", "force_auto_alloc", "multi_buffer",
    "skip_all_middle_end_transformations",
)  # fmt: skip
"""Hints to the vendor's compiler, without effect here."""


def _decorator(function: Callable | None = None, **options) -> Callable:
    return _decorator if function is None else function


@from_kernel
def _memset(shape, value, dtype, mask=None, engine=None):
    if mask is None:
        return language_memory.full(shape, value, dtype)
    return ELEMENTWISE["memset"].run(language_memory.zeros(shape, dtype), {"value": value}, None, mask)


@from_kernel
def _static_cast(x, dtype, mask=None):
    if isinstance(x, np.ndarray):
        return host.static_cast(x, dtype)
    return MODULE_FUNCTIONS["static_cast"](x, dtype=dtype, mask=mask)


def _isa(calls: dict[str, Callable]) -> ModuleType:
    hints = {f"{engine.name}_engine": engine for engine in LoweredEngine}
    kinds = dict.fromkeys(("dge_mode", "oob_mode", "matmul_perf_mode"), Choice)
    own = {"engine": LoweredEngine, "reduce_cmd": ReduceCommand, "nc_version": NcVersion, "dma_engine": DmaEngine}
    own |= {"get_nc_version": lambda: NcVersion.gen2, "get_nc_sub_version": lambda: 0, "NkiValidationError": ValueError}
    own |= {"VirtualRegister": VirtualRegister} | {name: call.function for name, call in REGISTER_CALLS.items()}
    return _module("nki.isa", calls | hints | kinds | own, unsupported.ISA, "nisa")


def _module(name: str, contents: Mapping[str, object], missing: Mapping[str, str], short: str) -> ModuleType:
    module = ModuleType(name, f"{name} as this machine implements it.")
    module.__path__ = []
    module.__dict__.update(contents)
    module.__dict__.update({key: refusal(f"{short}.{key}", why) for key, why in missing.items() if key not in contents})

    def unknown(key: str):
        if key.startswith("__"):
            raise AttributeError(key)
        near = difflib.get_close_matches(key, [known for known in contents if not known.startswith("_")], 3)
        rest = f"; there is {', '.join(near)}" if near else ""
        rule = "is not a name of the interface that this machine has"
        unknown_name = AttributeError(f"{short}.{key} {rule}{rest} ({kernel_line()})")
        vars(unknown_name)["source"] = kernel_line()
        raise unknown_name

    vars(module)["__getattr__"] = unknown
    return module
