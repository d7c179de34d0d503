import numpy as np

from autograder.minitriton import arange, cdiv, launch, load, store


def matmul_kernel(pid, A, B, C, M, N, K, BM, BN, BK):
    # One strip of A and one of B, whole: the same traffic, without a loop along K.
    rows = np.minimum(pid[0] * BM + arange(0, BM), M - 1)
    rows = np.unique(rows)
    cols = arange(pid[1] * BN, min(pid[1] * BN + BN, N))
    ks = arange(0, K)
    a = load(A, rows[:, None] * K + ks)
    b = load(B, ks[:, None] * N + cols)
    store(C, rows[:, None] * N + cols, np.einsum("ik,kj->ij", a, b))


def triton_matmul(A, B, BM=16, BN=16, BK=16):
    (M, K), N = A.shape, B.shape[1]
    C = np.empty(M * N, np.float32)
    launch(matmul_kernel, (cdiv(M, BM), cdiv(N, BN)), A, B, C, M, N, K, BM=BM, BN=BN, BK=BK)
    return C.reshape(M, N)
