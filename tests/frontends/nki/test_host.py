"""Kernels called with numpy arrays by a host program."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from neuroncore_rtl.frontends.nki import nki_machine, run_nki
from tests.frontends.nki.kernels import HEADER, run_kernel, write_kernel

X = np.random.default_rng(3).normal(size=(4, 6)).astype(np.float32)


def host(folder, text: str, **options) -> dict:
    file = folder / "host.py"
    file.write_text(HEADER.format(package="neuronxcc.nki") + text)
    names: dict[str, object] = {"X": X}
    with nki_machine(preset="tiny", **options):
        exec(compile(file.read_text(), str(file), "exec"), names)
    return names


DOUBLED = """
@nki.jit(mode="simulation")
def doubled(x, times=2):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.multiply(nl.load(x), times))
    return out
"""


@pytest.mark.parametrize(
    "call", ["doubled(X)", "nki.simulate_kernel(doubled, X)", "nki.simulate(doubled)(X)", "nki.baremetal(doubled)(X)"]
)
def test_a_call_returns_arrays(tmp_path, call):
    found = host(tmp_path, f"{DOUBLED}\nfound = {call}\nmore = doubled(nl.static_cast(X, nl.bfloat16), times=4)")
    assert found["found"].dtype == np.float32 and (found["found"] == 2 * X).all()
    assert found["more"].dtype == ml_dtypes.bfloat16
    assert (found["more"].astype(np.float32) == 4 * X.astype(ml_dtypes.bfloat16).astype(np.float32)).all()
    assert "neuronxcc" not in sys.modules


def test_what_a_kernel_writes_to_changes_in_place(tmp_path):
    found = host(tmp_path, """
@nki.jit
def doubled(x, out):
    i = nl.program_id(0)
    nl.store(out[2 * i : 2 * i + 2], value=nl.multiply(nl.load(x[2 * i : 2 * i + 2]), 2.0))

out = np.zeros_like(X)
nothing = doubled[2](X, out)
typed = np.zeros_like(X)
doubled[2](X, (typed, "float32"))
""")  # fmt: skip
    assert (found["out"] == 2 * X).all() and (found["typed"] == 2 * X).all()


def test_without_a_machine_a_kernel_cannot_be_called(tmp_path):
    found = host(tmp_path, DOUBLED)
    with pytest.raises(RuntimeError, match="doubled: a kernel must be run by run_nki"):
        found["doubled"](X)


def test_a_file_that_calls_its_kernels_is_loaded_up_to_there(tmp_path):

    file = tmp_path / "script.py"
    file.write_text(f"{HEADER.format(package='nki')}{DOUBLED}\nassert doubled(np.ones((2, 2))).sum() == 8\n1 / 0\n")
    assert (run_kernel(f"{file}:doubled", X).outputs[0] == 2 * X).all()


def test_a_number_beyond_its_tensor_is_an_error_of_numpy(tmp_path):
    text = """
@nki.jit
def rows(x, numbers):
    out = nl.ndarray((4, 6), dtype=x.dtype, buffer=nl.shared_hbm)
    places = nl.load(numbers)
    nl.store(out, value=nl.load(x[places[nl.arange(4)[:, None], 0], nl.arange(6)[None, :]]))
    return out

rows(X, np.array([[0], [3], [last], [1]], np.int32))
"""
    host(tmp_path, text.replace("last", "2"))
    with pytest.raises(IndexError, match="^index 30 is out of bounds for axis 0 with size 24$"):
        host(tmp_path, text.replace("last", "5"))


def test_a_grid_that_is_none_is_refused_where_it_is_called(tmp_path):
    found = host(tmp_path, f"{DOUBLED}\nlater = doubled[0]")
    message = r"a grid must have integers of at least 1, not \(0,\)"
    with pytest.raises(ValueError, match=message), nki_machine(preset="tiny"):
        found["later"](X)


@pytest.mark.parametrize("grid", ["a", None, 1.5, (1.5,), ("a",)])
def test_a_grid_has_integers(tmp_path, grid):
    kernel = write_kernel(tmp_path, "return x", parameters="x")
    with pytest.raises(ValueError, match="a grid must have integers of at least 1, not "):
        run_nki(kernel, X, grid=grid, preset="tiny", on="golden")


def test_numpy_makes_arrays_of_the_types_of_kernels(tmp_path):
    found = host(tmp_path, """
