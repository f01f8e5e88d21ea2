"""Plug-in of JAX: unedited scripts in separate processes."""

import io
import os
import re
import runpy
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import neuroncore_rtl
from neuroncore_rtl.frontends import pjrt
from tests.house.tree import ROOT

jax = pytest.importorskip("jax")
jnp = jax.numpy

HERE = Path(__file__).parent
LOSS = 2e-6
"""Relative error of a loss on golden against JAX's CPU; measured 4e-7."""


@pytest.fixture
def script(tmp_path):
    """Run a script on the machine; return the process. JAX finds the plug-in by its folder."""
    plugin = tmp_path / "jax_plugins" / "neuron.py"
    plugin.parent.mkdir()
    plugin.write_text("from neuroncore_rtl.frontends.pjrt import initialize\n")

    def run(text: str, **variables: str) -> subprocess.CompletedProcess:
        file = tmp_path / "script.py"
        file.write_text(text)
        own = {"PYTHONPATH": f"{ROOT}:{tmp_path}", "JAX_PLATFORMS": "neuron", "JAX_ENABLE_COMPILATION_CACHE": "0"}
        own |= {"NEURON_PRESET": "tiny", "NEURON_COMPILE_CACHE_URL": ""} | variables
        command = [sys.executable, "-W", "error::DeprecationWarning:__main__", str(file)]
        return subprocess.run(command, env=os.environ | own, capture_output=True, text=True, timeout=300)

    return run


def test_an_unedited_training_loop_has_the_losses_of_the_cpu(script):
    ours, cpu = script((HERE / "train.py").read_text()), io.StringIO()
    assert ours.returncode == 0, ours.stderr
    with redirect_stdout(cpu):
        runpy.run_path(str(HERE / "train.py"))
    ours, cpu = (np.array([*map(float, one.split())]) for one in (ours.stdout, cpu.getvalue()))
    assert len(cpu) == 8 and cpu[-1] < cpu[0] / 4
    assert np.max(np.abs(ours / cpu - 1)) < LOSS


def test_each_second_call_runs_on_the_rtl(script):
    text = "import jax\nf, x = jax.jit(lambda x: x * 2 + 1), 3.0\nfor _ in range(4): x = f(x)\nprint(x)\n"
    found = script(text, NEURON_PRESET="nano", NEURON_RTL_EVERY="2")
    assert found.stdout == "63.0\n", found.stderr
    last = found.stderr.splitlines()[-1]
    assert re.fullmatch(r"neuron: 1 programs, 4 calls, 2 on the RTL, equal to golden; [1-9][\d,]* cycles", last), last


def test_the_variables_of_stochastic_rounding(script):
    text = """
import jax, jax.numpy as jnp, numpy as np
f, x = jax.jit(lambda x: x.astype(jnp.bfloat16)), np.full((16, 500), 1.001, np.float32)
for _ in range(2): print(np.asarray(f(x), np.float32).mean(dtype=np.float64))
"""
    found = script(text, NEURON_RT_STOCHASTIC_ROUNDING_EN="1", NEURON_RT_STOCHASTIC_ROUNDING_SEED="4")
    assert found.returncode == 0, found.stderr
    model = neuroncore_rtl.jit(
        lambda x: x.astype(jnp.bfloat16), preset="tiny", target="golden", rounding="stochastic", rounding_seed=4
    )
    x = np.full((16, 500), 1.001, np.float32)
    means = [np.asarray(model(x), np.float32).mean(dtype=np.float64) for _ in range(2)]
    assert [*map(float, found.stdout.split())] == means and means[0] != means[1]


MEMORY = """
import atexit, jax, jax.numpy as jnp, numpy as np
used = lambda: jax.devices()[0].memory_stats()["bytes_in_use"]
start = used()
x = jax.device_put(np.ones((64, 64), np.float32))
print(used() - start)
y = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
print(used() - start, x.is_deleted(), float(y[0, 0]))
z = jax.jit(lambda x: x + 1)(y)
print(used() - start, y.is_deleted())
del y, z
print(used() - start)
stats = jax.devices()[0].memory_stats()
print(stats["bytes_limit"], stats["largest_alloc_size"], stats["peak_bytes_in_use"] >= 3 * 16384)
print(np.asarray(jax.device_put(np.arange(6.0, dtype=np.float32).reshape(2, 3)[::-1, ::-2])).tolist())
print(float(jax.jit(lambda x: x.astype(jnp.bfloat16))(np.full((16, 500), 1.001, np.float32)).max()))
"""
USED = "16384", "16384 True 2.0", "32768 False", "0", "536870912 16384 True", r"\[\[5.0, 3.0\], \[2.0, 0.0\]\]", "1.0"

