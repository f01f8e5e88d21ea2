"""Names of the interface that this machine does not have, each with the reason and the nearest way."""

__all__ = ["ISA", "LANGUAGE"]

NEWER = "NeuronCore-v2 has none"
RANDOM = "random numbers are those of nisa.dropout and of stochastic rounding"
ONE_CORE = "a kernel is of one core; collectives: kernels.library.collectives"

ISA = {
    "activate2": "use activation and tensor_scalar",
    "core_barrier": ONE_CORE,
    "exponential": NEWER,
    "nc_matmul_mx": NEWER,
    "nc_stream_shuffle": "copy the partitions by dma_copy",
    "nonzero_with_count": NEWER,
    "quantize_mx": NEWER,
    "rand2": NEWER,
    "rand_get_state": RANDOM,
    "rand_set_state": RANDOM,
    "range_select": NEWER + "; use affine_select",
    "rng": RANDOM,
    "select_reduce": "use tensor_copy_predicated and tensor_reduce",
    "sendrecv": ONE_CORE,
    "sequence_bounds": "no instruction of the vector engine does it",
    "set_rng_seed": RANDOM,
    "tensor_partition_reduce": "multiply by a column of ones with nc_matmul",
    "tensor_scalar_cumulative": "use tensor_tensor_scan",
    "topk": "use max8, nc_find_index8 and nc_match_replace8",
}
"""Of `nki.isa`."""

LANGUAGE = {
    "all_reduce": ONE_CORE,
    "arctan": "no function of the scalar engine",
    "dropout": "use nisa.dropout",
    "gelu_apprx_sigmoid": "no function of the scalar engine; use gelu_apprx_tanh",
    "gelu_apprx_sigmoid_dx": "no function of the scalar engine; use gelu_dx",
    "mish": "no function of the scalar engine; multiply by tanh(softplus(x))",
    "prelu": "no function of the scalar engine by that name; use relu",
    "rand": RANDOM,
    "random_seed": RANDOM,
    "tan": "no function of the scalar engine; divide sin by cos",
    "where": "use tensor_copy_predicated or affine_select",
}
"""Of `nki.language`."""
