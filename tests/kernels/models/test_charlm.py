"""Character language model on golden, against float64."""

from dataclasses import replace

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.models.charlm import Text, sonnets
from neuroncore_rtl.kernels.models.charlm.network import Sizes, initial_charlm
from neuroncore_rtl.kernels.models.charlm.program import LanguageModel
from neuroncore_rtl.kernels.training.adamw import AdamW
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.spec.config import Config, preset_named
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.tb.tests.learning import language_model
from tests.kernels.running import read_values, run_ordered

TEXT = Text("abracadabra, hocus pocus. fidibus, abracadabra!\n")
SIZES = Sizes(characters=len(TEXT.characters), context=7, features=6, heads=2, hidden=9, layers=1)
CONFIGS = {
    "tiny": (preset_named("tiny"), SIZES),
    "wide": (Config(rows=5, columns=6, dma_engines=3), replace(SIZES, layers=2, context=5)),
    "tall": (Config(rows=16, columns=4, dma_engines=4), replace(SIZES, heads=1, context=9)),
}


def run_model(config, sizes, starts, options, prompt, written, order, start):
    model = LanguageModel(config, sizes, len(TEXT.numbers), starts.shape[1], len(starts), options)
    image = model.image(TEXT.numbers, starts.ravel(), start, TEXT.encode(prompt), written, encode)
    outcome = run_ordered(image, order)
    tensors = [model.windows.losses, model.page.written, *map(model.masters.value, sizes.shapes())]
    losses, page, *values = (read_values(tensor, outcome.hbm) for tensor in tensors)
    page = page[len(prompt) - 1 :][:written, 0].astype(int)
    return losses.reshape(-1, sizes.context), page, dict(zip(sizes.shapes(), values, strict=True))


def round_to_bf16(start):
    return {name: decode(encode(value, BF16), BF16) for name, value in start.items()}


def check_written(page, parameters, sizes, prompt):
    characters = [*TEXT.encode(prompt), *page]
    scores = language_model.scores(parameters, sizes, np.array(characters[:-1]))[len(prompt) - 1 :]
    assert (scores[np.arange(len(page)), page] > scores.max(axis=1) - 0.05).all()


@pytest.mark.parametrize(
    ("config", "sizes"),
    [pytest.param(*CONFIGS[name], marks=[pytest.mark.slow] * (name != "tiny")) for name in CONFIGS],
    ids=CONFIGS,
)
def test_every_machine_learns_and_writes_what_float64_does(rng, config, sizes):
    start, options = round_to_bf16(initial_charlm(rng, sizes)), AdamW(rate=0.02)
    starts = rng.integers(0, len(TEXT.numbers) - sizes.context, (2, 2))
    prompt = "abra"
    written = sizes.context + 1 - len(prompt)
    losses, page, values = run_model(config, sizes, starts, options, prompt, written, rng, start)
    windows = TEXT.numbers[starts[..., None] + np.arange(sizes.context + 1)]
    exact, parameters = language_model.trained(start, sizes, windows, options)
    np.testing.assert_allclose(losses.reshape(2, -1).mean(axis=1), exact, rtol=0.02)
    for name, value in parameters.items():
        # The exact gradient of a key's bias is 0; rounding errors remain, which AdamW magnifies.
        if not name.endswith("key.bias"):
            assert np.abs(values[name] - value).mean() < 0.01, name
    check_written(page, parameters, sizes, prompt)


def test_windows_are_where_they_start_and_losses_where_they_belong(rng):
    """With a learning rate of 0 each character has float64's loss, in every window that contains it."""
    start = round_to_bf16(initial_charlm(rng, SIZES))
    starts = np.array([[3, 0], [0, len(TEXT.numbers) - SIZES.context - 1]])
    # Spread the scores, so that all characters have different losses.
    start["output.w"] *= 16
    losses, _, values = run_model(CONFIGS["tiny"][0], SIZES, starts, AdamW(rate=0), "a", 1, None, start)
    for found, first in zip(losses, starts.ravel(), strict=True):
        window = TEXT.numbers[first : first + SIZES.context + 1]
        np.testing.assert_allclose(found, language_model.losses(start, SIZES, window), atol=0.06)
    assert all(np.array_equal(values[name], value) for name, value in start.items())


def test_a_prompt_is_read_whatever_would_have_been_written(rng):
    """The network would predict none of the prompt's characters, and the text after the prompt depends on them."""
    start, starts = round_to_bf16(initial_charlm(rng, SIZES)), np.zeros((1, 1), int)
    start["output.w"] *= 16
    pages = {}
    for prompt in ("hocus", "hocub"):
        written = SIZES.context + 1 - len(prompt)
        _, page, _ = run_model(CONFIGS["tiny"][0], SIZES, starts, AdamW(rate=0), prompt, written, rng, start)
        check_written(page, start, SIZES, prompt)
        pages[prompt] = list(page)
    assert pages["hocus"] != pages["hocub"]


def test_text_and_numbers():
    text = sonnets()
    assert len(text.text) > 10_000 and text.decode(text.numbers) == text.text
    assert text.decode(text.encode("Shall I ")) == "Shall I "
    with pytest.raises(ValueError, match="characters must occur in the text, .* not 'é' at position 3"):
        text.encode("thé")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"starts": [[len(TEXT.numbers) - 7]]}, "starts must be from 0 to 40, not 41 to 41"),
        ({"prompt": "abracada"}, "must be at least 1 each and at most 8 together, not 8 and 1"),
        ({"prompt": ""}, "must be at least 1 each and at most 8 together, not 0 and 1"),
        ({"sizes": replace(SIZES, context=48)}, "context must be below the 48 characters of the text, not 48"),
        ({"sizes": replace(SIZES, characters=7)}, "characters must be from 8 to .* to be searched, not 7"),
    ],
)
def test_refusals(rng, changed, said):
    given = {"sizes": SIZES, "starts": [[0]], "prompt": "a"} | changed
    with pytest.raises(ValueError, match=said):
        sizes, starts = given["sizes"], np.array(given["starts"])
        run_model(CONFIGS["tiny"][0], sizes, starts, AdamW(), given["prompt"], 1, None, initial_charlm(rng, sizes))


def test_heads_must_divide_the_features():
    with pytest.raises(ValueError, match="heads must divide the 6 features of a character, not 4"):
        replace(SIZES, heads=4)
