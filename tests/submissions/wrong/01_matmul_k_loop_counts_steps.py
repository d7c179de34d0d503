# expect: values values
# K // BK is the number of steps, and the loop takes it for the end.
import numpy as np

from autograder.minitriton import arange, cdiv, launch, load, store


def matmul_kernel(pid, A, B, C, M, N, K, BM, BN, BK):
    rows = pid[0] * BM + arange(0, BM)
    cols = pid[1] * BN + arange(0, BN)
    acc = np.zeros((BM, BN), dtype=np.float32)
    for k in range(0, K // BK, BK):
        ks = k + arange(0, BK)
        a = load(A, rows[:, None] * K + ks, (rows[:, None] < M) & (ks < K))
        b = load(B, ks[:, None] * N + cols, (ks[:, None] < K) & (cols < N))
        acc += a @ b
    store(C, rows[:, None] * N + cols, acc, (rows[:, None] < M) & (cols < N))


def triton_matmul(A, B, BM=16, BN=16, BK=16):
    (M, K), N = A.shape, B.shape[1]
    C = np.empty((M, N), dtype=np.float32)
    launch(matmul_kernel, (cdiv(M, BM), cdiv(N, BN)), A, B, C, M, N, K, BM, BN, BK)
    return C
