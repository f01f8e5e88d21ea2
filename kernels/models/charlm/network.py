"""Character-level transformer: embeddings of characters and positions, encoder layers, scores of the next character."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroncore_rtl.kernels.library.postnorm import Scales
from neuroncore_rtl.kernels.models.transformer.encoder import Dense, EncoderWeights
from neuroncore_rtl.kernels.program import HbmTensor

__all__ = ["Sizes", "dense_of", "initial_charlm", "layer_of"]

NORMS = ("first", "second")

EMBEDDED = 0.3
"""Initial standard deviation of embeddings."""

NEARLY_ALIKE = 0.1
"""Initial standard deviation of scores."""

LONGEST = 100.0
"""Ratio of the longest to the shortest initial position wave."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Dimensions of the network.

    The context is the maximum length of the input; the heads divide the features of a character; `hidden` are the
    features in the MLP.
    """

    characters: int
    context: int
    features: int
    heads: int
    hidden: int
    layers: int

    def __post_init__(self):
        if self.features % self.heads:
            raise ValueError(f"heads must divide the {self.features} features of a character, not {self.heads}")

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all parameters by name, such as "layer0.query.w"."""
        across = dict.fromkeys(EncoderWeights._fields, (self.features, self.features))
        across |= {"up": (self.features, self.hidden), "down": (self.hidden, self.features)}
        found = {"embedding": (self.characters, self.features), "position": (self.context, self.features)}
        for layer in range(self.layers):
            for name, shape in across.items():
                if name in NORMS:
                    own = dict.fromkeys(Scales._fields, shape[1:])
                else:
                    own = {"w": shape, "bias": shape[1:]}
                found |= {f"layer{layer}.{name}.{kind}": one for kind, one in own.items()}
        return found | {"output.w": (self.features, self.characters), "output.bias": (self.characters,)}


def initial_charlm(rng: np.random.Generator, sizes: Sizes) -> dict[str, np.ndarray]:
    """Return the initial parameters, float64 by name.

    Biases are zero and normalisations the identity. Weights preserve variance, except those of the scores, which start
    nearly equal. Positions start as sine waves, so that neighbours are similar.
    """

    def initial(name: str, shape: tuple[int, ...]) -> np.ndarray:
        if len(shape) == 1:
            return np.full(shape, float(name.endswith("gamma")))
        deviation = {"embedding": EMBEDDED, "output.w": NEARLY_ALIKE / np.sqrt(shape[0])}
        return rng.normal(0, deviation.get(name, 1 / np.sqrt(shape[0])), shape)

    features = np.arange(sizes.features)
    angles = np.arange(sizes.context)[:, None] * LONGEST ** (-(features // 2 * 2) / sizes.features)
    waves = np.where(features % 2, np.cos(angles), np.sin(angles))
    return {name: initial(name, shape) for name, shape in sizes.shapes().items()} | {"position": EMBEDDED * waves}


def dense_of(find: Callable[[str], HbmTensor], name: str) -> Dense:
    """Return the parameters of the linear layer `name`; `find` returns the tensor of a parameter name."""
    return Dense(find(f"{name}.w"), find(f"{name}.bias"))


def layer_of(find: Callable[[str], HbmTensor], layer: int) -> EncoderWeights:
    """Return the parameters of an encoder layer; `find` returns the tensor (values or gradient) of a parameter name."""
    parts: dict[str, Any] = {
        name: Scales(*(find(f"layer{layer}.{name}.{kind}") for kind in Scales._fields))
        if name in NORMS
        else dense_of(find, f"layer{layer}.{name}")
        for name in EncoderWeights._fields
    }
    return EncoderWeights(**parts)
