"""Products of matrices: what is measured and checked, and the ladder to the fast ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch

from lab_setup.kernels import matmul, matmul_plain, matmul_tma
from lab_setup.kernels.bench.tasks import Check, Ladder, Launch, Target, Task, Variant
from lab_setup.kernels.dispatch import hopper, named, of_capability

__all__ = ["LADDERS", "TASKS", "checks", "launches"]

_HALF = torch.bfloat16
Pair = tuple[torch.Tensor, torch.Tensor]


def _square(transposed: bool, n: int) -> Pair:
    """a and b with normal random numbers; b transposed lies in memory column by column."""
    a, b = (torch.randn(n, n, device="cuda", dtype=_HALF) for _ in range(2))
    return a, b.T if transposed else b


def _into(function: Callable, a: torch.Tensor, b: torch.Tensor, **options) -> Callable:
    """A call of ``function(a, b, c)`` with the tensor for the result made beforehand."""
    c = torch.empty(a.shape[0], b.shape[1], device=a.device, dtype=a.dtype)
    return lambda: function(a, b, c, **options)


def _cublas(a: torch.Tensor, b: torch.Tensor) -> Callable:
    c = torch.empty(a.shape[0], b.shape[1], device=a.device, dtype=a.dtype)
    return lambda: torch.mm(a, b, out=c)


_POINTERS = Variant("pointers", partial(_into, matmul.matmul), needs=80)
_DESCRIPTORS = Variant("descriptors", partial(_into, matmul_tma.matmul), needs=90)


def _task(name: str, title: str, sizes: tuple[int, ...], transposed: bool, *targets) -> Task:
    return Task(
        name=name,
        title=title,
        sizes=sizes,
        tensors=partial(_square, transposed),
        own=(_POINTERS, _DESCRIPTORS),
        rivals={"cuBLAS": _cublas},
        bytes=lambda n: 3 * 2 * n * n,
        flop=lambda n: 2 * n**3,
        # Both round once to bfloat16. Where their float32 sums fall on two sides of a boundary, a
        # result as large as a sum gets, some √n, differs in its last bit: 2⁻⁷ of it.
        atol=lambda n: math.sqrt(n) / 128,
        targets=targets,
    )


_LARGE = (2048, 4096, 8192)
_NN = _task(
    *("matmul", "matmul bf16, n × n × n", (1024, *_LARGE), False),
    Target("pointers", "cuBLAS", 0.88, 0.92, (1024,)),
    Target("pointers", "cuBLAS", 0.95, 0.97, _LARGE),
    Target("descriptors", "cuBLAS", 0.97, 1.0, _LARGE),
)
_NT = _task(
    *("matmul_nt", "matmul bf16, b transposed, n × n × n", _LARGE, True),
    Target("descriptors", "cuBLAS", 0.97, 1.0),
)
TASKS = (_NN, _NT)


# -------------------------------------------------------------------- the ladder


_WIDER = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "num_warps": 4, "num_stages": 4}
_ROW_BY_ROW = matmul.config(128, 128, 32, 4, 4, group=1)
_GROUPED = matmul.config(128, 128, 32, 4, 4, group=8)
_DEEPER = matmul.config(128, 128, 64, 4, 3, group=8)
_LARGEST = matmul.config(128, 256, 64, 8, 3, group=8)
_COPIED = matmul_tma.config(128, 256, 64, 8, 4, 8)
_WALKING = matmul_tma.config(128, 256, 64, 8, 4, 8, persistent=True, halves=True)


def _step(label: str, run: Callable, reason: str, expect: float | None = None, **options):
    needs = 90 if run is matmul_tma.run else 80
    return Variant(label, partial(_into, run, **options), reason, needs, expect)


_STEPS = (
    _step(
        *("plain, 64×64×32", matmul_plain.run),
        "The solution of assignment 05: a tile of 64 × 64 a program, every load masked.",
    ),
    _step(
        *("128×128×32", matmul_plain.run),
        "A tile with sides twice as long does four times the work with twice the loads.",
        *(1.6,),
        **_WIDER,
    ),
    _step(
        *("no masks", matmul.run),
        "Rows and columns wrap around and 32 divides K: no lane asks whether it may load.",
        *(1.05,),
        config=_ROW_BY_ROW,
    ),
    _step(
        *("GROUP_M 1 → 8", matmul.run),
        "Tiles computed at the same time share strips in L2, and memory is read less.",
        *(1.05,),
        config=_GROUPED,
    ),
    _step(
        *("BLOCK_K 32 → 64", matmul.run),
        "Half as many steps: each has a barrier and addresses to pay, whatever its length.",
        *(1.15,),
        config=_DEEPER,
    ),
    _step(
        *("128×256, 8 warps", matmul.run),
        "Per byte from shared memory and L2 the tensor cores get a third more work.",
        *(1.08,),
        config=_LARGEST,
    ),
    _step(
        *("descriptors", matmul_tma.run),
        "The copy engine (TMA) computes addresses, and registers of 256 threads are free of them.",
        *(1.03,),
        config=_COPIED,
    ),
    _step(
        *("persistent", matmul_tma.run),
        "The next tile is loaded while one is stored, in halves, which leaves room for a stage.",
        *(1.03,),
        config=_WALKING,
    ),
)
LADDERS = (Ladder("matmul", _NN, _LARGE, _STEPS, ("cuBLAS",)),)


# -------------------------------------------------------------------- right at full size


def checks() -> Iterator[Check]:
    """(label, function, bound) of every product that this card would compute.

    The function computes twice into results full of NaN and returns the largest share that an error
    takes of what is allowed, so that the bound is 1; infinity where both runs differ in a bit.
    """
    ways = [("pointers", matmul.matmul)]
    ways += [("descriptors", matmul_tma.matmul)] if hopper() else []
    shapes = (
        *((1000, 904, 704), (1001, 903, 705)),  # the second has rows that begin anywhere
        *((4104, 4072, 4120), (129, 4096, 8200)),
        *((2048, 2048, 2048), (8192, 8192, 8192)),
    )
    for label, function in ways:
        for m, n, k in shapes:
            for layout in ("NN", "NT"):
                about = f"{label} {layout} {m} × {n} × {k}"
                yield about, partial(_worst, function, m, n, k, layout), 1.0
    yield (
        "pointers, strides 1000 × 904 × 704",
        partial(_worst, matmul.matmul, 1000, 904, 704, ""),
        1.0,
    )


def _worst(function: Callable, m: int, n: int, k: int, layout: str) -> float:
    """Of one product: the largest error by what is allowed, or infinity."""
    a = torch.randn(m, k, device="cuda", dtype=_HALF)
    if layout == "NT":
        b = torch.randn(n, k, device="cuda", dtype=_HALF).T
    elif layout == "NN":
        b = torch.randn(k, n, device="cuda", dtype=_HALF)
    else:  # every second column, and a transposed
        a = torch.randn(k, m, device="cuda", dtype=_HALF).T
        b = torch.randn(k, 2 * n, device="cuda", dtype=_HALF)[:, ::2]
    c, again = (torch.full((m, n), math.nan, device="cuda", dtype=_HALF) for _ in range(2))
    function(a, b, c)
    function(a, b, again)
    return error(c, a, b) if torch.equal(c, again) else math.inf


def error(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest error of ``c``, a @ b in bfloat16, as a share of what is allowed; NaN: infinity.

    Allowed is half a unit in the last of 8 bits, 2⁻⁸ of the result at most, and what float32 sums
    of K products lose: λ √K 2⁻²³ Σ|a||b| (Higham and Mary, "A new approach to probabilistic
    rounding error analysis", 2019, with λ = 8; 2⁻²³ since tensor cores cut off and do not round).
    """
    wide_a, wide_b = a.double(), b.double()
    exact = wide_a @ wide_b
    lost = 8 * math.sqrt(a.shape[1]) * 2.0**-23 * (wide_a.abs() @ wide_b.abs())
    share = (c.double() - exact).abs() / (2.0**-8 * (exact.abs() + lost) + lost)
    return float(share.nan_to_num(nan=math.inf).max())


