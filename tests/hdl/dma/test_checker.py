import re
from itertools import accumulate, combinations_with_replacement, product
from operator import mul

import pytest

from neuroncore_rtl.hdl.dma.checker import DmaChecker
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FORMATS, FP32, format_of
from neuroncore_rtl.spec.isa import DMA_BITS, DMA_COPY, DMA_DIMENSIONS, DMA_FIELDS, HBM_ADDRESS_BITS, Rule, Storage
from neuroncore_rtl.spec.isa.access import storage_bytes, storage_partitions
from neuroncore_rtl.spec.isa.dma import NO_AXIS, DmaCopy, dma_violation, layout
from neuroncore_rtl.spec.isa.fields import pack, unpack
from tests.hdl import verdicts
from tests.hdl.dma.copies import random_copy, tensor
from tests.hdl.simulation import random_bits, slow_if

SEED = 2718
CONFIGS = {"4x4": Config(rows=4, columns=4), "6x4": Config(rows=6, columns=4), "8x16": Config(rows=8, columns=16)}
CONFIGS["registered"] = Config(rows=4, columns=4, port_latency=1)
CONFIGS["small memories"] = Config(rows=4, columns=4, sbuf_bytes=3072, psum_words=32)
RULES = (Rule.OPCODE, Rule.FORMAT, Rule.SHAPE, Rule.PARTITIONS, Rule.ALIGNMENT, Rule.RANGE, Rule.STORAGE)


def violations_of(config, words):
    return [dma_violation(DmaCopy.unpack(word), config) for word in words]


def random_words(rng, config, count):
    return [random_copy(rng, config).encode() for _ in range(count)]


def near_word(rng, config):
    values = random_copy(rng, config).fields()
    name = str(rng.choice(("src", "dst")))
    storage, axis = Storage(values[f"{name}_storage"]), values[f"{name}_axis"]
    size = format_of(values[f"{name}_dtype"]).bits // 8
    spans = {d: (values[f"count{d}"] - 1) * values[f"{name}_step{d}"] for d in range(DMA_DIMENSIONS)}
    across = spans.pop(axis, 0)
    low, high = (sum(pick(span, 0) for span in spans.values()) for pick in (min, max))
    limit = 1 << HBM_ADDRESS_BITS if storage == Storage.HBM else storage_bytes(storage, config)
    kind = rng.integers(6)
    if kind < 2:
        border = limit - (high + 1) * size if kind else -low * size
        values[f"{name}_address"] = border + int(rng.integers(-1, 2)) * int(rng.choice((1, size)))
    elif kind == 2 and storage != Storage.HBM:
        end = storage_partitions(storage, config) - 1 - max(across, 0)
        values[f"{name}_partition"] = int(rng.choice((-min(across, 0), end))) + int(rng.integers(-1, 2))
    elif kind == 3 and (values["gather"] or values["scatter"]):
        values["index_partition"] = config.partitions - values["count4"] + int(rng.integers(-1, 2))
        end = config.sbuf_bytes
        values["index_address"] = int(rng.choice((0, 1, 2, end - 4, end - 3, end, 64)))
    elif kind == 4:
        values[f"{name}_axis"] = int(rng.choice((0, 4, 5, 6, NO_AXIS)))
        values["count0"] = int(rng.choice((0, 1, values["count0"])))
    else:
        for _ in range(int(rng.integers(1, 3))):
            field, width = DMA_FIELDS[rng.integers(len(DMA_FIELDS))]
            values[field] = int(rng.choice((0, 1, (1 << width) - 1, int(rng.integers(1 << 62)) % (1 << width))))
    return pack(DMA_FIELDS, {name: values[name] % (1 << width) for name, width in DMA_FIELDS})


@pytest.mark.parametrize("shape", ["4x4", "registered"])
def test_a_legal_copy_per_interval_with_the_latency_and_a_stalled_job_stays_unchanged(shape, rng):
    config, more = CONFIGS[shape], CONFIGS[shape].port_latency
    words = random_words(rng, config, 24)
    words = [word for word, broken in zip(words, violations_of(config, words), strict=True) if not broken]
    free, valid_cycles, error = verdicts.pass_on(DmaChecker(config), words)
    assert free.cycles["i"] == [(DmaChecker.INTERVAL + 4 * more) * number for number in range(len(words))]
    assert valid_cycles == free.cycles["o"] == [cycle + DmaChecker.LATENCY + 3 * more for cycle in free.cycles["i"]]
    assert len(words) > 5 and error is None
    stalled, *_ = verdicts.pass_on(DmaChecker(config), words, 0.8)
    assert stalled.payloads["o"] == free.payloads["o"]


@pytest.mark.parametrize("shape", slow_if(lambda shape: shape in ("6x4", "8x16"), CONFIGS))
def test_verdicts_are_those_of_the_specification(shape, rng):
    config = CONFIGS[shape]
    words = random_words(rng, config, 40) + [near_word(rng, config) for _ in range(300)]
    noise = [random_bits(rng, DMA_BITS) for _ in range(40)]
    words += [word >> 6 << 6 | DMA_COPY if rng.random() < 0.9 else word for word in noise]
    verdicts.assert_verdicts(DmaChecker(config), words, violations_of(config, words), RULES)


