"""While a kernel's file is loaded: what answers its imports of the interface, and of libraries of its host side.

A finder stands before all others in a `with`, and is gone after; modules, the search path, the environment and what
logging is disabled are as they were then, whatever the file did.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType, ModuleType

from neuroncore_rtl.frontends.nki.dialects.inner_modules import vendors
from neuroncore_rtl.frontends.nki.dialects.modules import modules
from neuroncore_rtl.frontends.nki.lowering.scalars import BUILTINS
from neuroncore_rtl.frontends.nki.trace.kernel import Kernel, jit
from neuroncore_rtl.spec.config import Config

__all__ = ["HOSTS", "INTERFACE", "answering", "is_answering", "known_to", "loading"]

HOSTS = ("torch", "torch_xla", "torch_neuronx", "jax", "transformers", "loguru", "scipy", "libneuronxla")
"""Libraries of the host side of published kernels: where one is not installed, its name answers, and no call does."""

INTERFACE = "nki", "neuronxcc"
"""The packages that are answered."""

LOGGING_OFF = logging.CRITICAL + 10
"""`logging.OFF`, which the vendor's compiler adds where it is imported, and published files disable."""


_LOADING: ContextVar[bool] = ContextVar("loading", default=False)


class Absent:
    """Anything of a library that is not installed: it may annotate, and be the base of a class; ImportError where it is
    called or taken for a number. While a file is loaded its calls give another one, as of a seed or a logger.
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> "Absent":
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._name}.{name}")

    def __getitem__(self, key) -> "Absent":
        return self

    def __or__(self, other) -> "Absent":
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: tuple) -> tuple:
        return ()

    def __call__(self, *args, **options) -> "Absent":
        return Absent(f"{self._name}()") if _LOADING.get() else self._missed()

    def _missed(self, *other):
        raise ImportError(f"{self._name} is of a library that is not installed, and no kernel needs it")

    __index__ = __iter__ = __len__ = __enter__ = __neg__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = (
        __rmul__
    ) = _missed
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _missed


class _KernelFile(importlib.machinery.SourceFileLoader):
    """Loads a file that a kernel's file imports, with the same built-in names."""

    def exec_module(self, module: ModuleType) -> None:
        """Run it."""
        vars(module)["__builtins__"] = BUILTINS
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers imports of the interface, and of libraries that are not there."""

    def __init__(self, own: dict[str, ModuleType], folder: Path, absent: Collection[str]):
        self._own, self._folder, self._absent, self._asking = own, folder, {*HOSTS, *absent}, False

    def find_spec(self, name: str, path=None, target=None):
        if name in self._own:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        top = name.partition(".")[0]
        if top in INTERFACE and (theirs := vendors(name)):
            self._own[name] = theirs
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        if top in INTERFACE:
            raise ImportError(f"{name} is not a module of the interface that this machine has: {', '.join(self._own)}")
        if top in self._absent and not self._asking and not self._installed(top):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return self._beside(name, path, target)

    def _beside(self, name: str, path, target) -> importlib.machinery.ModuleSpec | None:
        """Return the file of Python that a kernel's file imports, as one of a kernel."""
        later = sys.meta_path[sys.meta_path.index(self) + 1 :] if self in sys.meta_path else ()
        found = next((spec for finder in later if (spec := finder.find_spec(name, path, target)) is not None), None)
        if found is None or type(found.loader) is not importlib.machinery.SourceFileLoader:
            return None
        if found.origin is None or not _within(found.origin, self._folder):
            return None
        found.loader = _KernelFile(name, found.origin)
        return found

    def _installed(self, name: str) -> bool:
        self._asking = True
        try:
            found = sys.modules.get(name)
            return importlib.util.find_spec(name) is not None if found is None else not hasattr(found, "absent")
        finally:
            self._asking = False

    def create_module(self, spec) -> ModuleType:
        if spec.name in self._own:
            return self._own[spec.name]
        module = ModuleType(spec.name)
        vars(module).update(absent=True, __path__=[])
        module.__getattr__ = Absent(spec.name).__getattr__
        if spec.name.partition(".")[0] == "torch_neuronx":
            vars(module)["nki_jit"] = jit
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is whole."""


@contextmanager
def loading() -> Iterator[None]:
    """Let calls of libraries that are not installed pass within: a file is loaded for its kernels alone."""
    before = _LOADING.set(True)
    try:
        yield
    finally:
        _LOADING.reset(before)


def is_answering() -> bool:
    """Return whether imports of the interface are answered."""
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


def known_to(function: Callable) -> dict[str, ModuleType]:
    """Return the modules that were there when the file of a function was loaded, and are gone since, by their names."""
    return getattr(function, "__globals__", {}).get(_KNOWN, {})


_KNOWN = "__nki_modules__"


@contextmanager
def answering(
    config: Config, folder: Path, absent: Collection[str] = (), known: Mapping[str, ModuleType] = MappingProxyType({})
) -> Iterator[None]:
    """Answer imports of the interface for a machine within.

    Arguments:
        config: the machine.
        folder: its files may be imported, too.
        absent: libraries that have a name alone where they are not installed, besides of `HOSTS`.
        known: modules that are there within, as of :func:`known_to`: what is imported again is the same.
    """
    finder = _Finder(modules(config), folder, absent)
    before, path, environment = dict(sys.modules), list(sys.path), dict(os.environ)
    disabled, off = logging.root.manager.disable, getattr(logging, "OFF", None)
    for name in [name for name in sys.modules if name.partition(".")[0] in INTERFACE]:
        del sys.modules[name]
    sys.modules.update(known)
    logging.__dict__["OFF"] = LOGGING_OFF
    sys.meta_path.insert(0, finder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.path[:] = path
        new = {name: module for name, module in sys.modules.items() if name not in before}
        users = {name.partition(".")[0] for name, module in new.items() if _uses(module, finder._own)}
        # All are looked at before one goes: where the files of a package are, its parents know.
        gone = {
            name: module
            for name, module in new.items()
            if name in known
            or hasattr(module, "absent")
            or name.partition(".")[0] in users
            or _within(_place(module), folder)
        }
        for name, module in gone.items():
            del sys.modules[name]
            vars(module)[_KNOWN] = gone
        sys.modules.update({name: module for name, module in before.items() if sys.modules.get(name) is not module})
        os.environ.clear()
        os.environ.update(environment)
        logging.disable(disabled)
        if off is None:
            del logging.__dict__["OFF"]


def _uses(module: ModuleType, own: dict[str, ModuleType]) -> bool:
    """Return whether a module is one of the interface, or holds one, or a name of one: it is of this machine alone."""
    ours = {id(one) for one in own.values()}
    held = list(vars(module).values())
    return id(module) in ours or any(id(one) in ours or isinstance(one, Kernel) for one in held)


def _place(module: ModuleType) -> str | None:
    """Return the file of a module, or the first folder of a package that has none."""
    return getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)


def _within(file: str | None, folder: Path) -> bool:
    return file is not None and Path(file).resolve().is_relative_to(folder)
