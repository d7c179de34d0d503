"""The cases of unit 06 and what follows from their sizes alone: arguments, outputs, traffic limits.

Sizes are B, H, T, D and dtype, ``causal``, where given KV heads of k and v, BLOCK_M and BLOCK_N, a
``layout`` of the tensors in memory, and how q and k (``fill``; k also ``k_fill``) and v
(``v_fill``) are filled.
"""

from __future__ import annotations

from autograder.records import Case, Tensor

__all__ = [
    "BACKWARD",
    "BOSS",
    "GQA",
    "STRONG",
    "arguments",
    "backward_limit",
    "blocks",
    "causal",
    "full",
    "gradients",
    "limit",
    "outputs",
]

# ---------------------------------------------------------------- arguments


def _strides(layout: str, shape: tuple[int, int, int, int]) -> tuple[int, ...] | None:
    """Strides of a (B, H, T, D) view of memory in another order; None where it is contiguous."""
    _, h, t, d = shape
    return {
        "": None,
        "heads inside": (t * h * d, d, h * d, 1),  # memory is (B, T, H, D)
        "packed": (3 * t * h * d, d, 3 * h * d, 1),  # a third of (B, T, 3, H, D)
        "transposed": (h * d * t, d * t, 1, t),  # memory is (B, H, D, T)
        "every second": (2 * h * t * d, 2 * t * d, 2 * d, 2),
    }[layout]


def _tensors(case: Case) -> tuple[Tensor, Tensor, Tensor]:
    s = case.sizes
    queries = (s["B"], s["H"], s["T"], s["D"])
    keys = (s["B"], s.get("KV", s["H"]), s["T"], s["D"])
    fill, layout = s.get("fill", "normal"), s.get("layout", "")
    return (
        Tensor(queries, s["dtype"], _strides(layout, queries), fill),
        Tensor(keys, s["dtype"], _strides(layout, keys), s.get("k_fill", fill)),
        Tensor(keys, s["dtype"], _strides(layout, keys), s.get("v_fill", "normal")),
    )


def arguments(case: Case) -> tuple:
    """q, k, v, causal, and where the case has them BLOCK_M and BLOCK_N."""
    s = case.sizes
    given = (s["BLOCK_M"], s["BLOCK_N"]) if "BLOCK_M" in s else ()
    return (*_tensors(case), s["causal"], *given)


def outputs(case: Case) -> tuple[Tensor, ...]:
    q, _, _ = _tensors(case)
    return Tensor(q.shape, q.dtype), Tensor(q.shape[:3], "float32")


def gradients(case: Case) -> tuple[Tensor, ...]:
    """o, dq, dk and dv."""
    q, k, _ = _tensors(case)
    output, gradient = Tensor(q.shape, q.dtype), Tensor(k.shape, k.dtype)
    return output, output, gradient, gradient


# ---------------------------------------------------------------- limits


def blocks(case: Case) -> tuple[int, int]:
    return case.sizes.get("BLOCK_M", 64), case.sizes.get("BLOCK_N", 64)


