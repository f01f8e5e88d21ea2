"""The language model of `kernels.models.charlm` in float64: the same training with independent derivatives."""

from collections.abc import Mapping

import numpy as np

from neuroncore_rtl.kernels.models.charlm.network import Sizes
from neuroncore_rtl.kernels.training.adamw import AdamW
from neuroncore_rtl.tb.tests.kernels import derivatives

__all__ = ["losses", "scores", "trained", "written_text"]

Parameters = Mapping[str, np.ndarray]


def scores(parameters: Parameters, sizes: Sizes, inputs: np.ndarray) -> np.ndarray:
    """Return the scores after each input character, [inputs, characters]."""
    return _forward(parameters, sizes, inputs)[0]


def losses(parameters: Parameters, sizes: Sizes, window: np.ndarray) -> np.ndarray:
    """Return the cross entropy of each character of a window after the first."""
    return derivatives.crossentropy(scores(parameters, sizes, window[:-1]), window[1:])[0][:, 0]


def gradients(parameters: Parameters, sizes: Sizes, window: np.ndarray) -> tuple[float, dict[str, np.ndarray]]:
    """Return the mean cross entropy of a window, and its gradients by parameter."""
    inputs, labels = window[:-1], window[1:]
    logits, passed = _forward(parameters, sizes, inputs)
    lost, slopes = derivatives.crossentropy(logits, labels)
    last = derivatives.linear_gradients(passed[-1], parameters["output.w"], slopes / len(labels))
    found, slopes = {"output.w": last["dw"], "output.bias": last["dbias"][0]}, last["dx"]
    for layer in reversed(range(sizes.layers)):
        own = derivatives.encoder_gradients(passed[layer], _layer(parameters, layer), sizes.heads, slopes, causal=True)
        slopes = own.pop("x")
        found |= {
            f"layer{layer}.{name}": value.reshape(parameters[f"layer{layer}.{name}"].shape)
            for name, value in own.items()
        }
    found |= {"position": slopes, "embedding": np.zeros_like(parameters["embedding"])}
    np.add.at(found["embedding"], inputs, slopes)
    return float(lost.mean()), found


def trained(
    start: Parameters, sizes: Sizes, windows: np.ndarray, options: AdamW
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the mean cross entropy of every step, and the final parameters."""
    parameters, found = {name: value.copy() for name, value in start.items()}, []
    moments = {name: (np.zeros_like(value), np.zeros_like(value)) for name, value in parameters.items()}
    for step, batch in enumerate(windows, start=1):
        each = [gradients(parameters, sizes, window) for window in batch]
        found.append(np.mean([lost for lost, _ in each]))
        for name, p in parameters.items():
            gradient = np.mean([own[name] for _, own in each], axis=0)
            derivatives.adamw_step(options, step, p, gradient, *moments[name])
    return np.array(found), parameters


def written_text(parameters: Parameters, sizes: Sizes, prompt: np.ndarray, count: int) -> np.ndarray:
    """Return `count` characters after a prompt, each with the highest score."""
    found = [*prompt]
    for _ in range(count):
        found.append(scores(parameters, sizes, np.array(found))[-1].argmax())
    return np.array(found[len(prompt) :])


def _forward(parameters: Parameters, sizes: Sizes, inputs: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    passed = [parameters["embedding"][inputs] + parameters["position"][: len(inputs)]]
    for layer in range(sizes.layers):
        passed.append(derivatives.encoded(passed[-1], _layer(parameters, layer), sizes.heads, causal=True))
    return passed[-1] @ parameters["output.w"] + parameters["output.bias"], passed


def _layer(parameters: Parameters, layer: int) -> dict[str, np.ndarray]:
    start = f"layer{layer}."
    return {name.removeprefix(start): value for name, value in parameters.items() if name.startswith(start)}
