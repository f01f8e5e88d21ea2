"""Variables that a TEST cannot use are rejected by name, before any build."""

import pytest

from neuroncore_rtl.run.settings import UsageError
from tests.tb.reports import report_of

OUT_OF_RANGE = {
    "activation": ("FUNC=gelu2", "N=0"),
    "digits": ("IMAGES=361", "BATCH=0", "CONFIDENCE=101", "TARGET=gpu"),
    "matmul": ("M=0", "DTYPE=int32", "PRESET=huge", "STALL=256", "ROWS=1"),
    "vector": ("N=0", "OP=add", "DTYPE=fp64", "COUNT=0", "STALL=241"),
}

REFUSED = [
    *((test, word, f"{word.partition('=')[0]} must be") for test, words in OUT_OF_RANGE.items() for word in words),
    *(
        (test, "DTYPE=int8", "DTYPE must be one of fp32, tf32, bf16, fp16, not 'int8'")
        for test in ("softmax", "layernorm", "rmsnorm", "gelu", "adamw", "topk")
    ),
    ("topk", "M=2 N=9 K=16", "k must be a multiple of 8 up to the 9 columns, not 16"),
    ("softmax", "M=4 N=60000", r"y\[0:4\]: tensors in SBUF must end by byte 196608, not \d+"),
    ("matmul", "M=100000 K=100000 N=1", r"tensors in HBM must have at most 536,870,912 bytes .*, not 20,000,600,000"),
    ("matmul", "HBM_BYTES=24", "hbm_bytes must be a power of two, not 24"),
    ("timing", "HBM_PORTS=3 DMA_ENGINES=2", r"hbm_ports must be at most dma_engines \(2\), not 3"),
    ("allreduce", "LINK_BYTES=24", "LINK_BYTES must be a power of two, not 24"),
    ("linear", "TARGET=model CORES=2", "CORES must be 1 for TARGET=model, not 2"),
    *(("matmul", f"TARGET=model {word}", f"{word[:5]} must be 0 for TARGET=model") for word in ("STALL=10", "WAVES=1")),
    ("embedding", "SEQ=1 DIM=65536 VOCAB=65536", "tensors in HBM must have at most"),
    ("conv2d", "FILTER=64 CHANNELS=4096 N=4096 HEIGHT=64 WIDTH=64", "tensors in HBM must have at most"),
    ("tensor_parallel", "M=65536 K=65536 N=65536", "tensors in HBM must have at most"),
    ("matmul", "TARGET=model M=1048576 K=1048576 N=1048576 PRESET=full", "a product must take at most 524,288 "),
    (
        "matmul",
        "TARGET=model M=65536 K=65536 N=65536 PRESET=full",
        "product must take at most 524,288 instructions of the tensor engine, .* 128 x 128 x 512, not 67,108,864",
    ),
    ("matmul", "M=8192 K=8192 N=16 PRESET=tiny TARGET=core", "at most 524,288 instructions .*, not 8,388,608"),
    ("attention", "SEQ=9 KEYS=8 CAUSAL=1", "keys must be at least as many as the 9 queries if causal, not 8"),
    ("attention_backward", "SEQ=9 KEYS=8 CAUSAL=1", "keys must be at least as many as the 9 queries if causal, not 8"),
    ("encoder", "HEADS=5 PRESET=tiny TARGET=model", "heads must divide the 64 features of a token, not 5"),
    ("encoder_backward", "HEADS=3 DIM=8", "HEADS must divide DIM=8, not be 3"),
    ("softmax", "M=65536 N=65535", "tensors in HBM must have at most"),
    ("linear", "M=65536 N=65536 K=1", "tensors in HBM must have at most"),
    ("adamw", "M=16384 N=16384 TARGET=core", "tensors in HBM must have at most"),
    ("allreduce", "CHIPS=2 GROUPS=3", "GROUPS must divide 4 cores and be a multiple of STRIDE=1, not 3"),
    ("allreduce", "CHIPS=2 GROUPS=4", "GROUPS must result in 2 to 64 cores per group, not 1"),
    ("allreduce", "PRESET=full", "PRESET must be given with TARGET=core, not as full for collective engines only"),
    ("allreduce", "CHIPS=6 WIDTH=3", "WIDTH must be given with TOPOLOGY=torus, not as 3 for a ring"),
    ("router", "CHIPS=4 CUT=8", "CUT must be a wire from 0 to 7, not 8"),
    ("router", "ERRORS=0.02", "ERRORS must be a number from 0 to 0.01, not '0.02'"),
    ("router", "CHIPS=6 TOPOLOGY=torus WIDTH=4", "chips of a torus must be"),
    ("tensor_parallel", "M=32 K=32 N=16 STRIPS=9", "strips must be between 1 and 8"),
    ("gradients", "CHIPS=33", "CHIPS times CORES must be at most 64 ranks, not 66"),
    ("gradients", "CHIPS=3 BOTH=1", "torus"),
]


@pytest.mark.parametrize(("test", "words", "message"), REFUSED, ids=[f"{test} {words}" for test, words, _ in REFUSED])
def test_what_a_test_cannot_do_is_refused(test, words, message):
    with pytest.raises(UsageError, match=message):
        report_of(test, words)
