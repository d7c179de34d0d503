"""FlagGems, which writes PyTorch's own operations in Triton: each against the original."""

from __future__ import annotations

import os

import torch
import torch.nn.functional as F

os.environ.setdefault("GEMS_VENDOR", "nvidia")  # it would ask the system for a card

import flag_gems  # noqa: F401
from flag_gems import ops

from tests.others.cases import Case, compared, normal, whole

X, Y = normal(20, 30), normal(20, 30, seed=1)
POSITIVE = X.abs() + 0.1
# name -> (operation of FlagGems, PyTorch's, arguments, terms of the longest sum)
TABLE = {
    "abs": (ops.abs, torch.abs, (X,), 1),
    "add": (ops.add, torch.add, (X, Y), 1),
    "sub": (ops.sub, torch.sub, (X, Y), 1),
    "mul": (ops.mul, torch.mul, (X, Y), 1),
    "true_divide": (ops.true_divide, torch.true_divide, (X, POSITIVE), 1),
    "exp": (ops.exp, torch.exp, (X,), 1),
    "log": (ops.log, torch.log, (POSITIVE,), 1),
    "rsqrt": (ops.rsqrt, torch.rsqrt, (POSITIVE,), 1),
    "sin": (ops.sin, torch.sin, (X,), 1),
    "tanh": (ops.tanh, torch.tanh, (X,), 1),
    "sigmoid": (ops.sigmoid, torch.sigmoid, (X,), 1),
    "erf": (ops.erf, torch.erf, (X,), 1),
    "gelu": (ops.gelu, F.gelu, (X,), 1),
    "silu": (ops.silu, F.silu, (X,), 1),
    "relu": (ops.relu, F.relu, (X,), 1),
    "elu": (ops.elu, F.elu, (X,), 1),
    "maximum": (ops.maximum, torch.maximum, (X, Y), 1),
    "clamp": (ops.clamp, torch.clamp, (X, -0.5, 0.5), 1),
    "where": (ops.where_self, torch.where, (X > 0, X, Y), 1),
    "lerp": (ops.lerp_scalar, torch.lerp, (X, Y, 0.25), 1),
    "bitwise_and": (
        ops.bitwise_and_tensor,
        torch.bitwise_and,
        (whole(99, 50), whole(99, 50, seed=1)),
        1,
    ),
    "eq": (ops.eq, torch.eq, (whole(3, 50), whole(3, 50, seed=1)), 1),
    "isnan": (ops.isnan, torch.isnan, (X.log(),), 1),
    "sum": (ops.sum, torch.sum, (X,), 600),
    "sum_dim": (ops.sum_dim, torch.sum, (X, [1]), 30),
    "mean": (ops.mean, torch.mean, (X,), 600),
    "prod": (ops.prod, torch.prod, (X[:1],), 30),
    "amax": (ops.amax, torch.amax, (X, 1), 1),
    "max": (ops.max, torch.max, (X,), 1),
    "argmax": (ops.argmax, torch.argmax, (X, 1), 1),
    "all": (ops.all, torch.all, (X > -9,), 1),
    "any": (ops.any, torch.any, (X > 9,), 1),
    "var_mean": (ops.var_mean, torch.var_mean, (X, [1]), 60),
    "vector_norm": (ops.vector_norm, torch.linalg.vector_norm, (X,), 600),
    "cumsum": (ops.cumsum, torch.cumsum, (X, 1), 60),
    "cummax": (ops.cummax, torch.cummax, (X, 1), 1),
    "softmax": (ops.softmax, torch.softmax, (X, -1), 60),
    "log_softmax": (ops.log_softmax, torch.log_softmax, (X, -1), 60),
    "layer_norm": (
        lambda *a: ops.layer_norm(*a)[0],
        F.layer_norm,
        (X, (30,), normal(30, seed=2), normal(30, seed=3)),
        60,
    ),
    "rms_norm": (ops.rms_norm, F.rms_norm, (X, (30,), normal(30, seed=2), 1e-5), 60),
    "mm": (ops.mm, torch.mm, (X, normal(30, 40, seed=4)), 30),
    "bmm": (ops.bmm, torch.bmm, (normal(3, 20, 30), normal(3, 30, 10, seed=1)), 30),
    "mv": (ops.mv, torch.mv, (X, normal(30, seed=4)), 30),
    "sort": (ops.sort, torch.sort, (X,), 1),
    "topk": (ops.topk, torch.topk, (X, 5), 1),
    "unique": (lambda x: ops._unique2(x)[0], torch.unique, (whole(9, 50),), 1),
    "nonzero": (ops.nonzero, torch.nonzero, (X > 0,), 1),
    "masked_fill": (ops.masked_fill, torch.masked_fill, (X, X > 0, 2.0), 1),
    "gather": (ops.gather, torch.gather, (X, 1, whole(30, 20, 7)), 1),
    "index_select": (ops.index_select, torch.index_select, (X, 1, whole(30, 7)), 1),
    "embedding": (lambda i, w: ops.embedding(w, i), F.embedding, (whole(20, 4, 5), X), 1),
    "flip": (ops.flip, torch.flip, (X, [1]), 1),
    "cat": (ops.cat, torch.cat, ([X, Y],), 1),
    "tril": (ops.tril, torch.tril, (X,), 1),
    "arange": (ops.arange, torch.arange, (50,), 1),
    "repeat": (ops.repeat, lambda x, n: x.repeat(n), (X, [2, 3]), 1),
    "conv2d": (ops.conv2d, F.conv2d, (normal(2, 3, 9, 9), normal(4, 3, 3, 3, seed=1)), 27),
}


def cases() -> list[Case]:
    def case(name, call, reference, arguments, terms):
        def run():
            return compared(call, reference, arguments, terms, backward=False)

        return Case(name, run)

    return [case(name, *row) for name, row in TABLE.items()]
