import numpy as np

from autograder.minitriton import arange, cdiv, launch, load, store


def matmul_kernel(pid, A, B, C, M, N, K, BM, BN, BK):
    # Rows and columns past the edge are wrapped round: read, and never stored.
    rows = pid[0] * BM + arange(0, BM)
    cols = pid[1] * BN + arange(0, BN)
    acc = np.zeros((BM, BN), dtype=np.float32)
    for k in range(0, K, BK):
        ks = k + arange(0, BK)
        a = load(A, (rows % M)[:, None] * K + ks, ks < K)
        b = load(B, ks[:, None] * N + cols % N, ks[:, None] < K)
        acc += np.dot(a, b)
    mask = (rows[:, None] < M) & (cols < N)
    store(C, rows[:, None] * N + cols, acc, mask)


def triton_matmul(A, B, BM=16, BN=16, BK=16):
    (M, K), (_, N) = A.shape, B.shape
    C = np.full((M, N), np.nan, dtype=A.dtype)
    launch(matmul_kernel, (cdiv(M, BM), cdiv(N, BN)), A, B, C, M, N, K, BM, BN, BK)
    return C
