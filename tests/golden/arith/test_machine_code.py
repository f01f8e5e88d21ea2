"""Code in LLVM's intermediate language, against the same in Python."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import machine_code


def polynomial(fused: bool):
    builder, (coefficients, results, rows, length) = machine_code.new_function(
        "f", *[machine_code.FLOAT.as_pointer()] * 2, machine_code.INDEX, machine_code.INDEX
    )
    with machine_code.counted_range(builder, rows) as row:
        total = machine_code.local(builder, machine_code.FLOAT)
        builder.store(machine_code.FLOAT(0), total)
        with machine_code.counted_range(builder, length) as index:
            c = builder.load(builder.gep(coefficients, [builder.add(builder.mul(row, length), index)]))
            builder.store(
                machine_code.multiply_add(builder, builder.load(total), machine_code.FLOAT(0.5), c, fused), total
            )
        builder.store(builder.load(total), builder.gep(results, [row]))
    return builder


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("rows", "length"), [(3, 5), (1, 1), (3, 0), (0, 3)])
def test_loops_and_multiply_adds(fused, rows, length):
    coefficients = np.arange(rows * length, dtype=np.float32).reshape(rows, length)
    results = np.full(rows + 1, -1, np.float32)
    machine_code.compile_function(polynomial(fused))(coefficients, results, rows, length)
    expected = [sum(c * 0.5 ** (length - 1 - i) for i, c in enumerate(row)) for row in coefficients.tolist()]
    assert results.tolist() == [*expected, -1]


@pytest.mark.skipif(not machine_code.has_fused_multiply_add(), reason="this processor has no fused multiply-add")
def test_fused_multiply_adds_are_the_processors():
    assert "fmaf" not in machine_code.assembly(polynomial(fused=True))
    assert any(name in machine_code.assembly(polynomial(fused=True)) for name in ("vfmadd", "fmadd"))
    assert "fmadd" not in machine_code.assembly(polynomial(fused=False))


def test_a_feature_that_no_processor_has():
    assert not machine_code.has_feature("third-hand")
