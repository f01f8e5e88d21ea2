"""TESTs of the gradients of layers: from HBM to HBM on the core, compared with float64."""

import numpy as np

from neuroncore_rtl.kernels.library.attention import Head, attention
from neuroncore_rtl.kernels.library.postnorm import Scales
from neuroncore_rtl.kernels.library.transpose import identity, transpose
from neuroncore_rtl.kernels.models.transformer.encoder import Dense, EncoderWeights, encoder
from neuroncore_rtl.kernels.models.transformer.encoder_backward import encoder_backward
from neuroncore_rtl.kernels.program import HbmTensor
from neuroncore_rtl.kernels.tiling.transfer import load, store
from neuroncore_rtl.kernels.training import linear_backward
from neuroncore_rtl.kernels.training.attention_backward import attention_backward
from neuroncore_rtl.kernels.training.embedding import embedding, embedding_backward
from neuroncore_rtl.kernels.training.layernorm_backward import layernorm_backward
from neuroncore_rtl.run.settings import Settings, UsageError, choice, integer, switch
from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from neuroncore_rtl.tb.tests.kernels import derivatives
from neuroncore_rtl.tb.tests.kernels.derivatives import EPSILON
from neuroncore_rtl.tb.tests.kernels.layers import layer_test, sizes
from neuroncore_rtl.tb.tests.kernels.transformer import ATTENTION, draw_head, encoder_options, encoder_weights
from neuroncore_rtl.tb.tests.kernels.workbench import CoreWorkbench, References

__all__ = ["TESTS"]


@layer_test(
    "the gradients of a linear layer's x, w and bias",
    *sizes(M=(40, "tokens"), K=(96, "features of a token"), N=(72, "features of the result")),
    choice("LAYOUT", "rows", "dx by tokens, or by features, [K, M]", ("rows", "features")),
    switch("ADD", 0, "1 adds to existing gradients of w and bias"),
)
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
        store(program, dx, linear_backward.input_gradient(program, dy_t, w, matrix))
    else:
        exact["dx"] = exact["dx"].T
        store(program, dx, linear_backward.input_gradient_t(program, w, dy_t, matrix))
    before = [load(program, one) if settings.add else None for one in (dw, dbias)]
    store(program, dw, linear_backward.weight_gradient(program, x, rows, before[0]))
    store(program, dbias, linear_backward.bias_gradient(program, rows, before[1]))
    return {name: (place, exact[name]) for name, place in (("dx", dx), ("dw", dw), ("dbias", dbias))}


@layer_test(
    "the gradients of layer normalisation's x, gamma and beta",
    *sizes(M=(40, "tokens")),
    integer("N", 96, "features of a token", 2, 65536),
)
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


@layer_test("attention, and the gradients of its queries, keys and values", *ATTENTION)
def _attention_backward(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    queries, width, count, causal = settings.seq, settings.dim, settings.heads, bool(settings.causal)
    program, keys, heads, exact = bench.program, settings.keys or queries, [], []
    dout, slopes = bench.place("dout", rng.normal(size=(queries, count * width)), BF16)
    for number in range(count):
        head, values = draw_head(bench, rng, number, (queries, keys, width))
        heads.append(Head(*(load(program, matrix) for matrix in head)))
        own = slopes[:, number * width : (number + 1) * width]
        exact.append(derivatives.attention_gradients(*values, own, causal))
    matrix = identity(program, BF16)
    attended = attention(program, heads, matrix, causal=causal)
    gradients = attention_backward(program, heads, attended, load(program, dout), matrix, causal=causal)
    found = {}
    for name, gradient in zip(("dq", "dk", "dv"), gradients, strict=True):
        place = bench.room(name, gradient.shape, BF16)
        store(program, place, gradient)
        found[name] = place, np.concatenate([one[name] for one in exact], axis=1)
    return found


@layer_test(
    "rows of a table by number, and the gradient of the table",
    *sizes(
        VOCAB=(100, "rows of the table"), SEQ=(40, "tokens, each the number of a row"), DIM=(32, "features of a row")
    ),
)
def _embedding(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    rows, tokens, features, program = settings.vocab, settings.seq, settings.dim, bench.program
    table, vectors = bench.place("table", rng.normal(size=(rows, features)), BF16)
    # As in any text, some rows occur more than once.
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


@layer_test(
    "an encoder layer, and the gradients of its input and of all its parameters",
    *encoder_options(48, 64, 128),
    switch("CAUSAL", 0, "1 hides the tokens after a token's own"),
)
def _encoder_backward(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    shape, heads, causal = (settings.seq, settings.dim), settings.heads, bool(settings.causal)
    program = bench.program
    if settings.dim % heads:
        raise UsageError(f"HEADS must divide DIM={settings.dim}, not be {heads}")
    x, values = bench.place("x", rng.normal(size=shape), BF16)
    weights, numbers = encoder_weights(bench, rng, settings.dim, settings.hidden)
    dy, slopes = bench.place("dy", rng.normal(size=shape), BF16)
    exact = derivatives.encoder_gradients(values, numbers, heads, slopes, causal)
    # The exact gradient of the key bias is zero. Next to the query and value gradients, its error has a scale.
    joint = {f"{name}.bias": number for number, name in enumerate(("query", "key", "value"))}
    exact["attention.bias"] = np.concatenate([exact.pop(name) for name in joint])
    places = {name: bench.room(f"d{name}", value.shape, BF16 if name == "x" else FP32) for name, value in exact.items()}

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


TESTS = (_linear_backward, _layernorm_backward, _attention_backward, _encoder_backward, _embedding)
