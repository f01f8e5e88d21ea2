"""Published times of Trainium 1, which AWS does not promise; conditions of convolution and BERT are roughly known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "ALL_GATHERS", "ALL_REDUCES", "BANDWIDTH", "BERT", "CONVOLUTIONS", "DEPENDENCE", "DMA_START", "KERNELS", "LOADED",
    "KernelFigure", "PublishedTime",
]  # fmt: skip

_NCCOM = "aws-neuron-sdk: tools/neuron-sys-tools/nccom-test.rst, edition of August 2023"
_ATTENTION = "nki-samples @5d97201: test/unit/test_SD_attention_small_head.py"
_ALLOCATED = "nki-samples @05c0769: test/unit/test_allocated_SD_attention_small_head.py"
_QKV = "nki-samples @05c0769: test/unit/test_rmsnorm_qkv.py"
_COURSE = "stanford-cs149/asst4-trainium @859c0e3: part2/test_harness.py"
_REFERENCE = "src/nki_samples/reference"
_MAMBA = "aws-neuron-sdk: nki/guides/tutorials/fused_mamba.rst"
_STUDENT = "robertpare17/asst4-trainium @8a1d41c: solution.md, trn1.2xlarge"
_PRODUCT = "aws-neuron-sdk @v2.26.1: nki/tutorials/matrix_multiplication.rst"
_NKIBENCH = "zhang677/AccelOpt @47e29a7: experiments/full_complete_local/profile_results.csv, trn1.32xlarge"
_AUTOCOMP = "ucb-bar/autocomp @dd26a56: traces of examples, 99th percentile of nki.benchmark, trn1.2xlarge"

Use = Literal["judged", "fitted", "studied"]
Arguments = tuple[tuple[int, ...] | float, ...]


@dataclass(frozen=True, kw_only=True)
class PublishedTime:
    """A published time in microseconds.

    A `ceiling` is an upper bound that a published test asserts. A time of a whole `run` includes its start and its end.
    The `use` of a time: `fitted` if it set a rate, `studied` if it led to a change of a program here; only a `judged`
    one is independent. The size is in bytes.
    """

    name: str
    us: float
    source: str
    ceiling: bool = False
    size: int = 0
    run: bool = False
    use: Use = "judged"


@dataclass(frozen=True)
class KernelFigure:
    """Published time of a kernel.

    `arguments` are numbers, and shapes of arrays. `checkout` is the environment variable with the path of its
    repository. `candidate` is a number in the trace `kernel` (`bench.silicon.traces`). `keywords` are more arguments.
    """

    time: PublishedTime
    kernel: str
    arguments: Arguments
    dtype: str
    grid: tuple[int, ...] = (1,)
    checkout: str = "NKI_SAMPLES"
    candidate: int | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict)


def _of_run(name: str, us: float, source: str, **kind: Any) -> PublishedTime:
    return PublishedTime(name=name, us=us, source=source, run=True, **kind)


def _attention(us: float, size: int, dtype: str, short: str, allocated: bool = False) -> KernelFigure:
    wide, tall = (1, size, 4096), (1, 4096, size)
    name = f"attention 4096 x {size} {short}"
    if allocated:
        kernel = "allocated_attention.py:allocated_fused_self_attn_for_SD_small_head_size"
        time, shapes = _of_run(f"allocated {name}", us, _ALLOCATED, ceiling=True), (wide, wide, tall)
    else:
        kernel = "attention.py:fused_self_attn_for_SD_small_head_size"
        time, shapes = _of_run(name, us, _ATTENTION, ceiling=True), (wide, tall, tall)
    return KernelFigure(time, f"{_REFERENCE}/{kernel}", shapes, dtype)


def _qkv(us: float, tokens: int, features: int, heads: int, dtype: str, short: str) -> KernelFigure:
    time = _of_run(f"RMS norm + QKV {tokens} x {features} x {heads} {short}", us, _QKV, ceiling=True)
    kernel = f"{_REFERENCE}/allocated_fused_linear.py:allocated_fused_rms_norm_qkv"
    return KernelFigure(time, kernel, ((1, tokens, features), (features, heads)), dtype, grid=())


def _mamba(us: float, version: int, channels: int) -> KernelFigure:
    tile, states = (1, channels, 512), (1, 16, 512)
    # The time of version 2 led to rows read from PSUM and to the removal of repeated instructions.
    use = "studied" if version == 2 else "judged"
    time = _of_run(f"mamba_v{version}, {channels} x 512 fp32", us, _MAMBA, use=use)
    kernel = f"src/nki_samples/tutorials/fused_mamba/mamba_nki_kernels.py:mamba_v{version}"
    return KernelFigure(time, kernel, (tile, tile, (channels, 16), states, states), "float32")


def _product(us: float, version: str, use: Use = "judged") -> KernelFigure:
    file = "src/nki_samples/tutorials/matrix_multiplication/matrix_multiplication_nki_kernels.py"
    time = _of_run(f"product 4096 x 8192 x 8192 bf16, {version.replace('_', ' ')}", us, _PRODUCT, use=use)
    return KernelFigure(time, f"{file}:nki_matmul_{version}_", _BIG, "bfloat16")


def _student(us: float, name: str, kernel: str, shapes: Arguments, dtype: str, use: Use = "judged") -> KernelFigure:
    return KernelFigure(_of_run(name, us, _STUDENT, use=use), kernel, shapes, dtype, checkout="ASST4_TRAINIUM")


def _nkibench(
    name: str, us: float, file: str, *arguments: tuple[int, ...] | float, use: Use = "judged"
) -> KernelFigure:
    time = _of_run(f"{name} of NKIBench, fp32", us, _NKIBENCH, use=use)
    return KernelFigure(time, f"NKIBench/kernels/{file}_0.py:kernel", arguments, "float32", checkout="ACCELOPT")


def _norm(features: int) -> Arguments:
    return (4096, features), (features, 2048), 1e-5, (4096, features), (features,)


def _candidates(
    name: str,
    trace: str,
    milliseconds: dict[int, float],
    arguments: Arguments,
    dtype: str,
    *,
    use: Use = "judged",
    **keywords: Any,
) -> tuple[KernelFigure, ...]:
    """Return the published times of a trace's candidates, by number, without candidates of damaged text."""
    return tuple(
        KernelFigure(
            _of_run(f"{name} of autocomp, {number}", 1000 * time, _AUTOCOMP, use=use),
            *(trace, arguments, dtype), checkout="AUTOCOMP", candidate=number, keywords=keywords,
        )
        for number, time in milliseconds.items()
    )  # fmt: skip


