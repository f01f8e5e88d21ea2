"""Paths without a register through a core and through the links of a chip.

In a simulation of an instance each core or chip is evaluated once an edge (run/sim/native/side_by_side.cpp). So no
output that depends on an input in the same cycle may lead back to an input of a core, or of a chip. No path leads
through the node of a chip, so a chip has only the paths of its cores.
"""

from amaranth import Module, Signal
from amaranth.hdl._ir import build_netlist
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.core import Core
from neuroncore_rtl.hdl.link.node import LinkNode
from neuroncore_rtl.hdl.verilog.netlists import faster_netlists
from neuroncore_rtl.hdl.verilog.text import elaborate
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.link import CHANNELS

INSTANCE = Instance(chips=4, topology=Topology.TORUS, width=2, core=PRESETS["nano"])


def _paths(component: wiring.Component) -> dict[str, set[str]]:
    """Return the inputs, apart from the clock, that an output depends on in the same cycle."""
    fragment, ports = elaborate(component, None)
    with faster_netlists():
        netlist = build_netlist(fragment, [(name, *port) for name, port in ports.items()], name="top")
    inputs = {start + bit: name for name, (start, width) in netlist.top.ports_i.items() for bit in range(width)}
    found, clean = {}, set()  # nets that depend on registers only
    for output, nets in netlist.top.ports_o.items():
        waiting, seen = list(nets), set()
        while waiting:
            net = waiting.pop()
            if net.is_const or net in seen or net in clean:
                continue
            seen.add(net)
            if net.cell:
                waiting += [edge[0] for edge in netlist.cells[net.cell].comb_edges_to(net.bit)]
            elif inputs[net.bit] != "clk":
                found.setdefault(output, set()).add(inputs[net.bit])
        clean |= set() if output in found else seen
    return found


class Sum(wiring.Component):
    """Sum of an input and of another one a cycle before."""

    def __init__(self):
        super().__init__({"a": In(8), "b": In(1), "o": Out(8), "held": Out(8)})

    def elaborate(self, platform):
        m = Module()
        held = Signal(8)
        m.d.sync += held.eq(self.a)
        m.d.comb += [self.o.eq(held + self.b), self.held.eq(held)]
        return m


def test_a_path_is_found():
    assert _paths(Sum()) == {"o": {"b"}}


def test_no_path_leads_from_a_core_back_to_a_core():
    """`ready` may depend on the payload of its channel, which hbm.v and the links hold in registers."""
    channels = {f"link_i__{channel}__": "payload" for channel in range(CHANNELS)}
    ready = {"axi__0__b": "id", "axi__0__r": "id"} | channels
    paths = {f"{channel}ready": {f"{channel}{offered}"} for channel, offered in ready.items()}
    assert _paths(Core(INSTANCE.core, INSTANCE.link_bytes)) == paths
    assert _paths(LinkNode(INSTANCE)) == {}
