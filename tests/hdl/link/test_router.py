"""Routes and routers: every flit leaves where golden says, once and in order, at a flit a cycle, and nobody starves."""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from neuroncore_rtl.golden.link import route
from neuroncore_rtl.hdl.link.flit import flit_layout
from neuroncore_rtl.hdl.link.route import Route, link_output, local_output, reachable
from neuroncore_rtl.hdl.link.router import Router, RouterOutput
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.link import CHANNELS, CORES_PER_CHIP
from tests.hdl.simulation import simulate

BYTES = 8
LAYOUT = flit_layout(BYTES)


def ring(chips: int) -> Instance:
    return Instance(chips=chips, width=1, link_bytes=BYTES)


def torus(width: int, rows: int) -> Instance:
    return Instance(chips=width * rows, topology=Topology.TORUS, width=width, link_bytes=BYTES)


SAMPLES = [ring(2), ring(3), ring(8), ring(13), ring(16), torus(2, 2), torus(4, 4), torus(3, 5), torus(2, 8)]


def cases(instance: Instance) -> dict[tuple[int | None, int], dict[tuple[int, int, int], int]]:
    """Return what every router has to choose, by golden: by the side and the virtual channel that a flit comes from,
    and then by chip, destination and channel, the output."""
    found = {}
    for source in range(0, instance.cores, CORES_PER_CHIP):
        for destination in range(instance.cores):
            for channel in range(CHANNELS):
                came, chip = (None, 0), source // CORES_PER_CHIP
                for hop in route(instance, source, destination, channel):
                    place = found.setdefault(came, {})
                    place[chip, destination, channel] = link_output(hop.direction, hop.vc)
                    came, chip = (hop.direction ^ 1, hop.vc), instance.neighbour(chip, hop.direction)
                port = CHANNELS * (destination % CORES_PER_CHIP) + channel
                found.setdefault(came, {})[chip, destination, channel] = local_output(instance, port)
    return found


@pytest.mark.parametrize("instance", SAMPLES, ids=lambda i: f"{i.topology}-{i.chips}-{i.width}")
def test_routes_are_those_of_golden(instance):
    for (side, vc), expected in cases(instance).items():
        dut = Route(instance, side, vc)

        async def bench(ctx, dut=dut, expected=expected):
            for (chip, destination, channel), output in expected.items():
                ctx.set(dut.chip, chip)
                ctx.set(dut.destination, destination)
                ctx.set(dut.channel, channel)
                assert ctx.get(dut.outputs) == 1 << output, (dut.side, dut.vc, chip, destination, channel)

        assert set(expected.values()) <= set(reachable(instance, side, vc))
        simulate(dut, bench)


def ports(dut: Router, way: str) -> list:
    """Return the streams of the router's inputs ("in") or outputs ("out"), by number."""
    links = getattr(dut, f"links_{way}")
    return [links[d][vc] for d in range(dut.instance.directions) for vc in range(2)] + list(
        getattr(dut, f"local_{way}")
    )


def play(
    instance: Instance,
    chip: int,
    given: dict[int, list[dict]],
    *,
    offers: Callable[[int, int], bool] = lambda port, cycle: True,
    takes: Callable[[int, int], bool] = lambda port, cycle: True,
    cycles: int,
) -> list[tuple[int, int, dict]]:
    """Run a router, and return what left it: cycle, output, and the fields of the flit.

    Arguments:
        instance, chip: of the router.
        given: flits by input.
        offers, takes: whether a port has something to offer, or takes something, in a cycle. What is on offer stays.
        cycles: to run.
    """
    dut = Router(instance)
    inputs, outputs = ports(dut, "in"), ports(dut, "out")
    waiting = {port: [LAYOUT.const(flit) for flit in flits] for port, flits in given.items()}
    left = []

    async def bench(ctx):
        ctx.set(dut.chip, chip)
        offered = set()
        held = {}
        for cycle in range(cycles):
            for port, flits in waiting.items():
                if flits and (port in offered or offers(port, cycle)):
                    ctx.set(inputs[port].payload, flits[0])
                    ctx.set(inputs[port].valid, 1)
                    offered.add(port)
                else:
                    ctx.set(inputs[port].valid, 0)
            ready = [takes(port, cycle) for port in range(len(outputs))]
            for port, stream in enumerate(outputs):
                ctx.set(stream.ready, ready[port])
            tick = ctx.tick().sample(*(inputs[port].ready for port in waiting))
            _, _, *sampled = await tick.sample(*(s.valid for s in outputs), *(s.payload.as_value() for s in outputs))
            accepted, valid = sampled[: len(waiting)], sampled[len(waiting) : len(waiting) + len(outputs)]
            payloads = sampled[len(waiting) + len(outputs) :]
            for port, took in zip(waiting, accepted, strict=True):
                if took and port in offered:
                    offered.remove(port)
                    del waiting[port][0]
            for port in range(len(outputs)):
                if port in held:
                    assert valid[port] and payloads[port] == held.pop(port), "an offer changed before it was taken"
                if valid[port] and ready[port]:
                    flit = LAYOUT.from_bits(payloads[port])
                    header = {name: int(flit.header[name]) for name in ("destination", "source", "channel", "kind")}
                    left.append((cycle, port, {"header": header, "data": int(flit.data)}))
                elif valid[port]:
                    held[port] = payloads[port]

    simulate(dut, bench)
    assert not any(waiting.values()), "flits were never taken"
    return left


