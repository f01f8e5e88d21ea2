from itertools import combinations, product

import pytest

from neuroncore_rtl.hdl.collective.checker import CollectiveChecker
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa import collective as isa
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_FIELDS, MAX_RANKS, Collective, Group
from neuroncore_rtl.spec.isa.collective import CollectiveKind as K
from neuroncore_rtl.spec.isa.collective import CollectiveType as T
from neuroncore_rtl.spec.isa.fields import pack
from tests.hdl.collective.jobs import job_values
from tests.hdl.simulation import flash, random_bits, simulated
from tests.hdl.verdicts import assert_verdicts, pass_on
from tests.oracles.collectives import large_collective, random_collective

SEED = 577
CORES = 100


def word_of(values):
    return pack(COLLECTIVE_FIELDS, {name: values[name] % (1 << width) for name, width in COLLECTIVE_FIELDS})


def near(rng, cores):
    ranks = int(rng.choice((2, 3, min(8, cores), min(50, cores))))
    one = (random_collective, large_collective)[rng.integers(2)](rng, cores=cores, ranks=ranks)
    values, core = one.fields(), one.core
    kind = rng.integers(8)
    size = 2 if values["dtype"] == 1 else 4
    side = str(rng.choice(("src_address", "dst_address")))
    if kind == 0:
        blocks = int(rng.choice((1, ranks)))
        end = (blocks - 1) * values["pitch"] + values["count"] * size
        values[side] = ((1 << 40) - end) // 64 * 64 + int(rng.choice((0, 64, -64, 1 << rng.integers(6, 40))))
    elif kind == 1:
        values["pitch"] = values["count"] * size + int(rng.choice((-64, -size, 0, 64, 1 << rng.integers(6, 32))))
    elif kind == 2:
        values[str(rng.choice(("rank", "root")))] = int(rng.integers(ranks - 1, ranks + 2)) % 64
    elif kind == 3:
        values["base"] += int(rng.integers(-2, 3))
        core = (values["base"] + one.rank * values["stride"]) % 128
    elif kind == 4:
        core = (core + int(rng.integers(2))) % cores
        values["stride"] = int(rng.choice((0, values["stride"], -values["stride"])))
    elif kind == 5:
        values[side] += int(rng.choice((1, 32, 64)))
        values["pitch"] += int(rng.choice((0, 0, 32)))
    elif kind == 6:
        name = str(rng.choice(("narrow", "stochastic", "op", "dtype")))
        values[name] = int(rng.integers(1 << dict(COLLECTIVE_FIELDS)[name]))
    else:
        name, width = COLLECTIVE_FIELDS[rng.integers(len(COLLECTIVE_FIELDS))]
        word = word_of(values | {name: int(rng.choice((0, (1 << width) - 1)))})
        return core, word if rng.random() < 0.8 else word >> 6 << 6 | int(rng.integers(64))
    return core, word_of(values)


def fields_of(kind, **values):
    fields = Collective(kind=kind, group=Group(0, 1, 2), rank=0, root=1, count=16, pitch=64).fields() | values
    return values.get("core", fields["base"] + fields["rank"] * fields["stride"]), fields


BLOCKS = {K.REDUCE_SCATTER: "src_address", K.ALL_GATHER: "dst_address"}
"""Kinds of collectives with several blocks, and the operand, src or dst, that has several."""


