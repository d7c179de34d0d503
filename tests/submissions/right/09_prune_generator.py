"""A generator behind the list, the product of the sides in another order."""

from math import prod


def _fitting(configs, sizes, bytes_of_one):
    for config in configs:
        sides = sizes | config.kwargs
        sums = prod((sides["BLOCK_K"], bytes_of_one, sides["BLOCK_M"] + sides["BLOCK_N"]))
        buffers = config.num_stages - (config.num_stages > 1)
        if not buffers * sums > 101_376:
            yield config


def prune(configs, named_args, **kwargs):
    return list(_fitting(configs, kwargs, named_args["b_ptr"].element_size()))