ERRORS = """
def show(function):
    try: print(function())
    except Exception as error: print(type(error).__name__, error)
x = jnp.ones(4)
show(lambda: jnp.linalg.qr(jnp.eye(2)))
show(lambda: jax.device_put(np.zeros(2, np.complex64)))
show(lambda: jnp.zeros((1 << 14, 1 << 14)))
show(lambda: [jax.device_put(np.zeros(1 << 26, np.float32)) for _ in range(3)])
show(lambda: jax.jit(lambda x: jax.pure_callback(np.sin, x, x))(x))
show(lambda: jax.device_put(x, jax.devices()[1]).devices())
mesh = jax.make_mesh((2,), ("a",))
show(lambda: jnp.sum(jax.device_put(x, jax.NamedSharding(mesh, jax.P("a")))))
jax.config.update("jax_enable_x64", True)
show(lambda: jax.device_put(np.arange(3)))
show(lambda: jax.jit(lambda: jnp.ones(3, jnp.int64))())
jax.config.update("jax_enable_x64", False)
show(lambda: [jax.jit(lambda x: ())(x), x + 1])
"""
SENTENCES = (
    r"JaxRuntimeError UNIMPLEMENTED: operations must be StableHLO's own, not a call of Qr; .* \(.*/script.py:\d+\)",
    r"JaxRuntimeError UNIMPLEMENTED: element types must be f32, .* not complex<f32>",
    r"JaxRuntimeError RESOURCE_EXHAUSTED: (arrays|values) must have at most 536,870,912 bytes of HBM together .*",
    r"JaxRuntimeError RESOURCE_EXHAUSTED: arrays must .* not 536,870,976 with float32\[67108864\]",
    r"ValueError `EmitPythonCallback` not supported on neuron backend.",
    r"\{NeuronCore\(id=1\)\}",
    r"JaxRuntimeError UNIMPLEMENTED: a program must be of one core, not of 2; .*",
    r"JaxRuntimeError UNIMPLEMENTED: arrays must be of elements of at most 32 bits, not i64; leave .*",
    r"JaxRuntimeError UNIMPLEMENTED: values that are no constants must be of f32, .*, not i64; use int32.*",
    r"\[\(\), Array\(\[2., 2., 2., 2.\], dtype=float32\)\]",
)

EXIT = """
atexit.register(lambda: print("at exit", float(jnp.ones(3).sum())))
kept = [jnp.ones(8), jax.jit(lambda x: x * 2)]
kept.append(kept[1](kept[0]))
class Last:
    def __del__(self): print("last")
last = Last()
raise SystemExit(7)
"""


def test_arrays_occupy_hbm_errors_are_sentences_and_the_process_goes_on_to_its_exit(script):
    """Until they are deleted or donated; errors are JAX's exceptions; rounding is to nearest."""
    found = script(MEMORY + ERRORS + EXIT, NEURON_RT_NUM_CORES="2")
    assert found.returncode == 7, found.stderr
    expected, lines = (*USED, *SENTENCES, "at exit 3.0", "last"), found.stdout.splitlines()
    assert len(lines) == len(expected), found.stdout
    for line, pattern in zip(lines, expected, strict=True):
        assert re.fullmatch(pattern, line), (line, pattern)


INTERRUPTS = """
import os, signal, threading, time, jax, jax.numpy as jnp
f = jax.jit(lambda x: jnp.tanh(x @ x) + 1)
x = f(jnp.ones((32, 32)))
def send():
    while True:
        time.sleep(0.02 + 0.013 * (time.time() % 1))
        os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=send, daemon=True).start()
count = 0
while count < 10:
    try:
        try:
            while True: x = f(x)
        except Exception as error: print(error)
    except KeyboardInterrupt: count += 1
print(count, flush=True)
while True: x = f(x)
"""


def test_ctrl_c_is_a_keyboard_interrupt(script):
    found = script(INTERRUPTS)
    assert (found.returncode, found.stdout) == (-signal.SIGINT, "10\n"), found.stderr
    assert found.stderr.endswith("KeyboardInterrupt\n")


def test_what_the_plug_in_cannot_be_is_refused_in_words(script, monkeypatch):
    found = script("import jax\njax.devices()\n", NEURON_TARGET="silicon")
    sentence = "NEURON_TARGET must be one of golden, model, rtl, not 'silicon'"
    assert found.returncode == 1 and sentence in found.stderr
    monkeypatch.setattr(jax, "config", SimpleNamespace(jax_platforms="neuron"))
    monkeypatch.setattr(jax, "__version__", "0.12.0.1")
    with pytest.raises(ImportError, match="the platform neuron needs jax 0.10.2, not 0.12.0.1"):
        pjrt.initialize.__wrapped__()
