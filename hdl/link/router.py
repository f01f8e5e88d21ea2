"""Router of a chip: connects its links and cores in two pipeline stages.

input -> Route -> skid buffer -+-> RoundRobin of each output -> register -> output
                               |
other inputs ------------------+
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.link.flit import flit_layout, flit_stream
from neuroncore_rtl.hdl.link.route import (
    CHIP_BITS,
    LOCAL_PORTS,
    Route,
    link_output,
    local_output,
    output_count,
    reachable,
)
from neuroncore_rtl.hdl.primitives.round_robin import RoundRobin
from neuroncore_rtl.hdl.primitives.skid_buffer import SkidBuffer
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.link import VIRTUAL_CHANNELS

__all__ = ["Router", "RouterInput", "RouterOutput"]


class RouterInput(wiring.Component):
    """Router input: a `SkidBuffer` of flits with their outputs.

    Latency, throughput and `i.ready` are those of `SkidBuffer`.

    Arguments: see `Route`.

    Ports:
        chip: number of this chip.
        requests: one bit per output, set if the oldest flit needs it.
        flit: the oldest flit.
        taken: the oldest flit is removed at the end of this cycle.
    """

    def __init__(self, instance: Instance, side: int | None, vc: int = 0):
        self.instance = instance
        self.side = side
        self.vc = vc
        super().__init__(
            {
                "chip": In(CHIP_BITS),
                "i": In(flit_stream(instance.link_bytes)),
                "requests": Out(output_count(instance)),
                "flit": Out(flit_layout(instance.link_bytes)),
                "taken": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.route = route = Route(self.instance, self.side, self.vc)
        entry = data.StructLayout({"flit": flit_layout(self.instance.link_bytes), "outputs": len(self.requests)})
        m.submodules.skid = skid = SkidBuffer(entry)
        m.d.comb += [
            route.chip.eq(self.chip),
            route.destination.eq(self.i.payload.header.destination),
            route.channel.eq(self.i.payload.header.channel),
            skid.i.payload.flit.eq(self.i.payload),
            skid.i.payload.outputs.eq(route.outputs),
            skid.i.valid.eq(self.i.valid),
            self.i.ready.eq(skid.i.ready),
            self.flit.eq(skid.o.payload.flit),
            self.requests.eq(skid.o.payload.outputs & skid.o.valid.replicate(len(self.requests))),
            skid.o.ready.eq(self.taken),
        ]
        return m


class RouterOutput(wiring.Component):
    """Router output: arbitrates between the inputs that request it, one flit per cycle. Latency: 1 cycle.

    Flits in transit have priority over those of local cores, which get one of `SHARE` grants while both are pending:
    with equal shares, each router on a path would halve the bandwidth of the routers upstream. Each group is round
    robin.

    Arguments:
        passing: number of inputs from links, which are the first inputs.
        own: number of inputs from local cores.
        link_bytes: data bytes per flit.

    Ports:
        requests: one bit per input, set when its oldest flit needs this output.
        flits: the oldest flit of each input.
        taken: one bit per input, set when its flit is accepted.
        o: the accepted flits, from a register.
    """

    SHARE = 8

    def __init__(self, passing: int, own: int, link_bytes: int):
        self.passing = passing
        self.own = own
        self.link_bytes = link_bytes
        inputs = passing + own
        super().__init__(
            {
                "requests": In(inputs),
                "flits": In(flit_layout(link_bytes)).array(inputs),
                "taken": Out(inputs),
                "o": Out(flit_stream(link_bytes)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.passing = passing = RoundRobin(self.passing)
        m.submodules.own = own = RoundRobin(self.own)
        space, own_turn, grant = Signal(), Signal(), Signal(range(len(self.requests)))
        passed = Signal(range(self.SHARE))
        flit = Signal(flit_layout(self.link_bytes), reset_less=True)
        m.d.comb += [
            Cat(passing.requests, own.requests).eq(self.requests),
            own_turn.eq(own.requests.any() & (~passing.requests.any() | (passed == self.SHARE - 1))),
            grant.eq(Mux(own_turn, self.passing + own.grant, passing.grant)),
            space.eq(~self.o.valid | self.o.ready),
            passing.taken.eq(space & ~own_turn & passing.requests.any()),
            own.taken.eq(space & own_turn),
            self.taken.eq(
                Cat((grant == number) & self.requests[number] & space for number in range(len(self.requests)))
            ),
            self.o.payload.eq(flit),
        ]
        with m.If(space):
            m.d.sync += self.o.valid.eq(self.requests.any())
            with m.Switch(grant):
                for number, offered in enumerate(self.flits):
                    with m.Case(number):
                        m.d.sync += flit.eq(offered)
            with m.If(own_turn):
                m.d.sync += passed.eq(0)
            with m.Elif(self.requests.any() & own.requests.any()):
                m.d.sync += passed.eq(passed + 1)
        return m


class Router(wiring.Component):
    """Forwards flits by `Route`, without loss, in order from each input to each output.

    Inputs have head-of-line blocking. Every output is a register or depends on registers only.

    Directions: on a ring, 0 up to chip + 1, 1 down to chip - 1; on a torus, 0 and 1 to the next and previous column, 2
    and 3 to the next and previous row. A flit received over a direction's link was sent in the opposite direction.

    Ports:
        chip: number of this chip; constant.
        local_in: flits from the cores: CHANNELS * core of the chip + channel.
        local_out: flits to the cores, with the same index. Each must be accepted eventually, whatever else is pending,
            or a deadlock may occur.
    """

    LATENCY = 2
    """Cycles from a flit's arrival to its offer at the output, without contention."""

    def __init__(self, instance: Instance):
        self.instance = instance
        flits = flit_stream(instance.link_bytes)
        super().__init__(
            {
                "chip": In(CHIP_BITS),
                "links_in": In(flits).array(instance.directions, VIRTUAL_CHANNELS),
                "links_out": Out(flits).array(instance.directions, VIRTUAL_CHANNELS),
                "local_in": In(flits).array(LOCAL_PORTS),
                "local_out": Out(flits).array(LOCAL_PORTS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        inputs, may_go = [], []
        for side in range(self.instance.directions):
            for vc in range(VIRTUAL_CHANNELS):
                m.submodules[f"link_{side}_{vc}"] = unit = RouterInput(self.instance, side, vc)
                wiring.connect(m, wiring.flipped(self.links_in[side][vc]), unit.i)
                inputs.append(unit)
                may_go.append(reachable(self.instance, side, vc))
        for port in range(LOCAL_PORTS):
            m.submodules[f"local_{port}"] = unit = RouterInput(self.instance, None)
            wiring.connect(m, wiring.flipped(self.local_in[port]), unit.i)
            inputs.append(unit)
            may_go.append(reachable(self.instance, None, 0))

        taken = [[] for _ in inputs]
        for number, (name, port) in enumerate(self._outputs()):
            asking = [index for index, outputs in enumerate(may_go) if number in outputs]
            passing = len(asking) - LOCAL_PORTS
            m.submodules[f"to_{name}"] = unit = RouterOutput(passing, LOCAL_PORTS, self.instance.link_bytes)
            for place, index in enumerate(asking):
                m.d.comb += [
                    unit.requests[place].eq(inputs[index].requests[number]),
                    unit.flits[place].eq(inputs[index].flit),
                ]
                taken[index].append(unit.taken[place])
            wiring.connect(m, unit.o, wiring.flipped(port))
        for unit, wishes in zip(inputs, taken, strict=True):
            m.d.comb += [unit.chip.eq(self.chip), unit.taken.eq(Cat(wishes).any())]
        return m

    def _outputs(self) -> list[tuple[str, wiring.PureInterface]]:
        ports = {}
        for direction in range(self.instance.directions):
            for vc in range(VIRTUAL_CHANNELS):
                ports[link_output(direction, vc)] = (f"link_{direction}_{vc}", self.links_out[direction][vc])
        for port in range(LOCAL_PORTS):
            ports[local_output(self.instance, port)] = (f"local_{port}", self.local_out[port])
        return [ports[number] for number in range(output_count(self.instance))]
