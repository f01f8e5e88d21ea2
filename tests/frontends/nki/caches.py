"""Attention over caches of keys and values."""

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

__all__ = ["next_tokens", "next_tokens_arguments", "paged", "paged_arguments"]

RNG = np.random.default_rng(12)


def normal(*shape: int) -> tuple[np.ndarray, str]:
    return RNG.normal(size=shape), "bf16"


COLUMNS, ROWS, LANES = 512, 64, 128
"""Context tokens and queries of a tile of scores; number of context tokens that are loaded at a time."""

PROMPTS, STEPS = ((70, 600), (55, 40)), (300, 700, 512)
"""Sequences with several new tokens (new tokens, context), and contexts of sequences with one new token.

There are 128 new tokens in all.
"""

NOWHERE = 10_000
"""Row number of the unused rows of a tile, out of the range of queries."""


def next_tokens_arguments(tokens: int, context: int, turned: bool) -> tuple:
    batch, size, heads, places = 2, 64, 4, 1024
    used = np.zeros((batch, heads, tokens, context), np.uint8)
    for sequence in range(batch):
        used[sequence, :, :, : context // 2 + 17 * sequence] = 1
    among = np.broadcast_to(np.tri(tokens, dtype=np.uint8), (batch, heads, tokens, tokens)).copy()
    keys = normal(batch, size, places) if turned else normal(batch, places, size)
    own = normal(batch, size, heads, tokens), normal(batch, size, tokens), normal(batch, tokens, size)
    caches = keys, normal(batch, places, size)
    return *own, *caches, used, among, (np.zeros((size, batch, heads, tokens)), "bf16"), turned


def next_tokens(q, k, v, keys, values, used, among, out, turned) -> np.ndarray:
    """Return the attention of new tokens to contexts that include these tokens: (size, batch, heads, tokens)."""
    tokens, context = used.shape[-2:]
    keys = (keys if turned else np.swapaxes(keys, 1, 2))[:, :, :context].copy()
    values, seen = values[:, :context].copy(), used.astype(bool)
    keys[:, :, context - tokens :], values[:, context - tokens :] = k, v
    seen[..., context - tokens :] = among
    scores = np.where(seen, np.einsum("bdhs,bdk->bhsk", q, keys), -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhsk,bkd->dbhs", powers / powers.sum(-1, keepdims=True), values)


@dataclass(frozen=True)
class Sequence:
    """A sequence: first row and count of its new tokens, count of its tokens, and its blocks in the paged caches."""

    first: int
    new: int
    context: int
    table: np.ndarray


def sequences(block: int) -> list[Sequence]:
    sizes = [*PROMPTS, *((1, context) for context in STEPS)]
    needed = [-(-context // block) for _, context in sizes]
    free = np.split(np.random.default_rng(13).permutation(sum(needed)) + 1, np.cumsum(needed)[:-1])
    firsts = np.cumsum([0] + [new for new, _ in sizes])
    return [Sequence(*one) for one in zip(firsts, *zip(*sizes, strict=True), free, strict=False)]


class Plan(NamedTuple):
    """Tiles of scores of some sequences: `queries` [tiles, rows] and `tables` of blocks [tiles, blocks].

    `seen` [tiles, rows, columns], in the kernel's load order: the row attends to that token. `goes_on`: the next tile
    has the same rows. `last`: last tile of each group of rows.
    """

    queries: np.ndarray
    tables: np.ndarray
    seen: np.ndarray
    goes_on: np.ndarray
    last: list[int]


def _plan(given: list[Sequence], rows: int, unrolled: int, block: int) -> Plan:
    tiles = []
    for one in given:
        for row, column in product(range(0, one.new, rows), range(0, one.context, COLUMNS)):
            own = np.arange(row, min(row + rows, one.new)) + one.first
            blocks = one.table[column // block : (column + COLUMNS) // block]
            seen = np.zeros((rows, COLUMNS), np.uint8)
            seen[: len(own), : one.context - column] = 1
            seen = seen.reshape(rows, LANES, -1).swapaxes(1, 2).reshape(rows, COLUMNS)
            tiles.append((own, blocks, seen, column + COLUMNS < one.context))
    last = [number for number, (*_, goes_on) in enumerate(tiles) if not goes_on]
    nothing = np.zeros(0, int), np.zeros(0, int), np.zeros((rows, COLUMNS), np.uint8), False
    queries, tables, seen, goes_on = zip(*tiles, *[nothing] * (-len(tiles) % unrolled), strict=True)
    queries = [np.pad(own, (0, rows - len(own)), constant_values=NOWHERE if rows > 1 else 0) for own in queries]
    tables = [np.pad(blocks, (0, COLUMNS // block - len(blocks))) for blocks in tables]
    ints = (np.array(numbers, np.int32) for numbers in (queries, tables))
    return Plan(*ints, np.array(seen), np.array(goes_on, np.uint8), last)


def paged_arguments(unrolled: int, block: int) -> tuple:
    size, heads, given = 64, 2, sequences(block)
    tokens, blocks = sum(one.new for one in given), 1 + sum(len(one.table) for one in given)
    own = normal(1, heads, tokens, size), normal(1, 1, size, tokens), normal(1, 1, tokens, size)
    caches = normal(blocks, 1, block, size), normal(blocks, 1, block, size)
    among = np.zeros((tokens, tokens), np.uint8)
    for one in given:
        part = slice(one.first, one.first + one.new)
        among[part, part] = np.tri(one.new)
    prompts = _plan(given[: len(PROMPTS)], ROWS, unrolled, block)
    steps = _plan(given[len(PROMPTS) :], 1, unrolled, block)
    seen = steps.seen.reshape(len(steps.seen), -1, LANES)
    masks = prompts.seen[:, :, None].transpose(1, 0, 2, 3), seen.transpose(2, 0, 1)
    found, updates = [], []
    for plan, mask in zip((prompts, steps), masks, strict=True):
        rounds = np.array([[len(plan.queries) // unrolled]], np.int32)
        ends = np.array(plan.last + [plan.last[-1]] * (8 - len(plan.last)), np.int32)[:, None]
        found += [plan.queries, plan.tables, mask, rounds, ends]
        updates.append(plan.goes_on.reshape(-1, unrolled))
    return *own, *caches, among, *found, *updates, unrolled


def paged(q, k, v, keys, values, *rest) -> np.ndarray:
    result = np.zeros(q.shape)
    for one in sequences(keys.shape[2]):
        part = slice(one.first, one.first + one.new)
        context = [cache[one.table, 0].reshape(-1, q.shape[-1])[: one.context] for cache in (keys, values)]
        own_k, own_v = (np.concatenate(pair) for pair in zip(context, (k[0, 0].T[part], v[0, 0, part]), strict=True))
        scores = q[0, :, part] @ own_k.T / np.sqrt(q.shape[-1])
        scores[:, ~np.tri(one.new, one.context + one.new, one.context, dtype=bool)] = -np.inf
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        result[0, :, part] = powers / powers.sum(-1, keepdims=True) @ own_v
    return result
