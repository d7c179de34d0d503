"""What does not lower is told in one sentence: kernel, line, reason, what to do."""

from __future__ import annotations

import math
import textwrap
import warnings

import pytest
import torch
import triton
import triton.language as tl

from autograder.grading.corpus import refusals
from autograder.ir.habits import reduced_stores
from autograder.ir.lower import lower
from autograder.records import CouldNotCheck, Rejected

X = torch.zeros(64, 32)
VERSION = tuple(int(n) for n in triton.__version__.split(".")[:2])


def line_of(kernel, text: str) -> int:
    """The line of this file where ``text`` stands in a kernel."""
    lines = kernel.src.splitlines()
    first = next(i for i, row in enumerate(kernel.raw_src) if row.lstrip().startswith("def "))
    start = kernel.starting_line_number + first
    return start + next(i for i, row in enumerate(lines) if text in row)


@triton.jit
def arange_of_100(p, n):
    i = tl.arange(0, 100)
    tl.store(p + i, 0.0)


@triton.jit
def arange_of_n(p, n):
    i = tl.arange(0, n)
    tl.store(p + i, 0.0)


@triton.jit
def misspelt(p, n):
    tl.store(p, m)  # noqa: F821


@triton.jit
def global_number(p, n):
    tl.store(p, VERSION)


@triton.jit
def loop_changes_type(p, n):
    total = 0
    for _ in range(n):
        total += 0.5
    tl.store(p, total)


@triton.jit
def branches_differ(p, n):
    if n > 3:
        v = 1.0
    else:
        v = tl.zeros((4,), tl.float32)
    tl.store(p, v)


@triton.jit
def shapes_differ(p, n):
    a = tl.load(p + tl.arange(0, 16), mask=tl.arange(0, 32) < 3)
    tl.store(p + tl.arange(0, 16), a)


@triton.jit
def block_into_a_cell(p, n):
    tl.store(p, tl.arange(0, 32))


@triton.jit
def dot_shapes(p, n):
    a = tl.zeros((16, 32), tl.float16)
    tl.dot(a, a)


@triton.jit
def dot_types(p, n):
    a = tl.zeros((16, 16), tl.float16)
    tl.dot(a, a.to(tl.float32))


@triton.jit
def python_sum(p, n):
    tl.store(p, sum(tl.load(p + tl.arange(0, 16))))


@triton.jit
def block_in_if(p, n):
    if tl.load(p + tl.arange(0, 16)) > 0:
        tl.store(p, 0.0)


@triton.jit
def return_in_loop(p, n):
    for i in range(n):
        if i > 3:
            return
        tl.store(p, 0.0)


@triton.jit
def break_in_loop(p, n):
    for i in range(n):
        if i > 3:
            break
        tl.store(p, 0.0)


@triton.jit
def torch_inside(p, n):
    tl.store(p, torch.exp(tl.load(p + tl.arange(0, 16))))


@triton.jit
def torch_dtype(p, n):
    tl.store(p, tl.zeros((1,), torch.float32))


@triton.jit
def static_range(p, n):
    for i in tl.static_range(n):
        tl.store(p, i)


@triton.jit
def indexed(p, n):
    tl.store(p, tl.load(p + tl.arange(0, 16))[0])


@triton.jit
def number_indexed(p, n):
    pid = tl.program_id(0)
    offsets = pid[0] * 16 + tl.arange(0, 16)
    tl.store(p + offsets, 0.0)


@triton.jit
def argument_indexed(p, n):
    tl.store(p, n[0])


@triton.jit
def block_indexed(p, n):
    offs = tl.arange(0, 16)
    for i in range(16):
        tl.store(p + offs[i], 0.0)


@triton.jit
def pointer_read(p, n):
    offs = tl.arange(0, 16)
    x = p[offs]
    tl.store(p + offs, x)


@triton.jit
def pointer_written(p, n):
    offs = tl.arange(0, 16)
    p[offs] = tl.load(p + offs)


@triton.jit
def element_assigned(p, n):
    x = tl.load(p + tl.arange(0, 16))
    x[0] = 1.0
    tl.store(p + tl.arange(0, 16), x)


@triton.jit
def gives_back(p, n):
    x = tl.load(p + tl.arange(0, 16))
    return x + x


@triton.jit
def python_function(p, n):
    offs = tl.arange(0, 16)
    tl.store(p + offs[:, None], math.exp(tl.load(p + offs))[:, None])


@triton.jit
def own_function(p, n):
    tl.store(p, math.prod(tl.load(p)))


@triton.jit
def larger_of_two(p, n):
    tl.store(p, tl.max(tl.load(p), tl.load(p + 1)))


@triton.jit
def larger_than_zero(p, n):
    tl.store(p, tl.max(tl.load(p + tl.arange(0, 16)), 0.0))


@triton.jit
def printed(p, n):
    print(tl.arange(0, 16))


@triton.jit
def maximum_along(p, n):
    tl.store(p, tl.maximum(tl.load(p + tl.arange(0, 16)), axis=0))