def legal_words(rng, config, count):
    words = {}
    while len(words) < count:
        copy = random_copy(rng, config)
        fields = copy.fields()
        if dma_violation(fields, config) is None:
            words.setdefault(tuple(fields[name] for name in ("src_storage", "dst_storage", "gather")), copy.encode())
    return list(words.values())


def small(**changes):
    sides = {"src": tensor(Storage.HBM, steps=(0,)), "dst": tensor(Storage.HBM, 1 << 20, steps=(0,))}
    return DmaCopy(shape=(1,), **sides).fields() | changes


def walk(name, storage, dimension, count, step, **place):
    side = {"storage": storage, f"step{dimension}": step} | place
    return small(**{f"{name}_{what}": value for what, value in side.items()} | {f"count{dimension}": count})


def walks(config):
    limits = {storage: storage_bytes(storage, config) for storage in (Storage.SBUF, Storage.PSUM)}
    limits[Storage.HBM] = 1 << HBM_ADDRESS_BITS
    for name, (storage, limit) in product(("src", "dst"), limits.items()):
        for far, over in product(range(min(limit.bit_length() - 1, 31)), (0, 1)):
            dimension = far % DMA_DIMENSIONS
            for count in {2, min((limit - 1 >> far) + 1, 1 << 15), 5}:
                span = count - 1 << far
                yield walk(name, storage, dimension, count, 1 << far, address=limit - 1 - span + over)
                yield walk(name, storage, dimension, count, -1 << far, address=span - over)
        if storage != Storage.HBM:
            last = storage_partitions(storage, config) - 1
            for far, more in product(range(storage == Storage.PSUM, 31, 2), range(-2, 4)):
                span, dimension = (1 << far) + more, far % DMA_DIMENSIONS
                for first, step in product((0, last - 1, last), (span, -span)):
                    yield walk(name, storage, dimension, 2, step, axis=dimension, partition=first)
                if more in (0, 1):
                    for first, step in ((0, 1 << far), (last, -1 << far)):
                        yield walk(name, storage, dimension, 2 + more, step, axis=dimension, partition=first)


def row_numbers(config):
    for way, side in (("gather", "src"), ("scatter", "dst")):
        place = {f"{side}_storage": Storage.HBM, way: 1}
        for count, over in product((1, 2, config.partitions, *(1 << bit for bit in range(3, 16))), (0, 1)):
            yield small(**place, count4=count, index_partition=max(0, config.partitions - count + over), index_limit=9)
        for rows in range(4):
            yield small(**place, count4=(1 << 16) - 2047 + rows, index_partition=2047, index_limit=9)
        for address in (-4, 0, *(1 << bit for bit in range(16))):
            yield small(**place, index_address=config.sbuf_bytes + address, index_limit=9)
        for bit in range(11):
            yield small(**place, index_partition=1 << bit, index_limit=9)
        for bit in range(32):
            apart = (1 << bit) - (1 << 32) * (bit == 31)
            far = {f"{side}_address": (1 << HBM_ADDRESS_BITS) - 1, f"{side}_step4": apart}
            yield small(**place, count4=config.partitions, index_limit=9, **far)
    yield small(gather=1, scatter=1, index_limit=9)
    for dimension in range(DMA_DIMENSIONS):
        yield small(**{f"count{dimension}": 0})


BROKEN = {
    Rule.OPCODE: {"opcode": DMA_COPY - 1},
    Rule.FORMAT: {"src_dtype": next(code for code in range(16) if code not in {fmt.code for fmt in FORMATS.values()})},
    Rule.SHAPE: {"count1": 0},
    Rule.PARTITIONS: {"dst_axis": DMA_DIMENSIONS},
    Rule.ALIGNMENT: {"dst_address": 1, "dst_dtype": FP32.code},
    Rule.RANGE: {"src_address": (1 << HBM_ADDRESS_BITS) - 1, "src_step0": 1, "count0": 2},
    Rule.STORAGE: {"gather": 1, "scatter": 1},
}


def two_at_once():
    for first, second in combinations_with_replacement(BROKEN.values(), 2):
        yield small(**first, **{name: value for name, value in second.items() if name not in first})
    for name in ("src", "dst"):
        for other in ({"address": 1, "dtype": FP32.code}, {"axis": DMA_DIMENSIONS}, {"address": 3, "step0": -9}, {}):
            yield small(count0=2, **{f"{name}_{what}": value for what, value in {"storage": 3, **other}.items()})


