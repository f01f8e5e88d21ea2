"""Modules that are converted to Verilog once and instantiated many times.

Amaranth elaborates every instance of a submodule, so an array of 16,384 processing elements would take it a quarter of
an hour. Where a component is marked with :func:`shared`, a conversion that carries a :class:`ModuleLibrary` as its
platform emits the component as a Verilog module of its own, once for each distinct name, and refers to it; so the cost
grows with the number of distinct modules. Without a library (Amaranth's own simulator) the component is elaborated in
place.
"""

from collections.abc import Callable

from amaranth.back import verilog
from amaranth.hdl import ClockSignal, Elaboratable, Fragment, Instance, ResetSignal
from amaranth.lib import wiring

__all__ = ["ModuleLibrary", "shared", "to_verilog"]


class ModuleLibrary:
    """The distinct modules that a conversion has met so far, by name, in the order in which they were met."""

    def __init__(self):
        self.components: dict[str, wiring.Component] = {}


class _Reference(Elaboratable):
    def __init__(self, name: str, component: wiring.Component):
        self._name = name
        self._component = component

    def elaborate(self, platform):
        if self._name not in platform.components:
            platform.components[self._name] = self._component
        ports = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        for path, member, value in self._component.signature.flatten(self._component):
            prefix = "i" if member.flow is wiring.In else "o"
            ports[f"{prefix}_{'__'.join(map(str, path))}"] = value
        return Instance(self._name, **ports)


def shared(name: str, component: wiring.Component, platform) -> wiring.Component | Elaboratable:
    """Return what to add as a submodule for `component`, whose ports are then used as usual.

    Arguments:
        name: Verilog name; equal names must mean equal modules, so it spells the component's parameters.
        component: a component with a `sync` domain.
        platform: what `elaborate` was given.
    """
    return _Reference(name, component) if isinstance(platform, ModuleLibrary) else component


def to_verilog(name: str, component: wiring.Component, progress: Callable[[str], None] = lambda module: None) -> str:
    """Convert `component` and the shared modules below it to Verilog text, `component` last.

    The text depends on the parameters and the versions of Amaranth and Yosys alone. `progress` is called with the name
    of each module before its conversion.
    """
    library = ModuleLibrary()
    done: dict[str, str] = {}
    pending = {name: component}
    while pending:
        module, top = pending.popitem()
        progress(module)
        done[module] = verilog.convert(
            Fragment.get(top, library),
            name=module,
            ports=[Value for _, _, Value in top.signature.flatten(top)],
            emit_src=False,
            strip_internal_attrs=True,
        )
        pending.update((n, c) for n, c in library.components.items() if n not in done)
    return "\n".join(done[module] for module in reversed(done))
