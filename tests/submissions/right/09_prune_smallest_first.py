"""Kept are the same, in another order, with dtypes by name."""

import torch

BYTES = {torch.float8_e4m3fn: 1, torch.float16: 2, torch.bfloat16: 2, torch.float32: 4}


def prune(configs, named_args, **kwargs):
    def need(config):
        meta = dict(kwargs)
        meta.update(config.kwargs)
        one = BYTES[named_args["a_ptr"].dtype]
        both = meta["BLOCK_M"] * meta["BLOCK_K"] + meta["BLOCK_K"] * meta["BLOCK_N"]
        return one * both * max(1, config.num_stages - 1)

    return sorted(filter(lambda c: need(c) < 101_377, configs), key=need)