def adjacent(rng):
    counts_of = (*((1 << bit, 1 << 15 - bit, 2, 3, 1) for bit in range(16)), *rng.integers(1, 9, (16, DMA_DIMENSIONS)))
    for bit, counts in enumerate(counts_of):
        counts = rng.permutation(counts) if bit % 2 else counts
        rows = {("gather", "scatter")[bit % 2]: 1, "index_limit": int(rng.integers(1 << 32))} if bit % 3 else {}
        counts = [*counts[:-1], 1 + bit % 3] if rows else counts
        steps = [1, *accumulate((int(count) for count in counts[:-1]), mul)]
        for name, dimension in product(("src", "dst"), range(DMA_DIMENSIONS)):
            others = [step ^ (1 << bit) * (d == dimension) for d, step in enumerate(steps)]
            fields = rows | {f"count{d}": int(count) for d, count in enumerate(counts)}
            for side in ("src", "dst"):
                for d, step in enumerate(others if side == name else steps):
                    fields[f"{side}_step{d}"] = (step + (1 << 31)) % (1 << 32) - (1 << 31)
                fields[f"{side}_address"] = 1 << HBM_ADDRESS_BITS - 1
            yield small(**fields)


def full_of_bits(rng):
    for _ in range(300):
        bits = rng.integers(1, 17, DMA_DIMENSIONS)
        fields = {f"count{d}": int(rng.integers(1, 1 << size)) for d, size in enumerate(bits)}
        fields |= {"index_limit": int(rng.integers(1 << 32)), "index_skip": int(rng.integers(2))}
        if way := str(rng.choice(("", "gather", "scatter"))):
            fields |= {way: 1, "index_address": 4 * int(rng.integers(1 << 10)), "count4": int(rng.integers(1, 3))}
            fields |= {"index_partition": int(rng.integers(3))}
        for side in ("src", "dst"):
            fields[f"{side}_dtype"] = list(FORMATS.values())[rng.integers(len(FORMATS))].code
            fields[f"{side}_address"] = int(rng.integers(1 << 38, 3 << 38)) & ~3
            for d, size in enumerate(bits):
                fields[f"{side}_step{d}"] = int(rng.integers(-1 << min(31, 34 - size), 1 << min(31, 34 - size)))
        yield small(**fields)


def expected_job(fields):
    """Return the job; a run covers the inner dimensions that are contiguous in memory, at most an indexed row."""
    indexed = {"src": fields["gather"], "dst": fields["scatter"]}
    rows, expected = fields["gather"] or fields["scatter"], {}
    for name in ("src", "dst"):
        elements, last, merging = 1, [], True
        for d in range(DMA_DIMENSIONS):
            count, step = fields[f"count{d}"], fields[f"{name}_step{d}"]
            adjacent = step == elements and fields[f"{name}_axis"] != d and not (rows and d == DMA_DIMENSIONS - 1)
            merging = merging and (count == 1 or adjacent)
            elements *= count if merging else 1
            last.append(0 if merging else count - 1)
            expected[f"{name}.step[{d}]"] = 0 if indexed[name] and d == DMA_DIMENSIONS - 1 else step
            expected[f"{name}.last[{d}]"] = last[-1]
        size = (format_of(fields[f"{name}_dtype"]).bits // 8).bit_length() - 1
        expected |= {f"{name}.size": size, f"{name}.bytes": elements << size}
        expected[f"formats.{name}"] = fields[f"{name}_dtype"]
        place = ("storage", "address", "axis", *["partition"] * (fields[f"{name}_storage"] != Storage.HBM))
        expected |= {f"{name}.{what}": fields[f"{name}_{what}"] for what in place}
    expected |= {"rows.on": int(rows), "rows.scatter": fields["scatter"]}
    if rows:
        side = "dst" if fields["scatter"] else "src"
        expected |= {f"rows.{what}": fields[f"index_{what}"] for what in ("address", "partition", "limit", "skip")}
        expected |= {"rows.last": fields["count4"] - 1, "rows.step": fields[f"{side}_step4"]}
        expected |= {"rows.size": expected[f"{side}.size"]}
    return expected


def field_of_job(job, name):
    for part in re.findall(r"\w+", name):
        job = job[int(part) if part.isdigit() else part]
    return int(getattr(job, "value", job))


@pytest.mark.slow
def test_every_bit_and_every_size_is_judged(rng):
    config = CONFIGS["4x4"]
    flips = (0, *(1 << bit for bit in range(DMA_BITS)))
    words = [word ^ flip for word in legal_words(rng, config, 2) for flip in flips]
    for fields in (*walks(config), *row_numbers(config), *two_at_once(), *adjacent(rng), *full_of_bits(rng)):
        if all(-(1 << width - 1) <= fields[name] < 1 << width for name, width in DMA_FIELDS):
            words.append(pack(DMA_FIELDS, {name: fields[name] % (1 << width) for name, width in DMA_FIELDS}))
    violations = violations_of(config, words)
    assert 600 < sum(violation is None for violation in violations) < len(words) - 300
    jobs = verdicts.assert_verdicts(DmaChecker(config), words, violations)
    for word, job in zip(words, jobs, strict=True):
        if job is not None:
            expected = expected_job(unpack(DMA_FIELDS, word, layout.DMA_SIGNED))
            assert {name: field_of_job(job, name) for name in expected} == expected
