"""Modules that are converted to Verilog once and instantiated many times.

Amaranth elaborates every instance of a submodule, so an array of 16,384 processing elements would take it a quarter of
an hour. Where a component is marked with :func:`shared`, a conversion that carries a :class:`ModuleLibrary` as its
platform emits the component as a Verilog module of its own, once for each distinct name, and refers to it; so the cost
grows with the number of distinct modules. Without a library (Amaranth's own simulator) the component is elaborated in
place.
"""

from collections.abc import Callable

from amaranth.hdl import ClockSignal, Const, Instance, Module, ResetInserter, ResetSignal, Signal, Value
from amaranth.lib import wiring

from neuroncore_rtl.hdl.verilog.text import module_ports

__all__ = ["ModuleLibrary", "lanes", "lead_out", "shared"]


class ModuleLibrary:
    """The distinct modules that a conversion has met so far, by name, in the order in which they were met.

    Attributes:
        components: those that are converted. builds: what made them. texts: those that are Verilog from the start.
        watches_gates: whether :func:`hdl.primitives.clock_gate.gated` adds what finds a clock that stands still too
        early.
        blocks: the modules around lanes (:func:`lanes`), by name, with the names of the lanes.
    """

    def __init__(self, *, watches_gates: bool = False):
        self.watches_gates = watches_gates
        self.blocks: dict[str, tuple[str, ...]] = {}
        self.components: dict[str, wiring.Component] = {}
        self.builds: dict[str, Callable[[], wiring.Component]] = {}
        self.texts: dict[str, str] = {}


def shared(
    m: Module,
    name: str,
    module: str,
    build: Callable[[], wiring.Component],
    platform,
    *,
    clock: Signal | None = None,
    reset: Value | None = None,
):
    """Add a submodule that may occur many times, and return the object that carries its ports.

    Arguments:
        m: the module to add it to.
        name: name of this instance.
        module: Verilog name of its module; equal names must mean equal modules, so it spells the parameters.
        build: makes the component, which has a `sync` domain; called once for each module name, or without a library
            once for each instance.
        platform: what `elaborate` was given.
        clock: what it has in place of the clock of `m`; without a library it has that one.
        reset: what resets it, besides the reset of `m`.
    """
    if not isinstance(platform, ModuleLibrary):
        component = build()
        m.submodules[name] = component if reset is None else ResetInserter(reset)(component)
        return component
    if module not in platform.components:
        platform.components[module] = build()
        platform.builds[module] = build
    signature = platform.components[module].signature
    ports = signature.create(path=(name,))
    _flatten(ports)
    connections = {"i_clk": ClockSignal() if clock is None else clock, "i_rst": ResetSignal()}
    if reset is not None:
        connections["i_rst"] |= reset
    for port, member, value in module_ports(signature, ports):
        connections[f"{'i' if member.flow == wiring.In else 'o'}_{port}"] = value
    m.submodules[name] = Instance(module, **connections)
    return ports


def lanes(
    m: Module,
    name: str,
    module: str,
    build: Callable[[], wiring.Component],
    platform,
    of: tuple[str, ...],
):
    """Add a submodule as :func:`shared` does, most of which is many instances of one module that work side by side.

    A simulator may evaluate them as the elements of a vector, if no output of the submodule depends on an input of the
    same cycle.

    Arguments:
        m, name, module, build, platform: see :func:`shared`.
        of: how the Verilog names of those modules, its lanes, begin.
    """
    if isinstance(platform, ModuleLibrary):
        platform.blocks[module] = of
    return shared(m, name, module, build, platform)


def _flatten(ports) -> None:
    """Make vectors, as Verilog has them, of the ports of an instance, to be seen through their layouts.

    Amaranth's own have a wire for each field besides, which the module shows itself.
    """
    if isinstance(ports, wiring.FlippedInterface):
        ports = wiring.flipped(ports)
    for name, member in ports.signature.members.items():
        setattr(ports, name, _flat(member, getattr(ports, name)))


def _flat(member: wiring.Member, port):
    if isinstance(port, list):
        return [_flat(member, each) for each in port]
    if member.is_signature:
        _flatten(port)
        return port
    signal = Value.cast(port)
    if isinstance(signal, Const):
        return port
    vector = Signal(signal.shape(), init=signal.init, name=signal.name)
    return vector if isinstance(port, Value) else port.shape()(vector)


def lead_out(m: Module, signature: wiring.Signature, inner, outer) -> None:
    """Connect the ports of `inner` that `signature` has to ports of the same signature of the module around it."""
    pairs = zip(module_ports(signature, inner), module_ports(signature, outer), strict=True)
    for (_, member, inside), (_, _, outside) in pairs:
        m.d.comb += outside.eq(inside) if member.flow == wiring.Out else inside.eq(outside)
