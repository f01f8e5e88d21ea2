"""Modules that are converted to Verilog once and instantiated many times.

Amaranth elaborates every instance of a submodule: a quarter of an hour for 16,384 processing elements. With a
`ModuleLibrary` as platform, a component marked by `shared` becomes a separate Verilog module, one for each
distinct name. The cost then grows with the number of distinct modules. Without a library (Amaranth's own simulator) the
component is elaborated in place.
"""

from collections.abc import Callable

from amaranth.hdl import ClockSignal, Const, Instance, Module, ResetInserter, ResetSignal, Signal, Value
from amaranth.lib import wiring

from neuroncore_rtl.hdl.verilog.text import module_ports

__all__ = ["ModuleLibrary", "lanes", "lead_out", "shared"]


class ModuleLibrary:
    """Distinct modules found so far in a conversion, by name, in order of discovery.

    Attributes:
        components: components to convert, by name of their Verilog module.
        builds: functions that made the components, by module name.
        texts: modules written directly in Verilog, by name.
        watches_gates: `hdl.primitives.clock_gate.gated` adds a check for clocks that stop too early.
        blocks: modules around lanes (`lanes`), with the prefixes of their lanes' module names.
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
        m: the module to add the component to.
        name: name of this instance.
        module: Verilog name of its module; equal names must mean equal modules, so it spells out the parameters.
        build: makes the component, which has a `sync` domain; called once for each module name, or without a library
            once for each instance.
        platform: the argument of `elaborate`.
        clock: clock of the instance; default: the clock of `m`. Ignored without a library.
        reset: asserts the instance's reset besides the reset of `m`; default: none.
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
    """Add a block of lanes as `shared` does. Lanes are many parallel instances of a few modules.

    `of` gives the prefixes of the lanes' module names. A simulator may evaluate lanes as the elements of a vector, if
    no output of the block depends combinationally on one of its inputs.
    """
    if isinstance(platform, ModuleLibrary):
        platform.blocks[module] = of
    return shared(m, name, module, build, platform)


def _flatten(ports) -> None:
    """Replace the ports of an instance by plain vectors, as in Verilog; each is seen as a view of its layout.

    Amaranth would add a wire for each field of a port, which the module itself already has.
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
    """Connect the ports of `inner` that `signature` lists to the same ports of the enclosing module `outer`."""
    pairs = zip(module_ports(signature, inner), module_ports(signature, outer), strict=True)
    for (_, member, inside), (_, _, outside) in pairs:
        m.d.comb += outside.eq(inside) if member.flow == wiring.Out else inside.eq(outside)