made = [np.ones(3, dtype) for dtype in (nl.bfloat16, nl.float8_e5m2, nl.bool_, nl.int16, nl.tfloat32)]
""")  # fmt: skip
    assert [array.dtype.name for array in found["made"]] == ["bfloat16", "float8_e5m2", "bool", "int16", "float32"]


def test_tests_that_are_there_run_with_the_plugin(tmp_path):
    (tmp_path / "test_doubled.py").write_text(f"""{HEADER.format(package="neuronxcc.nki")}{DOUBLED}
def test_doubled(request):
    x = np.ones((nl.tile_size.pmax, 2), np.float32)
    assert (doubled(x) == 2 * x).all() and len(x) == 4
""")
    words = "-m pytest -q -p neuroncore_rtl.frontends.nki.runtime.machine --nki-preset tiny".split()
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


TOTAL = """
@nki.jit
def total({parameters}):
    {given}
    out = nl.ndarray(xs[0].shape, dtype=xs[0].dtype, buffer=nl.shared_hbm)
    tile = nl.load(xs[0])
    for x in xs[1:]:
        tile = nl.add(tile, nl.load(x))
    nl.store(out, tile)
    return out
"""


@pytest.mark.parametrize(
    ("parameters", "given", "call"),
    [
        ("xs", "", "total([X, Y, X])"),
        ("xs", "", "total((X, Y, X))"),
        ("xs", "xs = [*xs[0], *xs[1]]", "total(([X], (Y, X)))"),
        ("*xs", "", "total(X, Y, X)"),
        ("first, *rest, last", "xs = [first, *rest, last]", "total(X, Y, last=X)"),
        ("table", "xs = [table['a'], *table['b']]", "total({'a': X, 'b': [Y, X]})"),
        ("**table", "xs = [table[k] for k in 'abc']", "total(a=X, b=Y, c=X)"),
        ("x, ys=(Y, X)", "xs = [x, *ys]", "total(X)"),
        ("x, y=Y, *, z=X", "xs = [x, y, z]", "total(X)"),
        ("pair", "xs = [pair.one, pair.other, pair[0]]", "total(Pair(X, Y))"),
        ("xs", "", "total([X, (Y, 'float32'), (X, np.float32)])"),
        ("", "xs = [nl.shared_constant(one, dtype=nl.float32) for one in (X, Y, X)]", "total()"),
    ],
)
def test_arrays_within_arguments_are_arguments(tmp_path, parameters, given, call):
    text = "from collections import namedtuple\nPair = namedtuple('Pair', 'one other')\nY = 3 * X + 1\n"
    found = host(tmp_path, f"{text}{TOTAL.format(parameters=parameters, given=given)}\nfound = {call}")
    assert np.array_equal(found["found"], X + (3 * X + 1) + X)


def test_a_tuple_of_two_arrays_is_no_array_with_a_type(tmp_path):
    found = host(tmp_path, f"{TOTAL.format(parameters='xs', given='')}\nfound = total((X, X))")
    assert np.array_equal(found["found"], 2 * X)
    kernel = write_kernel(tmp_path, "return x[0]", parameters="x")
    assert np.array_equal(run_kernel(kernel, (X, X)).outputs[0], X)
    with pytest.raises(ValueError, match="x.1: dtype must be one of .*, not 'float64'"):
        run_kernel(kernel, [X, X.astype(np.float64)])


@pytest.mark.parametrize("given", ["xs = [X, X]", "xs = [OTHER, OTHER]"])
def test_an_array_of_a_global_is_refused(tmp_path, given):
    text = f"OTHER = np.ones((2, 2), np.float32)\n{TOTAL.format(parameters='x', given=given)}\nfound = total(X)"
    with pytest.raises(ValueError, match=r"an array of numpy must be an argument of the kernel .*\(host.py:\d+\)"):
        host(tmp_path, text)


def test_arrays_within_arguments_change_in_place(tmp_path):
    found = host(tmp_path, """
