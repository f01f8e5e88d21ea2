"""All calls with random shapes, views, formats and memories, against numpy."""

import pytest

from neuroncore_rtl.frontends.nki.dialects.table import calls
from tests.frontends.nki import random_isa, random_language, random_moves
from tests.frontends.nki.sketch import TYPES, Sketch

ISA = random_isa.CALLS | random_moves.CALLS
LANGUAGE = random_language.CALLS

CASES = {
    **{f"nisa.{name}": case for name, case in ISA.items()},
    **{f"nl.{name}": case for name, case in LANGUAGE.items()},
    **{f"nisa.{name} of the first dialect": case for name, case in random_moves.OLDER.items()},
}

FUNCTIONS_OF_NO_TENSOR = {
    "loops: test_loops.py": "affine_range sequential_range static_range dynamic_range fori_loop while_loop",
    "indices, grids and shapes: test_views.py, test_indices.py, test_calls.py":
        "arange mgrid ds dslice program_id num_programs program_ndim spmd_dim par_dim nc tile_size",
    "empty tensors, which all other calls use": "ndarray empty empty_like NkiTensor",
    "memories, all of them tested":
        "sbuf psum hbm shared_hbm private_hbm MemoryRegion is_hbm is_on_chip is_sbuf is_psum",
    "what is known of types; bool_ is stored as uint8": "DType bool bool_ finfo fp32",
    "operations of tested calls": "average bypass prelu",
    "what changes nothing": "device_print no_reorder NKIObject",
}  # fmt: skip
"""Names of nki.language without a case, by reason."""


DRAWS = 16
"""Draws of a call in one kernel."""


def sketch_of(name: str, seed: int) -> Sketch:
    older = name.endswith("first dialect") or (name.startswith("nl.") and (seed + len(name)) % 2 == 1)
    sketch = Sketch((seed, *name.encode()), older)
    for _ in range(DRAWS):
        sketch.draw(CASES[name])
    return sketch


@pytest.mark.parametrize("name", CASES)
def test_call_on_random_operands(tmp_path, name):
    sketch = sketch_of(name, 0)
    assert any(f"{name.split()[0]}(" in line for line in sketch.lines)
    sketch.check(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_call_on_more_random_operands(tmp_path, name):
    for seed in range(1, 8):
        sketch_of(name, seed).check(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(CASES), 12))
def test_calls_on_the_rtl(tmp_path, first):
    names = list(CASES)[first : first + 12]
    for older in (False, True):
        sketch = Sketch((first, older), older)
        for name in names:
            other = f"{name} of the first dialect"
            if other not in CASES if older else not name.endswith("first dialect"):
                sketch.draw(CASES[name])
        if sketch.results:
            sketch.check(tmp_path, target="rtl")


def test_every_call_is_tested():
    table = calls()
    known = {name for name, how, _ in table["nki.isa"] if how != "unsupported"}
    older = {*(f"{name}, of expressions" for name in random_moves.OLDER), "memset of a shape"}
    assert known - set(ISA) - older == set()
    named = {name for names in FUNCTIONS_OF_NO_TENSOR.values() for name in names.split()}
    known = {name for name, how, _ in table["nki.language"] if how != "unsupported"}
    assert known - set(LANGUAGE) - named - set(TYPES) == set() and not (named - known) and not named & set(LANGUAGE)


def test_a_wrong_result_is_found(tmp_path):
    def wrong(s: Sketch) -> None:
        a, y = s.source((3, 4), "float32"), s.target((3, 4), "bfloat16")
        s.call(f"nisa.tensor_copy(dst={y.name}, src={a.name})")
        s.expect(y, a.values + 0.25)

    def beside(s: Sketch) -> None:
        wide = s.target((3, 4), "int8")
        s.call(f"nisa.memset(dst={wide.name}, value=7)")
        s.expect(wide, wide.values)

    for case in (wrong, beside):
        sketch = Sketch(0)
        sketch.draw(case)
        with pytest.raises(AssertionError, match=r"of \d+ wrong, at"):
            sketch.check(tmp_path)
