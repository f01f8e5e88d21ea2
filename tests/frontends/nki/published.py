"""Kernels published by others, by their paths in a checkout of nki-samples or of the Neuron SDK's repository.

Small arguments, and numpy references; none of the kernels' text is included.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import ml_dtypes
import numpy as np

from neuroncore_rtl.frontends.nki.indices.dtypes import dtype_of
from neuroncore_rtl.frontends.nki.runtime.run import rounded
from tests.frontends.nki import caches, mixture

__all__ = ["PUBLISHED", "REFUSED", "Published"]

RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Published:
    """A published kernel: its `file` in the checkout, and its arguments in the kernel's order.

    `expected`: function from the rounded arguments to one or more arrays; `grid`: programs along each axis; `error`:
    largest permitted error, relative to the largest number; `rtl`: whether the RTL simulates the kernel in minutes.
    """

    file: str
    function: str
    arguments: tuple
    expected: Callable
    grid: tuple[int, ...] = ()
    error: float = 2e-2
    rtl: bool = True

    @property
    def name(self) -> str:
        causal = any(argument is True for argument in self.arguments)
        return f"{self.file.split('/')[-2]}/{self.function}" + "-causal" * causal

    def results(self) -> tuple[np.ndarray, ...]:
        given = [rounded(x[0], dtype_of(x[1]).machine_format)
                 if isinstance(x, tuple) and isinstance(x[0], np.ndarray) else x for x in self.arguments]  # fmt: skip
        found = self.expected(*given)
        return found if isinstance(found, tuple) else (found,)


def normal(*shape: int, dtype: str = "fp32", scale: float = 1.0) -> tuple[np.ndarray, str]:
    return RNG.normal(size=shape) * scale, dtype


def bf16(*shape: int, scale: float = 1.0) -> tuple[np.ndarray, str]:
    return normal(*shape, dtype="bf16", scale=scale)


def zeros(*shape: int, dtype: str = "bf16") -> tuple[np.ndarray, str]:
    return np.zeros(shape), dtype


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.T @ b


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float = 1.0, causal: bool = False) -> np.ndarray:
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        scores[..., ~np.tri(*scores.shape[-2:], dtype=bool)] = -9984
    return softmax(scores) @ v


def attention_of_many(q, k, v, scale: float, causal: bool) -> np.ndarray:
    rows = np.split(q[0].T, 16)
    return np.concatenate([attention(own, k[0].T, v[0], scale) for own in rows])[None]


def mamba(delta, u, a, b, c) -> np.ndarray:
    """Return the selective scan: (batch, channels, length)."""
    result = np.zeros_like(delta)
    for state in range(a.shape[1]):
        decay = np.exp(delta * a[None, :, state, None])
        gained = delta * u * b[:, state][:, None, :]
        held = np.zeros(delta.shape[:2])
        for step in range(delta.shape[2]):
            held = decay[:, :, step] * held + gained[:, :, step]
            result[:, :, step] += held * c[:, state, step][:, None]
    return result


def layernorm(x, epsilon, gamma, beta) -> np.ndarray:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + epsilon) * gamma + beta


def rmsnorm(x, epsilon: float = 0.0) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)


def rotated(q, k, cos, sin) -> np.ndarray:
    half = q.shape[-1] // 2
    turn = [np.concatenate([-x[..., half:], x[..., :half]], -1) for x in (q, k)]
    return np.stack([x * cos[:, None] + t * sin[:, None] for x, t in zip((q, k), turn, strict=True)])


def spread(x: np.ndarray, fill: float, step: int) -> np.ndarray:
    """Return 128 rows filled with `fill`, except that every step-th row is the next row of x."""
    result = np.full((128, x.shape[1]), float(fill))
    result[::step] = x[: -(-128 // step)]
    return result


def doubled(x: np.ndarray, axis: int) -> np.ndarray:
    """Return an image of twice the size along an axis, by linear interpolation between pixel centres."""
    n = x.shape[axis]
    place = np.clip((np.arange(2 * n) + 0.5) / 2 - 0.5, 0, n - 1)
    low = np.floor(place).astype(int)
    share = (place - low).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    return np.take(x, low, axis) * (1 - share) + np.take(x, np.minimum(low + 1, n - 1), axis) * share


def nearest(x, shape) -> np.ndarray:
    rows, columns = (np.floor(np.arange(shape[d]) * x.shape[d] / shape[d]).astype(int) for d in (1, 2))
    return x[:, rows][:, :, columns]


def windows(x, size: int) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(x, (size, size)).max((2, 3))


def scattered(operand, source) -> np.ndarray:
    """Add each element of source at the largest pixel of its 3 x 3 window of operand; return the sums."""
    n, c, height, width = operand.shape
    padded = np.full((n, c, height + 2, width + 2), -np.inf)
    padded[:, :, 1:-1, 1:-1] = operand
    result = np.zeros_like(padded)
    i, j = np.ogrid[:n, :c]
    for row in range(source.shape[2]):
        for column in range(source.shape[3]):
            best = padded[:, :, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3].reshape(n, c, 9).argmax(2)
            np.add.at(result, (i, j, 2 * row + best // 3, 2 * column + best % 3), source[:, :, row, column])
    return result[:, :, 1:-1, 1:-1]


def attention_gradients(q, k, v, dy, causal: bool = True) -> tuple[np.ndarray, ...]:
    """Return the derivatives of attention with respect to q, k and v, all (batch, heads, size, length)."""
    q, k, v, dy = (np.swapaxes(x, -1, -2) for x in (q, k, v, dy))
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        scores[..., ~np.tri(scores.shape[-1], dtype=bool)] = -9984
    weights = softmax(scores)
    by_weights = dy @ np.swapaxes(v, -1, -2)
    by_scores = weights * (by_weights - (weights * by_weights).sum(-1, keepdims=True)) * scale
    found = by_scores @ k, np.swapaxes(by_scores, -1, -2) @ q, np.swapaxes(weights, -1, -2) @ dy
    return tuple(np.swapaxes(x, -1, -2) for x in found)


def backward_arguments() -> tuple:
    q, k, v, dy = (bf16(1, 1, 64, 2048) for _ in range(4))
    turned = [np.swapaxes(rounded(x[0], dtype_of("bf16").machine_format).astype(np.float64), -1, -2) for x in (q, k, v)]
    scores = turned[0] @ np.swapaxes(turned[1], -1, -2) / 8
    scores[..., ~np.tri(2048, dtype=bool)] = -9984
    logs = np.log(np.exp(scores - scores.max(-1, keepdims=True)).sum(-1)) + scores.max(-1)
    o = np.swapaxes(softmax(scores) @ turned[2], -1, -2), "bf16"
    lse = logs.reshape(1, 1, 16, 128).swapaxes(-1, -2), "fp32"
    return q, k, v, o, dy, lse, None, None, True, True


def expert_arguments(width: int, block: int = 128) -> tuple:
    hidden, tokens = RNG.normal(size=(201, 4096)), np.full(3 * block, 200, np.int32)
    hidden[200] = 0
    order = RNG.permutation(200)
    tokens[:90], tokens[block : block + 110] = order[:90], order[70:180]
    tokens[2 * block : 2 * block + 20] = order[180:]
    affinities = RNG.random((402, 1)), "bf16"
    weights = bf16(2, 4096, 2, width, scale=1 / 64), bf16(2, width, 4096, scale=1 / 8)
    return (hidden, "bf16"), affinities, *weights, block, tokens, np.array([[0], [1], [0]], np.int32)


def experts(hidden, affinities, up, down, block, tokens, expert_of, *output) -> np.ndarray:
    """Return the sum of the experts' results for blocks of tokens, weighted by affinity."""
    result = np.zeros(hidden.shape)
    for own, (expert,) in zip(tokens.reshape(-1, block), expert_of, strict=True):
        gate, value = np.moveaxis(hidden[own] @ up[expert].reshape(hidden.shape[1], -1), -1, 0).reshape(2, -1, block)
        found = (gate / (1 + np.exp(-gate)) * value).T @ down[expert]
        np.add.at(result, own, found * affinities.reshape(len(hidden), -1)[own, expert][:, None])
    return result


