"""A helper and a list comprehension; bytes of each operand on its own."""


def shared_bytes(config, named_args, given):
    m, n, k = ((given | config.all_kwargs())[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    a, b = named_args["a_ptr"].dtype.itemsize, named_args["b_ptr"].dtype.itemsize
    copies = config.num_stages - 1 if config.num_stages > 1 else 1
    return (m * k * a + k * n * b) * copies


def prune(configs, named_args, **kwargs):
    return [c for c in configs if shared_bytes(c, named_args, kwargs) <= 99 * 1024]
