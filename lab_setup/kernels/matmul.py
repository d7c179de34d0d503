"""The product of two matrices, with pointers: any card, any strides.

What it does beyond the plain kernel of assignment 05: no load is masked where K is whole steps
(rows and columns beyond the edge wrap around, what they give is not stored), programs take tiles in
groups of rows, and tiles, warps and stages are tuned.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from lab_setup.kernels.dispatch import fitting, hopper

__all__ = [
    "ADA",
    "HOPPER",
    "UNALIGNED",
    "arguments",
    "checked",
    "config",
    "matmul",
    "matmul_kernel",
    "run",
    "tile_of",
]


@triton.jit
def tile_of(number, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """Row and column of tiles of the tile with this number: down GROUP_M rows, then to the right,
    so that tiles computed at the same time share what L2 holds."""
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * tiles_n
    first_m = number // in_group * GROUP_M
    size = min(tiles_m - first_m, GROUP_M)  # the last group may have fewer rows
    return first_m + number % in_group % size, number % in_group // size


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    EVEN_K: tl.constexpr,
):  # fmt: skip
    """c = a b, for the tile of this program. EVEN_K: BLOCK_K divides K."""
    pid_m, pid_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (rows % M)[:, None] * stride_am + ks[None, :] * stride_ak
    b_ptrs = b_ptr + ks[:, None] * stride_bk + (cols % N)[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        if EVEN_K:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=ks[None, :] < K - start, other=0.0)
            b = tl.load(b_ptrs, mask=ks[:, None] < K - start, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=inside)


def config(m: int, n: int, k: int, warps: int, stages: int, group: int = 8) -> triton.Config:
    """A choice of tile, warps, stages and order, for ``run``."""
    blocks = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": group}
    return triton.Config(blocks, num_warps=warps, num_stages=stages)


# The large tile wins from n = 2048 on; 1024 has work for all multiprocessors only in small ones,
# whose short steps along K want more of them under way.
HOPPER = (
    config(128, 256, 64, 8, 3),
    config(128, 256, 64, 8, 4),
    config(128, 128, 64, 4, 3),
    config(128, 128, 64, 4, 4),
    config(64, 128, 64, 4, 6),
)
# Within the 101 376 bytes of cc 8.6 and 8.9.
ADA = (
    config(128, 256, 32, 8, 3),
    config(128, 128, 32, 4, 4),
    config(128, 128, 64, 8, 3),
    config(128, 64, 32, 4, 4),
    config(64, 128, 64, 4, 3),
)
# The compiler knows that rows begin at multiples of 16 bytes where 16 divides their stride. Where
# it does not, loads go number by number, and larger tiles than these do not fit registers.
UNALIGNED = (
    config(128, 128, 32, 8, 3),
    config(64, 64, 32, 4, 3),
)


def _shared(given: dict[str, Any]) -> int:
    """Bytes of the tiles of a and b in all stages. Before Hopper tensor cores read registers, into
    which the last stage goes."""
    stages = given["num_stages"] - (0 if hopper() else 1)
    numbers = (given["BLOCK_M"] + given["BLOCK_N"]) * given["BLOCK_K"] * stages
    return numbers * given["a_ptr"].element_size()


def _prune(configs: list, arguments: dict[str, Any], **options: Any) -> list:
    """Those for this card and these strides."""
    strides = [value for name, value in arguments.items() if name.startswith("stride_")]
    aligned = all(stride == 1 or stride % 16 == 0 for stride in strides)
    ours = (HOPPER if hopper() else ADA) if aligned else UNALIGNED
    return fitting(_shared)([c for c in configs if c in ours], arguments, **options)


_tuned = triton.autotune(
    configs=[*HOPPER, *ADA, *UNALIGNED],
    key=["M", "N", "K", "stride_ak", "stride_bk"],
    prune_configs_by={"early_config_prune": _prune},
)(triton.heuristics({"EVEN_K": lambda given: given["K"] % given["BLOCK_K"] == 0})(matmul_kernel))


def matmul(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """a: (M, K), b: (K, N), of one floating-point type, any strides. Returns a @ b, in that type.

    Sums are kept in float32 (in float32 tensor cores round the factors to TF32). ``out`` takes the
    result, or else it is new. The first call at a shape tunes, which takes seconds.

    Raises ValueError where shapes or types do not fit together, or where a tensor reaches over
    2³¹ elements of memory.
    """
    c = checked(a, b, out)

    def grid(chosen: dict[str, Any]) -> tuple[int]:
        return (tiles(c, chosen["BLOCK_M"], chosen["BLOCK_N"]),)

    _tuned[grid](*arguments(a, b, c))
    return c


def run(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, config: triton.Config) -> torch.Tensor:
    """The same with one config, without tuning. ``c`` takes the result and is returned."""
    blocks = config.all_kwargs()
    grid = (tiles(c, blocks["BLOCK_M"], blocks["BLOCK_N"]),)
    matmul_kernel[grid](*arguments(a, b, c), EVEN_K=a.shape[1] % blocks["BLOCK_K"] == 0, **blocks)
    return c


def arguments(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> tuple[Any, ...]:
    """What the kernel takes before its constants."""
    return (a, b, c, *c.shape, a.shape[1], *a.stride(), *b.stride(), *c.stride())


def tiles(c: torch.Tensor, block_m: int, block_n: int) -> int:
    """How many tiles cover ``c``."""
    return triton.cdiv(c.shape[0], block_m) * triton.cdiv(c.shape[1], block_n)


def checked(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None) -> torch.Tensor:
    """The tensor for a @ b: ``out`` or a new one. Raises ValueError as ``matmul`` does."""
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(
            f"a is (M, K) and b is (K, N), with one K: here {tuple(a.shape)} and {tuple(b.shape)}."
        )
    shape = (a.shape[0], b.shape[1])
    c = torch.empty(shape, dtype=a.dtype, device=a.device) if out is None else out
    if not a.dtype.is_floating_point or not a.dtype == b.dtype == c.dtype:
        raise ValueError(
            f"a, b and out are of one floating-point type: here {a.dtype}, {b.dtype}, {c.dtype}."
        )
    if c.shape != shape:
        raise ValueError(f"out is {tuple(c.shape)}, a @ b is {shape}.")
    for name, t in (("a", a), ("b", b), ("out", c)):
        reach = sum((size - 1) * stride for size, stride in zip(t.shape, t.stride(), strict=True))
        if reach >= 2**31:  # offsets are 32-bit numbers, which is what makes them cheap
            raise ValueError(
                f"{name} reaches over {reach + 1:,} elements of memory, the kernel over 2³¹ at "
                "most: multiply it in parts."
            )
    return c
