"""The checker names the rule that `spec.isa.collective.rules` names, and makes the job that plain Python makes."""

from collections import Counter

import pytest

from neuroncore_rtl.hdl.collective import checker as unit
from neuroncore_rtl.hdl.collective.checker import Checker
from neuroncore_rtl.spec.isa.collective import (
    COLLECTIVE_BITS,
    COLLECTIVE_FIELDS,
    COLLECTIVE_RULES,
    Collective,
    CollectiveKind,
    collective_violation,
    signature,
)
from neuroncore_rtl.spec.isa.fields import pack
from tests.hdl.collective.jobs import core_of, job_values, random_collective
from tests.hdl.verdicts import judge

SEED = 577


def verdicts_of(cores, pairs):
    """Return of each pair of a core and a word the cause of its refusal, 0 if it is legal, and its job."""
    return judge(Checker(cores), [word for _, word in pairs], [{"core": core} for core, _ in pairs])


def cause(core, word, cores):
    broken = collective_violation(Collective.unpack(word), core, cores)
    return int(broken[0]) if broken else 0


def word_of(values):
    """Return the word of the fields of `random_collective`."""
    fields = values | {"ranks": values["ranks"] - 1}
    return pack(COLLECTIVE_FIELDS, {name: fields[name] % (1 << width) for name, width in COLLECTIVE_FIELDS})


def near(rng, cores):
    """Return a core and a collective that stands at a border of what is legal, or that a field makes illegal."""
    values = random_collective(rng, cores=cores, ranks=int(rng.choice((2, 3, min(8, cores)))))
    core = core_of(values, values["rank"])
    kind = rng.integers(8)
    size = 2 if values["dtype"] == 1 else 4
    side = str(rng.choice(("src_address", "dst_address")))
    if kind == 0:
        blocks = int(rng.choice((1, values["ranks"])))
        end = (blocks - 1) * values["pitch"] + values["count"] * size
        values[side] = ((1 << 40) - end) // 64 * 64 + int(rng.choice((0, 64, -64)))
    elif kind == 1:
        values["pitch"] = values["count"] * size + int(rng.choice((-64, -size, 0, 64)))
    elif kind == 2:
        values[str(rng.choice(("rank", "root")))] = int(rng.integers(values["ranks"] - 1, values["ranks"] + 2)) % 64
    elif kind == 3:
        values["base"] += int(rng.integers(-2, 3))
        core = core_of(values, values["rank"]) % 128
    elif kind == 4:
        core = (core + int(rng.integers(2))) % cores
        values["stride"] = int(rng.choice((0, values["stride"], -values["stride"])))
    elif kind == 5:
        values[side] += int(rng.choice((1, 32, 64)))
        values["pitch"] += int(rng.choice((0, 0, 32)))
    elif kind == 6:
        values[str(rng.choice(("narrow", "stochastic", "op", "dtype")))] = int(rng.integers(4))
        values["narrow"] &= 1
        values["stochastic"] &= 1
    else:
        name, width = COLLECTIVE_FIELDS[rng.integers(len(COLLECTIVE_FIELDS))]
        word = word_of(values | ({} if name == "ranks" else {name: int(rng.choice((0, (1 << width) - 1)))}))
        return core, word if rng.random() < 0.8 else word >> 6 << 6 | int(rng.integers(64))
    return core, word_of(values)


def wrong(rng, cores, count):
    pairs = [near(rng, cores) for _ in range(count)]
    pairs += [
        (int(rng.integers(cores)), int.from_bytes(rng.bytes(64), "little") % (1 << COLLECTIVE_BITS) >> 6 << 6 | 56)
        for _ in range(count // 10)
    ]
    wanted = [cause(core, word, cores) for core, word in pairs]
    faults = [
        (found, want, core, Collective.unpack(word))
        for (found, _), want, (core, word) in zip(verdicts_of(cores, pairs), wanted, pairs, strict=True)
        if found != want
    ]
    return faults, wanted


@pytest.mark.parametrize("cores", [4, 24, 128])
def test_verdicts_are_those_of_the_specification(cores, rng):
    faults, wanted = wrong(rng, cores, 700)
    assert not faults, f"{len(faults)} verdicts are wrong, the first: {faults[0]}"
    assert set(Counter(wanted)) == {0, *map(int, COLLECTIVE_RULES)}


@pytest.mark.parametrize(("name", "value"), [("ALIGNMENT", 32), ("ROOTED", frozenset()), ("COLLECTIVE", 57)])
def test_a_checker_with_another_rule_is_noticed(name, value, rng, monkeypatch):
    monkeypatch.setattr(unit, name, value)
    faults, _ = wrong(rng, 24, 250)
    assert faults


def test_jobs(rng):
    """Every field that means something, of all kinds."""
    collectives = [random_collective(rng, kind=kind) for kind in CollectiveKind for _ in range(20)]
    pairs = [(core_of(values, values["rank"]), word_of(values)) for values in collectives]
    for values, (_, word), (_, job) in zip(collectives, pairs, verdicts_of(128, pairs), strict=True):
        want = job_values(values) | {"signature": signature(Collective.unpack(word))}
        want |= {name: values[name] for name in ("seed", "stream")}
        found = {name: getattr(job, name) for name in want}
        assert found == want, values["kind"]
