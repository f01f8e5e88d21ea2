"""Models of examples/jax: losses beside JAX's CPU and a training in float64, tokens beside greedy decoding by JAX."""

import json
import runpy

import numpy as np
import pytest

from neuroncore_rtl.kernels.training.adamw import AdamW
from neuroncore_rtl.tb.tests.learning.language_model import trained
from tests.house.tree import ROOT

jax = pytest.importorskip("jax")


@pytest.fixture
def example():
    return lambda name: runpy.run_path(str(ROOT / "examples/jax" / f"{name}.py"))


@pytest.mark.parametrize("name", ["vit", "resnet", "lstm", "diffusion"])
def test_a_network_trains_as_on_the_cpu(example, name, capsys):
    networks = example("networks")
    found = networks["main"](name, "small", "golden", "3")
    network, rng = networks["NETWORKS"][name](), np.random.default_rng(0)
    parameters = network.parameters(rng)
    speeds = jax.tree.map(np.zeros_like, parameters)
    step, wanted = jax.jit(lambda *args: networks["step"](network, *args)), []
    for _ in found:
        value, parameters, speeds = step(parameters, speeds, *network.batch(rng))
        wanted.append(float(value))
    np.testing.assert_allclose(found, wanted, rtol=0.01)  # products are BF16
    assert capsys.readouterr().out.count("step ") == 3


def test_the_character_model_has_the_loss_curve_of_float64(example, capsys):
    charlm = example("charlm")
    found = charlm["main"]("small", "golden", "6")
    text, sizes = charlm["TEXT"], charlm["SIZES"]
    rng = np.random.default_rng(1)
    start = charlm["initial_charlm"](rng, sizes)
    starts = rng.integers(0, len(text.numbers) - sizes.context, (len(found), 1))
    windows = text.numbers[starts[..., None] + np.arange(sizes.context + 1)]
    np.testing.assert_allclose(found, trained(start, sizes, windows, AdamW(rate=charlm["RATE"]))[0], rtol=0.02)
    assert "\nShall I" in capsys.readouterr().out


@pytest.mark.slow
def test_digits_are_read(example, capsys):
    assert example("digits")["main"]("small", "golden", "12") >= 0.97


def greedy(gpt2, p, prompt, tokens, context):
    step = jax.jit(gpt2["token"], static_argnames="heads")
    layers, heads = sum(name.endswith("ln_1.bias") for name in p), p["wte.weight"].shape[1] // gpt2["HEAD"]
    caches = np.zeros((layers, 2, context, heads, gpt2["HEAD"]), np.float32)
    numbers = [*prompt]
    for place in range(len(prompt) + tokens - 1):
        following, caches = step(p, caches, np.int32(place), np.int32(numbers[place]), heads=heads)
        if place + 1 == len(numbers):
            numbers.append(int(following))
    return numbers


@pytest.mark.parametrize("target", ["golden", pytest.param("rtl", marks=pytest.mark.slow)])
def test_gpt2_writes_the_tokens_of_the_cpu(example, target, capsys):
    gpt2 = example("gpt2")
    words = ["--random", "2x64", "--prompt", "Hi", "--tokens", "6", "--context", "16", "--preset", "tiny"]
    written = gpt2["main"]([*words, "--target", target])
    p = gpt2["parameters_of"](gpt2["random_weights"](2, 64, 16, 128))
    assert written == "".join(map(chr, greedy(gpt2, p, b"Hi", 6, 16)))
    printed = capsys.readouterr().out
    assert printed.count("token ") == 7 and printed.count("bit-exact True") == 7 * (target == "rtl")


@pytest.mark.parametrize("kind", ["safetensors", "npz"])
def test_gpt2_reads_weights_and_words_of_hugging_face(example, kind, tmp_path, capsys):
    numpy_files, _ = pytest.importorskip("safetensors.numpy"), pytest.importorskip("tokenizers")
    gpt2 = example("gpt2")
    weights = gpt2["random_weights"](1, 64, 16, 4)
    named = {f"transformer.{name}": array for name, array in weights.items()}
    named["transformer.h.0.attn.bias"] = np.tri(16, dtype=np.float32)[None, None]  # the mask in old files
    path = tmp_path / f"model.{kind}"
    numpy_files.save_file(named, path) if kind == "safetensors" else np.savez(path, **named)
    vocabulary = {"the": 0, "cat": 1, "sat": 2, "?": 3}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "?"}
    (tmp_path / "tokenizer.json").write_text(
        json.dumps({"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": model})
    )
    words = ["--weights", str(path), "--prompt", "the cat", "--tokens", "2", "--context", "16"]
    written = gpt2["main"]([*words, "--preset", "tiny", "--target", "golden"])
    numbers = greedy(gpt2, gpt2["parameters_of"](named), [0, 1], 2, 16)
    assert written.split() == [[*vocabulary][number] for number in numbers]
