"""Kernels become IR with one value for every parameter, and are lowered anew when they change."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from autograder.checking import load_solution
from autograder.grading.corpus import refusals
from autograder.ir import lower as lower_module
from autograder.ir.lower import _divisible, lower
from autograder.ir.parse import parse
from autograder.trace.record import record
from tests.submitted import exercise_of

X = torch.zeros(64, 32)
SCALE = tl.constexpr(2.0)


def line_of(kernel, text: str) -> int:
    """The line of this file where ``text`` stands in a kernel."""
    lines = kernel.src.splitlines()
    first = next(i for i, row in enumerate(kernel.raw_src) if row.lstrip().startswith("def "))
    start = kernel.starting_line_number + first
    return start + next(i for i, row in enumerate(lines) if text in row)


@triton.jit
def double(value):
    return value * 2


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, double(x), mask=mask)


def test_a_kernel_becomes_ir_with_its_lines():
    kernel, values = lower(copy_kernel, (X, X, 100), {"BLOCK": 64, "num_warps": 8})
    assert kernel.name == "copy_kernel"
    assert kernel.parameters == ("x_ptr", "out_ptr", "n")
    assert values[2] == 100 and values[0] is X
    assert kernel.options == {"num_warps": 8, "num_stages": 3, "num_ctas": 1}
    assert Path(kernel.file) == Path(__file__)
    assert kernel.source.splitlines()[0].startswith("def copy_kernel")
    assert kernel.line == line_of(copy_kernel, "def copy_kernel")
    load = line_of(copy_kernel, "tl.load")
    assert f'test_lower.py":{load}:' in kernel.ir
    assert "tt.call" not in kernel.ir  # the helper is inlined
    assert kernel.ir.count("tt.load") == 1


STYLES = "plain|descriptor|pointer"
SOLUTIONS = sorted((Path(__file__).parent / "submissions" / "right").glob("0[2-9]_*.py"))
SOLUTIONS = [
    path
    for path in SOLUTIONS
    if re.search(STYLES, path.stem)
    and exercise_of(path).machine == "triton"
    and not refusals().get(path.stem)
]


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_divisibility_is_marked_as_triton_marks_it(path, monkeypatch):
    exercise = exercise_of(path)
    function = load_solution(str(path))[exercise.names[-1]]

    def recorded() -> list:
        return [
            record(function, exercise.arguments(case), backward=exercise.backward).kernels
            for case in exercise.cases
        ]

    marked = recorded()
    monkeypatch.setattr(lower_module, "_divisible", lambda *given: None)  # each lowered in full
    monkeypatch.setattr(lower_module, "_CACHE", OrderedDict())
    in_full = recorded()
    assert marked == in_full
    if "host_descriptor" not in path.stem:
        assert any("tt.divisibility" in kernel.ir for kernels in marked for kernel in kernels)


def test_other_attributes_than_divisibility_are_left_to_triton():
    kernel, _ = lower(copy_kernel, (X.view(-1)[1:], X.view(-1)[1:], 97), {"BLOCK": 64})
    assert "tt.divisibility" not in kernel.ir
    divisible = {(0,): [["tt.divisibility", 16]], (2,): []}
    assert _divisible(kernel, divisible, copy_kernel.arg_names) is not None
    for path, words in (((0,), [["tt.pointer_range", 32]]), ((0, 1), [["tt.divisibility", 16]])):
        assert _divisible(kernel, {path: words}, copy_kernel.arg_names) is None
    unknown = replace(kernel, ir=kernel.ir.replace("f32> loc(", "f32> at("))
    assert _divisible(unknown, divisible, copy_kernel.arg_names) is None


def test_a_warning_of_triton_is_given_once_a_kernel():
    @triton.jit
    def joined_by_and(x_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        tl.store(x_ptr + offsets, 1.0, mask=(offsets < n) and (offsets >= 0))

    with pytest.warns(UserWarning) as said:
        for block in (16, 32, 64):
            lower(joined_by_and, (X, 10), {"BLOCK": block})
    assert ["please use '&'" in str(w.message) for w in said] == [True]


def test_dead_and_repeated_loads_stay():
    @triton.jit
    def kernel(x_ptr):
        tl.load(x_ptr)
        tl.load(x_ptr)
        a = tl.load(x_ptr)
        tl.store(x_ptr, a + tl.load(x_ptr))

    assert lower(kernel, (X,), {})[0].ir.count("tt.load") == 4


class Point(NamedTuple):
    ptr: object
    n: int


@triton.jit
def many(
    a, pair, d, one, nothing, point, f, flag, u: tl.uint32, big, h: tl.float16, C: tl.constexpr
):
    x = d.load([0, 0])
    tl.store(a, pair[0] + pair[1][1] + one + point.n + f + C)
    tl.store(point.ptr, tl.sum(x) + d.shape[0] + h + u + big + flag)


def test_one_value_for_every_parameter_of_the_ir():
    d = TensorDescriptor(X, [64, 32], [32, 1], [16, 32])
    pair, point = (3, (1, 5), X, None), Point(X, 1)
    kernel, values = lower(many, (X, pair, d, 1, None, point, 0.5, True, 7, 2**40, 1.5), {"C": 4})
    assert dict(zip(kernel.parameters, values, strict=True)) == {
        "a": X,
        "pair.0": 3,
        "pair.1.1": 5,  # pair.1.0 is 1 and became a constant, pair.3 is None
        "pair.2": X,
        "d": d,
        "d.shape.0": 64,
        "d.shape.1": 32,
        "d.stride.0": 32,
        "d.stride.1": 1,
        "point.ptr": X,
        "f": 0.5,
        "flag": True,
        "u": 7,
        "big": 2**40,
        "h": 1.5,
    }
    assert len(parse(kernel.ir).parameters) == len(values)
    kinds = [str(type_.dtype) for _, type_ in parse(kernel.ir).parameters]
    assert kinds[0] == kinds[9] == "float32" and kinds[5] == "int32" and kinds[7] == "int64"


def test_an_integer_of_one_is_a_constant_unless_the_kernel_says_otherwise():
    @triton.jit(do_not_specialize=["n"])
    def kernel(x_ptr, n, m):
        tl.store(x_ptr, n + m)

    assert lower(kernel, (X, 1, 1), {})[0].parameters == ("x_ptr", "n")


def test_defaults_keywords_and_constants_of_every_kind():
    @triton.jit
    def kernel(x_ptr, n=3, DTYPE: tl.constexpr = tl.float32, OP: tl.constexpr = double):
        tl.store(x_ptr, OP(n).to(DTYPE) * SCALE)

    kernel_, values = lower(kernel, (), {"x_ptr": X})
    assert values == (X, 3) and "arith.constant 2.0" in kernel_.ir


def test_closures_and_globals_that_change_are_seen(monkeypatch):
    def make(size):
        width = tl.constexpr(size)

        @triton.jit
        def kernel(x_ptr):
            offsets = tl.arange(0, width)
            tl.store(x_ptr + offsets, SCALE + tl.zeros((width,), tl.float32))

        return kernel

    small, large = make(16), make(32)
    assert "tensor<16xf32>" in lower(small, (X,), {})[0].ir
    assert "tensor<32xf32>" in lower(large, (X,), {})[0].ir
    first = lower(small, (X,), {})[0]
    assert lower(small, (X,), {})[0] is first  # from the cache
    monkeypatch.setitem(globals(), "SCALE", tl.constexpr(7.0))
    assert "7.0" in lower(small, (X,), {})[0].ir
    monkeypatch.undo()
    assert lower(small, (X,), {})[0] is first


def test_a_helper_that_was_written_anew_is_seen(monkeypatch):
    before = lower(copy_kernel, (X, X, 100), {"BLOCK": 64})[0]

    @triton.jit
    def double(value):
        return value * 3

    monkeypatch.setitem(globals(), "double", double)
    after = lower(copy_kernel, (X, X, 100), {"BLOCK": 64})[0]
    assert before.ir != after.ir and "3.0" in after.ir


def test_kernels_made_in_interpreter_mode_lower_too(tmp_path):
    """TRITON_INTERPRET=1 changes tl.sum and the like at import: a process of its own."""
    script = """
