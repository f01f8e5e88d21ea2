"""Route computation: the router output of a flit, to a local core or to a virtual channel of a link."""

from amaranth import Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.link import CHANNELS, CORES_PER_CHIP, FLIT_HEADER, MAX_CORES, VIRTUAL_CHANNELS

__all__ = [
    "CHIP_BITS",
    "LOCAL_PORTS",
    "Route",
    "link_output",
    "local_output",
    "output_count",
    "reachable",
    "ring_sizes",
]

CHIP_BITS = (MAX_CORES // CORES_PER_CHIP - 1).bit_length()

LOCAL_PORTS = CORES_PER_CHIP * CHANNELS
"""Number of a router's ports to its cores; port CHANNELS * core of the chip + channel."""

_CORE_BITS = (CORES_PER_CHIP - 1).bit_length()


def link_output(direction: int, vc: int) -> int:
    """Return the index of a router's output to virtual channel `vc` of the link in a direction."""
    return direction * VIRTUAL_CHANNELS + vc


def local_output(instance: Instance, port: int) -> int:
    """Return the index of a router's output to local port `port`, a stream to a core of the chip."""
    return instance.directions * VIRTUAL_CHANNELS + port


def output_count(instance: Instance) -> int:
    """Return how many outputs a router has; its inputs have the same indices."""
    return local_output(instance, LOCAL_PORTS)


def reachable(instance: Instance, side: int | None, vc: int) -> list[int]:
    """Return the outputs that an input can route to: the input of the link on `side`, or of a core if that is None.

    A flit stays in its dimension, never on a lower virtual channel, or turns into a higher dimension.
    """
    outputs = [local_output(instance, port) for port in range(LOCAL_PORTS)]
    for direction in range(instance.directions):
        for towards in range(VIRTUAL_CHANNELS):
            straight = side is not None and direction == side ^ 1 and towards >= vc
            turns = side is None or direction // 2 > side // 2
            if straight or turns:
                outputs.append(link_output(direction, towards))
    return sorted(outputs)


def ring_sizes(instance: Instance) -> tuple[int, ...]:
    """Return for each dimension of the topology the number of chips in a ring."""
    if instance.topology == Topology.RING:
        return (instance.chips,)
    return instance.width, instance.chips // instance.width


class Route(wiring.Component):
    """Selects a flit's output, without latency: the shortest path, in a torus columns first, then rows.

    If both ways around a ring are equally long, channel 0 takes the upward one and channel 1 the downward one. The path
    depends only on source, destination and channel, so flits with the same three stay in order.

    Routing is free of deadlock:

    1. In each dimension a flit starts on virtual channel 0 and changes to 1 at the dateline, the link that closes the
       ring.
    2. Virtual channel 0 does not cross the dateline, so the dependences between its buffers form a chain, not a circle.
    3. A shortest path never returns to the dateline, so the dependences on virtual channel 1 form a chain, too.
    4. Dimensions are traversed in ascending order, so no circle of dependences spans dimensions.

    Arguments:
        instance: the machine's chips.
        side: direction of this input's link; None for a core.
        vc: virtual channel of this input; 0 from a core.

    Ports:
        chip: number of this chip.
        destination: destination in the flit's header; must be a core of the instance.
        channel: channel in the flit's header.
        outputs: one bit per output, one of them set; see `link_output` and `local_output`.
    """

    def __init__(self, instance: Instance, side: int | None, vc: int = 0):
        self.instance = instance
        self.side = side
        self.vc = vc
        super().__init__(
            {
                "chip": In(CHIP_BITS),
                "destination": In(dict(FLIT_HEADER)["destination"]),
                "channel": In(1),
                "outputs": Out(output_count(instance)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        goal = Signal(CHIP_BITS)
        m.d.comb += goal.eq(self.destination >> _CORE_BITS)
        here, there = self._coordinates(m, "here", self.chip), self._coordinates(m, "there", goal)

        arrived = 1
        for dimension, size in enumerate(ring_sizes(self.instance)):
            place, end = here[dimension], there[dimension]
            aligned = Signal(name=f"aligned_{dimension}")
            m.d.comb += aligned.eq(place == end)
            if self.side is None or dimension >= self.side // 2:
                up = self._is_upward(m, dimension, size, place, end)
                for direction, chosen, last in (
                    (2 * dimension, up, place == size - 1),
                    (2 * dimension + 1, ~up, place == 0),
                ):
                    self._select_link(m, direction, arrived & ~aligned & chosen, last)
            arrived = arrived & aligned
        for port in range(LOCAL_PORTS):
            core, channel = divmod(port, CHANNELS)
            chosen = (self.destination[:_CORE_BITS] == core) & (self.channel == channel)
            m.d.comb += self.outputs[local_output(self.instance, port)].eq(arrived & chosen)
        return m

    def _coordinates(self, m, name: str, chip) -> list[Signal]:
        sizes = ring_sizes(self.instance)
        places = [Signal(range(size), name=f"{name}_{dimension}") for dimension, size in enumerate(sizes)]
        if len(sizes) == 1:
            m.d.comb += places[0].eq(chip)
        else:
            with m.Switch(chip):
                for number in range(self.instance.chips):
                    with m.Case(number):
                        m.d.comb += [places[0].eq(number % sizes[0]), places[1].eq(number // sizes[0])]
        return places

    def _is_upward(self, m, dimension: int, size: int, place, end) -> Value:
        """Return whether a flit travels upwards in a dimension.

        A flit from a link keeps the direction of that link; a flit from a core travels the shorter way around the ring.
        """
        if self.side is not None and dimension == self.side // 2:
            return Const(self.side % 2)
        distance = Signal(range(2 * size), name=f"distance_{dimension}")
        up = Signal(name=f"up_{dimension}")
        m.d.comb += [
            distance.eq(Mux(end < place, end + size - place, end - place)),
            up.eq((distance << 1) < Mux(self.channel, size, size + 1)),
        ]
        return up

    def _select_link(self, m, direction: int, chosen, last) -> None:
        possible = reachable(self.instance, self.side, self.vc)
        incoming = self.vc if self.side is not None and direction == self.side ^ 1 else 0
        for vc in range(VIRTUAL_CHANNELS):
            number = link_output(direction, vc)
            if number in possible:
                right = 1 if incoming == vc == 1 else last if vc else ~last
                m.d.comb += self.outputs[number].eq(chosen & right)
