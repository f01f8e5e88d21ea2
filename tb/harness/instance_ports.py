"""The ports of all cores of an instance, as text of the harness of `tb/harness/instance.v`: wires for what each puts
out, what is tied to each, and what writes the doings of each to the files."""

from neuroncore_rtl.hdl.core_ports import core_signature
from neuroncore_rtl.hdl.verilog import module_ports
from neuroncore_rtl.spec.instance import Instance

__all__ = ["core_connections", "core_logs", "core_wires"]

_OUTPUTS = (
    "exit_code", "error", "console__valid", "console__payload", "issued", "issued_addresses", "retired",
    "retired_addresses", "controller_retires", "controller_pc", "counters",
)  # fmt: skip
"""Ports of a core that are wires of its own in the harness."""

_WAVES_ONLY = ("controller_retires", "controller_pc")


def core_wires(instance: Instance) -> str:
    """Return the declarations of what every core puts out."""
    signature = core_signature(instance.core)
    widths = {name: len(value) for name, _, value in module_ports(signature, signature.create())}
    return " ".join(
        f"wire [{widths[name] - 1}:0] {name}_{core};" for core in range(instance.cores) for name in _OUTPUTS
    )


def core_connections(instance: Instance) -> str:
    """Return the connections of all cores' ports but those to HBM."""
    found = []
    for core in range(instance.cores):
        ports = {
            "start": f"start[{core}]",
            "boot_address": f"boots[{core}][39:0]",
            "host_interrupt": "1'b0",
            "done": f"over[{core}]",
            "quiet": f"quiet[{core}]",
            **{name: f"{name}_{core}" for name in _OUTPUTS},
        }
        found += [f".cores__{core}__{name}({value})," for name, value in ports.items()]
    return " ".join(found)


def core_logs(instance: Instance, waves: bool) -> str:
    """Return what writes each core's doings to the files."""
    found = []
    for core in range(instance.cores):
        shown = [name for name in _OUTPUTS if waves or name not in _WAVES_ONLY]
        ports = {
            "clk": "clk",
            "rst": "rst || closing || done",
            "number": f"32'd{core}",
            **{name: name for name in ("cycle", "finished", "given_up", "runs", "events")},
            "ended": f"ended[{core}]",
            "over": f"over[{core}]",
            **({"quiet": f"quiet[{core}]"} if waves else {}),
            **{name: f"{name}_{core}" for name in shown},
        }
        connections = ", ".join(f".{name}({value})" for name, value in ports.items())
        found.append(f"assign failed[{core}] = error_{core}[0]; core_log log_{core} ({connections});")
    return " ".join(found)