def sizes():
    end = 1 << HBM_ADDRESS_BITS
    for bit in range(32):
        if bit < 30:
            yield fields_of(K.ALL_REDUCE, count=1 << bit)
        for side in ("src_address", "dst_address"):
            if 0 < bit < 31:
                yield fields_of(K.ALL_REDUCE, count=32 + (1 << bit) // 2, dtype=T.BF16, **{side: end - 64})
            if bit > 1:
                yield fields_of(K.ALL_REDUCE, count=16 + (1 << bit) // 4, **{side: end - 64})
        if bit > 1:
            yield fields_of(K.ALL_GATHER, count=16 + (1 << bit) // 4)
        if bit > 5:
            yield fields_of(K.ALL_GATHER, pitch=64 + (1 << bit))
            for kind, side in BLOCKS.items():
                yield fields_of(kind, pitch=1 << bit, **{side: end - (1 << bit)})
                if bit < 29:
                    yield fields_of(kind, count=(2 << bit) // 4, pitch=4 << bit, **{side: end - (6 << bit)})
    # Only the last of many blocks can be so far beyond the end of HBM.
    far, last = {"ranks": MAX_RANKS - 1, "pitch": (1 << 32) - 64}, (MAX_RANKS - 1) * ((1 << 32) - 64)
    for bit in range(32, last.bit_length()):
        for kind, side in BLOCKS.items():
            yield fields_of(kind, **far | {side: end + (1 << bit) - last - 64})


def places(cores):
    for kind in (K.SEND, K.RECEIVE):
        yield fields_of(kind, root=0)
    for bit in range(6):
        for name in ("src_address", "dst_address", "pitch"):
            yield fields_of(K.ALL_TO_ALL, **{"pitch": 128, name: 64 + (1 << bit)})
        yield fields_of(K.ALL_REDUCE, opcode=isa.COLLECTIVE ^ 1 << bit)
        yield fields_of(K.ALL_REDUCE, rank=1 + (1 << bit))
        yield fields_of(K.BROADCAST, root=1 + (1 << bit))
        for kind in (K.BROADCAST, K.SEND, K.RECEIVE):
            yield fields_of(kind, root=1 << bit, ranks=MAX_RANKS - 1, src_address=32 * (kind == K.BROADCAST))
        yield fields_of(K.ALL_REDUCE, stride=1 << bit)
        yield fields_of(K.ALL_REDUCE, stride=-1 << bit, base=(1 << bit) - 1)
    yield fields_of(K.ALL_REDUCE, stride=-64, base=64)
    for bit in range(7):
        yield fields_of(K.ALL_REDUCE, core=1 << bit)
    for bit in range(7, 11):
        yield fields_of(K.ALL_REDUCE, ranks=32, stride=1 << bit - 5)
    yield fields_of(K.ALL_REDUCE, ranks=63, stride=32, base=32)
    for base in (cores - 2, cores - 1, *range(cores, 128)):
        yield fields_of(K.ALL_REDUCE, base=base)
        yield fields_of(K.ALL_REDUCE, base=base, stride=-1)


WAYS = {
    "opcode": {"opcode": 1},
    "format": {"dtype": 3},
    "operation": {"op": 3},
    "narrow": {"narrow": 1},
    "stochastic": {"stochastic": 1},
    "count": {"count": -64},
    "one rank": {"ranks": -2},
    "src beside": {"src_address": 32},
    "dst beside": {"dst_address": 32},
    "pitch beside": {"pitch": 32},
    "small pitch": {"pitch": -64},
    "last block of src behind the end": {"src_address": (1 << HBM_ADDRESS_BITS) - 704},
    "last block of dst behind the end": {"dst_address": (1 << HBM_ADDRESS_BITS) - 704},
    "src behind the end": {"src_address": (1 << HBM_ADDRESS_BITS) - 64},
    "dst behind the end": {"dst_address": (1 << HBM_ADDRESS_BITS) - 64},
    "no stride": {"stride": -1},
    "up": {"stride": 30},
    "down": {"stride": -30},
    "core": {"core": 1},
    "rank": {"rank": 3, "core": 3},
    "root": {"root": 2},
    "own root": {"root": -1},
}
"""Changes that may break a rule, by name: of the fields of a collective of 256 bytes on three ranks, or of its core."""


def broken(kind, *ways):
    values = {"base": 50, "core": 50, "stride": 1, "ranks": 2, "rank": 0, "root": 1, "count": 64, "pitch": 256}
    core, fields = fields_of(kind, **values)
    for way in ways:
        for name, more in WAYS[way].items():
            fields[name] += more
    return core + fields.pop("core") - values["core"], fields


def check(cores, pairs, rules=None):
    violations = [isa.collective_violation(Collective.unpack(word), core, cores) for core, word in pairs]
    inputs = [{"core": core} for core, _ in pairs]
    return assert_verdicts(CollectiveChecker(cores), [word for _, word in pairs], violations, rules, inputs)


@pytest.mark.parametrize("cores", [4, CORES, 128])
def test_verdicts_are_those_of_the_specification(cores, rng):
    pairs = [near(rng, cores) for _ in range(700)]
    noise = [random_bits(rng, isa.COLLECTIVE_BITS) >> 6 << 6 | 56 for _ in range(70)]
    check(cores, pairs + [(int(rng.integers(cores)), word) for word in noise], isa.COLLECTIVE_RULES)


def test_one_bit_decides():
    check(CORES, [(core, word_of(fields)) for core, fields in (*sizes(), *places(CORES))])


@pytest.mark.parametrize("kind", K)
def test_of_two_rules_the_lower_one_is_named(kind):
    def rule_of(*ways):
        core, fields = broken(kind, *ways)
        return (isa.collective_violation(fields, core, CORES) or [None])[0]

    rules = {way: rule for way in WAYS if (rule := rule_of(way))}
    pairs = [pair for pair in combinations(rules, 2) if len(set(map(rules.get, pair))) == 2]
    assert all(rule_of(*pair) == min(map(rules.get, pair)) for pair in pairs)
    every = [broken(kind, *ways) for ways in ((), *((way,) for way in WAYS), *pairs)]
    check(CORES, [(core, word_of(fields)) for core, fields in every])


def test_a_stalled_job_stays_unchanged(rng):
    every = [
        fields_of(K.ALL_REDUCE, **{"count": int(rng.integers(1, 1 << 20)), side: 64 * int(rng.integers(1 << 20))})
        for side in ("src_address", "dst_address") * 6
    ]
    words = [word_of(fields) for _, fields in every]
    jobs = check(CORES, [(0, word) for word in words])
    played, _, error = pass_on(CollectiveChecker(CORES), words, 0.8)
    assert error is None and played.payloads["o"] == [job.as_bits() for job in jobs]


@simulated(lambda: CollectiveChecker(CORES), each=product((1, 0), range(1, 2 * CollectiveChecker.LATENCY)))
async def test_a_reset_at_any_time_restores_the_initial_state(ctx, dut, case):
    count, cycles = case
    for _ in range(2 * CollectiveChecker.LATENCY):
        await ctx.tick()
        assert ctx.get(dut.i.ready & ~dut.busy & ~dut.o.valid & ~dut.error.valid)
    await flash(ctx, dut.i, word_of(fields_of(K.ALL_REDUCE, count=count)[1]))
    await ctx.tick().repeat(cycles)


def test_every_field_of_jobs_of_all_kinds(rng):
    kinds = [kind for kind in isa.CollectiveKind for _ in range(15)]
    collectives = [one(rng, kind=kind, cores=CORES) for one in (random_collective, large_collective) for kind in kinds]
    jobs = check(CORES, [(one.core, one.encode()) for one in collectives])
    for one, job in zip(collectives, jobs, strict=True):
        want = job_values(one) | {"signature": isa.signature(one.fields()), "seed": one.seed, "stream": one.stream}
        assert {name: getattr(job, name) for name in want} == want, one
