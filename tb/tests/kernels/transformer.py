"""TESTs of attention and of transformer layers: from HBM to HBM on the core, compared with float64."""

from collections.abc import Sequence

import numpy as np

from neuroncore_rtl.kernels.library.attention import Head, attention
from neuroncore_rtl.kernels.library.postnorm import Scales
from neuroncore_rtl.kernels.models.transformer.decoder import Cache, decoder, owners
from neuroncore_rtl.kernels.models.transformer.encoder import Dense, EncoderWeights, encoder
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy, dma_gather, dma_scatter
from neuroncore_rtl.kernels.program.instructions import memset, tensor_scalar
from neuroncore_rtl.kernels.tiling.blocks import cut
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.kernels.tiling.transfer import load, load_together, store
from neuroncore_rtl.run.settings import Option, Settings, integer, switch
from neuroncore_rtl.spec.formats import BF16, INT32
from neuroncore_rtl.spec.isa import AluOp
from neuroncore_rtl.tb.tests.kernels import derivatives
from neuroncore_rtl.tb.tests.kernels.derivatives import EPSILON
from neuroncore_rtl.tb.tests.kernels.layers import layer_test, sizes
from neuroncore_rtl.tb.tests.kernels.workbench import CoreWorkbench, References

__all__ = ["ATTENTION", "TESTS", "draw_head", "encoder_options", "encoder_weights"]

ATTENTION = (
    *sizes(SEQ=(64, "queries")),
    integer("KEYS", None, "keys; default: the number of queries", 1, 65536),
    *sizes(DIM=(32, "features of a head")),
    integer("HEADS", 2, "heads", 1, 1024),
    switch("CAUSAL", 0, "1 hides the keys after a query's own; the last query's own is the last key"),
)


def encoder_options(tokens: int, features: int, hidden: int) -> tuple[Option, ...]:
    """Return the variables of an encoder layer."""
    return (
        *sizes(SEQ=(tokens, "tokens"), DIM=(features, "features of a token")),
        integer("HEADS", 4, "heads, a divisor of DIM", 1, 1024),
        *sizes(HIDDEN=(hidden, "hidden features of the MLP")),
    )


def draw_head(
    bench: CoreWorkbench, rng: np.random.Generator, number: int, shape: tuple[int, int, int]
) -> tuple[tuple[HbmTensor, ...], tuple[np.ndarray, ...]]:
    """Place a random q_t, k_t and v for a head; return them, and q, k and v in float64."""
    queries, keys, width = shape
    shapes = {"q_t": (width, queries), "k_t": (width, keys), "v": (keys, width)}
    pairs = [bench.place(f"{name}{number}", rng.normal(size=size), BF16) for name, size in shapes.items()]
    (q_t, q), (k_t, k), (v, values) = pairs
    return (q_t, k_t, v), (q.T, k.T, values)


@layer_test("scaled dot-product attention of any number of queries, keys and heads", *ATTENTION)
def _attention(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    queries, keys, width, program = settings.seq, settings.keys or settings.seq, settings.dim, bench.program
    y, placed, exact = bench.room("y", (queries, settings.heads * width), BF16), [], []
    for number in range(settings.heads):
        head, values = draw_head(bench, rng, number, (queries, keys, width))
        placed.append(head)
        exact.append(derivatives.attention(*values, bool(settings.causal)))

    def finish(out: Tensor, rows: slice, columns: slice) -> None:
        # The last stores use all HBM ports, as no other work hides their latency.
        for few in cut(0, out.partitions, -(-out.partitions // program.config.hbm_ports)):
            program.append(dma_copy(y[rows, columns][few], out[few]), next(program.stores))

    attention(program, _load_heads(program, placed), causal=bool(settings.causal), finish=finish)
    return {"y": (y, np.concatenate(exact, axis=1))}


def _load_heads(program: Program, heads: Sequence[tuple[HbmTensor, ...]]) -> list[Head]:
    """Append the loads of all heads: q_t and k_t of a head before v of the previous head, as scores need them."""
    found: list[Head] = []
    scored: list[list[Rows]] = []
    for number in range(len(heads) + 1):
        for q_t, k_t, _ in heads[number : number + 1]:
            scored.append(load_together(program, (q_t, k_t), program.config.columns))
        if number:
            found.append(Head(*scored[number - 1], load(program, heads[number - 1][2])))
    return found


def encoder_weights(
    bench: CoreWorkbench, rng: np.random.Generator, features: int, hidden: int
) -> tuple[EncoderWeights, dict[str, np.ndarray]]:
    """Place random parameters of an encoder layer; return them, and their float64 values by name."""
    shapes = dict.fromkeys(EncoderWeights._fields, (features, features)) | {
        "up": (features, hidden),
        "down": (hidden, features),
    }
    placed, numbers = [], {}

    def share(name: str, values: np.ndarray) -> HbmTensor:
        tensor, numbers[name] = bench.share(name, values, 1, BF16)
        return tensor

    for name, (inputs, outputs) in shapes.items():
        if name in ("first", "second"):
            gamma, beta = rng.normal(1, 0.1, outputs), rng.normal(0, 0.1, outputs)
            placed.append(Scales(share(f"{name}.gamma", gamma), share(f"{name}.beta", beta)))
            continue
        w = rng.normal(size=(inputs, outputs)) / np.sqrt(inputs)
        tensor, numbers[f"{name}.w"] = bench.place(f"{name}.w", w, BF16)
        placed.append(Dense(tensor, share(f"{name}.bias", rng.normal(0, 0.1, outputs))))
    return EncoderWeights(*placed), numbers


@layer_test(
    "an encoder layer of a transformer: attention, MLP with gelu, each with a residual and layer normalisation",
    *encoder_options(48, 64, 128),
)
def _encoder(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    x, values = bench.place("x", rng.normal(size=(settings.seq, settings.dim)), BF16)
    weights, numbers = encoder_weights(bench, rng, settings.dim, settings.hidden)
    y = bench.room("y", x.shape, BF16)
    layer = encoder(bench.program, load(bench.program, x), weights, settings.heads, epsilon=EPSILON)
    store(bench.program, y, layer.last.y)
    return {"y": (y, derivatives.encoded(values, numbers, settings.heads))}


@layer_test(
    "the encoder layer, causal, one token at a time, with the keys and values of earlier tokens in HBM",
    *encoder_options(12, 32, 64),
)
def _decoder(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    tokens, features, program = settings.seq, settings.dim, bench.program
    x, values = bench.place("x", rng.normal(size=(tokens, features)), BF16)
    weights, numbers = encoder_weights(bench, rng, features, settings.hidden)
    y = bench.room("y", x.shape, BF16)
    cache = Cache(bench.room("keys_t", (features, tokens), BF16), bench.room("values", (tokens, features), BF16))
    own = owners(program, features, settings.heads)
    position = program.space.sbuf("position", INT32, (1,))
    program.append(memset(position, 0))
    program.start_section()
    token = program.space.sbuf("token", BF16, (features,), 1)
    program.append(dma_gather(token, x, position[:1]))
    found = decoder(program, Rows((token,)), weights, own, cache, position, epsilon=EPSILON)
    program.append(dma_scatter(y, found.tiles[0], position[:1]))
    program.append(tensor_scalar(position, position, 1, AluOp.ADD))
    bench.runs = [0, *(1 for _ in range(tokens))]
    return {"y": (y, derivatives.encoded(values, numbers, settings.heads, causal=True))}


TESTS = (_attention, _encoder, _decoder)
