"""Loading of kernel files and lookup of their functions."""

import ast
import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType

from neuroncore_rtl.frontends.nki.dialects.hook import INTERFACE, answering, loading
from neuroncore_rtl.frontends.nki.dialects.language_memory import KEYWORDS
from neuroncore_rtl.frontends.nki.lowering.scalars import BUILTINS
from neuroncore_rtl.frontends.nki.trace.host import running
from neuroncore_rtl.frontends.nki.trace.kernel import Kernel
from neuroncore_rtl.spec.config import Config

__all__ = ["existing", "folder_of", "function_of", "kernels_in", "load_kernel"]


def existing(file: Path) -> Path:
    """Return a file's resolved path; ValueError if it does not exist, with a list of the folder's files."""
    file = Path(file).resolve()
    if not file.is_file():
        there = ", ".join(sorted(one.name for one in file.parent.glob("*.py"))) or "no Python file"
        raise ValueError(f"KERNEL must name an existing file, not {file}: {file.parent} contains {there}")
    return file


def load_kernel(file: Path, config: Config) -> ModuleType:
    """Load a file as a module, serving its imports of the interface; missing libraries become stubs.

    Raises:
        ValueError: if the file does not exist, or is not Python.
    """
    file = existing(file)
    try:
        compile(file.read_text(), str(file), "exec")
    except SyntaxError as error:
        raise ValueError(f"KERNEL must be Python, not {file}:{error.lineno}: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"KERNEL must be Python, not {file}: {error}") from None
    absent: set[str] = set()
    while True:
        try:
            return _loaded(file, config, absent)
        except ModuleNotFoundError as missing:
            top = (missing.name or "").partition(".")[0]
            if not top or top in absent or top in INTERFACE:
                raise
            absent.add(top)


def _loaded(file: Path, config: Config, absent: set[str]) -> ModuleType:
    module = ModuleType(file.stem)
    module.__file__ = str(file)
    module.__dict__.update(KEYWORDS, __builtins__=BUILTINS)
    module.__package__ = ".".join(file.parts[-1 - _folders_up(file) : -1])
    with answering(config, folder_of(file), absent):
        # Dataclasses look up their module while the file runs.
        sys.modules[file.stem] = module
        # A file may call its kernels, as examples do; execution stops there, with the kernels already defined.
        with loading(), running(_end), suppress(_Called):
            exec(compile(file.read_text(), str(file), "exec"), module.__dict__)
    return module


def folder_of(file: Path) -> Path:
    """Return the folder for a file's imports: the file's folder, or the root of the packages that contain the file."""
    return file.parents[_folders_up(file)] if file.is_file() else Path.cwd()


@cache
def _folders_up(file: Path) -> int:
    try:
        nodes = ast.walk(ast.parse(file.read_text()))
    except SyntaxError:  # raised again when the file runs
        return 0
    level = max((node.level for node in nodes if isinstance(node, ast.ImportFrom)), default=0)
    # Imported files may use packages further up than this file's own imports.
    packages = [up for up, folder in enumerate(file.parents, 1) if (folder / "__init__.py").is_file()]
    return level and max(level, *packages, 0)


class _Called(Exception):
    """Raised when a file calls its kernel while it is loaded."""


def _end(*call: object) -> None:
    raise _Called


def kernels_in(module: ModuleType) -> dict[str, Callable]:
    """Return a module's functions by name, kernels first."""
    own = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Kernel) or (inspect.isfunction(value) and value.__module__ == module.__name__)
    }
    return dict(sorted(own.items(), key=lambda item: not isinstance(item[1], Kernel)))


def function_of(module: ModuleType, name: str) -> Callable:
    """Return a function of a module by name; otherwise ValueError with a list of the functions."""
    found = kernels_in(module)
    if name not in found:
        raise ValueError(
            f"KERNEL must be a function of {module.__name__}.py, {', '.join(found) or 'none'}, not {name!r}"
        )
    return found[name]
