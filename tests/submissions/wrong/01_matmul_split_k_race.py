# expect: race races
# Right here, where programs run one after the other; not on a GPU.
import numpy as np

from autograder.minitriton import arange, cdiv, launch, load, store


def matmul_kernel(pid, A, B, C, M, N, K, BM, BN, BK):
    rows = pid[0] * BM + arange(0, BM)
    cols = pid[1] * BN + arange(0, BN)
    ks = pid[2] * BK + arange(0, BK)
    a = load(A, rows[:, None] * K + ks, (rows[:, None] < M) & (ks < K))
    b = load(B, ks[:, None] * N + cols, (ks[:, None] < K) & (cols < N))
    offs, mask = rows[:, None] * N + cols, (rows[:, None] < M) & (cols < N)
    store(C, offs, load(C, offs, mask) + a @ b, mask)


def triton_matmul(A, B, BM=16, BN=16, BK=16):
    (M, K), N = A.shape, B.shape[1]
    C = np.zeros((M, N), dtype=np.float32)
    launch(matmul_kernel, (cdiv(M, BM), cdiv(N, BN), cdiv(K, BK)), A, B, C, M, N, K, BM, BN, BK)
    return C