def number_of(instance: Instance, side: int | None, vc: int) -> int:
    """Return the number of an input but for a core's, of which this is the first."""
    return local_output(instance, 0) if side is None else link_output(side, vc)


def flit(destination: int, channel: int, data: int, source: int = 0) -> dict:
    return {
        "header": {"destination": destination, "source": source, "channel": channel, "kind": data % 4},
        "data": data,
    }


@pytest.mark.parametrize("instance", [ring(4), torus(3, 2)], ids=["ring", "torus"])
@pytest.mark.parametrize("stall", [0.0, 0.3, 0.8])
def test_every_flit_leaves_once_in_order_and_where_it_must(instance, stall):
    rng = random.Random(f"{instance.topology} {stall}")
    chip = rng.randrange(instance.chips)
    by_input = {}
    for (side, vc), expected in cases(instance).items():
        here = [(key, output) for key, output in expected.items() if key[0] == chip]
        for local in range(4 if side is None else 1):
            by_input[number_of(instance, side, vc) + local] = here
    given, wanted, number = {}, {}, 0
    for port, choices in by_input.items():
        for _ in range(40 if choices else 0):
            (_, destination, channel), output = rng.choice(choices)
            given.setdefault(port, []).append(flit(destination, channel, number, source=port))
            wanted.setdefault((port, output), []).append(number)
            number += 1
    left = play(
        instance,
        chip,
        given,
        offers=lambda port, cycle: rng.random() >= stall,
        takes=lambda port, cycle: rng.random() >= stall,
        cycles=round(500 / (1 - stall)),
    )
    found = {}
    for _, port, fields in left:
        found.setdefault((fields["header"]["source"], port), []).append(fields["data"])
        assert fields["header"]["kind"] == fields["data"] % 4
    assert found == wanted
    assert number > 200


def test_latency():
    instance = ring(4)
    given = {local_output(instance, 0): [flit(4, 0, 1)], link_output(1, 0): [flit(2, 1, 2)]}
    left = play(instance, 1, given, cycles=10)
    assert [(cycle, port) for cycle, port, _ in left] == [
        (Router.LATENCY, link_output(0, 0)),
        (Router.LATENCY, local_output(instance, 1)),
    ]


def test_a_flit_every_cycle():
    instance = ring(4)
    given = {
        link_output(1, 0): [flit(4, 0, n) for n in range(50)],
        link_output(0, 1): [flit(3, 1, n) for n in range(50)],
    }
    left = play(instance, 1, given, cycles=60)
    assert [cycle for cycle, port, _ in left if port == link_output(0, 0)] == list(range(2, 52))
    assert [cycle for cycle, port, _ in left if port == local_output(instance, 3)] == list(range(2, 52))


def test_inputs_that_do_not_meet_do_not_wait_for_each_other():
    instance = ring(4)
    blocked = link_output(0, 0)
    given = {link_output(1, 0): [flit(4, 0, 0)] * 6, link_output(1, 1): [flit(2, 0, 1)] * 20}
    left = play(instance, 1, given, takes=lambda port, cycle: port != blocked or cycle > 50, cycles=70)
    assert [cycle for cycle, _, fields in left if fields["data"] == 1] == list(range(2, 22))
    assert [cycle for cycle, _, fields in left if fields["data"] == 0] == list(range(51, 57))


@pytest.mark.parametrize("asking", [0b1111111, 0b0011001, 0b1100000, 0b0000111])
def test_turns_go_round_and_cores_have_their_share(asking):
    dut = RouterOutput(3, 4, BYTES)
    turns = []

    async def bench(ctx):
        ctx.set(dut.requests, asking)
        ctx.set(dut.o.ready, 1)
        for _ in range(480):
            turns.append((await ctx.tick().sample(dut.taken))[-1])

    simulate(dut, bench)
    shares = Counter(turn.bit_length() - 1 for turn in turns)
    passing, own = [[port for port in group if asking >> port & 1] for group in (range(3), range(3, 7))]
    for group, share in ((passing, 1 - 1 / RouterOutput.SHARE if own else 1), (own, 1 / RouterOutput.SHARE)):
        for port in group:
            expected = 480 * (share if passing else 1) / len(group)
            assert abs(shares.pop(port) - expected) <= 1
    assert not shares
