"""Training of two layers in JAX; prints losses."""

import jax
import jax.numpy as jnp


def loss(params, x, labels):
    hidden = jax.nn.relu(x @ params["up"] + params["bias"])
    logits = jax.nn.log_softmax(hidden @ params["down"])
    return -jnp.mean(jnp.sum(labels * logits, axis=1))


@jax.jit
def step(params, x, labels):
    value, slopes = jax.value_and_grad(loss)(params, x, labels)
    return value, jax.tree.map(lambda p, g: p - 0.5 * g, params, slopes)


keys = jax.random.split(jax.random.key(0), 4)
params = {"up": jax.random.normal(keys[0], (8, 16)), "bias": jnp.zeros(16), "down": jax.random.normal(keys[1], (16, 4))}
x, labels = jax.random.normal(keys[2], (20, 8)), jax.nn.one_hot(jax.random.randint(keys[3], (20,), 0, 4), 4)
for _ in range(8):
    value, params = step(params, x, labels)
    print(float(value))
