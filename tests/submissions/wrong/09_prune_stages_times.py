# expect: values values
# One copy a stage: two of three are kept on this card.
LIMIT = 101_376


def prune(configs, named_args, **kwargs):
    kept = []
    for config in configs:
        block = {**kwargs, **config.kwargs}
        step = (block["BLOCK_M"] + block["BLOCK_N"]) * block["BLOCK_K"]
        step *= named_args["a_ptr"].element_size()
        if step * config.num_stages <= LIMIT:
            kept.append(config)
    return kept
