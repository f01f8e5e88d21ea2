"""Published times of Trainium 1, which AWS does not promise; conditions of convolution and BERT are roughly known."""

from dataclasses import dataclass

__all__ = [
    "ALL_GATHERS", "ALL_REDUCES", "BANDWIDTH", "BERT", "CONVOLUTIONS", "DMA_START", "KERNELS", "LOADED", "KernelFigure",
    "PublishedTime",
]  # fmt: skip

_NCCOM = "aws-neuron-sdk: tools/neuron-sys-tools/nccom-test.rst, edition of August 2023"
_ATTENTION = "nki-samples @5d97201: test/unit/test_SD_attention_small_head.py"
_ALLOCATED = "nki-samples @05c0769: test/unit/test_allocated_SD_attention_small_head.py"
_QKV = "nki-samples @05c0769: test/unit/test_rmsnorm_qkv.py"
_COURSE = "stanford-cs149/asst4-trainium @859c0e3: part2/test_harness.py"
_REFERENCE = "src/nki_samples/reference"


@dataclass(frozen=True, kw_only=True)
class PublishedTime:
    """A published time in microseconds; a `ceiling` is an upper bound that a published test asserts. Size in bytes."""

    name: str
    us: float
    source: str
    ceiling: bool = False
    size: int = 0


@dataclass(frozen=True, kw_only=True)
class KernelFigure:
    """Published time of a kernel of nki-samples; `more` says what the kernel computes here beyond published work."""

    time: PublishedTime
    kernel: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    grid: tuple[int, ...] = (1,)
    more: str = ""


def _ceiling(name: str, us: float, source: str) -> PublishedTime:
    return PublishedTime(name=name, us=us, source=source, ceiling=True)


def _attention(us: float, size: int, dtype: str, short: str, allocated: bool = False) -> KernelFigure:
    wide, tall = (1, size, 4096), (1, 4096, size)
    name = f"attention 4096 x {size} {short}"
    if allocated:
        kernel = "allocated_attention.py:allocated_fused_self_attn_for_SD_small_head_size"
        time, shapes = _ceiling(f"allocated {name}", us, _ALLOCATED), (wide, wide, tall)
    else:
        kernel = "attention.py:fused_self_attn_for_SD_small_head_size"
        time, shapes = _ceiling(name, us, _ATTENTION), (wide, tall, tall)
    return KernelFigure(time=time, kernel=f"{_REFERENCE}/{kernel}", shapes=shapes, dtype=dtype)


def _qkv(us: float, tokens: int, features: int, heads: int, dtype: str, short: str) -> KernelFigure:
    # For a single tile of tokens the kernel copies sums that it has not computed, which this project rejects.
    run = max(tokens, 256)
    more = f"{run} tokens instead of {tokens}" if run > tokens else ""
    return KernelFigure(
        time=_ceiling(f"RMS norm + QKV {tokens} x {features} x {heads} {short}", us, _QKV),
        kernel=f"{_REFERENCE}/allocated_fused_linear.py:allocated_fused_rms_norm_qkv",
        shapes=((1, run, features), (features, heads)),
        dtype=dtype,
        grid=(),
        more=more,
    )


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
)
"""Kernels with the upper bounds of their times that the tests of nki-samples assert."""

CONVOLUTIONS = {
    "fp16": PublishedTime(name="convolution 256 -> 256 fp16", us=867, source=_COURSE),
    "fp32": PublishedTime(name="convolution 256 -> 256 fp32", us=2867, source=_COURSE),
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
    name="load of 8 MiB at 410 GB/s",
    us=LOADED / 410e3,
    source="aws-neuron-sdk: nki/guides/architecture/trainium_inferentia2_arch.rst: half of a chip's 820 GB/s",
)


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
