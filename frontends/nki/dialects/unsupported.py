"""Names of the interface that this machine does not have, each with the reason and the nearest way."""

__all__ = ["ISA", "LANGUAGE"]

NEWER = "NeuronCore-v2 has none"
RANDOM = "instructions have their seeds in them, and cannot read them from memory"
ONE_CORE = "a kernel is of one core; collectives: kernels.library.collectives"

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
"""Of `nki.isa`."""

LANGUAGE = {
    "all_reduce": "programs of a grid run one after the other; collectives: kernels.library.collectives",
    "random_seed": RANDOM,
}
"""Of `nki.language`."""
