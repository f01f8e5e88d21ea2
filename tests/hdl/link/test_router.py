import random
from collections import Counter, defaultdict

import pytest

from neuroncore_rtl.golden.link import route
from neuroncore_rtl.hdl.link.flit import flit_layout
from neuroncore_rtl.hdl.link.route import Route, link_output, local_output, reachable
from neuroncore_rtl.hdl.link.router import Router, RouterOutput
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.link import CHANNELS, CORES_PER_CHIP
from tests.hdl.simulation import drive, simulated
from tests.hdl.streams import Played, play

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


def run_router(instance: Instance, chip: int, given: dict[int, list[int]], wanted: dict[int, int], **options) -> Played:
    dut = Router(instance)
    pairs = zip(("in", "out"), streams_of(dut, instance), strict=True)
    ports = {(way, number): stream for way, streams in pairs for number, stream in enumerate(streams)}
    inputs = {("in", port): flits for port, flits in given.items()}
    outputs = {name: wanted.get(name[1], 0) for name in ports if name[0] == "out"}
    return play(dut, inputs, outputs, ports=ports, constants={"chip": chip}, **options)


def flit(destination: int, channel: int, data: int, source: int = 0) -> int:
    header = {"destination": destination, "source": source, "channel": channel, "kind": data % 4}
    return LAYOUT.const({"header": header, "data": data}).as_bits()


@pytest.mark.parametrize("instance", [ring(4), torus(3, 2)], ids=["ring", "torus"])
@pytest.mark.parametrize("stall", [0.0, 0.3, 0.8])
def test_every_flit_leaves_once_in_order_and_where_it_must(instance, stall):
    rng = random.Random(f"{instance.topology} {stall}")
    chip = rng.randrange(instance.chips)
    given, wanted, found, counts = defaultdict(list), defaultdict(list), defaultdict(list), Counter()
    for (side, vc), expected in cases(instance).items():
        choices = [(key, output) for key, output in expected.items() if key[0] == chip]
        first, inputs = (local_output(instance, 0), 4) if side is None else (link_output(side, vc), 1)
        for port in range(first, first + inputs):
            for _ in range(40 if choices else 0):
                (_, destination, channel), output = rng.choice(choices)
                given[port].append(flit(destination, channel, rng.getrandbits(8 * BYTES), source=port))
                wanted[port, output].append(given[port][-1])
                counts[output] += 1
    played = run_router(instance, chip, given, counts, stall=stall, seed=chip)
    for output in counts:
        for payload in played.payloads["out", output]:
            found[LAYOUT.from_bits(payload).header.source, output].append(payload)
    assert found == wanted
    assert counts.total() > 200


RING = ring(4)
ON, HOME = link_output(0, 0), local_output(RING, 3)
"""Outputs of chip 1 for flits to cores 4 and 3."""


@pytest.mark.parametrize(
    ("on", "home", "count"), [(local_output(RING, 0), link_output(1, 0), 1), (link_output(1, 0), link_output(0, 1), 50)]
)
def test_a_flit_every_cycle_after_the_latency(on, home, count):
    given = {on: [flit(4, 0, n) for n in range(count)], home: [flit(3, 1, n) for n in range(count)]}
    played = run_router(RING, 1, given, {ON: count, HOME: count})
    wanted = list(range(Router.LATENCY, Router.LATENCY + count))
    assert played.cycles["out", ON] == played.cycles["out", HOME] == wanted


@pytest.mark.parametrize("asking", [0b1111111, 0b0011001, 0b1100000, 0b0000111])
@simulated(lambda: RouterOutput(3, 4, BYTES))
async def test_turns_go_round_and_cores_have_their_share(ctx, dut, asking):
    ctx.set(dut.requests, asking)
    ctx.set(dut.o.ready, 1)
    turns = [(await ctx.tick().sample(dut.taken))[-1] for _ in range(480)]
    shares = Counter(turn.bit_length() - 1 for turn in turns)
    passing, own = [[port for port in group if asking >> port & 1] for group in (range(3), range(3, 7))]
    for group, share in ((passing, 1 - 1 / RouterOutput.SHARE if own else 1), (own, 1 / RouterOutput.SHARE)):
        for port in group:
            expected = 480 * (share if passing else 1) / len(group)
            assert abs(shares.pop(port) - expected) <= 1
    assert not shares
