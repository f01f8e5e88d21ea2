"""GPT-2 continues a text on the machine: one program, called for each token, with a cache of keys and values.

    python examples/jax/gpt2.py --weights model.safetensors --prompt "The meaning of life is" --target rtl

Weights have Hugging Face's names, in a .safetensors or .npz file; `tokenizer.json` lies beside them. `--random 2x64`
takes random weights of 2 layers and 64 features instead, and characters as tokens.
"""

import argparse
from functools import partial
from pathlib import Path

from neuroncore_rtl import jit  # first: in a clone it installs jax
from neuroncore_rtl.run.sim.packages import require_packages

# isort: split
import jax
import jax.numpy as jnp
import numpy as np

HEAD = 64
"""Features of a head, in every size of GPT-2."""


def norm(p, name, x):
    x = x - x.mean()
    return x * jax.lax.rsqrt(jnp.square(x).mean() + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def product(x, matrix):
    return jnp.dot(x.astype(jnp.bfloat16), matrix, preferred_element_type=jnp.float32)


def dense(p, name, x):
    return product(x, p[f"{name}.weight"]) + p[f"{name}.bias"]


def token(p, caches, place, number, *, heads):
    """Return the next token's number, and the caches [layers, 2, context, heads, HEAD] with its key and value."""
    x = p["wte.weight"][number].astype(jnp.float32) + p["wpe.weight"][place]
    context = caches.shape[2]
    for layer in range(len(caches)):
        name = f"h.{layer}"
        q, k, v = jnp.split(dense(p, f"{name}.attn.c_attn", norm(p, f"{name}.ln_1", x)).reshape(3 * heads, -1), 3)
        caches = jax.lax.dynamic_update_slice(caches, jnp.stack([k, v])[None, :, None], (layer, 0, place, 0, 0))
        scores = jnp.einsum("hd,thd->ht", q, caches[layer, 0]) / q.shape[-1] ** 0.5
        mixed = jax.nn.softmax(jnp.where(jnp.arange(context) <= place, scores, -1e30))
        x = x + dense(p, f"{name}.attn.c_proj", jnp.einsum("ht,thd->hd", mixed, caches[layer, 1]).reshape(-1))
        x = x + dense(p, f"{name}.mlp.c_proj", jax.nn.gelu(dense(p, f"{name}.mlp.c_fc", norm(p, f"{name}.ln_2", x))))
    return jnp.argmax(product(norm(p, "ln_f", x), p["head"])), caches


def parameters_of(found):
    """Return the parameters as the program takes them: matrices in BF16, and the embedding also turned, as `head`."""
    found = {name.removeprefix("transformer."): array for name, array in found.items()}
    kept = {
        name: array
        for name, array in found.items()
        if not name.endswith((".attn.bias", ".attn.masked_bias", "lm_head.weight"))
    }
    kept["head"] = np.ascontiguousarray(kept["wte.weight"].T)
    return {name: array.astype(jnp.bfloat16 if array.ndim == 2 else np.float32) for name, array in kept.items()}


def read_weights(path):
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    require_packages("gpt2")
    from safetensors.numpy import load_file

    return load_file(path)


def random_weights(layers, features, context, vocabulary):
    """Return random weights."""
    rng, f = np.random.default_rng(0), features
    shapes = {"wte.weight": (vocabulary, f), "wpe.weight": (context, f), "ln_f.weight": (f,), "ln_f.bias": (f,)}
    for layer in range(layers):
        matrices = {"attn.c_attn": (f, 3 * f), "attn.c_proj": (f, f), "mlp.c_fc": (f, 4 * f), "mlp.c_proj": (4 * f, f)}
        for name, shape in (matrices | {"ln_1": (f,), "ln_2": (f,)}).items():
            shapes |= {f"h.{layer}.{name}.weight": shape, f"h.{layer}.{name}.bias": shape[-1:]}
    scales = {name: 1.0 if ".ln_" in name or name == "ln_f.weight" else 0.3 for name in shapes}
    return {name: (scales[name] * rng.normal(size=shape)).astype(np.float32) for name, shape in shapes.items()}


def main(words: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(description="GPT-2 on the simulated machine.")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--weights", type=Path, help="a .safetensors or .npz file with Hugging Face's names")
    source.add_argument("--random", metavar="LAYERSxFEATURES", help="random weights; features in multiples of 64")
    parser.add_argument("--prompt", default="Shall I compare thee", help="text to continue")
    parser.add_argument("--tokens", type=int, default=8, help="number of tokens to write")
    parser.add_argument("--context", type=int, default=64, help="places of the cache")
    parser.add_argument("--vocabulary", type=int, default=128, help="number of tokens of random weights")
    parser.add_argument("--preset", default="full")
    parser.add_argument("--target", default="model", choices=("rtl", "model", "golden"))
    args = parser.parse_args(words)
    if args.random:
        layers, features = map(int, args.random.split("x"))
        p = parameters_of(random_weights(layers, features, args.context, args.vocabulary))
        encode, decode = (lambda text: [*text.encode("ascii")]), (lambda numbers: "".join(map(chr, numbers)))
    else:
        require_packages("gpt2")
        from tokenizers import Tokenizer

        p = parameters_of(read_weights(args.weights))
        tokenizer = Tokenizer.from_file(str(args.weights.with_name("tokenizer.json")))
        encode, decode = (lambda text: tokenizer.encode(text).ids), tokenizer.decode
    layers, heads = sum(name.endswith("ln_1.bias") for name in p), p["wte.weight"].shape[1] // HEAD
    numbers, read = encode(args.prompt), 0
    if not 0 < len(numbers) <= args.context - args.tokens:
        parser.error(
            f"prompt and tokens must fit into {args.context} places, not {len(numbers)} + {args.tokens}; see --context"
        )
    step = jit(partial(token, heads=heads), preset=args.preset, target=args.target)
    caches = np.zeros((layers, 2, args.context, heads, HEAD), np.float32)
    wanted = len(numbers) + args.tokens
    while len(numbers) < wanted:
        following, caches = step(p, caches, np.int32(read), np.int32(numbers[read]))
        read += 1
        if read == len(numbers):
            numbers.append(int(following))
        word, result = decode(numbers[read - 1 : read]), step.result
        print(f"token {read:3} {word!r:12} cycles {result.cycles}, bit-exact {result.bit_exact}", flush=True)
    print(decode(numbers))
    return decode(numbers)


if __name__ == "__main__":
    main()
