"""Import hook for kernel files: serves the interface's modules and stubs of missing host libraries.

`answering` installs the finder as the first one in `sys.meta_path`; at the end of its `with` statement modules, search
path, environment and logging level are restored.
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
"""Host-side libraries of published kernels; a missing one can be imported but not called."""

INTERFACE = "nki", "neuronxcc"

LOGGING_OFF = logging.CRITICAL + 10
"""`logging.OFF`, which the vendor's compiler defines on import and published files use."""


_LOADING: ContextVar[bool] = ContextVar("loading", default=False)


class Absent:
    """Stub of any object of a missing library.

    It can serve as an annotation and as a base class; calling it or using it as a number raises ImportError. While a
    file is loaded, a call returns another stub instead.
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
        raise ImportError(f"{self._name} belongs to a library that is not installed")

    __index__ = __iter__ = __len__ = __enter__ = __neg__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = (
        __rmul__
    ) = _missed
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _missed


class _KernelFile(importlib.machinery.SourceFileLoader):
    """Loader of files that a kernel's file imports; it gives them the built-in names that a kernel's file has."""

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = BUILTINS
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
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
        """Return an import spec that loads a Python file below the kernel's folder as a kernel file; None otherwise."""
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

    def exec_module(self, module: ModuleType) -> None: ...


@contextmanager
def loading() -> Iterator[None]:
    """Let calls of missing libraries return stubs in this context, in which a file is loaded only for its kernels."""
    before = _LOADING.set(True)
    try:
        yield
    finally:
        _LOADING.reset(before)


def is_answering() -> bool:
    """Return whether the import hook of `answering` is installed."""
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


def known_to(function: Callable) -> dict[str, ModuleType]:
    """Return the modules, by name, that the file of a function imported and that `answering` then removed again."""
    return getattr(function, "__globals__", {}).get(_KNOWN, {})


_KNOWN = "__nki_modules__"


@contextmanager
def answering(
    config: Config, folder: Path, absent: Collection[str] = (), known: Mapping[str, ModuleType] = MappingProxyType({})
) -> Iterator[None]:
    """Serve imports of the interface for a machine in this context.

    `folder` is an additional search path; `absent` are missing libraries to stub in addition to `HOSTS`; `known` are
    modules to restore (`known_to`), so that another import gives the same objects.
    """
    finder = _Finder(modules(config), folder, absent)
    before, path, environment = dict(sys.modules), list(sys.path), dict(os.environ)
    disabled, off = logging.root.manager.disable, getattr(logging, "OFF", None)
    for name in [name for name in sys.modules if name.startswith(INTERFACE) and name.partition(".")[0] in INTERFACE]:
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
        new = {name: sys.modules[name] for name in sys.modules if name not in before}
        users = {name.partition(".")[0] for name, module in new.items() if _uses(module, finder._own)}
        # Decide for all modules before removing any: the location of a package's files depends on its parents.
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
        sys.modules.update(before)
        os.environ.clear()
        os.environ.update(environment)
        logging.disable(disabled)
        if off is None:
            del logging.__dict__["OFF"]


def _uses(module: ModuleType, own: dict[str, ModuleType]) -> bool:
    """Return whether a module depends on the machine: is an interface module, or contains one or a kernel."""
    ours = {id(one) for one in own.values()}
    held = list(vars(module).values())
    return id(module) in ours or any(id(one) in ours or isinstance(one, Kernel) for one in held)


def _place(module: ModuleType) -> str | None:
    return getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)


def _within(file: str | None, folder: Path) -> bool:
    return file is not None and Path(file).resolve().is_relative_to(folder)
