"""Verilog for the ports of a harness's subject: AXI ports and HBM, outputs and logs of cores.

A vector joins one AXI signal of all ports, port 0 lowest.
"""

from collections.abc import Sequence
from pathlib import Path

from neuroncore_rtl.hdl.core_ports import core_signature
from neuroncore_rtl.run.harness import hbm
from neuroncore_rtl.run.harness.verilog_text import connections, port_widths, wires
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS

__all__ = ["axi_connections", "core_connections", "core_logs", "core_wires", "hbm_defines", "hbm_sources"]


def _widths(hbm_bytes: int, id_bits: int) -> dict[str, int]:
    return {
        **dict.fromkeys(("awaddr", "araddr"), HBM_ADDRESS_BITS),
        **dict.fromkeys(("awlen", "arlen"), 8),
        **dict.fromkeys(("awid", "bid", "arid", "rid"), id_bits),
        **dict.fromkeys(("wdata", "rdata"), 8 * hbm_bytes),
        **dict.fromkeys(("bresp", "rresp"), 2),
        "wstrb": hbm_bytes,
        **dict.fromkeys(("awvalid", "awready", "wvalid", "wready", "wlast", "bvalid", "bready"), 1),
        **dict.fromkeys(("arvalid", "arready", "rvalid", "rready", "rlast"), 1),
    }


def _slices(number: int, hbm_bytes: int, id_bits: int) -> dict[str, str]:
    return {name: f"{name}[{width * number} +: {width}]" for name, width in _widths(hbm_bytes, id_bits).items()}


def axi_connections(
    ports: Sequence[str], hbm_bytes: int, id_bits: int, first: int = 0, joint: str = "__"
) -> dict[str, str]:
    """Return the connections of a subject's AXI ports to slices of the vectors `awvalid`, `awaddr` and so on.

    `first` is the first port's number; `joint` separates the names of port and signal.
    """
    return {
        f"{port}{joint}{name}": part
        for number, port in enumerate(ports, first)
        for name, part in _slices(number, hbm_bytes, id_bits).items()
    }


def hbm_defines(
    cores: int, ports: int, hbm_bytes: int, id_bits: int, depth: int | str, *, check_axi: bool
) -> dict[str, str]:
    """Return the macros of a harness's AXI ports: `AXI_WIRES`, the vectors, `HBM` and `HBM_ARGUMENTS`.

    `HBM` is a memory of `depth` beats behind all ports, written to its file when `dump` is high. With `check_axi` each
    port has a protocol checker, and a bit of `idle`, set when all its bursts are answered.
    """
    count = cores * ports
    widths = {name: width * count for name, width in _widths(hbm_bytes, id_bits).items()}
    beats = {"BYTES": hbm_bytes, "ID_BITS": id_bits}
    sizes = connections({"PORTS": count, "PORTS_EACH": ports, "DEPTH": depth, **beats})
    clock = {"clk": "clk", "rst": "rst"}
    memory = f"hbm #({sizes}) hbm ({connections({**clock, 'dump': 'dump'} | {name: name for name in widths})});"
    if not check_axi:
        return {**hbm.HBM_ARGUMENTS, "AXI_WIRES": wires(widths), "HBM": memory}
    checkers = [
        f"axi_checker #({connections(beats)}) port_{port} ({connections(clock | {'idle': f'idle[{port}]'} | signals)});"
        for port in range(count)
        for signals in [_slices(port, hbm_bytes, id_bits)]
    ]
    found = {"CHECK_AXI": "", "AXI_WIRES": wires(widths | {"idle": count}), "HBM": " ".join([memory, *checkers])}
    return hbm.HBM_ARGUMENTS | found


def hbm_sources(check_axi: bool) -> list[Path]:
    """Return the sources of the HBM."""
    return [hbm.VERILOG, *([hbm.VERILOG.with_name("axi_checker.v")] if check_axi else [])]


_OUTPUTS = (
    "exit_code", "error", "console__valid", "console__payload", "issued", "issued_addresses", "passed",
    "retired", "retired_addresses", "controller_retires", "controller_pc", "counters",
)  # fmt: skip
"""Ports of a core with separate wires."""

_WAVES_ONLY = ("controller_retires", "controller_pc")


def _wire(name: str, core: int, cores: int) -> str:
    return name if cores == 1 else f"{name}_{core}"


def core_wires(config: Config, cores: int) -> str:
    """Return the wires of cores' outputs."""
    widths = port_widths(core_signature(config))
    return wires({_wire(name, core, cores): widths[name] for core in range(cores) for name in _OUTPUTS})


def core_connections(cores: int) -> dict[str, str]:
    """Return the connections of all ports of the cores except HBM; port names of a lone core have no prefix."""
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
    """Return a log module per core."""
    found = []
    for core in range(cores):
        shown = [name for name in _OUTPUTS if waves or name not in _WAVES_ONLY]
        ports = {
            "clk": "clk",
            "rst": "rst || closing || done",
            "number": f"32'd{core}",
            **{name: name for name in ("cycle", "finished", "given_up", "profile", "runs", "events")},
            "ended": f"over_before[{core}] ? ended[{core}] : cycle - 1",
            "over": f"over[{core}]",
            **({"quiet": f"quiet[{core}]"} if waves else {}),
            **{name: _wire(name, core, cores) for name in shown},
        }
        failed = _wire("error", core, cores)
        found.append(f"assign failed[{core}] = {failed}[`ERROR_VALID]; core_log log_{core} ({connections(ports)});")
    return " ".join(found)
