from dataclasses import replace

import pytest

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP8E4M3, FP16, FP32, INT8, INT16, MATMUL_FORMATS, TF32
from neuroncore_rtl.spec.isa import TENSOR_BITS, Context, LoadStationary, MultiplyMoving

CONTEXT = Context(Config(rows=4, columns=5), loaded=(range(5), True))
LOAD = LoadStationary(format=BF16, k=4, m=5, address=8)
MOVE = MultiplyMoving(format=BF16, k=4, m=5, n=512, address=2, stride=2, psum=512)
FORMATS = ", ".join(fmt.name for fmt in MATMUL_FORMATS)

REFUSED = [
    ({"format": INT16}, f"format must be the code of one of {FORMATS}, not {INT16.code} "),
    ({"half": 1}, ": half must be 0, or for fp32 1, not 1"),
    ({"format": FP32, "address": 16, "half": 2}, "half must be from 0 to 1, not 2"),
    ({"k": 0}, ": k must be between 1 and 4, not 0"),
    ({"k": 5}, ": k must be between 1 and 4, not 5"),
    ({"m": 0}, ": m must be between 1 and 5, not 0"),
    ({"m": 6}, ": m must be between 1 and 5, not 6"),
    ({"address": -8}, "address must be from 0 to 262143, not -8"),
]

REFUSED_LOADS = [
    ({"address": 12}, ": address must be a multiple of 8 for bf16, not 12"),
    ({"format": FP8E4M3, "address": 6}, ": address must be a multiple of 4 for fp8e4m3, not 6"),
    ({"format": FP32, "address": 8}, ": address must be a multiple of 16 for fp32, not 8"),
]

REFUSED_MOVES = [
    ({"n": 0}, ": n must be between 1 and 512, not 0"),
    ({"n": 513}, ": n must be between 1 and 512, not 513"),
    ({"address": 3}, ": address must be a multiple of 2 for bf16, not 3"),
    ({"stride": 3}, ": stride must be a multiple of 2 for bf16, not 3"),
    ({"stride": 1 << 16}, "stride must be from 0 to 65535, not 65536"),
    ({"psum": -1, "n": 1}, "psum must be from 0 to 4095, not -1"),
    ({"psum": 4096, "n": 1}, "psum must be from 0 to 4095, not 4096"),
    ({"psum": 513}, r": psum \+ n must stay within a bank of 512 words, not 513"),
]


@pytest.mark.parametrize("fmt", [FP32, TF32, FP16])
@pytest.mark.parametrize("instruction", [LOAD, MOVE])
def test_format_of_more_bits_than_the_significands_of_the_array_is_refused(instruction, fmt):
    narrow = replace(CONTEXT, config=replace(CONTEXT.config, significand_bits=8))
    instruction.check(narrow)
    wide = replace(instruction, format=fmt, address=32, **({"stride": 4} if instruction is MOVE else {}))
    wide.check(CONTEXT)
    names = "bf16, fp8e4m3, fp8e5m2, fp8e3m4, int8"
    with pytest.raises(ValueError, match=f"format must be the code of one of {names}, not {fmt.code} .*FORMAT"):
        wide.check(narrow)


CHANGES = [(LOAD, *row) for row in REFUSED + REFUSED_LOADS] + [(MOVE, *row) for row in REFUSED + REFUSED_MOVES]


@pytest.mark.parametrize(("instruction", "change", "message"), CHANGES)
def test_wrong_instruction_is_refused(instruction, change, message):
    with pytest.raises(ValueError, match=message):
        replace(instruction, **change).check(CONTEXT)


@pytest.mark.parametrize(
    "instruction",
    [
        LOAD,
        MOVE,
        replace(LOAD, format=FP32, half=1, k=1, m=1, address=CONTEXT.config.sbuf_bytes - 16),
        replace(MOVE, format=INT8, n=1, address=CONTEXT.config.sbuf_bytes - 1, stride=(1 << 16) - 1, psum=4095),
        replace(MOVE, stride=0, transpose=True, accumulate=True),
    ],
)
def test_ends_of_the_ranges_are_valid(instruction):
    instruction.check(CONTEXT)
    assert 0 <= instruction.encode() < 1 << TENSOR_BITS


WIDE = Config(rows=10, columns=16)

REFUSED_PLACES = [
    ({"row": 2}, ": row must be one of 0, 4, 8, not 2"),
    ({"row": 12, "k": 1}, ": row must be one of 0, 4, 8, not 12"),
    ({"row": 4, "k": 5}, ": row must be 0 or 8 for more than 4 rows, not 4"),
    ({"row": 8, "k": 3}, r": row \+ k must be at most 10, not 11"),
    ({"column": 9}, ": column must be one of 0, 4, 8, 12, not 9"),
    ({"column": 12, "m": 5}, ": column must be 0 or 8 for more than 4 columns, not 12"),
    ({"column": 8, "m": 9}, ": column must be 0 for more than 8 columns, not 8"),
]


@pytest.mark.parametrize("instruction", [LOAD, MOVE])
@pytest.mark.parametrize(("change", "message"), REFUSED_PLACES)
def test_operands_and_results_start_at_quadrants(instruction, change, message):
    context = Context(WIDE, loaded=(range(16), True))
    placed = replace(instruction, k=2, m=4, row=8, column=8)
    placed.check(context)
    with pytest.raises(ValueError, match=message):
        replace(placed, **change).check(context)


def test_a_result_starts_where_a_step_of_a_load_does():
    for config, starts in ((Config(rows=8, columns=8), (0, 4)), (Config(rows=12, columns=12), (0,))):
        for column in range(config.columns):
            load = replace(LOAD, k=1, m=1, column=column)
            if column in starts:
                load.check(Context(config))
                continue
            with pytest.raises(ValueError, match=f"column must be one of {', '.join(map(str, starts))}, not {column}"):
                load.check(Context(config))


@pytest.mark.parametrize(("columns", "found"), [({"column": 4}, "4 to 7"), ({"column": 8, "m": 7}, "8 to 14")])
def test_a_product_has_no_columns_that_were_not_loaded(columns, found):
    context = replace(LOAD, k=1, m=6, column=8).after(Context(WIDE))
    for column, m in ((8, 6), (8, 1), (12, 2)):
        replace(MOVE, column=column, m=m).check(context)
    with pytest.raises(ValueError, match=f"columns must be among the loaded ones, 8 to 13, not {found}"):
        replace(MOVE, **{"m": 4, **columns}).check(context)
