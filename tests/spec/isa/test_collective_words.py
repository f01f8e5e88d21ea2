"""Words of collectives."""

import re
from dataclasses import replace

import pytest

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Context, Rule
from neuroncore_rtl.spec.isa import collective as words
from neuroncore_rtl.spec.isa.collective import SIGNATURE_FIELDS, SIGNATURE_OFFSETS, SIGNATURE_USES, Collective, Group
from neuroncore_rtl.spec.isa.collective import CollectiveKind as K
from neuroncore_rtl.spec.isa.collective import CollectiveType as T
from neuroncore_rtl.spec.link import MAX_CORES

SEED = 1618
CORES = 32
CONTEXT = Context(Config(rows=4, columns=4, cores=CORES), core=10)

PLAIN = Collective(
    kind=K.ALL_REDUCE, group=Group(4, 3, 8), rank=2, count=100, dtype=T.BF16, src=64, dst=1 << 20, pitch=256, root=1
)
"""Collective that is legal on core 10 with any `kind`."""


def violation(values, core=10, cores=CORES):
    return words.collective_violation(values, core, cores)


def random_fields(rng) -> dict[str, int]:
    values = {name: rng.getrandbits(width) for name, width in words.COLLECTIVE_FIELDS}
    values |= {"opcode": Collective.opcode, "stride": rng.randrange(-64, 64)}
    return values | {name: rng.randrange(3) for name in ("op", "dtype")}


def test_words_and_fields_are_each_other_s_inverse(py_rng):
    for _ in range(500):
        values = random_fields(py_rng)
        instruction = Collective.decode(values)
        assert instruction.fields() == values
        word = instruction.encode()
        assert 0 <= word < 1 << words.COLLECTIVE_BITS
        assert Collective.unpack(word) == values
        assert Collective.decode(Collective.unpack(word)) == instruction


def test_fields_lie_where_the_layout_says():
    word = replace(PLAIN, group=Group(4, -3, 8), chunk=5).encode()
    assert word & 0x3F == 56  # opcode
    assert word >> 15 & 0x1F == 4  # chunk - 1
    assert word >> 20 & 0x3F == 7  # ranks - 1
    assert word >> 33 & 0x7F == 128 - 3  # stride, two's complement
    assert words.COLLECTIVE_BITS == 258 and words.SIGNATURE_BITS == 64


