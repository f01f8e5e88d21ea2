"""The multiply-accumulate behind its edge decoders, against golden, at every latency."""

import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.mac import Mac
from neuroncore_rtl.hdl.arith.operand import Operand
from neuroncore_rtl.spec.formats import MAC_FORMATS
from neuroncore_rtl.tb.benches.mac import MacUnit
from neuroncore_rtl.tb.harness.player import pack
from neuroncore_rtl.tb.stimulus import operands as stimulus
from tests.hdl.arith.units import run, shuffled

PER_FORMAT = 200


@pytest.mark.parametrize("latency", sorted(Mac.CUTS))
def test_mac_is_that_of_golden(rng, latency):
    unit, parts = MacUnit(latency), []
    for fmt in MAC_FORMATS:
        x, w, acc = stimulus.mac_cases(rng, fmt, PER_FORMAT)
        parts.append((fmt.code, x, w, acc, arith.mac(x, w, acc, fmt)))
    cases, expected = shuffled(rng, parts, ("format", "x", "w", "acc"))
    words = [int.from_bytes(word.tobytes(), "big") for word in pack(unit.layout, **cases)]
    assert run(unit, {"word": words}, "result") == expected.tolist()


@pytest.mark.parametrize("latency", sorted(Mac.CUTS))
@pytest.mark.parametrize("absent", ("x", "w"))
def test_absent_operand_passes_the_accumulator(rng, latency, absent):
    special = Operand.const({"inf": 1, "sign": 1}).as_bits()
    nothing = Operand.const({"inf": 1, "nan": 1}).as_bits()
    operands = {"x": special, "w": special, absent: nothing}
    acc = arith.canonical(stimulus.random_fp32(rng, 200)).tolist()
    assert run(Mac(latency), [{**operands, "acc": word} for word in acc]) == acc
