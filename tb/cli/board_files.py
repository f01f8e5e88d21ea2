# amaranth: UnusedElaboratable=no

"""Files for a board: the core behind AXI, its description, and a testbench."""

import importlib.metadata
import json
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from string import Template

from amaranth.lib import wiring
from amaranth.lib.wiring import In

from neuroncore_rtl.hdl.core_ports import axi_id_bits, core_counters
from neuroncore_rtl.hdl.host.axi_core import AxiCore, memory_ports
from neuroncore_rtl.hdl.host.registers import layout_places
from neuroncore_rtl.hdl.memory.axi import MAX_BEATS, PAGE_BYTES, constants
from neuroncore_rtl.hdl.verilog.text import module_ports
from neuroncore_rtl.kernels.text.host_header import host_header
from neuroncore_rtl.run.harness.axi.core import testbench
from neuroncore_rtl.run.sim.elaboration import elaborated
from neuroncore_rtl.spec import host_map
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.host_map import HOST_REGISTERS, HostRegister, counter_offset, parameter_values
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS

__all__ = ["BOARD_TOP", "TESTBENCH", "board_files", "board_ports", "clock_of", "figures_of_axi"]

BOARD_TOP = "neuroncore"
TESTBENCH = f"{BOARD_TOP}_tb"


def board_files(config: Config, *, debug: bool = False, clock: int = 100) -> dict[str, str]:
    """Return the files by name for a single core, with debug ports and a clock constraint in MHz."""
    core = AxiCore(config, debug=debug)
    size = f"{config.rows}x{config.columns}"
    text = elaborated(BOARD_TOP, size, lambda: AxiCore(config, debug=debug), asdict(config) | {"debug": debug})
    memory = {"kind": "AXI4 manager", **figures_of_axi(config), "constants": constants(config.hbm_bytes)}
    control = {"kind": "AXI4-Lite subordinate", "data_bits": 32, "address_bits": host_map.HOST_ADDRESS_BITS}
    description = {
        "top": BOARD_TOP,
        "parameters": asdict(config) | {"debug": debug},
        "clock": clock_of("aclk", "aresetn", "low"),
        "ports": board_ports(core),
        "interfaces": [{"name": "s_axi", **control}, *({"name": name, **memory} for name in memory_ports(config))],
        "registers": [_register(register) for register in HOST_REGISTERS],
        "parameter_words": {
            name: host_map.PARAMETER_WORDS + 4 * place for place, name in enumerate(parameter_values(config))
        },
        "counters": [
            {"name": name, "offset": counter_offset(number), "width": width}
            for number, (name, _, width) in enumerate(layout_places(core_counters(config)))
        ],
        "memories": _memories(text),
        "files": [f"{BOARD_TOP}.v"],
    }
    return {
        f"{BOARD_TOP}.v": text,
        f"{BOARD_TOP}.f": f"{BOARD_TOP}.v\n",
        f"{BOARD_TOP}.json": json.dumps(description, indent=2) + "\n",
        f"{BOARD_TOP}.h": host_header(config, [counter["name"] for counter in description["counters"]]),
        f"{BOARD_TOP}.xdc": f"create_clock -name aclk -period {1000 / clock:.3f} [get_ports aclk]\n",
        f"{BOARD_TOP}.lpf": f'FREQUENCY PORT "aclk" {clock} MHZ;\n',
        f"{BOARD_TOP}.core": _core_file(),
        f"{TESTBENCH}.v": testbench(config, BOARD_TOP, TESTBENCH),
        f"{TESTBENCH}.f": f"{BOARD_TOP}.v\n{TESTBENCH}.v\n",
    }


def clock_of(clock: str, reset: str, active: str) -> dict[str, str]:
    """Return the clock entry of a description; `active` is the level at which the reset is active."""
    return {"clock": clock, "edge": "rising", "reset": reset, "reset_active": active, "reset_kind": "synchronous"}


def board_ports(unit: wiring.Component) -> list[dict[str, object]]:
    """Return name, direction and width of a unit's ports, without clock and reset."""
    return [
        {"name": name, "direction": "input" if member.flow == In else "output", "width": len(value)}
        for name, member, value in module_ports(unit.signature, unit)
    ]


def figures_of_axi(config: Config) -> dict[str, int]:
    """Return the widths and limits of an AXI port to memory."""
    return {
        "data_bits": 8 * config.hbm_bytes,
        "address_bits": HBM_ADDRESS_BITS,
        "id_bits": axi_id_bits(config),
        "most_beats": MAX_BEATS,
        "page_bytes": PAGE_BYTES,
    }


def _register(register: HostRegister) -> dict[str, object]:
    fields = [{"name": f.name, "low": f.low, "width": f.width, "meaning": f.meaning} for f in register.fields]
    return {
        "name": register.name,
        "offset": register.offset,
        "access": register.effect.value,
        "bits": f"{register.mask:#010x}",
        "meaning": register.meaning,
        **({"fields": fields} if fields else {}),
    }


def _memories(text: str) -> list[dict[str, object]]:
    """Return the memories in Verilog: module, words, bits per word, and number of instances."""
    modules = dict(re.findall(r"^module (\S+) *\((.*?)^endmodule$", text, re.MULTILINE | re.DOTALL))
    inside = {name: Counter(re.findall(r"^  (\S+) +\S+ +\($", body, re.MULTILINE)) for name, body in modules.items()}
    there = Counter()

    def count(module: str, instances: int) -> None:
        there[module] += instances
        for inner, number in inside[module].items():
            if inner in modules:
                count(inner, instances * number)

    count(BOARD_TOP, 1)
    memory = re.compile(r"^  reg \[(?P<high>\d+):0\] (?P<name>\S+) \[(?P<last>\d+):0\];$", re.MULTILINE)
    return [
        {
            "module": module.removeprefix("\\"),
            "name": found["name"],
            "words": int(found["last"]) + 1,
            "bits": int(found["high"]) + 1,
            "instances": instances,
        }
        for module, instances in there.items()
        for found in memory.finditer(modules[module])
    ]


def _core_file() -> str:
    """Return the description of the core for FuseSoC."""
    template = Template(Path(__file__).with_name("board_core.txt").read_text())
    version = importlib.metadata.version("neuroncore-rtl")
    return template.substitute(top=BOARD_TOP, testbench=TESTBENCH, version=version)
