# expect: interface
def flash_attention(q, k, v, causal=True, BLOCK_M=64, BLOCK_N=64):
    raise NotImplementedError("flash_attention is not written yet")