def quantized_rows(x, *rest) -> np.ndarray:
    scale = (np.abs(x).max(-1, keepdims=True) * np.float32(1 / 240)).astype(np.float32)
    fp8 = ml_dtypes.float8_e4m3
    return np.concatenate([(x / scale).astype(fp8), scale.view(fp8)], -1).astype(np.float32)


def rows_of_240(*shape: int) -> tuple[np.ndarray, str]:
    x = RNG.integers(-239, 240, shape).astype(np.float32)
    x[..., 5] = 240
    return x * 2.0 ** RNG.integers(-3, 4, (*shape[:-1], 1)), "bf16"


def quantized_product(a, b, scale, *blocks) -> np.ndarray:
    """Return a @ b in FP8, with rows of a scaled to 240 and b's rows stored in pairs, rescaled."""
    own = rounded(np.abs(a).max(1, keepdims=True) / 240, dtype_of("bf16").machine_format)
    columns = b.shape[1] // 2
    wide = np.concatenate([b[:, :columns], b[:, columns:]])
    return (a / own).astype(ml_dtypes.float8_e4m3).astype(np.float64) @ wide * own * scale


def turned_pairs(x, cos, sin, *out) -> np.ndarray:
    upper, lower = np.split(x, 2)
    return np.concatenate([upper * cos - lower * sin, lower * cos + upper * sin])


