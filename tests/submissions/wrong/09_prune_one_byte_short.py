# expect: values values
# cases: hidden
LIMIT = 101_376


def prune(configs, named_args, **kwargs):
    kept = []
    for config in configs:
        block = {**kwargs, **config.kwargs}
        step = (block["BLOCK_M"] + block["BLOCK_N"]) * block["BLOCK_K"]
        step *= named_args["a_ptr"].element_size()
        if step * max(config.num_stages - 1, 1) < LIMIT:
            kept.append(config)
    return kept
