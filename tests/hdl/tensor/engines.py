"""Devices with a fault: a module of their Verilog is wrapped in a faulty shell."""

import re
from collections.abc import Callable
from dataclasses import replace

from neuroncore_rtl.run.harness.run import Device
from neuroncore_rtl.run.sim import simulation

__all__ = ["FaultyDevice", "faulty", "in_shell"]


class FaultyDevice:
    def __init__(self, sound: Device, change: Callable[[str], str]):
        self._sound, self._change = sound, change

    def __getattr__(self, name: str):
        return getattr(self._sound, name)

    def design(self, *, waves: bool = False, vectors: bool = False) -> simulation.Design:
        design = self._sound.design(waves=waves, vectors=vectors)
        return replace(design, verilog=self._change(design.verilog))


def faulty(sound: Device, module: str, *, ports: dict[str, str], body: str = "") -> FaultyDevice:
    """Return a device with the one matching module in a faulty shell.

    Arguments:
        sound: the device.
        module: regular expression of the complete name of the module.
        ports: connections of the module's ports, by port: an expression for an input; for an output a wire that `body`
            declares, or nothing. Other ports are connected to the port of the same name of the shell.
        body: Verilog of the shell.
    """
    return FaultyDevice(sound, lambda text: in_shell(text, module, ports, body))


def in_shell(text: str, module: str, ports: dict[str, str], body: str) -> str:
    modules = re.finditer(r"^module (\\?)(\S+?) ?\((.*?)^endmodule", text, re.M | re.S)
    matching = [found for found in modules if re.fullmatch(module, found[2])]
    assert len(matching) == 1, f"{len(matching)} modules match {module}"
    whole, escape, name, rest = matching[0].group(0, 1, 2, 3)
    declarations = re.findall(r"^  (input|output) (\[\d+:0\] )?(\S+) ?;", rest, re.M)
    assert set(ports) <= {port for *_, port in declarations}
    connections = ", ".join(f".{port} ({ports.get(port, port)} )" for *_, port in declarations)
    heads = "".join(f"    {way} {width}{port} ;\n" for way, width, port in declarations)
    names = ", ".join(f"{port} " for *_, port in declarations)
    shell = f"module {escape}{name} ({names});\n{heads}{body}\n    \\sound_{name} sound({connections});\nendmodule\n"
    sound = whole.replace(f"module {escape}{name}", f"module \\sound_{name} ", 1)
    return text.replace(whole, sound) + "\n" + shell