def convolved(x, filters, out, padding) -> np.ndarray:
    x = np.pad(x, ((0, 0), (0, 0), *padding))
    views = np.lib.stride_tricks.sliding_window_view(x, filters.shape[2:], (2, 3))
    return np.einsum("nchwij,ocij->nohw", views, filters)


_ROWS: list[Published] = []

TUTORIAL, REFERENCE, TEAM = (
    "src/nki_samples/tutorials/", "src/nki_samples/reference/", "contributed/neuron-team-kernels/",
)  # fmt: skip


def add(files: str | tuple[str, ...], functions: str, arguments: tuple, expected, **more) -> None:
    for file in (files,) if isinstance(files, str) else files:
        _ROWS.extend(Published(file, function, arguments, expected, **more) for function in functions.split())


def both(path: str) -> tuple[str, str]:
    return f"{TUTORIAL}{path}", f"nki/examples/{path}"


def _tutorials() -> None:
    pair = normal(256, 1024, dtype="fp16"), normal(256, 1024, dtype="fp16")
    addition = TUTORIAL + "tensor_addition/"
    add(both("tensor_addition/tensor_addition_nki_kernels.py"), "nki_tensor_add", pair, np.add)
    add(addition + "spmd_tensor_addition_nki_kernels.py", "nki_tensor_add", pair, np.add)
    add(addition + "spmd_multiple_nc_tensor_addition_nki_kernels.py", "nki_tensor_add_nc2", pair, np.add)
    numbers = RNG.integers(-100, 101, size=(5, 12)), "int8"
    add(both("transpose2d/transpose2d_nki_kernels.py"), "tensor_transpose2D_kernel_", (numbers, (3, 4)),
        lambda x, shape: x.reshape(5, *shape).swapaxes(1, 2).reshape(5, 12), error=0)  # fmt: skip
    add(both("average_pool2d/average_pool2d_nki_kernels.py"), "tensor_avgpool_kernel",
        (normal(2, 6, 6, dtype="fp16"), 2), lambda x, n: x.reshape(2, 3, n, 3, n).mean((2, 4)))  # fmt: skip
    matmul = both("matrix_multiplication/matrix_multiplication_nki_kernels.py")
    add(matmul, "nki_matmul_basic_", (bf16(128, 64), bf16(128, 512)), product)
    add(matmul, "nki_matmul_tiled_ nki_matmul_hoist_load_ nki_matmul_block_free_dimension_",
        (bf16(512, 256), bf16(512, 1024)), product)  # fmt: skip
    add(matmul, "nki_matmul_fully_optimized_", (bf16(1024, 2048), bf16(1024, 1024)), product)
    scan = (normal(1, 256, 128)[0] ** 2, "fp32"), normal(1, 256, 128), (-(normal(256, 4)[0] ** 2), "fp32")
    scan += normal(1, 4, 128), normal(1, 4, 128)
    add(both("fused_mamba/mamba_nki_kernels.py"), "mamba_v1 mamba_v2", scan, mamba)
    scan = tuple((x[:, :, :1].repeat(512, 2) if x.ndim == 3 else x, t) for x, t in scan)
    add(both("fused_mamba/mamba_nki_kernels.py"), "mamba_v3", scan, mamba)
    rows, gamma, beta = normal(300, 512), normal(512), normal(512)
    add(TUTORIAL + "layernorm/layernorm_nki_kernel.py", "nki_layernorm_kernel_v1 nki_layernorm_kernel_v2",
        (rows, 1e-5, gamma, beta), layernorm)  # fmt: skip
    add(TUTORIAL + "rmsnorm/rmsnorm_nki_kernels.py", "nki_rmsnorm_kernel", (rows, gamma), lambda x, g: rmsnorm(x) * g)
    add(TUTORIAL + "softmax/softmax_nki_kernels.py", "nki_softmax_kernel", (rows,), softmax)
    heads = normal(1, 2, 256, 64), normal(1, 2, 256, 64), normal(1, 256, 64), normal(1, 256, 64)
    add(TUTORIAL + "rotary/rotary_nki_kernels.py", "nki_apply_rotary_embedding", heads, rotated, grid=(1, 2))
    image = normal(512, 64), normal(512, 64), normal(512, 64)
    for causal in (False, True):
        add(TUTORIAL + "sd_attention/sd_attention_nki_kernels.py", "fused_self_attn_for_SD_small_head_size",
            (*image, causal), lambda q, k, v, causal: attention(q, k, v, 0.125, causal))  # fmt: skip


