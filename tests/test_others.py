"""The harness for public kernels: what it calls agreement, and how it tells what goes wrong."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from rich.console import Console

from tests.others import __main__ as others
from tests.others.cases import Case, Pair, compared, normal, pair


@triton.jit
def square(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x * x, mask=offs < n)


@triton.jit
def assembly(x_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    y = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], tl.float32, True, 1)
    tl.store(x_ptr + offs, y)


def squared(x, n=None):
    out = torch.empty_like(x)
    square[(triton.cdiv(x.numel(), 64),)](x, out, n or x.numel(), BLOCK=64)
    return out


def test_agreement_is_a_bound_by_type_and_length():
    want = torch.full((10,), 4.0, dtype=torch.float64)
    unit = 2.0**-24
    assert pair("x", want.float(), want).error == 0
    near = Pair("x", want + 4 * 17 * unit, want, unit, 1)
    assert near.tolerance == 4 * 17 * unit and 0.99 < near.error <= 1.01
    assert Pair("x", want + 4 * 18 * unit, want, unit, 1).error > 1
    assert pair("x", want.long() + 1, want).error == float("inf")  # integers are exact
    assert pair("x", want[:9].float(), want).error == float("inf")
    assert pair("x", torch.full((10,), torch.nan), want).error == float("inf")


def test_gradients_are_compared_too():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.saved_tensors[0]

    good = compared(lambda x: x * x, lambda x: x * x, (normal(10),))
    assert [p.name for p in good] == ["output 0", "gradient 0"] and all(p.error <= 1 for p in good)
    bad = compared(Wrong.apply, lambda x: x * x, (normal(10),))
    assert [p.error <= 1 for p in bad] == [True, False]


def outcome(call) -> others.Outcome:
    (only,) = others.tried("here", Case("case", call))
    return only


def test_outcomes_name_the_kernel_and_the_reason():
    x = normal(100)
    right = outcome(lambda: [pair("y", squared(x), x.double() ** 2)])
    assert (right.kernel, right.status, right.findings) == ("square", "agrees", [])
    wrong = outcome(lambda: [pair("y", squared(x), x.double())])
    assert wrong.status == "differs" and "times the tolerance" in wrong.reason
    faulty = outcome(lambda: [pair("y", squared(x, 101), x.double() ** 2)])
    assert {f.kind for f in faulty.findings} == {"out_of_bounds"}
    refused = outcome(lambda: [assembly[(1,)](x, BLOCK=64)])
    assert (refused.kernel, refused.status) == ("assembly", "does not run")
    assert "inline_asm" in refused.reason or "assembly" in refused.reason
    (missing,) = others.tried("here", Case("case", lambda: [], ("absent_kernel",)))
    assert missing.status == "does not run" and "never launched" in missing.reason


def test_the_exit_status_and_one_row_a_kernel(capsys):
    x = normal(100)
    right = outcome(lambda: [pair("y", squared(x), x.double() ** 2)])
    wrong = outcome(lambda: [pair("y", squared(x), x.double())])
    assert others.best([right, wrong])[0].status == "differs"
    console = Console(stderr=True)
    assert others.told([right], True, console) == 0
    assert "| here | square | case | agrees |" in capsys.readouterr().out
    assert others.told([right, wrong], False, console) == 1
    assert others.told([], False, console) == 1