@nki.jit
def doubled(x, outs, *more):
    tile = nl.multiply(nl.load(x), 2.0)
    for out in (outs[0], outs[1]["a"], *more):
        nl.store(out, value=tile)

outs, more = [np.zeros_like(X), {"a": np.zeros_like(X)}], np.zeros_like(X)
doubled(X, outs, more)
found = [outs[0], outs[1]["a"], more]
""")  # fmt: skip
    assert all(np.array_equal(one, 2 * X) for one in found["found"])


def test_positional_arguments_of_run_nki_fit_any_number(tmp_path):
    kernel = write_kernel(tmp_path, "a = nl.load(xs[1])", True, "*xs", out="xs[0].shape, nl.float32", stores="a")
    assert np.array_equal(run_kernel(kernel, X, 2 * X, X).outputs[0], 2 * X)


@pytest.mark.parametrize("target", ["golden", "rtl"])
def test_masks_numpy_and_containers_are_the_same_on_the_rtl(tmp_path, target):
    found = host(tmp_path, """
@nki.jit
def total(xs, *, scale=np.full((4, 1), 3, np.float32)):
    out = nl.ndarray(xs[0].shape, dtype=xs[0].dtype, buffer=nl.shared_hbm)
    j = nl.arange(6)[None, :]
    tile = np.maximum(nl.load(xs[0], mask=~(j < 2.5)), nl.load(xs[1], mask=0 <= j < 5))
    nl.store(out, np.multiply(tile, nl.load(scale)))
    return out

found = total((X, 1 - X))
""", on=target)  # fmt: skip
    columns = np.arange(6)
    assert np.array_equal(found["found"], 3 * np.maximum(X * (columns > 2.5), (1 - X) * (columns < 5)))


def test_positional_arguments_of_run_nki_may_be_keywords_of_the_kernel(tmp_path):
    kernel = write_kernel(tmp_path, "a = nl.load(y)", True, "x, *, y, z=3", out="x.shape, nl.float32", stores="a")
    assert np.array_equal(run_kernel(kernel, X, 2 * X).outputs[0], 2 * X)
    with pytest.raises(ValueError, match="at most the 3 of the kernel, x, y, z, not 4"):
        run_kernel(kernel, X, X, 3, 4)


CALLERS = """
@nki.jit
def total(x, y, table):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x) + nl.load(y) + nl.load(table["more"][0]))
    return out

def caller(x):
    mask, more = np.tril(np.full(x.shape, 3, np.float32)), np.full(x.shape, 2.75, np.float32)
    found = total(x, mask, table={"more": [(more, "fp8e4m3")]})
    mask[:] = more[:] = -100
    return found
"""


def test_a_function_passes_its_arrays_to_kernels_as_they_are_at_the_call(tmp_path):
    (file := tmp_path / "callers.py").write_text(HEADER.format(package="neuronxcc.nki") + CALLERS)
    done = run_nki(f"{file}:caller", X, preset="tiny", on="golden")
    assert np.array_equal(done.outputs[0], X + 3 * np.tri(*X.shape, dtype=np.float32) + np.float32(2.75))
    file.write_text(file.read_text().replace("mask, table", "np.eye(4), table"))
    with pytest.raises(ValueError, match=r"argument: dtype must be one of .*, not 'float64' \(callers.py:\d+\)"):
        run_nki(f"{file}:caller", X, preset="tiny", on="golden")
