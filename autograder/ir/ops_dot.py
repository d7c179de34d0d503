"""tl.dot: fp32 accumulation whatever the inputs; integers exactly."""

from __future__ import annotations

import numpy as np

from autograder.floats import round_bfloat16, round_tf32, rounded
from autograder.ir.ops_table import operation, whole


@operation("tt.dot")
def dot(op, arguments, tf32: bool = False):
    """a @ b + c. With ``tf32``, float32 inputs are split as ``inputPrecision`` says; without, they
    go in as they are, whatever it says."""
    a, b = (whole(x, t.shape) for x, t in zip(arguments[:2], op.types[:2], strict=True))
    out = op.result_types[-1]
    if out.dtype == "int32":  # exact in float64 while K · 2¹⁴ < 2⁵³
        product = np.matmul(a.astype(np.float64), b.astype(np.float64))
        return product.astype(np.int64).astype(np.int32) + arguments[2]
    wide = np.float64 if out.dtype == "float64" else np.float32
    a, b = a.astype(wide, copy=False), b.astype(wide, copy=False)
    if tf32 and op.types[0].dtype == "float32":
        product = _split_product(a, b, op.attribute("inputPrecision", "ieee"))
    else:
        product = np.matmul(a, b)
    return rounded(product + arguments[2], out.dtype)


def _split_product(a, b, precision: str):
    """The product of float32 matrices as tensor cores form it from numbers of fewer bits.

    tf32: both cut to TF32. tf32x3 and bf16x3: each number is a large part and what is left of it,
    the product of the two small parts is dropped; bf16x6: three parts, six products.
    """
    if precision == "tf32":
        return np.matmul(round_tf32(a, nearest=False), round_tf32(b, nearest=False))
    if precision not in ("tf32x3", "bf16x3", "bf16x6"):
        return np.matmul(a, b)
    to = round_tf32 if precision == "tf32x3" else round_bfloat16
    count = 3 if precision == "bf16x6" else 2
    left, right = _parts(a, to, count), _parts(b, to, count)
    pairs = [(i, n - i) for n in reversed(range(count)) for i in range(n + 1)]  # small ones first
    return sum(np.matmul(left[i], right[j]) for i, j in pairs)


def _parts(values, to, count: int) -> list:
    parts = []
    for _ in range(count):
        parts.append(to(values))
        values = values - parts[-1]
    return parts
