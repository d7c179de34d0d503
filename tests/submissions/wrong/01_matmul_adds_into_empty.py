# expect: uninitialised bounds
# np.empty is taken for zeros.
import numpy as np

from autograder.minitriton import arange, cdiv, launch, load, store


def matmul_kernel(pid, A, B, C, M, N, K, BM, BN, BK):
    rows = pid[0] * BM + arange(0, BM)
    cols = pid[1] * BN + arange(0, BN)
    offs, mask = rows[:, None] * N + cols, (rows[:, None] < M) & (cols < N)
    for k in range(0, K, BK):
        ks = k + arange(0, BK)
        a = load(A, rows[:, None] * K + ks, (rows[:, None] < M) & (ks < K))
        b = load(B, ks[:, None] * N + cols, (ks[:, None] < K) & (cols < N))
        store(C, offs, load(C, offs, mask) + a @ b, mask)


def triton_matmul(A, B, BM=16, BN=16, BK=16):
    (M, K), N = A.shape, B.shape[1]
    C = np.empty((M, N), dtype=np.float32)
    launch(matmul_kernel, (cdiv(M, BM), cdiv(N, BN)), A, B, C, M, N, K, BM, BN, BK)
    return C