def _pairs(t: int, rows: int, columns: int, hidden: bool) -> int:
    """Keys that the blocks of queries load, all together, if blocks beyond the diagonal are left
    out."""
    keys = 0
    for start in range(0, t, rows):
        end = min(start + rows, t) if hidden else t
        keys += min(-(-end // columns) * columns, t)
    return keys


def _forward(case: Case, block_m: int, block_n: int) -> int:
    """q and o once, lse once, k and v once for every block of queries that needs them."""
    s = case.sizes
    keys = _pairs(s["T"], block_m, block_n, s["causal"])
    return s["B"] * s["H"] * (2 * s["T"] * s["D"] + s["T"] + 2 * s["D"] * keys)


def limit(case: Case) -> int:
    return _forward(case, *blocks(case)) * 105 // 100


def backward_limit(case: Case) -> int:
    """Forward, and backward in three kernels, all in blocks of 64 × 64.

    delta: o and do in, one number a query out. dq: q, do in and dq out, lse and delta, k and v for
    every block of queries. dk and dv: k, v in and dk, dv out; q, do, lse and delta for every block
    of keys. As many queries meet a block of keys as keys a block of queries.
    """
    s = case.sizes
    t, d = s["T"], s["D"]
    pairs = _pairs(t, 64, 64, s["causal"])
    delta = 2 * t * d + t
    dq = 3 * t * d + 2 * t + 2 * d * pairs
    dkv = 4 * t * d + (2 * d + 2) * pairs
    whole = _forward(case, 64, 64) + s["B"] * s["H"] * (delta + dq + dkv)
    return whole * 105 // 100


# ---------------------------------------------------------------- cases


def causal(label: str, B: int, H: int, T: int, D: int, dtype: str = "float32", **more) -> Case:
    return Case(label, {"B": B, "H": H, "T": T, "D": D, "dtype": dtype, "causal": True, **more})


def full(*sizes, **more) -> Case:
    return causal(*sizes, **more, causal=False)


STRONG = (
    full("queries that fill no block", 1, 2, 100, 64, BLOCK_M=64, BLOCK_N=32),
    full("one block", 2, 1, 64, 32, BLOCK_M=64, BLOCK_N=64),
    full("one query beyond a block", 1, 2, 257, 32, BLOCK_M=64, BLOCK_N=64),
    full("small blocks", 1, 1, 100, 32, BLOCK_M=16, BLOCK_N=16),
    full("heads inside", 2, 3, 70, 32, BLOCK_M=32, BLOCK_N=64, layout="heads inside"),
    full("large scores", 1, 2, 100, 64, fill="times_eight"),
    full("one query, one key", 1, 2, 1, 32),
    full("float16", 1, 2, 100, 64, "float16", BLOCK_M=32, BLOCK_N=32),
    full("values near one in float16", 1, 1, 257, 32, "float16", BLOCK_M=64, BLOCK_N=16,
          fill="uniform", v_fill="near_one"),
    full("bfloat16", 1, 2, 257, 64, "bfloat16"),
)  # fmt: skip

BOSS = (
    causal("queries that fill no block", 1, 2, 100, 64, BLOCK_M=64, BLOCK_N=32),
    causal("one query beyond a block", 1, 2, 257, 32),
    causal("blocks of queries longer than of keys", 1, 1, 257, 16, BLOCK_M=128, BLOCK_N=16),
    causal("blocks of keys longer than of queries", 1, 2, 200, 32, BLOCK_M=16, BLOCK_N=128),
    causal("one query", 2, 2, 1, 64),
    causal("one less than a block", 1, 2, 63, 64),
    causal("one more than a block", 1, 2, 65, 128, BLOCK_M=32, BLOCK_N=64),
    full("not causal", 2, 1, 100, 32, BLOCK_M=32, BLOCK_N=64),
    causal("heads inside", 2, 3, 70, 32, BLOCK_M=32, BLOCK_N=32, layout="heads inside"),
    causal("transposed", 1, 2, 90, 32, layout="transposed"),
    causal("large scores", 1, 2, 130, 64, fill="times_eight"),
    causal("values near one in float16", 1, 1, 257, 32, "float16", BLOCK_M=64, BLOCK_N=16,
          fill="uniform", v_fill="near_one"),
    causal("bfloat16", 1, 2, 130, 64, "bfloat16"),
)  # fmt: skip

BACKWARD = (
    causal("queries that fill no block", 1, 1, 100, 64),
    full("not causal", 1, 2, 100, 32),
    causal("one query beyond two blocks", 1, 1, 129, 32),
    causal("one query", 1, 2, 1, 32),
    causal("heads inside", 2, 3, 70, 32, layout="heads inside"),
    causal("large scores", 1, 1, 70, 32, fill="times_eight"),
    causal("float16", 1, 1, 100, 64, "float16"),
    full("bfloat16", 1, 1, 130, 64, "bfloat16"),
)

GQA = (
    causal("four query heads a key head", 1, 8, 100, 32, KV=2),
    causal("one key head for all", 2, 3, 65, 64, KV=1, BLOCK_M=32, BLOCK_N=32),
    full("not causal", 1, 4, 130, 32, KV=2, BLOCK_M=64, BLOCK_N=32),
    causal("as many key heads as query heads", 2, 2, 63, 32, KV=2),
    causal("heads inside", 2, 6, 70, 32, KV=3, layout="heads inside"),
    causal("float16", 1, 4, 100, 64, "float16", KV=2),
    causal("bfloat16", 1, 6, 130, 64, "bfloat16", KV=2),
)
