"""Testbench that is exported with the core: only Verilog and files of numbers (`run/harness/axi/core.v`)."""

from pathlib import Path

from neuroncore_rtl.hdl.core_ports import axi_id_bits
from neuroncore_rtl.hdl.host.axi_core import memory_ports
from neuroncore_rtl.hdl.memory.axi import CONSTANT_BITS, constants
from neuroncore_rtl.kernels.text.host_header import host_numbers
from neuroncore_rtl.run.harness.hbm import optional_arguments
from neuroncore_rtl.run.harness.subject_ports import axi_connections, hbm_defines, hbm_sources
from neuroncore_rtl.run.harness.verilog_text import connections, wires
from neuroncore_rtl.run.sim.layouts import define_lines
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.host_map import HOST_ADDRESS_BITS, HOST_REGISTERS, HOST_VERSION

__all__ = ["testbench"]

ROOM_BYTES = 1 << 24


def testbench(config: Config, subject: str, top: str) -> str:
    """Return the testbench as the module `top`; `subject` is the module name of the `hdl.host.axi_core.AxiCore`."""
    ports, beat = memory_ports(config), (config.hbm_bytes, axi_id_bits(config))
    signals = {
        f"{channel}{name}": (bits, f"{channel}valid", constants(config.hbm_bytes)[name])
        for channel in ("aw", "ar")
        for name, bits in CONSTANT_BITS.items()
    }
    tied, checks = {}, []
    for number, port in enumerate(ports):
        for name, (bits, valid, value) in signals.items():
            part = f"{name}[{bits * number} +: {bits}]"
            tied[f"{port}_{name}"] = part
            checks.append(f'if (!rst && {valid}[{number}] && {part} !== {bits}\'d{value}) failed("{port}_{name}");')
    offsets = {register.name for register in HOST_REGISTERS}
    widths = {name: HOST_ADDRESS_BITS if name in offsets else 32 for name in host_numbers()}
    defines = {
        **{f"HOST_{name}": f"{widths[name]}'h{number:x}" for name, number in host_numbers().items()},
        "HOST_MAJOR": f"16'd{HOST_VERSION >> 16}",
        "TOP": top,
        "SUBJECT": subject,
        "BYTES": config.hbm_bytes,
        "CONSTANT_WIRES": wires({name: bits * len(ports) for name, (bits, *_) in signals.items()}),
        "CONSTANT_CHECKS": " ".join(checks),
        "PORTS": connections(axi_connections(ports, *beat, joint="_") | tied),
        **hbm_defines(1, len(ports), *beat, f"`ROOM / {config.hbm_bytes}", check_axi=True),
        **optional_arguments(),
    }
    room = f"`ifndef ROOM\n`define ROOM {ROOM_BYTES}\n`endif\n"
    parts = (Path(__file__).with_suffix(".v"), *hbm_sources(True))
    return "\n".join([define_lines(defines) + room, *(part.read_text() for part in parts)])
