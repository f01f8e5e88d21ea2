"""Names of the interface that this machine lacks, each with the reason and the nearest alternative."""

__all__ = ["ISA", "LANGUAGE"]

NEWER = "NeuronCore-v2 lacks it"
RANDOM = "instructions contain their seeds and cannot read them from memory"
ONE_CORE = "a kernel runs on one core; collectives: kernels.library.collectives"

ISA = {
    "core_barrier": ONE_CORE,
    "nc_matmul_mx": NEWER,
    "quantize_mx": NEWER,
    "rand_get_state": RANDOM,
    "rand_set_state": RANDOM,
    "sendrecv": ONE_CORE,
    "set_rng_seed": RANDOM,
    "topk": "GpSimd's order of elements over 16 partitions; use max8, nc_find_index8 and nc_match_replace8",
}

LANGUAGE = {
    "all_reduce": "programs of a grid run one after the other; collectives: kernels.library.collectives",
    "random_seed": RANDOM,
}
