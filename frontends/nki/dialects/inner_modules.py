"""Inner modules of the interface that published files import.

A name that the machine lacks can be imported; a call of it is refused with the reason.
"""

from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType

import numpy as np

from neuroncore_rtl.frontends.nki.dialects.unsupported import ONE_CORE
from neuroncore_rtl.frontends.nki.indices.affine import Affine
from neuroncore_rtl.frontends.nki.indices.dtypes import dtype_of
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel
from neuroncore_rtl.frontends.nki.lowering.loops import DoWhile

__all__ = ["NKIObject", "inner", "refusal", "starfish", "vendors"]

VENDOR = "it is internal to the vendor's compiler, not part of the interface"

PRIVATE = "_private", "_private_kernels", "_pre_prod_kernels", "kernels"
"""Modules that exist only in the vendor's package, as do all their submodules."""


def _is_fixed(value: object) -> bool:
    return type(value).__hash__ is not None


class NKIObject:
    """Base of kernels' settings classes: the constructor accepts the fields, annotated or with a default."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        fields = cls.__dict__.get("__annotations__", {})
        plain = [
            name for name, value in vars(cls).items()
            if not (name.startswith("__") or callable(value) or hasattr(type(value), "__get__") or not _is_fixed(value))
        ]  # fmt: skip
        cls.__annotations__ = fields | {name: object for name in plain if name not in fields}

    def __init__(self, *args, **options):
        fields = [name for one in reversed(type(self).__mro__) for name in one.__dict__.get("__annotations__", ())]
        fields = list(dict.fromkeys(fields))
        given = dict(zip(fields, args, strict=False)) | options
        faults = {
            "unknown": [name for name in given if name not in fields],
            "twice": [name for name, _ in zip(fields, args, strict=False) if name in options],
        }
        if len(args) > len(fields) or any(faults.values()):
            said = [f"{what}: {', '.join(names)}" for what, names in faults.items() if names]
            said += [f"by position: {len(args)}"] * (len(args) > len(fields))
            raise TypeError(f"{type(self).__name__} has the fields {', '.join(fields)}; {', '.join(said)}")
        self.__dict__.update(given)

    def __getattr__(self, name: str):
        raise AttributeError(f"{type(self).__name__}.{name} has no value; fields with a value: {', '.join(vars(self))}")


@cache
def refusal(name: str, why: str) -> Callable:
    """Return a function that raises ValueError when called."""

    @from_kernel
    def refused(*args, **options):
        raise ValueError(f"{name} must be replaced, as this machine does not have it: {why}")

    refused.__name__ = refused.__qualname__ = name.rpartition(".")[2]
    return refused


def part(name: str, contents: Mapping[str, object], why: str = "") -> ModuleType:
    """Return a module with the names `contents`; calls of other names are refused for the reason `why`, if given."""
    module = ModuleType(name, f"{name} as this machine implements it.")
    module.__path__ = []
    module.__dict__.update(contents)

    def unknown(key: str):
        if key.startswith("__") or not why:
            raise AttributeError(f"{name}.{key} is not a name of the interface that this machine has")
        return refusal(f"{name}.{key}", why)

    vars(module)["__getattr__"] = unknown
    return module


def sizeinbytes(dtype) -> int:
    """Return the bytes per element of a type."""
    return dtype_of(dtype).itemsize


def inner(package: str, isa: ModuleType, language: ModuleType) -> dict[str, ModuleType]:
    """Return the interface's internal modules, such as `isa.constants`, for a package, by their full names.

    `package` is `nki` or `neuronxcc.nki`.
    """
    ranges = {name: value for name, value in vars(language).items() if name.endswith("_range")}
    found = {
        "isa.constants": part("isa.constants", vars(isa)),
        "isa.neuron_isa": part("isa.neuron_isa", vars(isa)),
        "language.constants": part("language.constants", vars(language) | {"sizeinbytes": sizeinbytes}),
        "language.iterators": part("language.iterators", ranges, ONE_CORE),
        "compiler.backends": part("compiler.backends", {}),
        "compiler.backends.neuron": part("compiler.backends.neuron", {}),
        "compiler.backends.neuron.dimensions": part("dimensions", {"VNC": int}, VENDOR),
        "compiler.backends.neuron.indexing": part("indexing", {"TileIndex": Affine}, VENDOR),
        "compiler.backends.neuron.tensor": part("tensor", {}, VENDOR),
        "compiler.kernel_builder": part("kernel_builder", {}, VENDOR),
        "collectives": part("collectives", {}, ONE_CORE),
        "nccl": part("nccl", {}, ONE_CORE),
        "nccl.collectives": part("nccl.collectives", {}, ONE_CORE),
    }
    found["_private.private_api"] = part("_private.private_api", {"do_while": DoWhile}, VENDOR)
    return {f"{package}.{name}": module for name, module in found.items()}


def vendors(name: str) -> ModuleType | None:
    """Return a stub for a module that only the vendor has; None for other modules."""
    package, _, rest = name.partition("nki.")
    return part(rest, {}, VENDOR) if package in ("", "neuronxcc.") and rest.partition(".")[0] in PRIVATE else None


def starfish() -> dict[str, ModuleType]:
    """Return, by name, the vendor's module with the function `allclose` of published tests, and its parent modules."""
    names = "neuronxcc.starfish", "neuronxcc.starfish.support", "neuronxcc.starfish.support.util"
    return {name: part(name, {"allclose": np.allclose}, VENDOR) for name in names}
