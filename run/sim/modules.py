"""Cache of single modules' Verilog, so that a change to one unit converts only that unit.

A component depends on its arguments, on the file of its class with all imports, and on the converter. The modules
around it see only its interface, so they remain cached. A text depends on whether clock gates are watched only if it
has gates, and on the replacement of blocks only if it is one.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from neuroncore_rtl import ROOT
from neuroncore_rtl.run.files import write_text

__all__ = ["ModuleStore"]

ALWAYS = ("hdl.verilog.conversion", "hdl.verilog.hierarchy", "hdl.verilog.text")
"""Modules that every text depends on."""

GATES = "hdl.primitives.clock_gate"
"""Module imported by components with clock gates."""

_IMPORT = re.compile(r"^ *(?:from (\S+) import (\([^)]*|.*)|import (\S+))", re.MULTILINE)
"""Pattern of an import, which takes a tenth of the time of Python's parser."""

_WORD = re.compile(r"\w+")


@dataclass
class ModuleStore:
    """Texts by module, in files; see `hdl.verilog.conversion.Store`.

    All texts depend on their sources and on `common`, those with clock gates on `gates`, those of replaced blocks on
    `replacements`. `usable` returns whether a stored text can be used.
    """

    folder: Path
    common: object
    usable: Callable[[str], bool]
    gates: object = None
    replacements: object = None

    def get(self, module: str, build, replaced: bool = False) -> str | None:
        path = self._path(module, build, replaced)
        text = path.read_text() if path is not None and path.is_file() else None
        return text if text is not None and self.usable(text) else None

    def put(self, module: str, build, text: str, replaced: bool = False) -> None:
        path = self._path(module, build, replaced)
        if path is not None:
            write_text(path, text)

    def _path(self, module: str, build, replaced: bool) -> Path | None:
        """Return a module's file; None if the builder and its arguments do not identify the text."""
        made_by, arguments = (build.func, (build.args, build.keywords)) if isinstance(build, partial) else (build, ())
        values = repr(arguments)
        if not isinstance(made_by, type) or " at 0x" in values:
            return None
        sources = _sources(made_by.__module__)
        gates = self.gates if _file(f"neuroncore_rtl.{GATES}") in sources else None
        variant = [gates, replaced, self.replacements if replaced else None]
        parts = [self.common, variant, made_by.__qualname__, values, [sources[path] for path in sorted(sources)]]
        return self.folder / f"{module}-{_hash(json.dumps(parts))}.v"


@cache
def _sources(module: str) -> dict[Path, str]:
    """Return hashes, by file, of all files of the package that a module depends on, including tables."""
    found = {path: _hash(path.read_text()) for path in (ROOT / "spec").rglob("*.json")}
    todo = [_file(module), *(_file(f"neuroncore_rtl.{name}") for name in ALWAYS)]
    while todo:
        path = todo.pop()
        if path is None or path in found:
            continue
        found[path], imported = _hash_and_imports(path)
        todo += imported
    return found


@cache
def _hash_and_imports(path: Path) -> tuple[str, list[Path | None]]:
    text = path.read_text()
    imported = []
    for package, names, module in _IMPORT.findall(text):
        assert not package.startswith("."), "imports name their package"
        imported += [_file(name) for name in (package, module, *(f"{package}.{name}" for name in _WORD.findall(names)))]
    return _hash(text), imported


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _file(module: str) -> Path | None:
    package, _, name = module.partition(".")
    if package != "neuroncore_rtl":
        return None
    place = ROOT.joinpath(*name.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)