@pytest.mark.parametrize(
    "change, message",
    [
        ({"chunk": 0}, "chunk must be from 0 to 31, not -1"),
        ({"chunk": 33}, "chunk must be from 0 to 31, not 32"),
        ({"group": Group(0, 1, 65)}, "ranks must be from 0 to 63, not 64"),
        ({"group": Group(0, 64, 2)}, "stride must be from -64 to 63, not 64"),
        ({"group": Group(128, 1, 2)}, "base must be from 0 to 127, not 128"),
        ({"count": 1 << 30}, "count must be from 0 to 1073741823, not 1073741824"),
        ({"src": 1 << 40}, "src_address must be from 0 to"),
        ({"seed": -1}, "seed must be from 0 to"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        replace(PLAIN, **change).encode()


def test_codes_of_nothing_are_refused():
    for name in ("opcode", "op", "dtype"):
        with pytest.raises(ValueError):
            Collective.decode(PLAIN.fields() | {name: 3})


def test_cores_of_a_group():
    assert Group(4, 3, 4).cores == (4, 7, 10, 13)
    assert Group(4, -2, 3).cores == (4, 2, 0)
    assert PLAIN.core == 10


REFUSED = [
    (Rule.OPCODE, {"opcode": 48}, "opcode must be 56, not 48"),
    (Rule.OPCODE, {"kind": 8}, "kind must be one of ALL_REDUCE, .*, BARRIER, not 8"),
    (Rule.FORMAT, {"dtype": 3}, "dtype must be one of FP32, BF16, INT32, not 3"),
    (Rule.FORMAT, {"dtype": 3, "kind": K.SEND}, "dtype must be one of FP32, BF16, INT32, not 3"),
    (Rule.FORMAT, {"op": 3}, "op must be one of SUM, MAX, MIN, not 3"),
    (Rule.FORMAT, {"dtype": 0, "narrow": 1}, "narrow must be 0 for FP32, not 1"),
    (Rule.FORMAT, {"dtype": 2, "stochastic": 1}, "stochastic must be 0 for INT32, not 1"),
    (Rule.FORMAT, {"kind": K.REDUCE_SCATTER, "dtype": 2, "narrow": 1}, "narrow must be 0 for INT32"),
    (Rule.SHAPE, {"count": 0}, "count must be at least 1, not 0"),
    (Rule.SHAPE, {"ranks": 0, "rank": 0, "base": 10}, "ranks must be at least 2, not 1"),
    (Rule.SHAPE, {"kind": K.BARRIER, "ranks": 0, "rank": 0, "base": 10}, "ranks must be at least 2"),
    (Rule.ALIGNMENT, {"src_address": 32}, "src_address must be a multiple of 64, not 32"),
    (Rule.ALIGNMENT, {"dst_address": 65}, "dst_address must be a multiple of 64, not 65"),
    (Rule.ALIGNMENT, {"kind": K.BROADCAST, "root": 2, "src_address": 8}, "src_address must be a multiple of 64, not 8"),
    (Rule.ALIGNMENT, {"kind": K.ALL_GATHER, "pitch": 288}, "pitch must be a multiple of 64, not 288"),
    (Rule.RANGE, {"kind": K.ALL_TO_ALL, "pitch": 192}, "pitch must be at least the 200 bytes of a block, not 192"),
    (Rule.RANGE, {"src_address": (1 << 40) - 192}, "the bytes from src_address on must end at 1099511627776, not at "),
    (
        Rule.RANGE,
        {"kind": K.ALL_GATHER, "dst_address": (1 << 40) - 7 * 256 - 192},
        f"the bytes from dst_address on must end at 1099511627776, not at {(1 << 40) + 8}",
    ),
    (Rule.STATE, {"stride": 0, "base": 10}, "stride must not be 0"),
    (Rule.STATE, {"base": 11, "rank": 0, "stride": 4}, "the group's cores must lie from 0 to 31, not from 11 to 39"),
    (Rule.STATE, {"stride": -1, "base": 6}, "the group's cores must lie from 0 to 31, not from 6 to -1"),
    (Rule.STATE, {"base": 0, "stride": 1, "rank": 10}, "rank must be from 0 to 7, not 10"),
    (Rule.STATE, {"rank": 3}, "rank 3 must be the rank of core 10, not of core 13"),
    (Rule.STATE, {"kind": K.BROADCAST, "root": 8}, "root must be from 0 to 7, not 8"),
    (Rule.STATE, {"kind": K.RECEIVE, "root": 8}, "root must be from 0 to 7, not 8"),
    (Rule.STATE, {"kind": K.SEND, "root": 2}, "root must be a rank other than the executing one, not 2"),
    (Rule.STATE, {"kind": K.BARRIER, "rank": 3}, "rank 3 must be the rank of core 10, not of core 13"),
]


@pytest.mark.parametrize("rule, change, message", REFUSED)
def test_every_rule_can_be_broken_alone(rule, change, message):
    values = PLAIN.fields() | change
    broken = violation(values)
    assert broken is not None and broken[0] == rule
    assert re.search(message, broken[1]), broken[1]
    if set(change) <= {"count"} or values["op"] < 3 and values["dtype"] < 3 and values["kind"] < 8 and rule != 1:
        with pytest.raises(ValueError, match=rf"^{K(values['kind']).name}: .*{message}.* \(rule {rule.name}\)$"):
            Collective.decode(values).check(CONTEXT)


def test_all_rules_are_among_the_broken_ones():
    assert {rule for rule, _, _ in REFUSED} == words.COLLECTIVE_RULES


def test_the_lowest_rule_wins(py_rng):
    for _ in range(200):
        (one, first, _), (other, second, _) = py_rng.sample(REFUSED, 2)
        if not first.keys() & second.keys() and not {"kind", "opcode"} & (first.keys() | second.keys()):
            rule, _ = violation(PLAIN.fields() | first | second)
            assert rule == min(one, other)


_NO_SUM = {"op": 3, "narrow": 1, "stochastic": 1}
IGNORED = {
    K.ALL_REDUCE: {"pitch": 1, "root": 63},
    K.REDUCE_SCATTER: {"root": 63},
    K.ALL_GATHER: _NO_SUM | {"root": 63, "dtype": 0},
    K.BROADCAST: _NO_SUM | {"pitch": 1, "src_address": 1, "dtype": 2},
    K.ALL_TO_ALL: _NO_SUM | {"root": 63, "dtype": 2},
    K.SEND: _NO_SUM | {"pitch": 1, "dst_address": 1, "dtype": 2},
    K.RECEIVE: _NO_SUM | {"pitch": 1, "src_address": (1 << 40) - 1, "dtype": 0},
    K.BARRIER: _NO_SUM
    | {"dtype": 3, "count": 0, "root": 63, "pitch": 1, "src_address": 1, "dst_address": (1 << 40) - 1},
}
"""By kind, fields that it ignores, with values that are illegal for other kinds."""


@pytest.mark.parametrize("kind", K, ids=lambda kind: kind.name.lower())
def test_fields_that_mean_nothing_are_never_wrong(kind):
    values = PLAIN.fields() | {"kind": int(kind)} | {"pitch": 512}
    assert violation(values) is None
    assert violation(values | IGNORED[kind]) is None


def test_the_ends_of_everything_are_legal():
    most = Collective(
        kind=K.ALL_TO_ALL, group=Group(MAX_CORES - 1, -2, words.MAX_RANKS), rank=63, count=(1 << 30) - 16, dtype=T.FP32,
        pitch=(1 << 32) - 64, src=(1 << 40) - words.MAX_RANKS * ((1 << 32) - 64), dst=0,
    )  # fmt: skip
    most.check(Context(replace(CONTEXT.config, cores=MAX_CORES), core=1))
    for change in ({"src": most.src + 64}, {"count": most.count + 1}, {"group": Group(126, -2, 65)}):
        assert violation(replace(most, **change).fields(), 1, MAX_CORES) is not None


def test_signatures_of_the_same_work_are_the_same(py_rng):
    own = {"rank", "root", "src_address", "dst_address", "pitch", "seed", "stream"}
    for _ in range(300):
        values = random_fields(py_rng)
        shown = words.signature(values)
        assert shown < 1 << words.SIGNATURE_BITS
        uses = SIGNATURE_USES[K(values["kind"])]
        assert words.signature_fields(shown) == {name: values[name] for name, _ in SIGNATURE_FIELDS if name in uses}
        other = random_fields(py_rng)
        unused = {name for name, _ in SIGNATURE_FIELDS} - uses
        assert words.signature(values | {name: other[name] for name in own - uses | unused}) == shown


def test_two_sides_of_a_transfer_go_together_and_two_of_the_same_do_not():
    send, receive = (words.signature(PLAIN.fields() | {"kind": int(kind)}) for kind in (K.SEND, K.RECEIVE))
    assert words.disagreement(send, receive) is None and words.disagreement(receive, send) is None
    assert words.disagreement(send, send) == words.disagreement(receive, receive) == "kind"


@pytest.mark.parametrize("name, width", SIGNATURE_FIELDS)
def test_the_lowest_difference_is_named(name, width, py_rng):
    kinds = [kind for kind in K if name in SIGNATURE_USES[kind] and kind not in words.OTHER_SIDE]
    for kind in kinds:
        one = words.signature(PLAIN.fields() | {"kind": int(kind)})
        assert words.disagreement(one, one) is None
        other = one ^ 1 << SIGNATURE_OFFSETS[name] + width - 1
        place = [field for field, _ in SIGNATURE_FIELDS].index(name)
        for above, bits in SIGNATURE_FIELDS[place + 1 :]:
            if above in SIGNATURE_USES[kind]:
                other ^= py_rng.getrandbits(bits) << SIGNATURE_OFFSETS[above]
        assert words.disagreement(one, other) == words.disagreement(other, one) == name


def test_best_chunk_needs_no_more_rounds_and_leaves_little_empty():
    for count in (1, 32, 33, 1000, 32 * 64 * 32, 32 * 64 * 32 + 1, 1 << 20, 12_345_678):
        for ranks in (2, 3, 16, 64):
            for kind, segments in ((K.ALL_REDUCE, ranks), (K.REDUCE_SCATTER, 1)):
                chunk = words.best_chunk(count, ranks, kind)
                part = (-(-count // words.GRANULE) + 1) // 2
                rounds = -(-part // (segments * chunk))
                assert 1 <= chunk <= words.CHUNK_GRANULES
                assert rounds == -(-part // (segments * words.CHUNK_GRANULES))
                assert rounds * segments * chunk - part < rounds * segments
                assert chunk == 1 or -(-part // (segments * (chunk - 1))) > rounds
    assert words.best_chunk(1 << 24, 32) == 32 and words.best_chunk(32 * 2 * 2 * 33, 2) == 17
