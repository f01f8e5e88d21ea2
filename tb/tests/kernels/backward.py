"""The gradients of layers, a TEST each: from HBM to HBM on the core, and what they would be in float64."""

import numpy as np

from neuroncore_rtl.kernels.library.attention import Head, attention
from neuroncore_rtl.kernels.library.postnorm import Scales
from neuroncore_rtl.kernels.library.transpose import identity, transpose
from neuroncore_rtl.kernels.models.transformer.encoder import Dense, EncoderWeights, encoder
from neuroncore_rtl.kernels.models.transformer.encoder_backward import encoder_backward
from neuroncore_rtl.kernels.program import HbmTensor
from neuroncore_rtl.kernels.tiling.transfer import load, store
from neuroncore_rtl.kernels.training.attention_backward import attention_backward
from neuroncore_rtl.kernels.training.embedding import embedding, embedding_backward
from neuroncore_rtl.kernels.training.layernorm_backward import layernorm_backward
from neuroncore_rtl.kernels.training.linear_backward import (
    bias_gradient,
    input_gradient,
    input_gradient_t,
    weight_gradient,
)
from neuroncore_rtl.run.settings import Settings, UsageError, choice, integer, switch
from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from neuroncore_rtl.tb.tests.kernels import derivatives
from neuroncore_rtl.tb.tests.kernels.layers import layer_bench
from neuroncore_rtl.tb.tests.kernels.transformer import EPSILON, encoder_weights
from neuroncore_rtl.tb.tests.kernels.workbench import CoreWorkbench, References

__all__ = ["TESTS"]


