"""Folder of compiled models: a file for each module, machine, options and version of the sources."""

import hashlib
import json
import os
import sys
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from jaxlib.mlir import ir
from jaxlib.version import __version__

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.frontends.xla.compiled import compile_graph
from neuroncore_rtl.frontends.xla.options import Options
from neuroncore_rtl.frontends.xla.reading.attributes import user_line
from neuroncore_rtl.frontends.xla.reading.module import parse_text, read_module
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.run.compiled import Compiled, read_compiled
from neuroncore_rtl.run.image_file import hash_of_sources
from neuroncore_rtl.spec.config import Config

__all__ = ["Compilation", "model_folder"]

VARIABLE = "NEURON_COMPILE_CACHE_URL"
MOST_BYTES = 2 << 30
"""Size of the default folder above which the files that were not used for longest are removed."""

_DEFAULT = SIM_BUILD / "models"


def model_folder(given: str | Path | None) -> Path | None:
    """Return the folder of `cache`, or of the environment, or the default one; None, for "", without a cache."""
    chosen = os.environ.get(VARIABLE) if given is None else str(given)
    if chosen is None:
        return _DEFAULT
    kind, separator, path = chosen.rpartition("://")
    if separator and kind != "file":
        raise Refused(f"the cache ({VARIABLE}) must be a folder of this computer, not {chosen!r}")
    return Path(path).expanduser().absolute() if path else None


@dataclass(frozen=True)
class Compilation:
    """A module to compile, and how; `folder` is the cache."""

    name: str
    module: ir.Module
    config: Config
    options: Options
    order: str
    folder: Path | None

    @cached_property
    def key(self) -> str:
        """Hash of the operations, the user's lines, and what else matters."""
        lines = []

        def note(operation: ir.Operation) -> ir.WalkResult:
            lines.append(tuple(user_line(operation.location)))
            return ir.WalkResult.ADVANCE

        self.module.operation.walk(note)
        text = self.module.operation.get_asm(enable_debug_info=False)
        sources = hash_of_sources("spec", "kernels", "frontends/xla"), __version__
        parts = asdict(self.config), asdict(self.options), self.order, sources, lines, text
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    @property
    def file(self) -> Path | None:
        """The file in the cache, if there is a cache."""
        return self.folder and self.folder / f"{self.key}.npz"

    def compiled(self) -> Compiled:
        """Return the program, from its file if that exists; Refused, with the user's line, for some models."""
        path = self.file
        if path and path.is_file():
            try:
                found, _ = read_compiled(path)
                os.utime(path)
                return found
            except (ValueError, OSError) as error:
                print(f"{error}; {self.name} is compiled anew", file=sys.stderr)
        found = compile_graph(read_module(self.module), self.config, self.options, self.order, self.name)
        if path:
            try:
                found.write(path)
                _prune()
            except OSError as error:
                print(f"{path} cannot be written: {error.strerror}", file=sys.stderr)
        return found

    def write(self, folder: Path) -> None:
        """Write a file with the module and one with the rest, for `of_file`."""
        path, rest = folder / self.key, {"config": asdict(self.config), "options": asdict(self.options)}
        rest |= {"name": self.name, "order": self.order, "folder": self.folder and str(self.folder)}
        with path.with_suffix(".mlirbc").open("wb") as file:
            self.module.operation.write_bytecode(file)
        path.with_suffix(".json").write_text(json.dumps(rest))

    @classmethod
    def of_file(cls, path: Path) -> "Compilation":
        """Return what `write` wrote; `path` is the file with the rest."""
        rest = json.loads(path.read_text())
        module = parse_text(path.with_suffix(".mlirbc").read_bytes())
        rest |= {"config": Config(**rest["config"]), "options": Options(**rest["options"])}
        found = cls(module=module, **{**rest, "folder": rest["folder"] and Path(rest["folder"])})
        found.__dict__["key"] = path.stem  # bytecode may change the text
        return found


def _prune() -> None:
    """Remove files from the default folder that were not used for longest, down to `MOST_BYTES`."""
    room, files = MOST_BYTES, [(file.stat(), file) for file in _DEFAULT.glob("*.npz")]
    for status, file in sorted(files, key=lambda one: -one[0].st_mtime):
        room -= status.st_size
        if room < 0:
            file.unlink(missing_ok=True)  # another process may do the same
