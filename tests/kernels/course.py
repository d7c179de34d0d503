"""The seven kernels that the course leads to, in plain form, at the sizes of the lesson texts.

Used by the benchmark of the interpreter and by the run on a real card. `KERNELS` maps a name to
(host function, arguments as records.Tensor or scalars).
"""

import torch
import triton
import triton.language as tl

from autograder.records import Tensor


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK_SIZE=1024)
    return out


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + cols, e / tl.sum(e, axis=0), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    softmax_kernel[(rows,)](x, out, x.stride(0), out.stride(0), cols, BLOCK=block)
    return out


@triton.jit
def softmax_backward_kernel(y_ptr, dy_ptr, dx_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    y = tl.load(y_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    dx = y * (dy - tl.sum(dy * y, axis=0))
    tl.store(dx_ptr + row * stride + cols, dx, mask=mask)


def softmax_backward(y, dy):
    dx = torch.empty_like(y)
    rows, cols = y.shape
    block = triton.next_power_of_2(cols)
    softmax_backward_kernel[(rows,)](y, dy, dx, y.stride(0), cols, BLOCK=block)
    return dx


@triton.jit
def rmsnorm_kernel(x_ptr, w_ptr, out_ptr, stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(out_ptr + row * n_cols + cols, x * scale * w, mask=mask)


def rmsnorm(x, w, eps=1e-6):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    rmsnorm_kernel[(rows,)](x, w, out, x.stride(0), cols, eps, BLOCK=block)
    return out


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = GROUP_M * tiles_n
    first_m = pid // in_group * GROUP_M
    group = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + pid % in_group % group
    pid_n = pid % in_group // group
    rows = pid_m * BM + tl.arange(0, BM)
    cols = pid_n * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak
    b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (ks[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=(ks[:, None] < K - k) & (cols[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))


def matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64),)
    strides = (*a.stride(), *b.stride(), *c.stride())
    matmul_kernel[grid](a, b, c, m, n, k, *strides, BM=64, BN=64, BK=32, GROUP_M=8)
    return c


@triton.jit
def flash_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    lse_ptr,
    sqb,
    sqt,
    sqd,
    skb,
    skt,
    skd,
    svb,
    svt,
    svd,
    T,
    scale,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    start = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1)
    rows = start + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, D)
    q_ptrs = q_ptr + head * sqb + rows[:, None] * sqt + dims[None, :] * sqd
    q = tl.load(q_ptrs, mask=rows[:, None] < T, other=0.0)
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = min(start + BLOCK_M, T) if CAUSAL else T
    for at in range(0, end, BLOCK_N):
        cols = at + tl.arange(0, BLOCK_N)
        k_ptrs = k_ptr + head * skb + cols[None, :] * skt + dims[:, None] * skd
        k = tl.load(k_ptrs, mask=cols[None, :] < T, other=0.0)
        s = tl.dot(q, k) * scale
        allowed = cols[None, :] < T
        if CAUSAL:
            allowed = allowed & (cols[None, :] <= rows[:, None])
        s = tl.where(allowed, s, -float("inf"))
        new_m = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp(s - new_m[:, None])
        shrink = tl.exp(m - new_m)
        total = total * shrink + tl.sum(p, axis=1)
        v_ptrs = v_ptr + head * svb + cols[:, None] * svt + dims[None, :] * svd
        v = tl.load(v_ptrs, mask=cols[:, None] < T, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        m = new_m
    out = acc / total[:, None]
    o_ptrs = o_ptr + head * T * D + rows[:, None] * D + dims[None, :]
    tl.store(o_ptrs, out.to(o_ptr.dtype.element_ty), mask=rows[:, None] < T)
    tl.store(lse_ptr + head * T + rows, m + tl.log(total), mask=rows < T)


def flash_attention(q, k, v, causal=True, BLOCK_M=64, BLOCK_N=64):
    b, h, t, d = q.shape
    q, k, v = (x.reshape(b * h, t, d) for x in (q, k, v))
    o = torch.empty((b, h, t, d), dtype=q.dtype, device=q.device)
    lse = torch.empty((b, h, t), dtype=torch.float32, device=q.device)
    grid = (triton.cdiv(t, BLOCK_M), b * h)
    strides = (*q.stride(), *k.stride(), *v.stride())
    flash_kernel[grid](
        q, k, v, o, lse, *strides, t, d**-0.5, d, CAUSAL=causal, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )  # fmt: skip
    return o, lse


_HEADS = Tensor((2, 3, 257, 64))
KERNELS = {
    "add": (add, (Tensor((98432,)), Tensor((98432,)))),
    "softmax": (softmax, (Tensor((1823, 781)),)),
    "softmax backward": (softmax_backward, (Tensor((1823, 781)), Tensor((1823, 781)))),
    "rmsnorm": (rmsnorm, (Tensor((512, 896)), Tensor((896,)))),
    "matmul": (matmul, (Tensor((1000, 700)), Tensor((700, 900)))),
    "flash": (flash_attention, (_HEADS, _HEADS, _HEADS, False)),
    "flash causal": (flash_attention, (_HEADS, _HEADS, _HEADS, True)),
}