@triton.jit
def of_the_host(p, n):
    for i in range(triton.cdiv(n, 16)):
        tl.store(p + i, 0.0)


@triton.jit
def power(p, n):
    tl.store(p, tl.load(p) ** 2)


@triton.jit
def infinity(p, n):
    tl.store(p, -tl.inf)


@triton.jit
def mean(p, n):
    tl.store(p, tl.mean(tl.load(p + tl.arange(0, 16)), axis=0))


@triton.jit
def shape_of_a_pointer(p, n):
    m = p.shape[1]
    tl.store(p, m)


@triton.jit
def shape_unpacked(p, n):
    m, k = p.shape
    tl.store(p, m + k)


@triton.jit
def stride_of_a_pointer(p, n):
    tl.store(p + p.stride(0), 0.0)


@triton.jit
def address_compared(p, n):
    mask = p + tl.arange(0, 16) < n
    tl.store(p + tl.arange(0, 16), 0.0, mask=mask)


@triton.jit
def row_and_column(p, n):
    x = tl.load(p[n, tl.arange(0, 16)])
    tl.store(p + tl.arange(0, 16), x)


@triton.jit
def number_as_pointer(p, n):
    tl.load(n + tl.arange(0, 16))


@triton.jit
def float_offset(p, n):
    tl.load(p + n / 2)


@triton.jit
def no_such_function(p, n):
    tl.store(p, tl.relu(tl.load(p)))


@triton.jit
def wrong_keyword(p, n):
    tl.load(p, msk=None)


@triton.jit
def unwritten(p, n):
    value = ...
    tl.store(p, value)


@triton.jit
def says_so(p, n):
    tl.static_assert(False, "write the kernel first")


@triton.jit
def broken_helper(value):
    return value + nowhere  # noqa: F821


@triton.jit
def calls_broken_helper(p, n):
    tl.store(p, broken_helper(1.0))


WRONG = [
    (arange_of_100, "tl.arange(0, 100)", "a power of two"),
    (arange_of_n, "tl.arange(0, n)", "`n` is a number that arrives at run time"),
    (misspelt, "tl.store", "`m` is not defined here"),
    (global_number, "tl.store", "cannot see the Python variable `VERSION`"),
    (loop_changes_type, "for _", "`total` is int32 before the loop and float32 after"),
    (branches_differ, "if n > 3", "float32 if the condition holds and a block (4) of float32"),
    (shapes_differ, "tl.load", "side 0 has 16 elements in one operand and 32 in the other"),
    (block_into_a_cell, "tl.store", "the pointer is a single address"),
    (dot_shapes, "tl.dot", "as many columns in `a` as rows in `b`"),
    (dot_types, "tl.dot", "here float16 and float32"),
    (python_sum, "tl.store", "Python's `sum` does not exist in a kernel"),
    (block_in_if, "if tl", "this condition is a block"),
    (return_in_loop, "if i > 3", "`return` cannot stand inside a loop"),
    (break_in_loop, "    break", "know no `break`"),
    (torch_inside, "tl.store", "torch cannot be used inside a kernel"),
    (torch_dtype, "tl.store", "tl.float32 in place of torch.float32"),
    (static_range, "for i", "its bounds must be tl.constexpr"),
    (indexed, "tl.store", "a block cannot be indexed"),
    (number_indexed, "offsets =", "`pid` is one number: tl.program_id(axis)"),
    (argument_indexed, "tl.store", "`n` is one number, and has no [0]"),
    (block_indexed, "p + offs[i]", "works on all lanes of `offs` at once"),
    (pointer_read, "x = p", "Write tl.load(p + offs, mask=mask)"),
    (pointer_written, "p[offs] = ", "Write tl.store(p + offs, value, mask=mask)"),
    (element_assigned, "x[0] = ", "elements of a block cannot be assigned"),
    (gives_back, "return", "a kernel cannot return values"),
    (python_function, "tl.store", "`math.exp` is a function for Python's numbers"),
    (own_function, "tl.store", "a Python function cannot work on a block"),
    (larger_of_two, "tl.store", "The larger of two, lane by lane, is tl.maximum(a, b)."),
    (larger_than_zero, "tl.store", "The larger of two, lane by lane, is tl.maximum(a, b)."),
    (printed, "    print", "print needs a text before the numbers"),
    (maximum_along, "tl.store", "tl.max(block, axis=0) reduces one."),
    (of_the_host, "for i in range", "In a kernel it is tl.cdiv."),
    (power, "tl.store", "A square is x * x"),
    (infinity, "tl.store", "Write float('inf')."),
    (mean, "tl.store", "Divide tl.sum(x, axis=0) by the number of elements"),
    (shape_of_a_pointer, "m = p.shape[1]", "it knows no shape and no strides"),
    (shape_unpacked, "m, k = p.shape", "it knows no shape and no strides"),
    (stride_of_a_pointer, "tl.store", "it knows no shape and no strides"),
    (address_compared, "mask = p", "A mask compares the offsets, as in cols < n_cols."),
    (row_and_column, "x = tl.load", "Write tl.load(p + row * stride + column, mask=mask)."),
    (number_as_pointer, "tl.load", "needs a pointer, and this is a block (16) of int32"),
    (float_offset, "tl.load", "Use // in place of /"),
    (no_such_function, "tl.store", "triton.language has no `relu`"),
    (wrong_keyword, "tl.load", "load has no argument `msk`"),
    (unwritten, "value = ...", "still stands where your code should be"),
    (says_so, "tl.static_assert", "write the kernel first"),
]