def _attention_tutorials() -> None:
    def columns(q, k, v) -> np.ndarray:
        return attention(q.T, k.T, v.T)

    forward = TUTORIAL + "attention_fwd_performance/attention_kernels.py"
    tokens = tuple(normal(128, 128, scale=0.5) for _ in range(3))
    add(forward, "attn_fwd_v1 attn_fwd_v2", tokens, columns)
    tokens = tuple(normal(128, 512, scale=0.5) for _ in range(3))
    add(forward, " ".join(f"attn_fwd_v{n}" for n in (3, 4, 5, 6, 7, 8)), tokens, columns)
    tokens = tuple(normal(128, 1024, scale=0.5) for _ in range(3))
    add(forward, "attn_fwd_v8a attn_fwd_v9 attn_fwd_v10 attn_fwd_v11", tokens, columns)


def _examples_and_tests() -> None:
    add("nki/examples/index-case-1.py", "tensor_split_kernel_", (normal(128, 301, dtype="fp16"),),
        lambda x: (x[:, ::2], x[:, 1::2]), error=0)  # fmt: skip
    add("nki/examples/index-case-3.py", "tensor_maxpool_kernel_", (normal(64, 12, 12, dtype="fp16"), 3),
        lambda x, n: x.reshape(64, 4, n, 4, n).max((2, 4)), error=0)  # fmt: skip
    add("nki/examples/layout-pass.py", "tensor_exp_kernel_", (bf16(128, 512),), np.exp)
    add("nki/examples/simulate/nki_simulate_example.py", "add_kernel", (normal(128, 512), normal(128, 512)), np.add)
    add("nki/examples/getting_started_baremetal.py", "nki_tensor_add_kernel", (normal(4, 3, dtype="fp16"),) * 2, np.add)
    indirect, copies = ("nki/test/test_nki_" + name for name in ("nl_load_store_indirect.py", "isa_dma_copy.py"))
    rows, few, even = normal(128, 512), normal(64, 512), 2 * np.arange(64, dtype=np.int32)
    add(indirect, "example_indirect_load_1", (rows, even), lambda x, chosen: x[chosen], error=0)
    add(indirect, "example_indirect_load_2", (rows,), lambda x: x[::2], error=0)
    add(indirect, "example_indirect_save_1", (few, even), lambda x, chosen: spread(x, 0, 2), error=0)
    add(indirect, "example_indirect_save_2", (few,), lambda x: spread(x, 0, 2), error=0)
    add(copies, "nki_indirect_load_oob_err", (rows,), lambda x: x[::2], error=0)
    add(copies, "nki_indirect_load_oob_skip", (rows,), lambda x: np.concatenate([x[::3], np.full((21, 512), -1.0)]),
        error=0)  # fmt: skip
    add(copies, "nki_indirect_store_rmw", (few,), lambda x: 1 + spread(x, 0, 2))
    add(copies, "nki_indirect_store_oob_skip", (few,), lambda x: spread(x, -1, 3), error=0)
    add("nki/test/test_nki_isa_local_gather.py", "nki_local_gather",
        (normal(128, 512, 4), np.tile(4 * RNG.integers(0, 512, (16, 4)), (8, 1)).astype(np.uint16), 4, 64,
         (128, 4, 16, 4)), lambda x, places, *rest: x[:, places[:16].T // 4], error=0)  # fmt: skip


def _team_experts() -> None:
    for width in (128, 64):
        tokens = expert_arguments(width)
        add(TEAM + "blockwise_mm.py", "blockwise_mm_baseline_allocated", tokens, experts)
        add(TEAM + "blockwise_mm.py", "blockwise_mm", (*tokens, zeros(201, 4096)), experts)
    for block, function in ((128, "blockwise_mm_tuned_schedule_0"), (512, "blockwise_mm_prefetch_3_tiles")):
        tokens = (*expert_arguments(128, block), zeros(201, 4096))
        add(TEAM + "blockwise_mm.py", function, tokens, experts)
    again, kept = np.array([1, 1, 1, 0], np.uint8), SimpleNamespace(skip_token=False, skip_weight=False)
    add(TEAM + "blockwise_mm.py", "blockwise_mm_baseline_while",
        (again, *expert_arguments(128), zeros(201, 4096), None, None, kept),
        lambda again, *rest: experts(*rest))  # fmt: skip
    add(TEAM + "blockwise_mm_bwd.py", "blockwise_mm_bwd", mixture.gradient_arguments(200), mixture.gradients)
    add(TEAM + "rmsnorm_quant.py", "rmsnorm_quant",
        (rows_of_240(2, 160, 512), normal(512), 0.0, zeros(2, 160, 516, dtype="float8_e4m3"), "Quant"), quantized_rows,
        error=0)  # fmt: skip
    rows = rows_of_240(2, 256, 512), normal(512), 0.0
    add(TEAM + "rmsnorm_quant.py", "shard_rmsnorm_quant", (*rows, zeros(2, 256, 516, dtype="float8_e4m3"), "Quant"),
        quantized_rows, grid=(2,), error=0)  # fmt: skip
    add(TEAM + "rmsnorm_quant.py", "compatible_rmsnorm_quant", (*rows, "QuantOnly"), quantized_rows, error=0)


def _team_attention() -> None:
    for tokens in (caches.next_tokens_arguments(1, 512, True), caches.next_tokens_arguments(4, 640, False)):
        add(TEAM + "attention_token_gen.py", "attention_token_gen_kernel", tokens, caches.next_tokens)
    for tokens in (caches.paged_arguments(2, 4), caches.paged_arguments(1, 32)):
        add(TEAM + "flash_paged_attn_varlen/varlen_attention_kernel.py", "flash_paged_attention_varlen", tokens,
            caches.paged, grid=(1, 1))  # fmt: skip
    gradients_of = tuple(bf16(1, 2, 64, 384) for _ in range(4))
    gradients_of += (zeros(1, 2, 64, 384),) * 3
    for causal in (False, True):
        add(TEAM + "attention.py", "fused_self_attn_bwd", (*gradients_of, causal, True),
            lambda q, k, v, dy, dq, dk, dv, causal, mixed: attention_gradients(q, k, v, dy, causal),
            grid=(1, 2))  # fmt: skip


def _quantisation_and_layers() -> None:
    options = SimpleNamespace(
        lower_bound=0.0, eps=1e-6, needs_rms_normalization=lambda: False, has_lower_bound=lambda: False
    )
    add(REFERENCE + "rmsnorm_quant/rmsnorm_quant.py", "rmsnorm_quant_kernel",
        (rows_of_240(2, 80, 512), normal(512), options), quantized_rows, error=0)  # fmt: skip
    add(REFERENCE + "rmsnorm_quant/rmsnorm_quant.py", "rmsnorm_quant_kernel",
        (rows_of_240(2, 256, 512), normal(512), options), quantized_rows, grid=(2,), error=0)  # fmt: skip
    weights = normal(128, 1024, dtype="float8_e4m3"), (RNG.uniform(0.5, 1.5, (1, 512)).repeat(128, 0), "bf16")
    add(REFERENCE + "double_row_matmul.py", "quantized_double_row_matmul",
        (bf16(128, 256), *weights, 1, 1, 2), quantized_product)  # fmt: skip
    add(TEAM + "RoPE.py", "RoPE", (normal(64, 256), normal(32, 256), normal(32, 256), zeros(64, 256, dtype="fp32")),
        turned_pairs)  # fmt: skip
    add(TEAM + "transpose.py", "tiled_dve_transpose_210", (normal(128, 6, 5, 7),), lambda x: x.transpose(0, 3, 2, 1),
        error=0)  # fmt: skip
    add(TEAM + "transpose.py", "tiled_dve_transpose_10", (normal(128, 6, 7), [0, 2, 1]),
        lambda x, order: x.transpose(0, 2, 1), error=0)  # fmt: skip
    images = normal(1, 4, 24, 23), normal(130, 4, 3, 3), zeros(1, 130, 24, 23, dtype="fp32"), [[1, 1], [1, 1]]
    add(TEAM + "conv.py", "conv2d", images, convolved)


def _contributed() -> None:
    add("contributed/matmul.py", "matmul", (bf16(1024, 512), bf16(1024, 2048)), product)
    q, k, v = (bf16(1, *shape, scale=0.5) for shape in ((128, 2**14), (128, 2**14), (2**14, 128)))
    add("contributed/pipelined_attention.py", "flash_fwd", (q, k, v, 0.125, False), attention_of_many, grid=(1,),
        rtl=False)  # fmt: skip
    add("contributed/maxpooling.py", "max_pooling_2d_stride_1", (normal(200, 64), 3), windows, error=0)
    add("contributed/interpolate_bilinear_fwd.py", "interpolate_bilinear_2x_fwd", (normal(1, 128, 20, 20),),
        lambda x: doubled(doubled(x, 2), 3))  # fmt: skip
    add("contributed/interpolate_trilinear_fwd.py", "interpolate_trilinear_2x_fwd", (normal(1, 128, 8, 8, 8),),
        lambda x: doubled(doubled(doubled(x, 2), 3), 4))  # fmt: skip


def _reference() -> None:
    add(REFERENCE + "tutorial.py", "add_kernel_nx8x128x512", (normal(2, 8, 128, 512), normal(2, 8, 128, 512), 2**20),
        lambda a, b, n: a + b, grid=(2,))  # fmt: skip
    for tokens in (128, 256):
        add(REFERENCE + "allocated_fused_linear.py", "allocated_fused_rms_norm_qkv",
            (bf16(1, tokens, 512), bf16(512, 512)), lambda x, w: rmsnorm(x, 1e-6) @ w)  # fmt: skip
    q, k, v = bf16(1, 64, 1024), bf16(1, 1024, 64), bf16(1, 1024, 64)
    add(REFERENCE + "attention.py", "fused_self_attn_for_SD_small_head_size", (q, k, v),
        lambda q, k, v: attention(q.swapaxes(1, 2), k, v, 0.125), grid=(1,))  # fmt: skip
    q, k, v = (bf16(*shape, scale=0.5) for shape in ((1, 128, 2048), (1, 128, 2048), (1, 2048, 128)))
    add(REFERENCE + "allocated_attention.py", "allocated_fused_self_attn_for_SD_small_head_size", (q, k, v),
        lambda q, k, v: attention(q.swapaxes(1, 2), k.swapaxes(1, 2), v, 0.125).swapaxes(1, 2), grid=(1,))  # fmt: skip
    q, k, v = (bf16(1, 1, *shape) for shape in ((64, 2048), (64, 2048), (2048, 64)))
    add(REFERENCE + "attention.py", "flash_fwd", (q, k, v, None),
        lambda q, k, v, seed: attention(q.swapaxes(2, 3), k.swapaxes(2, 3), v, 0.125, True), grid=(1, 1))  # fmt: skip
    add(REFERENCE + "attention.py", "flash_attn_bwd", backward_arguments(),
        lambda q, k, v, o, dy, *rest: attention_gradients(q, k, v, dy), grid=(1, 1))  # fmt: skip
    add(REFERENCE + "vision.py", "resize_nearest_fixed_dma_kernel", (normal(1, 30, 20, 64), (1, 59, 38, 64)), nearest,
        error=0)  # fmt: skip
    add(REFERENCE + "vision.py", "adaptive_avg_pool2d_kernel", (normal(4, 64, 12, 12), (4, 4)),
        lambda x, shape: x.reshape(4, 64, 4, 3, 4, 3).mean((3, 5)))  # fmt: skip
    images = normal(8, 64, 112, 112), normal(8, 64, 56, 56)
    add(REFERENCE + "vision.py", "select_and_scatter_kernel", images, scattered)
    cumulated = normal(200, 3000), zeros(200, 3000, dtype="fp32")
    add(TEAM + "cumsum.py", "cumsum", cumulated, lambda x, y: np.cumsum(x, 1))


# The order is fixed, because all draw from the same generator.
for _add_rows in (
    _tutorials, _attention_tutorials, _examples_and_tests, _team_experts, _team_attention, _quantisation_and_layers,
    _contributed, _reference,
):  # fmt: skip
    _add_rows()

PUBLISHED = tuple(_ROWS)


def _refused() -> Iterator[tuple[str, str, tuple, str]]:
    team, ones = "contributed/neuron-team-kernels/", np.ones((1, 2, 1, 512), np.uint8)
    pair = zeros(2, 128, 128), zeros(2, 128, 512)
    own = "row_tiled_mm_kernel must be replaced.*internal to the vendor's compiler"
    yield team + "hw_ubench.py", "row_tiled_matmul_isa_kernel", (*pair, 512, 2, False), own
    pair = zeros(128, 128), zeros(128, 512)
    own = "column_tiled_mm_kernel must be replaced.*internal to the vendor's compiler"
    yield team + "hw_ubench.py", "column_tiled_matmul_isa_kernel", (*pair, 512, False), own
    block = zeros(1, 1, 512), zeros(512, 256), zeros(1, 512), 1e-6, zeros(32, 1, 1), zeros(32, 1, 1), zeros(1, 64, 1024)
    block += zeros(1, 1024, 64), ones, ones[..., :1], np.zeros((1, 1), np.int32), True
    own = "qkv.rmsnorm_qkv_isa_kernel must be replaced.*internal to the vendor's compiler"
    yield team + "attention_token_gen.py", "llama3_attention_block_token_gen_kernel", block, own
    kept = SimpleNamespace(seq_tile_size=512, should_transpose_v=True, training=False)
    ring = *(zeros(1, 1, 64, 512) for _ in range(3)), None, 0, [(0, 1), (1, 0)], None, True, True, 0.0, kept
    yield team + "attention.py", "ring_attention_fwd", ring, "_tiled_offloaded_memcpy is not a name"


REFUSED = tuple(_refused())
"""Kernels that the front end rejects: file, function, arguments, and expected message."""