# -------------------------------------------------------------------- compiled without a card


def launches(cc: int) -> Iterator[Launch]:
    """Every kernel with every config that a card of this capability would try, 89 for 8.9."""
    n = 4096
    a, b, c = (torch.empty(n, n, device="meta", dtype=_HALF) for _ in range(3))
    odd = [torch.empty(n + 1, n + 1, device="meta", dtype=_HALF)] * 3
    found: list[Launch] = []
    with named(of_capability(cc)):
        configs = matmul.HOPPER if hopper() else matmul.ADA
        for options in (matmul_plain.PLAIN, _WIDER):
            found.append(_launch("plain", matmul_plain.plain_kernel, (a, b, c), dict(options)))
        for config in (*configs, _ROW_BY_ROW, _GROUPED, _DEEPER, _LARGEST):
            options = config.all_kwargs() | {"EVEN_K": True}
            for layout, right in (("NN", b), ("NT", b.T)):
                found.append(_launch(layout, matmul.matmul_kernel, (a, right, c), options))
        for config in configs:
            options = config.all_kwargs() | {"EVEN_K": False}
            found.append(_launch("masked", matmul.matmul_kernel, (a, b, c), options))
        for config in matmul.UNALIGNED:
            options = config.all_kwargs() | {"EVEN_K": False}
            found.append(_launch("unaligned", matmul.matmul_kernel, odd, options))
        if hopper():
            for config in (*matmul_tma.CONFIGS, _COPIED, _WALKING):
                for layout, right in (("NN", b), ("NT", b.T)):
                    given, options = matmul_tma.launch(a, right, c, config)
                    label = f"matmul descriptors {layout} {_of(options)}"
                    kernel = matmul_tma.matmul_tma_kernel
                    found.append(Launch(label, kernel, given, options, needs=90))
    yield from {launch.label: launch for launch in found}.values()


def _launch(layout: str, kernel, tensors, options: dict) -> Launch:
    given = matmul.arguments(*tensors)
    return Launch(f"matmul pointers {layout} {_of(options)}", kernel, given, options)


def _of(options: dict) -> str:
    """A config in a few words."""
    tile = "×".join(str(options[f"BLOCK_{side}"]) for side in "MNK")
    words = [tile, f"{options.get('num_warps', 4)} warps", f"{options.get('num_stages', 3)} stages"]
    words += [f"groups of {options['GROUP_M']}"] if "GROUP_M" in options else []
    words += [word.lower() for word in ("PERSISTENT", "HALVES") if options.get(word)]
    return ", ".join(words)