import torch, triton, triton.language as tl
from autograder.ir.hook import hooked
from triton.runtime.interpreter import InterpretedFunction

@triton.jit
def helper(x):
    return x * 2

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = helper(tl.load(x_ptr + offsets, mask=offsets < n, other=0.0))
    total = tl.sum(x, axis=0) + x.max(axis=0) + tl.cdiv(n, 2)
    tl.store(out_ptr + offsets, tl.zeros((BLOCK,), tl.float32) + total, mask=offsets < n)

assert isinstance(kernel, InterpretedFunction)
seen = []
x = torch.ones(8)
for _ in range(2):
    with hooked(lambda *launch: seen.append(launch)) as hook:
        kernel[(1,)](x, x, 5, BLOCK=8)
print(seen[0][0].ir)
print(seen[0][0] is seen[1][0], hook.warnings)
out = torch.zeros(8)
kernel[(1,)](x, out, 5, BLOCK=8)  # and Triton's interpreter still runs it
print(out.tolist())
"""
    done = _run(tmp_path, script, TRITON_INTERPRET="1")
    assert "tt.reduce" in done and "tt.call" not in done
    assert "True" in done and "TRITON_INTERPRET" in done
    assert "[15.0, 15.0, 15.0, 15.0, 15.0, 0.0, 0.0, 0.0]" in done


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_a_fork_inherits_no_context_with_threads(tmp_path):
    """A context that has threads must not cross a fork, which would wait for them for ever."""
    script = """
import os
from autograder.ir import lower
before = len(os.listdir("/proc/self/task"))
lower.ready_to_fork()
(context,) = lower._unused
assert len(os.listdir("/proc/self/task")) == before
assert lower._context() is context and not lower._unused
lower.ready_to_fork()
assert lower._unused[0] is not context and not lower._contexts
"""
    _run(tmp_path, script)


def _run(folder: Path, script: str, **environment: str) -> str:
    path = folder / "script.py"  # a kernel's source must stand in a file
    path.write_text(script)
    roots = [os.environ.get("PYTHONPATH"), str(Path(__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, roots)), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
