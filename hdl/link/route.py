"""Where a flit goes next: to a core of this chip, or over a link, on one of its virtual channels."""

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
"""Ports of a router to its cores: CHANNELS * core of the chip + channel."""

_CORE_BITS = (CORES_PER_CHIP - 1).bit_length()


def link_output(direction: int, vc: int) -> int:
    """Return the number of a router's output to a link's virtual channel."""
    return direction * VIRTUAL_CHANNELS + vc


def local_output(instance: Instance, port: int) -> int:
    """Return the number of a router's output to a local port."""
    return instance.directions * VIRTUAL_CHANNELS + port


def output_count(instance: Instance) -> int:
    """Return how many outputs a router has; it has as many inputs, with the same numbers."""
    return local_output(instance, LOCAL_PORTS)


def reachable(instance: Instance, side: int | None, vc: int) -> list[int]:
    """Return the outputs that a flit may go to from an input: of the link on a side, or of a core if that is None.

    It goes on in the dimension that it is in, never to a lower virtual channel, or turns into a higher dimension.
    """
    outputs = [local_output(instance, port) for port in range(LOCAL_PORTS)]
    for direction in range(instance.directions):
        for towards in range(VIRTUAL_CHANNELS):
            goes_on = side is not None and direction == side ^ 1 and towards >= vc
            turns = side is None or direction // 2 > side // 2
            if goes_on or turns:
                outputs.append(link_output(direction, towards))
    return sorted(outputs)


def ring_sizes(instance: Instance) -> tuple[int, ...]:
    """Return how many chips the rings of each dimension have."""
    if instance.topology == Topology.RING:
        return (instance.chips,)
    return instance.width, instance.chips // instance.width


class Route(wiring.Component):
    """Chooses the output of a flit, without latency: the shortest way, column first and row second in a torus.

    Where both ways round a ring are equally long, channel 0 goes up and channel 1 down. A flit is on virtual channel 0
    until it goes over the link that closes a ring, and on 1 from that link on; each dimension begins with 0. A buffer
    never waits for itself, then, not even through others. The way depends on source, destination and channel alone, so
    flits of the same three stay in order.

    Arguments:
        instance: the chips and how they are tied.
        side: direction of the link that flits come from; None for those of a core.
        vc: virtual channel that they come on; 0 from a core.

    Ports:
        chip: where this is. destination, channel: of the flit's header; the destination is a core of the instance.
        outputs: a bit for each output, of which one is set; see `link_output` and `local_output`.
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
        here, there = self._places(m, "here", self.chip), self._places(m, "there", goal)

        arrived = 1
        for dimension, size in enumerate(ring_sizes(self.instance)):
            place, end = here[dimension], there[dimension]
            aligned = Signal(name=f"aligned_{dimension}")
            m.d.comb += aligned.eq(place == end)
            if self.side is None or dimension >= self.side // 2:
                up = self._goes_up(m, dimension, size, place, end)
                for direction, chosen, last in (
                    (2 * dimension, up, place == size - 1),
                    (2 * dimension + 1, ~up, place == 0),
                ):
                    self._leave(m, direction, arrived & ~aligned & chosen, last)
            arrived = arrived & aligned
        for port in range(LOCAL_PORTS):
            core, channel = divmod(port, CHANNELS)
            chosen = (self.destination[:_CORE_BITS] == core) & (self.channel == channel)
            m.d.comb += self.outputs[local_output(self.instance, port)].eq(arrived & chosen)
        return m

    def _places(self, m, name: str, chip) -> list[Signal]:
        """Return a chip's place in each dimension."""
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

    def _goes_up(self, m, dimension: int, size: int, place, end) -> Value:
        """Return whether the way of a flit leads up: as it has come, or the shorter one."""
        if self.side is not None and dimension == self.side // 2:
            return Const(self.side % 2)
        distance = Signal(range(2 * size), name=f"distance_{dimension}")
        up = Signal(name=f"up_{dimension}")
        m.d.comb += [
            distance.eq(Mux(end < place, end + size - place, end - place)),
            up.eq((distance << 1) < Mux(self.channel, size, size + 1)),
        ]
        return up

    def _leave(self, m, direction: int, chosen, last) -> None:
        """Choose a link's output if `chosen`; `last`: the link closes the ring."""
        possible = reachable(self.instance, self.side, self.vc)
        came = self.vc if self.side is not None and direction == self.side ^ 1 else 0
        for vc in range(VIRTUAL_CHANNELS):
            number = link_output(direction, vc)
            if number in possible:
                right = 1 if came == vc == 1 else last if vc else ~last
                m.d.comb += self.outputs[number].eq(chosen & right)
