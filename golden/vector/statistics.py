"""Mean and variance by Welford's method, merged by Chan's."""

import numpy as np

from neuroncore_rtl.golden.arith import add_fp32, divide_fp32, multiply_add_fp32, multiply_fp32

__all__ = ["bn_aggr", "bn_stats"]


def bn_stats(words) -> np.ndarray:
    """Return count, mean and variance * count of the even elements, then of the odd ones: FP32 words [..., 6].

    For each of the two sets, from mean = m2 = +0, with k = 1, 2, ...: d = x - mean, mean += d * fp32(1 / k), m2 += d *
    (x - mean). Sums with a product are fused, so every operation is rounded once.
    """
    x = np.moveaxis(np.asarray(words, np.uint32).view(np.float32), -1, 0)
    return np.concatenate([_welford(x[parity::2]) for parity in (0, 1)], -1)


def _welford(x: np.ndarray) -> np.ndarray:
    mean = m2 = np.zeros(x.shape[1:], np.float32)
    for k, element in enumerate(x, start=1):
        share = np.float32(1) / np.float32(k)
        d = add_fp32(element, -mean)
        mean = multiply_add_fp32(d, share, mean)
        m2 = multiply_add_fp32(d, add_fp32(element, -mean), m2)
    return np.stack([np.full_like(mean, len(x)), mean, m2], -1).view(np.uint32)


def bn_aggr(words) -> np.ndarray:
    """Return mean and variance [..., 2] of the union of sets, each given as count, mean and variance * count.

    From n = mean = m2 = +0, for each set of nb > 0 elements: d = mb - mean, w = nb / (n + nb), mean += d * w,
    m2 = (d * n) * (d * w) + (m2 + m2b), n += nb. The variance is m2 / n.
    """
    values = np.asarray(words, np.uint32).view(np.float32)
    sets = np.moveaxis(values.reshape(*values.shape[:-1], -1, 3), (-2, -1), (0, 1))
    n = mean = m2 = np.zeros(sets.shape[2:], np.float32)
    for nb, mb, m2b in sets:
        total = add_fp32(n, nb)
        d = add_fp32(mb, -mean)
        w = divide_fp32(nb, total)
        new = (
            multiply_add_fp32(d, w, mean),
            multiply_add_fp32(multiply_fp32(d, n), multiply_fp32(d, w), add_fp32(m2, m2b)),
        )
        empty = nb == 0
        mean, m2 = (np.where(empty, old, value) for old, value in zip((mean, m2), new, strict=True))
        n = np.where(empty, n, total)
    return np.stack([mean, divide_fp32(m2, n)], -1).view(np.uint32)