@pytest.mark.parametrize(
    ("kernel", "code", "reason"), WRONG, ids=lambda v: getattr(v, "__name__", "")
)
def test_a_compile_error_is_one_sentence_with_the_students_line(kernel, code, reason):
    with pytest.raises(Rejected) as caught:
        lower(kernel, (X, 100), {})
    error = caught.value
    assert reason in str(error) and "\n" not in str(error) and "Error" not in str(error)
    assert error.kind == "compile" and error.kernel == kernel.__name__
    assert error.line == line_of(kernel, code)
    assert f"line {error.line} `" in str(error)
    assert len(textwrap.wrap(str(error), 88)) <= 5  # what a report shows without cutting


@triton.jit
def largest_of_all(p, n):
    offs = tl.arange(0, 16)
    tl.store(p + offs, tl.max(tl.load(p + offs), 0).to(tl.float16))


@triton.jit
def row_minus_its_largest(p, n):
    offs = tl.arange(0, 16)
    x = tl.load(p + offs)
    tl.store(p + offs, x - tl.max(x, 0))
    tl.store(p + n, tl.max(x, 0))


def test_a_store_of_one_maximum_in_all_lanes_names_tl_maximum():
    (note,) = reduced_stores(lower(largest_of_all, (X, 1), {})[0])
    assert f"Line {line_of(largest_of_all, 'tl.store')} of largest_of_all" in note
    assert "tl.maximum(a, b)" in note
    assert reduced_stores(lower(row_minus_its_largest, (X, 40), {})[0]) == []


def test_an_error_in_a_helper_is_placed_in_the_helper():
    with pytest.raises(Rejected, match="broken_helper, line .*`nowhere` is not defined") as caught:
        lower(calls_broken_helper, (X, 1), {})
    assert caught.value.line == line_of(broken_helper, "nowhere")


def test_what_a_triton_has_no_more_is_refused_with_what_to_write():
    kernels = {"block pointers": block_pointer, "descriptors of close rows": close_rows}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for style, kernel in kernels.items():
            if words := refusals()[style]:
                with pytest.raises(Rejected, match=f"{words}.* Use pointers with tl.arange"):
                    lower(kernel, (X, 1), {})
            else:
                assert "store" in lower(kernel, (X, 1), {})[0].ir


@pytest.mark.parametrize(
    ("args", "kwargs", "told"),
    [
        ((X,), {}, "launched without `n` and `B`: constexpr_last takes (p, n, B)"),
        ((X, 1, 2, 3), {}, "too many arguments"),
        ((X, 1), {"n": 2, "B": 4}, "gets `n` twice"),
        ((X, 1), {"B": 4, "BLOCK": 4}, "has no parameter `BLOCK`"),
        (([1], 1), {"B": 4}, "cannot take a list (a tuple would do) for `p`"),
        ((X, torch.zeros(2).numpy()[0]), {"B": 4}, "cannot take a NumPy float32"),
        (("text", 1), {"B": 4}, "cannot take a str"),
        ((torch.zeros(2, dtype=torch.complex64), 1), {"B": 4}, "a tensor of complex64 for `p`"),
        ((X, 2**70), {"B": 4}, "an integer over 64 bits for `n`"),
        ((X, 1), {"B": 4, "num_warps": 3}, "num_warps must be a power of 2"),
    ],
)
def test_a_call_that_does_not_fit_is_one_sentence(args, kwargs, told):
    with pytest.raises(Rejected) as caught:
        lower(constexpr_last, args, kwargs)
    assert told in str(caught.value) and caught.value.kernel == "constexpr_last"


@triton.jit
def constexpr_last(p, n, B: tl.constexpr):
    tl.store(p + tl.arange(0, B), n)


def test_what_is_no_kernel():
    with pytest.raises(Rejected, match="under @triton.jit, not a function"):
        lower(line_of, (X,), {})


def test_gluon_is_beyond_us():
    gluon = pytest.importorskip("triton.experimental.gluon")

    @gluon.jit
    def kernel(p):
        pass

    with pytest.raises(CouldNotCheck, match="Gluon"):
        lower(kernel, (X,), {})


@triton.jit
def block_pointer(p, n):
    block = tl.make_block_ptr(
        p, shape=(n, n), strides=(n, 1), offsets=(0, 0), block_shape=(16, 16), order=(1, 0)
    )
    tl.store(block, tl.load(block))


@triton.jit
def close_rows(p, n):
    block = tl.make_tensor_descriptor(p, [16, 16], [n, 1], [16, 16])
    block.store([0, 0], block.load([0, 0]))
