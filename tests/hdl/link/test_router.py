import pytest

from neuroncore_rtl.golden.link import route
from neuroncore_rtl.hdl.link.flit import flit_layout
from neuroncore_rtl.hdl.link.route import Route, link_output, local_output, reachable
from neuroncore_rtl.hdl.link.router import Router
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.link import CHANNELS, CORES_PER_CHIP
from tests.hdl.simulation import drive, simulated

BYTES = 8
LAYOUT = flit_layout(BYTES)


def ring(chips: int) -> Instance:
    return Instance(chips=chips, width=1, link_bytes=BYTES)


def torus(width: int, rows: int) -> Instance:
    return Instance(chips=width * rows, topology=Topology.TORUS, width=width, link_bytes=BYTES)


SAMPLES = [ring(2), ring(3), ring(8), ring(13), ring(16), torus(2, 2), torus(4, 4), torus(3, 5), torus(2, 8)]


def cases(instance: Instance) -> dict[tuple[int | None, int], dict[tuple[int, int, int], int]]:
    found = {}
    for source in range(0, instance.cores, CORES_PER_CHIP):
        for destination in range(instance.cores):
            for channel in range(CHANNELS):
                source_port, chip = (None, 0), source // CORES_PER_CHIP
                for hop in route(instance, source, destination, channel):
                    outputs = found.setdefault(source_port, {})
                    outputs[chip, destination, channel] = link_output(hop.direction, hop.vc)
                    source_port, chip = (hop.direction ^ 1, hop.vc), instance.neighbour(chip, hop.direction)
                port = CHANNELS * (destination % CORES_PER_CHIP) + channel
                found.setdefault(source_port, {})[chip, destination, channel] = local_output(instance, port)
    return found


@simulated(Route)
async def assert_routes(ctx, dut, instance, side, vc, expected):
    for (chip, destination, channel), output in expected.items():
        drive(ctx, dut, chip=chip, destination=destination, channel=channel)
        assert ctx.get(dut.outputs) == 1 << output, (side, vc, chip, destination, channel)


@pytest.mark.parametrize("instance", SAMPLES, ids=lambda i: f"{i.topology}-{i.chips}-{i.width}")
def test_routes_are_those_of_golden(instance):
    for (side, vc), expected in cases(instance).items():
        assert set(expected.values()) <= set(reachable(instance, side, vc))
        assert_routes(instance, side, vc, expected)


def streams_of(router: Router, instance: Instance) -> list[list]:
    sides = (router.links_in, router.local_in), (router.links_out, router.local_out)
    return [[*(links[d][vc] for d in range(instance.directions) for vc in range(2)), *local] for links, local in sides]


def flit(destination: int, channel: int, data: int, source: int = 0) -> int:
    header = {"destination": destination, "source": source, "channel": channel, "kind": data % 4}
    return LAYOUT.const({"header": header, "data": data}).as_bits()


RING = ring(4)
