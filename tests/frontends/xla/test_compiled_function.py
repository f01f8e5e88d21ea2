"""Lowered and compiled functions, their files, and wrong arguments of all kinds."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroncore_rtl import load_model
from neuroncore_rtl.frontends.xla import compiled, jit
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.program import Program, build_image
from neuroncore_rtl.run.image_file import write_image
from neuroncore_rtl.spec.config import PRESETS


def layer(params, x, *, shift):
    y = jnp.tanh(x @ params["w"]) + shift
    total, _ = jax.lax.fori_loop(0, 3, lambda i, state: (state[0] + state[1].sum(), state[1] * 0.5), (0.0, y))
    return {"y": y.astype(jnp.bfloat16), "rest": (total, [params["b"] > 1, None])}


def arguments(rng):
    params = {"w": rng.normal(size=(4, 5)).astype(np.float32), "b": np.arange(3, dtype=np.int32)}
    return (params, rng.normal(size=(2, 4)).astype(np.float32)), {"shift": 0.5}


def saved(path, target="golden"):
    args, kwargs = arguments(np.random.default_rng(1))
    made = jit(layer, preset="nano", target=target, cache="").lower(*args, **kwargs).compile()
    made.save(path)
    return made, args, kwargs


@pytest.fixture(scope="module")
def layer_file(tmp_path_factory):
    """Return a file, and the compiled function in it with its arguments."""
    path = tmp_path_factory.mktemp("layer") / "layer.npz"
    return path, *saved(path)


@pytest.mark.parametrize("target", ["model", "rtl"])
def test_a_loaded_function_has_the_results_cycles_and_report_of_the_compiled_one(tmp_path, target):
    made, args, kwargs = saved(tmp_path / "layer.npz", target)
    loaded = load_model(tmp_path / "layer.npz", target=target)
    right, found = made(*args, **kwargs), loaded(*args, **kwargs)
    assert jax.tree.structure(right) == jax.tree.structure(found)
    for one, other in zip(jax.tree.leaves(right), jax.tree.leaves(found), strict=True):
        assert isinstance(other, np.ndarray) and one.dtype == other.dtype
        np.testing.assert_array_equal(np.asarray(one), other)
    assert loaded.report == made.report and "test_compiled_function.py" in made.report and loaded.ir == made.ir
    assert loaded.result.cycles == made.result.cycles > 0


_WITHOUT_JAX = """
import sys
import numpy as np
sys.modules |= {"jax": None, "jaxlib": None}
from neuroncore_rtl import load_model
step = load_model(sys.argv[1], target="golden")
params = {"w": np.ones((4, 5), np.float32), "b": np.arange(3, dtype=np.int32)}
found = step(params, np.ones((2, 4), np.float32), shift=0.5)
assert found["y"].dtype.name == "bfloat16" and found["rest"][1][0].tolist() == [False, False, True]
"""


def test_a_file_needs_no_jax(layer_file):
    done = subprocess.run([sys.executable, "-c", _WITHOUT_JAX, str(layer_file[0])], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_a_compiled_function_is_profiled_like_a_program(tmp_path):
    made, args, kwargs = saved(tmp_path / "layer.npz", "model")
    made.variables = {"profile": 1}
    loaded = load_model(tmp_path / "layer.npz", target="model", profile=1)
    for one in (made, loaded):
        one(*args, **kwargs)
    assert loaded.result.profile_rows == made.result.profile_rows


def test_lowering_shows_stablehlo_and_takes_shapes(rng):
    args, kwargs = arguments(rng)
    shapes = jax.tree.map(lambda one: jax.ShapeDtypeStruct(np.shape(one), np.asarray(one).dtype), args)
    lowered = jit(layer, preset="nano", target="golden").lower(*shapes, **kwargs)
    assert "stablehlo.dot_general" in lowered.as_text()
    assert lowered.names == ("params['b']", "params['w']", "x", "shift")
    assert lowered.compile()(*args, **kwargs)["y"].shape == (2, 5)


def test_wrong_files_are_refused_in_a_sentence(tmp_path, monkeypatch):
    path = tmp_path / "layer.npz"
    with pytest.raises(FileNotFoundError, match="must be an existing file, not .*layer.npz"):
        load_model(path)
    np.savez(path, weights=np.ones(3))
    with pytest.raises(ValueError, match="must be a file of a compiled program, but cannot be read"):
        load_model(path)
    path.write_text("text")
    with pytest.raises(ValueError, match="must be a file of a compiled program, but cannot be read"):
        load_model(path)
    write_image(path, build_image(Program(PRESETS["nano"])))
    with pytest.raises(ValueError, match="must be a file of a model, not of another image"):
        load_model(path)
    made, *_ = saved(path)
    made.compiled.write(path)
    with pytest.raises(ValueError, match="must be a file that `save` wrote, not one of the cache"):
        load_model(path)
    saved(path)
    monkeypatch.setattr("neuroncore_rtl.run.image_file.FORM", 99)
    with pytest.raises(ValueError, match="must be of this version, form 99 and spec .*, not 2 and .*; compile it"):
        load_model(path)


def test_containers_that_only_jax_knows_are_not_saved(tmp_path):
    made = jit(lambda x: jax.tree_util.Partial(jnp.sin, x), preset="nano", target="golden").lower(1.0).compile()
    with pytest.raises(ValueError, match="trees in a file must be of dicts .* lists, tuples and None, not Partial"):
        made.save(tmp_path / "file.npz")


@pytest.mark.parametrize(
    ("change", "message", "live"),
    [
        (lambda p, x: (({**p, "w": p["w"][:3]}, x), {"shift": 0.5}), r"params\['w'\] must be float32\[4, 5\],", 0),
        (lambda p, x: ((p, x.astype(np.int32)), {"shift": 0.5}), r"x must be float32\[2, 4\], .*not int32\[2, 4\]", 0),
        (lambda p, x: ((p, x), {"shift": np.ones(1)}), r"shift must be float32\[\], .*not float64\[1\]", 0),
        (lambda p, x: (({"w": p["w"]}, x), {"shift": 1}), r"args\[0\] must be a dict of \['b', 'w'\], .*\['w'\]", 1),
        (lambda p, x: ((p,), {"shift": 1}), r"args must be a tuple of 2, as compiled, not tuple of 1", 1),
        (lambda p, x: ((p, x), {}), r"kwargs must be a dict of \['shift'\], as compiled, not dict of \[\]", 1),
    ],
)
def test_arguments_other_than_compiled_are_refused(layer_file, change, message, live):
    path, made, (params, x), _ = layer_file
    args, kwargs = change(params, x)
    with pytest.raises(ValueError, match=message):
        load_model(path, target="golden")(*args, **kwargs)
    with pytest.raises(ValueError, match="the arguments must form the tree" if live else message):
        made(*args, **kwargs)


def test_numbers_and_64_bits_are_accepted_as_by_jax(layer_file):
    path, _, (params, x), _ = layer_file
    loaded = load_model(path, target="golden")
    wide = {"w": params["w"].astype(np.float64), "b": params["b"].astype(np.int64)}
    np.testing.assert_array_equal(loaded(wide, x, shift=1)["y"], loaded(params, x, shift=np.float32(1))["y"])


def test_a_donated_array_is_used_up():
    model = jit(lambda state, x: state + x, preset="nano", target="golden", donate_argnums=0)
    state, x = jnp.ones(3), jnp.arange(3.0)
    np.testing.assert_array_equal(model(state, x), [1, 2, 3])
    assert state.is_deleted() and not x.is_deleted()
    with pytest.raises(Refused, match=r"array 0 of the arguments, float32\[3\], must not be used after it was donated"):
        model(state, x)


def test_a_transformed_call_and_other_devices_are_refused(monkeypatch):
    model = jit(jnp.sin, preset="nano", target="golden")
    for transform in (jax.jit, jax.grad):
        with pytest.raises(Refused, match="must be an array, not traced: transform a function before"):
            transform(model)(1.0)
    monkeypatch.setattr("neuroncore_rtl.frontends.xla.jitted.HOSTS", ())
    with pytest.raises(Refused, match="must be an array of the host, not of cpu; numpy.asarray copies it"):
        model(jnp.ones(3))


def test_another_shape_is_compiled_anew_with_a_line(capsys):
    model = jit(lambda x, n: x * 2, preset="nano", target="golden", static_argnums=1)
    said = []
    for x, n in ((np.ones(3), 1), (np.ones(4), 1), (np.ones(4), 2), (np.ones((4, 1)), 2), ([np.ones(4)], 2)):
        try:
            model(x, n)
        except TypeError:  # a list times 2
            pass
        said.append([line for line in capsys.readouterr().err.splitlines() if "anew" in line])
    many = "programs exist already: pad the arguments to few shapes"
    assert said[:4] == [
        [],
        ["<lambda> is compiled anew: x is float32[4], not float32[3]"],
        ["<lambda> is compiled anew: a static argument has changed"],
        [f"<lambda> is compiled anew: x is float32[4,1], not float32[4]; 3 {many}"],
    ]


def test_a_model_without_room_names_its_largest_values(monkeypatch):
    monkeypatch.setattr(compiled, "HBM_ROOM", 1 << 14)

    def large(x):
        y = jnp.dot(x, x)
        return jnp.dot(y, y)

    message = (
        r"at most 16,384 bytes of HBM together to be simulated, not [\d,]+ and more; the largest are "
        r"f32\[45,45\] of test_compiled_function.py:\d+, f32\[45,45\] of test_compiled_function.py:\d+, "
        r"f32\[45,45\] of the arguments"
    )
    with pytest.raises(Refused, match=message):
        jit(large, preset="nano", target="golden")(np.ones((45, 45), np.float32))
    with pytest.raises(Refused, match=r"f32\[38,38\] of test_compiled_function.py:\d+"):
        jit(large, preset="nano", target="golden")(np.ones((38, 38), np.float32))
    with pytest.raises(
        Refused, match=r"the largest are f32\[70,70\] of test_compiled_function.py:\d+, f32\[70\] of the arg"
    ):
        jit(lambda x: jnp.sort(x[:, None] * x), preset="nano", target="golden")(np.ones(70, np.float32))
    with pytest.raises(Refused, match=r"the largest are f32\[99,99\] of the arguments$"):
        jit(large, preset="nano", target="golden")(np.ones((99, 99), np.float32))