def _lab(
    kernel: str, checkout: str, source: str, microseconds: Sequence[float], uses: Mapping[int, Use]
) -> tuple[KernelFigure, ...]:
    """Return the convolutions of a student's kernel in the order of `_LAB`; `uses` by side of the images."""
    found = []
    for us, (inputs, outputs, window, batch, side, dtype) in zip(microseconds, _LAB, strict=True):
        name = f"{kernel} {inputs} -> {outputs}, {window} x {window}, {batch} x {side} x {side} {dtype}"
        images = (batch, inputs, side, side), (outputs, inputs, window, window), (outputs,)
        source_of_lab = f"{source}, lab 6 of CS152 at Berkeley: median of nki.benchmark"
        time = _of_run(name, us, source_of_lab, use=uses.get(side, "judged"))
        found.append(KernelFigure(time, "nki_conv2d/conv2d.py:conv2d_nki", images, dtype, checkout=checkout))
    return tuple(found)


_LAB = (
    (128, 128, 3, 16, 66, "float16"), (128, 128, 5, 16, 36, "float16"), (128, 256, 3, 4, 34, "float32"),
    (128, 256, 3, 4, 66, "float16"), (128, 256, 3, 16, 34, "float32"), (128, 256, 5, 4, 36, "float32"),
    (128, 256, 5, 16, 36, "float16"), (256, 256, 3, 4, 34, "float32"), (256, 256, 3, 16, 34, "float16"),
    (256, 256, 5, 4, 36, "float16"), (256, 256, 5, 16, 36, "float16"),
)  # fmt: skip
"""Channels of inputs and outputs, filter, images, and their side."""
_PACKED = 527, 294, 173, 268, 630, 447, 570, 327, 427, 312, 1170
_ROWS = 1121, 1483, 504, 557, 1840, 2162, 2899, 989, 2145, 2169, 7901
_VECTORS = (256_000,), (256_000,)
_IMAGE = ((1, 256, 224, 224), (256, 256, 3, 3), (256,))
_SWIGLU = (8, 128, 3072), (24, 128, 1024), (8, 128, 3072)
_TRANSPOSED = (128, 16, 4096), (128, 16, 10944)
_WIDE = (40, 128, 12288)
_LORA = (8, 4, 128, 40, 128), _WIDE, (40, 128, 128), (128, 12288)
_ATTENTION_HEADS = (32, 128, 16, 128), (1, 8, 4, 128, 8, 128), (1, 32, 128, 1024)
_SCAN = ((256, 7168), (256, 7168), (256, 16), (16, 7168), (16, 7168))
_BIG = (8192, 4096), (8192, 8192)
_STATES = (1, 256, 2048), (1, 256, 2048), (256, 16), (1, 16, 2048), (1, 16, 2048)
_ATTENTIONS = dict(enumerate((3.093, 2.879, 1.569, 1.016, 0.691, 0.682, 0.681, 0.579)))
_CONV1D, _SIGNALS = {0: 8.007, 4: 5.602, 5: 4.955, 6: 0.461}, ((8, 512, 1, 2048), (512, 1, 1, 3))
_SMALL = {1: 0.437, 2: 0.434, 3: 0.424, 4: 0.399, 5: 0.385, 6: 0.384}

