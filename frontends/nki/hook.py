"""While a kernel's file is loaded: what answers its imports of the interface, and of libraries of its host side.

A finder stands before all others in a `with`, and is gone after; modules, the search path and the environment are as
they were then, whatever the file did.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from neuroncore_rtl.frontends.nki.kernel import jit
from neuroncore_rtl.frontends.nki.modules import modules
from neuroncore_rtl.spec.config import Config

__all__ = ["HOSTS", "answering"]

HOSTS = ("torch", "torch_xla", "torch_neuronx", "jax", "transformers", "loguru", "scipy", "libneuronxla")
"""Libraries of the host side of published kernels: where one is not installed, its name answers, and no call does."""


class Absent:
    """Anything of a library that is not installed; ImportError where it is called."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> "Absent":
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._name}.{name}")

    def __call__(self, *args, **options):
        raise ImportError(f"{self._name} is of a library that is not installed, and no kernel needs it")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers imports of the interface, and of libraries that are not there."""

    def __init__(self, own: Mapping[str, ModuleType]):
        self._own, self._asking = own, False

    def find_spec(self, name: str, path=None, target=None):
        if name in self._own:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        top = name.partition(".")[0]
        if top in ("nki", "neuronxcc"):
            raise ImportError(f"{name} is not a module of the interface that this machine has: {', '.join(self._own)}")
        if top in HOSTS and not self._asking and not self._installed(top):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

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
        module.absent, module.__path__ = True, []
        module.__getattr__ = Absent(spec.name).__getattr__
        if spec.name == "torch_neuronx":
            module.nki_jit = jit
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is whole."""


@contextmanager
def answering(config: Config, folder: Path) -> Iterator[None]:
    """Answer imports of the interface for a machine within; files of `folder` may be imported, too."""
    finder = _Finder(modules(config))
    before, path, environment = dict(sys.modules), list(sys.path), dict(os.environ)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("nki", "neuronxcc")]:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.path[:] = path
        new = {name: module for name, module in sys.modules.items() if name not in before}
        # All are looked at before one goes: where the files of a package are, its parents know.
        for name in [
            name
            for name, module in new.items()
            if name in finder._own or hasattr(module, "absent") or _within(_place(module), folder)
        ]:
            del sys.modules[name]
        sys.modules.update({name: module for name, module in before.items() if sys.modules.get(name) is not module})
        os.environ.clear()
        os.environ.update(environment)


def _place(module: ModuleType) -> str | None:
    """Return the file of a module, or the first folder of a package that has none."""
    return getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)


def _within(file: str | None, folder: Path) -> bool:
    return file is not None and Path(file).resolve().is_relative_to(folder)
