"""Every name that triton.language exports in 3.6.0, 3.7.1, 3.8.0 and 3.9.0, and what becomes of it.

"interpreted": a kernel of the tables in tests/kernels calls it and is checked against exact values.
"type", "module", "host": nothing that runs. Anything else is the reason why it is not interpreted.
"""

_GROUPS = {
    "type": """
        PropagateNan TRITON_MAX_TENSOR_NUMEL bfloat16 block_type const constexpr constexpr_type
        dtype float16 float32 float64 float8e4nv float8e5 int1 int16 int32 int64 int8 pi32_t
        pointer_type slice str_to_ty tensor tensor_descriptor tensor_descriptor_type tuple
        tuple_type uint16 uint32 uint64 uint8 void""",
    "module": "core extra math random standard",
    "host": "aggregate_replace",  # of values that exist while a kernel is compiled
    "a format that cards from compute capability 8.9 on do not have": (
        "float8e4b15 float8e4b8 float8e5b16"
    ),
    "text for the card": "inline_asm_elementwise",
    "number formats with scales": "dot_scaled",
    "interpreted": """
        abs add advance arange argmax argmin associative_scan assume atomic_add atomic_and
        atomic_cas atomic_load atomic_max atomic_min atomic_or atomic_poll atomic_store atomic_xchg
        atomic_xor bitonic_merge broadcast broadcast_to cast cat cdiv ceil clamp condition cos
        cumprod cumsum debug_barrier device_assert device_print div_rn dot erf exp exp2 expand_dims
        expect_zero fdiv flip floor fma full gather histogram interleave join load
        load_tensor_descriptor log log2 make_block_ptr make_tensor_descriptor map_elementwise max
        max_constancy max_contiguous maximum min minimum mul multiple_of num_programs
        pair_uniform_to_normal permute philox philox_impl program_id rand rand4x randint randint4x
        randn randn4x range ravel reduce reduce_or reshape rsqrt sigmoid sin softmax sort split
        sqrt sqrt_rn squeeze static_assert static_print static_range store store_tensor_descriptor
        sub sum swizzle2d target_info to_tensor topk trans uint_to_uniform_float umulhi unsqueeze
        view where xor_sum zeros zeros_like""",
}
NAMES: dict[str, str] = {name: kind for kind, names in _GROUPS.items() for name in names.split()}
# Of tl.extra.cuda.libdevice everything is interpreted but this.
LIBDEVICE = {"rcp64h": "the reciprocal that the hardware guesses from the upper half of a double"}
