"""The checker names the rule that `spec.isa.collective.rules` names, and makes the job that plain Python makes."""

import pytest

from neuroncore_rtl.hdl.collective import checker as unit
from neuroncore_rtl.hdl.collective.checker import Checker
from neuroncore_rtl.spec.isa import collective as isa
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_FIELDS, Collective
from neuroncore_rtl.spec.isa.fields import pack
from tests.hdl.collective.jobs import job_values
from tests.hdl.simulation import random_bits
from tests.hdl.verdicts import assert_verdicts
from tests.oracles.collectives import random_collective

SEED = 577


def word_of(values):
    """Return the word of fields, of which only the lowest bits count."""
    return pack(COLLECTIVE_FIELDS, {name: values[name] % (1 << width) for name, width in COLLECTIVE_FIELDS})


def near(rng, cores):
    """Return a core and a collective that stands at a border of what is legal, or that a field makes illegal."""
    one = random_collective(rng, cores=cores, ranks=int(rng.choice((2, 3, min(8, cores)))))
    values, core, ranks = one.fields(), one.core, one.group.ranks
    kind = rng.integers(8)
    size = 2 if values["dtype"] == 1 else 4
    side = str(rng.choice(("src_address", "dst_address")))
    if kind == 0:
        blocks = int(rng.choice((1, ranks)))
        end = (blocks - 1) * values["pitch"] + values["count"] * size
        values[side] = ((1 << 40) - end) // 64 * 64 + int(rng.choice((0, 64, -64)))
    elif kind == 1:
        values["pitch"] = values["count"] * size + int(rng.choice((-64, -size, 0, 64)))
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


def check(cores, pairs, rules=None):
    """Compare the verdicts on pairs of a core and a word; return the jobs."""
    violations = [isa.collective_violation(Collective.unpack(word), core, cores) for core, word in pairs]
    inputs = [{"core": core} for core, _ in pairs]
    return assert_verdicts(Checker(cores), [word for _, word in pairs], violations, rules, inputs)


def pairs_of(rng, cores, count):
    pairs = [near(rng, cores) for _ in range(count)]
    noise = [random_bits(rng, isa.COLLECTIVE_BITS) >> 6 << 6 | 56 for _ in range(count // 10)]
    return pairs + [(int(rng.integers(cores)), word) for word in noise]


@pytest.mark.parametrize("cores", [4, 24, 128])
def test_verdicts_are_those_of_the_specification(cores, rng):
    check(cores, pairs_of(rng, cores, 700), isa.COLLECTIVE_RULES)


@pytest.mark.parametrize(("name", "value"), [("ALIGNMENT", 32), ("ROOTED", frozenset()), ("COLLECTIVE", 57)])
def test_a_checker_with_another_rule_is_noticed(name, value, rng, monkeypatch):
    monkeypatch.setattr(unit, name, value)
    with pytest.raises(AssertionError, match="verdicts are wrong"):
        check(24, pairs_of(rng, 24, 250))


def test_jobs(rng):
    """Every field that means something, of all kinds."""
    collectives = [random_collective(rng, kind=kind) for kind in isa.CollectiveKind for _ in range(20)]
    jobs = check(128, [(one.core, one.encode()) for one in collectives])
    for one, job in zip(collectives, jobs, strict=True):
        want = job_values(one) | {"signature": isa.signature(one.fields()), "seed": one.seed, "stream": one.stream}
        assert {name: getattr(job, name) for name in want} == want, one
