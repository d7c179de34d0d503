# expect: values values
# The rule that the exercise hands out: it drops all of its own configurations.
LIMIT = 48 * 1024


def prune(configs, named_args, **kwargs):
    kept = []
    for config in configs:
        block = config.kwargs | kwargs
        m, n, k = block["BLOCK_M"], block["BLOCK_N"], block["BLOCK_K"]
        needed = (m * k + k * n + m * n) * 4 * config.num_stages
        if needed <= LIMIT:
            kept.append(config)
    return kept
