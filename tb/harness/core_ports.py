"""The ports of a core or of all cores of an instance, as text of the harness of `tb/harness/cores.v`: wires for what
each puts out, what is tied to each, and what writes the doings of each to the files."""

from neuroncore_rtl.hdl.core_ports import core_signature
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.tb.harness.verilog_text import connections, port_widths, wires

__all__ = ["core_connections", "core_logs", "core_wires"]

_OUTPUTS = (
    "exit_code", "error", "console__valid", "console__payload", "issued", "issued_addresses", "retired",
    "retired_addresses", "controller_retires", "controller_pc", "counters",
)  # fmt: skip
"""Ports of a core that are wires of its own in the harness."""

_WAVES_ONLY = ("controller_retires", "controller_pc")


def _wire(name: str, core: int, cores: int) -> str:
    return name if cores == 1 else f"{name}_{core}"


def core_wires(config: Config, cores: int) -> str:
    """Return the declarations of what every core puts out."""
    widths = port_widths(core_signature(config))
    return wires({_wire(name, core, cores): widths[name] for core in range(cores) for name in _OUTPUTS})


def core_connections(cores: int) -> dict[str, str]:
    """Return what all cores' ports but those to HBM are tied to; those of one alone have no prefix."""
    found = {}
    for core in range(cores):
        ports = {
            "start": f"start[{core}]",
            "boot_address": f"boots[round * `CORES + {core}][{HBM_ADDRESS_BITS - 1}:0]",
            "host_interrupt": "host_interrupt",
            "done": f"over[{core}]",
            "quiet": f"quiet[{core}]",
            **{name: _wire(name, core, cores) for name in _OUTPUTS},
        }
        prefix = "" if cores == 1 else f"cores__{core}__"
        found |= {f"{prefix}{name}": value for name, value in ports.items()}
    return found


def core_logs(cores: int, waves: bool) -> str:
    """Return what writes each core's doings to the files."""
    found = []
    for core in range(cores):
        shown = [name for name in _OUTPUTS if waves or name not in _WAVES_ONLY]
        ports = {
            "clk": "clk",
            "rst": "rst || closing || done",
            "number": f"32'd{core}",
            **{name: name for name in ("cycle", "finished", "given_up", "runs", "events")},
            "ended": f"over_before[{core}] ? ended[{core}] : cycle - 1",
            "over": f"over[{core}]",
            **({"quiet": f"quiet[{core}]"} if waves else {}),
            **{name: _wire(name, core, cores) for name in shown},
        }
        failed = _wire("error", core, cores)
        found.append(f"assign failed[{core}] = {failed}[`ERROR_VALID]; core_log log_{core} ({connections(ports)});")
    return " ".join(found)
