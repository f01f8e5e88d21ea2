"""Code in LLVM's intermediate language, against the same in Python."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith.machine_code import (
    FLOAT,
    INDEX,
    assembly,
    compile_function,
    counted_range,
    has_feature,
    has_fused_multiply_add,
    local,
    multiply_add,
    new_function,
)


def polynomial(fused: bool):
    builder, (coefficients, results, rows, length) = new_function("f", *[FLOAT.as_pointer()] * 2, INDEX, INDEX)
    with counted_range(builder, rows) as row:
        total = local(builder, FLOAT)
        builder.store(FLOAT(0), total)
        with counted_range(builder, length) as index:
            c = builder.load(builder.gep(coefficients, [builder.add(builder.mul(row, length), index)]))
            builder.store(multiply_add(builder, builder.load(total), FLOAT(0.5), c, fused), total)
        builder.store(builder.load(total), builder.gep(results, [row]))
    return builder


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("rows", "length"), [(3, 5), (1, 1), (3, 0), (0, 3)])
def test_loops_and_multiply_adds(fused, rows, length):
    coefficients = np.arange(rows * length, dtype=np.float32).reshape(rows, length)
    results = np.full(rows + 1, -1, np.float32)
    compile_function(polynomial(fused))(coefficients, results, rows, length)
    expected = [sum(c * 0.5 ** (length - 1 - i) for i, c in enumerate(row)) for row in coefficients.tolist()]
    assert results.tolist() == [*expected, -1]


@pytest.mark.skipif(not has_fused_multiply_add(), reason="this processor has no fused multiply-add")
def test_fused_multiply_adds_are_the_processors():
    assert "fmaf" not in assembly(polynomial(fused=True))
    assert any(name in assembly(polynomial(fused=True)) for name in ("vfmadd", "fmadd"))
    assert "fmadd" not in assembly(polynomial(fused=False))


def test_a_feature_that_no_processor_has():
    assert not has_feature("third-hand")