KERNELS = (
    _attention(600, 128, "float32", "fp32"),
    _attention(480, 128, "bfloat16", "bf16"),
    _attention(520, 64, "float16", "fp16"),
    # The published test allows 5 % more than 410 and 350.
    _attention(430.5, 128, "float32", "fp32", allocated=True),
    _attention(367.5, 128, "bfloat16", "bf16", allocated=True),
    _qkv(25, 128, 512, 512, "float16", "fp16"),
    _qkv(40, 512, 1024, 384, "bfloat16", "bf16"),
    _qkv(28, 128, 1024, 512, "bfloat16", "bf16"),
    _mamba(172.93, 1, 256),
    _mamba(2340, 1, 4096),
    _mamba(1610, 2, 4096),
    _student(29, "vector add of 256,000 fp32", "part1/kernels.py:vector_add_stream", _VECTORS, "float32"),
    _student(29, "vector add, own addresses", "part1/kernels.py:vector_add_direct_allocation", _VECTORS, "float32"),
    # The convolution's time led to the removal of repeated copies, and to shares of copies that keep runs long.
    _student(1060, "student's convolution fp16", "part2/conv2d.py:fused_conv2d_maxpool", _IMAGE, "float16", "studied"),
    _nkibench("mamba", 2888.7, "mamba_M7168_C256_S16", *_SCAN),
    _nkibench("SiLU", 1333.2, "silu_M4096_N7168", (128, 32, 7168), use="fitted"),
    _nkibench("AdamW", 1999.8, "adamw_M10944_N2048", *4 * ((10944, 2048),), use="fitted"),
    _nkibench("RMS norm + product", 1055.8, "rmsnorm_matmul_M4096_N2048_K1024", (32, 128, 1024), (8, 128, 2048)),
    _nkibench("sum + RMS norm + product", 1221.9, "add_rmsnorm_matmul_M4096_N2048_K1024", *_norm(1024)),
    _nkibench("product + sum + RMS norm", 2666.6, "matmul_add_rmsnorm_M4096_N2048_K2048", *_norm(2048)),
    _nkibench(
        "rotary embedding", 4333.0, "rope_single_freq_apply_B1_H64_N4096_D128", (128, 262144), *2 * ((64, 262144),)
    ),
    _nkibench("products in batches", 4610.9, "bmm_B16_M4096_K64_N4096", (16, 4096, 64), (16, 64, 4096)),
    _nkibench("SwiGLU", 4221.8, "swiglu_M4096_N3072_K1024", (8, 4, 128, 8, 128), *_SWIGLU),
    _nkibench("product of a transpose", 9610.3, "transpose_matmul_M4096_K2048_N10944", *_TRANSPOSED),
    _nkibench("softmax of products", 11999.6, "bmm_softmax_B16_K64_M4096_N4096", (16, 4096, 64), (16, 64, 4096)),
    _nkibench("product", 35199.7, "matmul_M4096_N12288_K5120", (32, 128, 40, 128), _WIDE),
    # The times of LoRA and attention led to fewer copies of tiles that do not fit, and to room for early loads.
    _nkibench("LoRA", 30166.4, "lora_M4096_N12288_K5120_R128", *_LORA, use="studied"),
    _nkibench("attention", 19110.5, "gqa_full_B1_N4096_QH16_KH8_D128", *_ATTENTION_HEADS, use="studied"),
    # Times of products led to tiles that are kept until a repeated load, and to longer rows of loads.
    _product(51800, "tiled", "studied"),
    _product(42960, "hoist_load"),
    _product(22070, "block_free_dimension"),
    _product(6970, "fully_optimized", "fitted"),
    *_candidates("product", "1_gemm", {0: 20.99, 1: 28.68}, _BIG, "bfloat16", use="studied"),
    *_candidates("product", "2_gemm", {2: 11.8, 3: 8.07, 4: 7.62, 5: 6.96}, _BIG, "bfloat16", use="studied"),
    *_candidates("mamba", "3_mamba", {0: 0.636, 2: 0.539, 3: 0.538, 6: 0.362}, _STATES, "float32"),
    *_candidates("attention", "4_attention", _ATTENTIONS, 3 * ((128, 4096),), "bfloat16"),
    # These times led to the removal of all repeated instructions, and to engines selected after it.
    *_candidates(
        "attention", "4_attention", {8: 0.411, 9: 0.409, 10: 0.293}, 3 * ((128, 4096),), "bfloat16", use="studied"
    ),
    *_candidates("small attention", "5_sd_attention", {0: 0.558}, 3 * ((4096, 64),), "float32"),
    # These times led to copies on the scalar engine after running sums.
    *_candidates("small attention", "5_sd_attention", _SMALL, 3 * ((4096, 64),), "float32", use="studied"),
    *_candidates("1-D convolution", "4_conv1d", _CONV1D, _SIGNALS, "float32", padding=((0, 0), (1, 1))),
    # The times of images 66 wide led to packets of several runs, those of the convolutions by rows to `load_interval`.
    *_lab("packed convolution", "CS152_PACKED", "magmawolf8/cs152-lab6 @2814885", _PACKED, {66: "studied"}),
    *_lab(
        "convolution by rows",
        "CS152_ROWS",
        "Jingfeng0705/cs152_lab6 @a635a9f",
        _ROWS,
        dict.fromkeys((34, 36, 66), "fitted"),
    ),
)
"""Kernels of nki-samples with upper bounds that its tests assert, and kernels with measured times."""