def _linear_backward(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    m, k, n, program = settings.m, settings.k, settings.n, bench.program
    x, tokens = bench.place("x", rng.normal(size=(m, k)), BF16)
    w, weights = bench.place("w", rng.normal(size=(k, n)) / np.sqrt(k), BF16)
    dy, slopes = bench.place("dy", rng.normal(size=(m, n)), BF16)
    exact = derivatives.linear_gradients(tokens, weights, slopes)
    if settings.add:
        dw, added = bench.place("dw", rng.normal(size=(k, n)))
        dbias, lifted = bench.place("dbias", rng.normal(size=(1, n)))
        exact |= {"dw": exact["dw"] + added, "dbias": exact["dbias"] + lifted}
    else:
        dw, dbias = bench.room("dw", (k, n), FP32), bench.room("dbias", (1, n), FP32)
    dx = bench.room("dx", (m, k) if settings.layout == "rows" else (k, m), BF16)
    matrix, rows = identity(program, BF16), load(program, dy)
    dy_t = transpose(program, rows, matrix, "dy_t")
    if settings.layout == "rows":
        store(program, dx, input_gradient(program, dy_t, w, matrix))
    else:
        exact["dx"] = exact["dx"].T
        store(program, dx, input_gradient_t(program, w, dy_t, matrix))
    before = [load(program, one) if settings.add else None for one in (dw, dbias)]
    store(program, dw, weight_gradient(program, x, rows, before[0]))
    store(program, dbias, bias_gradient(program, rows, before[1]))
    return {name: (place, exact[name]) for name, place in (("dx", dx), ("dw", dw), ("dbias", dbias))}


def _layernorm_backward(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    (m, n), program = (settings.m, settings.n), bench.program
    x, tokens = bench.place("x", rng.normal(1, 2, (m, n)), BF16)
    dy, slopes = bench.place("dy", rng.normal(size=(m, n)), BF16)
    gamma, gains = bench.share("gamma", rng.normal(1, 0.1, n), m)
    exact = derivatives.layernorm_gradients(tokens, gains, slopes)
    places = [bench.room("dx", (m, n), BF16), bench.room("dgamma", (1, n)), bench.room("dbeta", (1, n))]
    for place, found in zip(
        places, layernorm_backward(program, load(program, x), gamma, load(program, dy)), strict=True
    ):
        store(program, place, found)
    return {place.name: (place, exact[place.name]) for place in places}


def _attention_backward(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    queries, width, count, causal = settings.seq, settings.dim, settings.heads, bool(settings.causal)
    program, keys, heads, exact = bench.program, settings.keys or queries, [], []
    dout, slopes = bench.place("dout", rng.normal(size=(queries, count * width)), BF16)
    for number in range(count):
        q_t, q = bench.place(f"q_t{number}", rng.normal(size=(width, queries)), BF16)
        k_t, k = bench.place(f"k_t{number}", rng.normal(size=(width, keys)), BF16)
        v, values = bench.place(f"v{number}", rng.normal(size=(keys, width)), BF16)
        heads.append(Head(*(load(program, matrix) for matrix in (q_t, k_t, v))))
        own = slopes[:, number * width : (number + 1) * width]
        exact.append(derivatives.attention_gradients(q.T, k.T, values, own, causal))
    matrix = identity(program, BF16)
    attended = attention(program, heads, matrix, causal=causal)
    gradients = attention_backward(program, heads, attended, load(program, dout), matrix, causal=causal)
    found = {}
    for name, gradient in zip(("dq", "dk", "dv"), gradients, strict=True):
        place = bench.room(name, gradient.shape, BF16)
        store(program, place, gradient)
        found[name] = place, np.concatenate([one[name] for one in exact], axis=1)
    return found


def _embedding(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    rows, tokens, features, program = settings.vocab, settings.seq, settings.dim, bench.program
    table, vectors = bench.place("table", rng.normal(size=(rows, features)), BF16)
    # As in any text, some are there more than once.
    drawn = np.minimum(rng.integers(0, rows, tokens), rng.integers(0, rows, tokens))
    numbers, _ = bench.place("numbers", drawn[:, None], INT32)
    dy, slopes = bench.place("dy", rng.normal(size=(tokens, features)), BF16)
    y, dtable = bench.room("y", (tokens, features), BF16), bench.room("dtable", (rows, features))
    chosen = load(program, numbers)
    store(program, y, embedding(program, table, chosen))
    store(program, dtable, embedding_backward(program, rows, chosen, load(program, dy)))
    exact = np.zeros((rows, features))
    np.add.at(exact, drawn, slopes)
    return {"y": (y, vectors[drawn]), "dtable": (dtable, exact)}


def _encoder_backward(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    shape, heads, causal = (settings.seq, settings.dim), settings.heads, bool(settings.causal)
    program = bench.program
    if settings.dim % heads:
        raise UsageError(f"HEADS must divide DIM={settings.dim}, not be {heads}")
    x, values = bench.place("x", rng.normal(size=shape), BF16)
    weights, numbers = encoder_weights(bench, rng, settings.dim, settings.hidden)
    dy, slopes = bench.place("dy", rng.normal(size=shape), BF16)
    exact = derivatives.encoder_gradients(values, numbers, heads, slopes, causal, EPSILON)
    # What is added to all keys changes nothing: beside the others' gradients its own, zero, is told from an error.
    joint = {f"{name}.bias": number for number, name in enumerate(("query", "key", "value"))}
    exact["attention.bias"] = np.concatenate([exact.pop(name) for name in joint])
    formats = {"x": BF16}
    places = {name: bench.room(f"d{name}", value.shape, formats.get(name, FP32)) for name, value in exact.items()}

    def row(name: str) -> HbmTensor:
        return places["attention.bias"][joint[name]] if name in joint else places[name][0]

    gradients = EncoderWeights(
        *(
            Scales(row(f"{name}.gamma"), row(f"{name}.beta"))
            if name in ("first", "second")
            else Dense(places[f"{name}.w"], row(f"{name}.bias"))
            for name in EncoderWeights._fields
        )
    )
    tokens = load(program, x)
    options = {"causal": causal, "epsilon": EPSILON}
    encoded = encoder(program, tokens, weights, heads, **options)
    found = encoder_backward(program, tokens, encoded, weights, load(program, dy), gradients, **options)
    store(program, places["x"], found)
    return {f"d{name}": (place, exact[name]) for name, place in places.items()}


TESTS = (
    layer_bench(
        "linear_backward",
        _linear_backward,
        "the gradients of a linear layer's x, w and bias",
        integer("M", 40, "tokens", 1, 65536),
        integer("K", 96, "features of a token", 1, 65536),
        integer("N", 72, "features of the result", 1, 65536),
        choice("LAYOUT", "rows", "dx by tokens, or by features, [K, M]", ("rows", "features")),
        switch("ADD", 0, "1 adds to gradients of w and bias that are there"),
    ),
    layer_bench(
        "layernorm_backward",
        _layernorm_backward,
        "the gradients of layer normalisation's x, gamma and beta",
        integer("M", 40, "tokens", 1, 65536),
        integer("N", 96, "features of a token", 2, 65536),
    ),
    layer_bench(
        "attention_backward",
        _attention_backward,
        "attention, and the gradients of its queries, keys and values",
        integer("SEQ", 64, "queries", 1, 65536),
        integer("KEYS", None, "keys, as many as queries unless told", 1, 65536),
        integer("DIM", 32, "features of a head", 1, 65536),
        integer("HEADS", 2, "heads", 1, 1024),
        switch("CAUSAL", 0, "1 hides keys after a query's own, the last query's being the last key"),
    ),
    layer_bench(
        "encoder_backward",
        _encoder_backward,
        "an encoder layer, and the gradients of its input and of all its parameters",
        integer("SEQ", 48, "tokens", 1, 65536),
        integer("DIM", 64, "features of a token", 1, 65536),
        integer("HEADS", 4, "heads, which divide the features", 1, 1024),
        integer("HIDDEN", 128, "features of the MLP between its layers", 1, 65536),
        switch("CAUSAL", 0, "1 hides tokens after a token's own"),
    ),
    layer_bench(
        "embedding",
        _embedding,
        "rows of a table by number, and the gradient of the table",
        integer("VOCAB", 100, "rows of the table", 1, 65536),
        integer("SEQ", 40, "tokens, each the number of a row", 1, 65536),
        integer("DIM", 32, "features of a row", 1, 65536),
    ),
)
"""The TESTs."""
