# expect: interface values


def matmul_kernel(pid, A, B, C, M, N, K, BM, BN, BK):
    pass


def triton_matmul(A, B, BM=16, BN=16, BK=16):
    pass