CONVOLUTIONS = {
    "fp16": PublishedTime(name="convolution 256 -> 256 fp16", us=867, source=_COURSE, run=True),
    "fp32": PublishedTime(name="convolution 256 -> 256 fp32", us=2867, source=_COURSE, run=True),
}
"""Without padding it has the published TFLOPS."""

BERT = PublishedTime(
    name="BERT-L, 128 tokens", us=2690, source="aws-neuron-sdk: about-neuron/benchmarks: batch 1, one core, 29 TFLOPS"
)

DMA_START = PublishedTime(
    name="start of a DMA", us=1.3, source="aws-neuron-sdk: nki/deep-dives/nki-dma-bandwidth-guide.rst"
)
"""Start of a DMA. The source does not name the generation of the hardware."""

LOADED = 8 << 20

BANDWIDTH = PublishedTime(
    name="load of 8 MiB at 272 GB/s",
    us=LOADED / 272e3,
    source="aws-neuron-sdk: nki/deep-dives/nki-dma-bandwidth-guide.rst: 17 GB/s for each of a core's 16 DMA engines",
)

DEPENDENCE = PublishedTime(
    name="dependent ACTIVATE of one element",
    us=0.189,
    source="aws-neuron-sdk: nki/deep-dives/nki_perf_guide.rst: 264 cycles of the scalar engine",
)
"""Time from a short instruction to the next one, which reads its result; `Config.result_latency` is set by it."""


def _collectives(what: str, microseconds: dict[int, float]) -> tuple[PublishedTime, ...]:
    return tuple(
        PublishedTime(name=f"{what} {_bytes(size)}", us=us, source=_NCCOM, size=size)
        for size, us in microseconds.items()
    )


def _bytes(size: int) -> str:
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >> shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


_M = 1 << 20
ALL_REDUCES = _collectives(
    "all-reduce of 2 ranks,",
    {1 << 10: 58, _M: 68, 4 * _M: 107, 16 * _M: 332, 64 * _M: 1214, 256 * _M: 4750, 1 << 30: 18930},
)
"""All-reduces of FP32 by two ranks, probably a chip's cores; at the first size the time does not depend on it."""

ALL_GATHERS = _collectives("all-gather of 32 ranks,", {1 << 10: 151, 8 << 10: 149, 64 << 10: 150, 512 << 10: 179})
"""The size is the bytes of the result per rank."""
