"""The multiply-accumulate behind its edge decoders, against golden, at every latency."""

import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.mac import Mac
from neuroncore_rtl.hdl.arith.operand import Operand
from neuroncore_rtl.spec.formats import MAC_FORMATS
from neuroncore_rtl.tb.benches.mac import MacUnit
from neuroncore_rtl.tb.stimulus import operands as stimulus

PER_FORMAT = 200


@pytest.mark.parametrize("latency", sorted(Mac.CUTS))
def test_mac_is_that_of_golden(run, rng, latency):
    unit = MacUnit(latency)
    cases, expected = [], []
    for fmt in MAC_FORMATS:
        x, w, acc = stimulus.mac_cases(rng, fmt, PER_FORMAT)
        for xi, wi, acc_i in zip(x.tolist(), w.tolist(), acc.tolist(), strict=True):
            word = unit.layout.const({"format": fmt.code, "x": xi, "w": wi, "acc": acc_i}).as_bits()
            cases.append({"word": word})
        expected += arith.mac(x, w, acc, fmt).tolist()
    order = rng.permutation(len(cases))
    assert run(unit, [cases[i] for i in order], "result") == [expected[i] for i in order]


@pytest.mark.parametrize("latency", sorted(Mac.CUTS))
@pytest.mark.parametrize("absent", ("x", "w"))
def test_absent_operand_passes_the_accumulator(run, rng, latency, absent):
    special = Operand.const({"inf": 1, "sign": 1}).as_bits()
    nothing = Operand.const({"inf": 1, "nan": 1}).as_bits()
    operands = {"x": special, "w": special, absent: nothing}
    acc = arith.canonical(stimulus.random_fp32(rng, 200)).tolist()
    assert run(Mac(latency), [{**operands, "acc": word} for word in acc]) == acc
