# expect: torch_computed kernel
def fp8_gemm(a, b, scale_a, scale_b, SPLIT_K):
    return (a.float() @ b.float()) * (scale_a * scale_b)
