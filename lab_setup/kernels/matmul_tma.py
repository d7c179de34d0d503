"""The product of two matrices, with tensor descriptors: Hopper and later.

A descriptor tells the card's copy engine (TMA) shape and strides of a tensor once; a load is then
one instruction of one thread for a whole tile, edges included, where pointers cost every thread an
address for every 16 bytes. With PERSISTENT one program a multiprocessor walks over many tiles, and
the loops over tiles and over K are one to the compiler (``flatten``): while the end of one tile is
stored, the beginning of the next is loaded.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from lab_setup.kernels import matmul as pointers
from lab_setup.kernels.dispatch import fitting, hopper, sms
from lab_setup.kernels.matmul import checked, tile_of, tiles

__all__ = ["CONFIGS", "arguments", "describable", "matmul", "matmul_tma_kernel", "run"]


@triton.jit
def _sum(
    a_desc, b_desc, row, col, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, B_TRANSPOSED: tl.constexpr,
):  # fmt: skip
    """The tile of a b that begins at (row, col), in float32. Beyond the edge a load gives zeros."""
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        a = a_desc.load([row, step * BLOCK_K])
        if B_TRANSPOSED:  # b lies in memory as (N, K): tensor cores take either
            b = b_desc.load([col, step * BLOCK_K]).T
        else:
            b = b_desc.load([step * BLOCK_K, col])
        acc = tl.dot(a, b, acc)
    return acc


@triton.jit
def _store(
    c_desc, acc, row, col, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HALVES: tl.constexpr
):
    """Writes the tile; in two halves it needs half the shared memory, which then holds a stage."""
    if HALVES:
        both = tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1))
        left, right = tl.split(both)
        c_desc.store([row, col], left.to(c_desc.dtype))
        c_desc.store([row, col + BLOCK_N // 2], right.to(c_desc.dtype))
    else:
        c_desc.store([row, col], acc.to(c_desc.dtype))


@triton.jit
def matmul_tma_kernel(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    B_TRANSPOSED: tl.constexpr, PERSISTENT: tl.constexpr, HALVES: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    """c = a b. PERSISTENT: a program takes every PROGRAMS-th tile; otherwise one tile."""
    if PERSISTENT:
        count = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
        # The tile that is stored is counted apart from the one that is loaded: in the flattened
        # loop loads run ahead, and what both used would have to be kept for every stage.
        stored = tl.program_id(0) - PROGRAMS
        for number in tl.range(tl.program_id(0), count, PROGRAMS, flatten=True):
            pid_m, pid_n = tile_of(number, M, N, BLOCK_M, BLOCK_N, GROUP_M)
            row, col = pid_m * BLOCK_M, pid_n * BLOCK_N
            acc = _sum(a_desc, b_desc, row, col, K, BLOCK_M, BLOCK_N, BLOCK_K, B_TRANSPOSED)
            stored += PROGRAMS
            out_m, out_n = tile_of(stored, M, N, BLOCK_M, BLOCK_N, GROUP_M)
            _store(c_desc, acc, out_m * BLOCK_M, out_n * BLOCK_N, BLOCK_M, BLOCK_N, HALVES)
    else:
        pid_m, pid_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
        row, col = pid_m * BLOCK_M, pid_n * BLOCK_N
        acc = _sum(a_desc, b_desc, row, col, K, BLOCK_M, BLOCK_N, BLOCK_K, B_TRANSPOSED)
        _store(c_desc, acc, row, col, BLOCK_M, BLOCK_N, HALVES)


def _blocks(given: dict[str, Any]) -> None:
    """Before a launch: gives the descriptors the tile shapes of the config."""
    m, n, k = given["BLOCK_M"], given["BLOCK_N"], given["BLOCK_K"]
    given["a_desc"].block_shape = [m, k]
    given["b_desc"].block_shape = [n, k] if given["B_TRANSPOSED"] else [k, n]
    given["c_desc"].block_shape = [m, n // 2 if given["HALVES"] else n]


def config(
    m: int, n: int, k: int, warps: int, stages: int, group: int, persistent=False, halves=False
) -> triton.Config:
    """A choice of tile, warps, stages and order, for ``run``."""
    blocks = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": group}
    blocks |= {"PERSISTENT": persistent, "HALVES": halves}
    return triton.Config(blocks, num_warps=warps, num_stages=stages, pre_hook=_blocks)


CONFIGS = (
    config(128, 256, 64, 8, 4, 8, persistent=True, halves=True),
    config(128, 256, 64, 8, 3, 16, persistent=True, halves=True),
    config(128, 256, 64, 8, 3, 8, persistent=True),
    config(128, 256, 64, 8, 4, 16),
    config(128, 128, 64, 4, 3, 8),
    config(64, 128, 64, 4, 4, 8),
)


def _shared(given: dict[str, Any]) -> int:
    """Bytes of the tiles of a and b in all stages. What is stored goes through shared memory too;
    with PERSISTENT loads of the next tile are under way then, so that it has a place of its own."""
    m, n, k = given["BLOCK_M"], given["BLOCK_N"], given["BLOCK_K"]
    loaded = (m + n) * k * given["num_stages"]
    stored = m * n // (2 if given["HALVES"] else 1)
    numbers = loaded + stored if given["PERSISTENT"] else max(loaded, stored)
    return numbers * given["a_desc"].base.element_size()


def _prune(configs: list, arguments: dict[str, Any], **options: Any) -> list:
    """A program that walks over tiles gains where there are more tiles than multiprocessors."""
    c = arguments["c_desc"].base
    kept = [
        found
        for found in configs
        if (tiles(c, 128, 256) > sms()) == found.kwargs["PERSISTENT"]
        or found is CONFIGS[3]  # near that bound either may win
    ]
    return fitting(_shared)(kept, arguments, **options)


_tuned = triton.autotune(
    configs=list(CONFIGS),
    key=["M", "N", "K", "B_TRANSPOSED"],
    prune_configs_by={"early_config_prune": _prune},
)(matmul_tma_kernel)


def matmul(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """a: (M, K), b: (K, N), in float16 or bfloat16, b also transposed. Returns a @ b in that type.

    Sums are kept in float32. ``out`` takes the result, or else it is new. The first call at a shape
    tunes, which takes seconds. Before Hopper, and where a descriptor cannot describe a tensor (rows
    that begin at no multiple of 16 bytes, every second column, other types), this is
    ``lab_setup.kernels.matmul``. Raises ValueError as that does.
    """
    c = checked(a, b, out)
    if not hopper() or not describable(a, b, c):
        return pointers.matmul(a, b, c)

    def grid(chosen: dict[str, Any]) -> tuple[int]:
        return (_programs(c, chosen),)

    _tuned[grid](*arguments(a, b, c), B_TRANSPOSED=_transposed(b), PROGRAMS=sms())
    return c


def run(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, config: triton.Config) -> torch.Tensor:
    """The same with one config, without tuning. ``c`` takes the result and is returned."""
    given, options = launch(a, b, c, config)
    matmul_tma_kernel[(_programs(c, options),)](*given, **options)
    return c


def launch(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, config: triton.Config
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments and constants of a launch with one config."""
    given = arguments(a, b, c)
    options = {**config.all_kwargs(), "B_TRANSPOSED": _transposed(b), "PROGRAMS": sms()}
    _blocks({**dict(zip(("a_desc", "b_desc", "c_desc"), given[:3], strict=True)), **options})
    return given, options


def arguments(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> tuple[Any, ...]:
    """What the kernel takes before its constants; tile shapes are still to be set."""
    inner = b.T if _transposed(b) else b
    descriptors = (TensorDescriptor.from_tensor(t, [1, 1]) for t in (a, inner, c))
    return (*descriptors, *c.shape, a.shape[1])


def describable(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> bool:
    """Whether descriptors can describe a, b or b transposed, and c: 16-bit floats, rows without
    gaps that begin at multiples of 16 bytes, and at least one number in each."""
    return all(
        t.dtype in (torch.float16, torch.bfloat16)
        and t.numel() > 0
        and t.stride(1) == 1
        and t.stride(0) * t.element_size() % 16 == 0
        and t.data_ptr() % 16 == 0
        for t in (a, b.T if _transposed(b) else b, c)
    )


def _transposed(b: torch.Tensor) -> bool:
    return b.stride(1) != 1


def _programs(c: torch.Tensor, given: dict[str, Any]) -> int:
    count = tiles(c, given["BLOCK_M"], given["BLOCK_N"])
    return min(count, given["PROGRAMS"]) if given["PERSISTENT"] else count
