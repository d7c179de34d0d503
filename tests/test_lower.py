"""Kernels become IR, errors one sentence, and nothing is left on the kernel objects."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from autograder.ir.hook import hooked
from autograder.ir.lower import lower
from autograder.ir.parse import parse
from autograder.records import CouldNotCheck, Rejected

X = torch.zeros(64, 32)
SCALE = tl.constexpr(2.0)
VERSION = tuple(int(n) for n in triton.__version__.split(".")[:2])


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


# ---------------------------------------------------------------- what is lowered


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


@triton.jit
def block_pointer(p, n):
    block = tl.make_block_ptr(
        p, shape=(n, n), strides=(n, 1), offsets=(0, 0), block_shape=(16, 16), order=(1, 0)
    )
    tl.store(block, tl.load(block))


# ---------------------------------------------------------------- what is not


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


def test_an_error_in_a_helper_is_placed_in_the_helper():
    with pytest.raises(Rejected, match="broken_helper, line .*`nowhere` is not defined") as caught:
        lower(calls_broken_helper, (X, 1), {})
    assert caught.value.line == line_of(broken_helper, "nowhere")


def test_block_pointers_lower_where_triton_has_them_and_are_refused_where_not():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if VERSION < (3, 9):
            assert "tt.store" in lower(block_pointer, (X, 64), {})[0].ir
        else:
            with pytest.raises(Rejected, match="no block pointers. Use pointers with tl.arange"):
                lower(block_pointer, (X, 64), {})


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


# ---------------------------------------------------------------- hooks


def launches(function, config=0):
    seen = []
    with hooked(lambda kernel, grid, values: seen.append((kernel, grid, values)), config) as hook:
        function()
    return seen, hook


@pytest.mark.parametrize(
    ("grid", "seen"),
    [
        ((97,), (97, 1, 1)),
        ([4, 5], (4, 5, 1)),
        ((2, 3, 4), (2, 3, 4)),
        (lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),), (2, 1, 1)),
        (lambda meta: (0, 1), (0, 1, 1)),
    ],
)
def test_grids(grid, seen):
    (launch,), _ = launches(lambda: copy_kernel[grid](X, X, 100, BLOCK=64))
    assert launch[1] == seen


@pytest.mark.parametrize(
    ("grid", "told"),
    [
        (97, "must be a tuple, such as (97,), not 97 (int)"),
        ((1.5,), "1.5 (float) on axis 0; it needs whole numbers"),
        ((), "has 0 axes"),
        ((1, 1, 1, 1), "has 4 axes"),
        ((-1,), "-1 programs on axis 0"),
        ((1, 65536), "65536 programs on axis 1; a card takes 0 to 65535"),
        (None, "must be a tuple"),
    ],
)
def test_grids_that_a_card_refuses(grid, told):
    with pytest.raises(Rejected) as caught:
        launches(lambda: copy_kernel[grid](X, X, 100, BLOCK=64))
    assert told in str(caught.value)


def test_hooks_nest_and_come_off_also_after_errors():
    run, tuned = JITFunction.run, Autotuner.run
    outer, inner = [], []

    def launch():
        copy_kernel[(1,)](X, X, 100, BLOCK=64)

    with pytest.raises(ZeroDivisionError), hooked(lambda *a: outer.append(a)):
        with hooked(lambda *a: inner.append(a)):
            launch()
        launch()
        launch()
        1 / 0  # noqa: B018
    assert (len(inner), len(outer)) == (1, 2)
    assert JITFunction.run is run and Autotuner.run is tuned


def tuned_kernel(configs, **options):
    @triton.autotune(configs=configs, key=["n"], **options)
    @triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
    @triton.jit
    def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        if EVEN:
            x = tl.load(x_ptr + offsets)
        else:
            x = tl.load(x_ptr + offsets, mask=offsets < n)
        tl.store(out_ptr + offsets, x, mask=offsets < n)

    return kernel


CONFIGS = [triton.Config({"BLOCK": 32 << i}, num_warps=1 << i) for i in range(3)]


def test_every_config_and_heuristics():
    kernel = tuned_kernel(CONFIGS)
    for index, (block, masks) in enumerate([(32, 1), (64, 2), (128, 2)]):
        (launch,), hook = launches(
            lambda: kernel[lambda meta: (triton.cdiv(96, meta["BLOCK"]),)](X, X, 96), index
        )
        assert hook.configs == 3
        assert launch[0].options["num_warps"] == 1 << index
        assert launch[1] == (-(-96 // block), 1, 1)
        assert launch[0].ir.count("arith.cmpi slt") == masks
    assert kernel.cache == {} and not hasattr(kernel, "best_config")


def test_pruning_leaves_fewer_configs():
    def prune(configs, named_args, **kwargs):
        return [c for c in configs if c.kwargs["BLOCK"] <= named_args["n"]]

    kernel = tuned_kernel(CONFIGS, prune_configs_by={"early_config_prune": prune})
    (launch,), hook = launches(lambda: kernel[(1,)](X, X, 64), config=3)
    assert hook.configs == 2 and "tensor<64xi32>" in launch[0].ir


def test_a_cached_choice_is_not_asked():
    kernel = tuned_kernel(CONFIGS)
    kernel.cache = {(96, "torch.float32", "torch.float32"): CONFIGS[2]}
    before = dict(kernel.cache)
    (launch,), _ = launches(lambda: kernel[(1,)](X, X, 96))
    assert "tensor<32xi32>" in launch[0].ir and kernel.cache == before


def test_hooks_of_configs_run_and_reset_to_zero_warns():
    ran = []
    config = triton.Config({"BLOCK": 32}, pre_hook=lambda args: ran.append(args["n"]))
    ones = torch.ones(64)
    kernel = tuned_kernel([config, CONFIGS[1]], reset_to_zero=["out_ptr"])
    _, hook = launches(lambda: kernel[(1,)](X, ones, 96))
    assert ran == [96] and ones.sum() == 0
    assert "reset_to_zero of kernel zeroes out_ptr" in hook.warnings[0]


def test_what_autotuning_chooses_cannot_be_given():
    with pytest.raises(Rejected, match="launched with BLOCK, which autotuning chooses"):
        launches(lambda: tuned_kernel(CONFIGS)[(1,)](X, X, 96, BLOCK=32))


def test_best_config_can_be_read_while_it_lasts():
    kernel, seen = tuned_kernel(CONFIGS), []

    def function():
        kernel[(1,)](X, X, 96)
        seen.append(kernel.best_config.kwargs["BLOCK"])

    launches(function, config=1)
    assert seen == [64] and not hasattr(kernel, "best_config")


def test_warmup_and_compiled_kernels():
    def function():
        kernel = copy_kernel.warmup(X, X, 100, BLOCK=64, num_warps=2, grid=(1,))
        kernel._init_handles()
        assert 65536 // (kernel.n_regs * 32 * 2) > 0 and kernel.metadata.shared > 0
        kernel[(3, 1, 1)](X, X, 100, 64)
        kernel[(4, 1, 1)](X, X, 100)  # constants left out
        copy_kernel.run(X, X, 100, BLOCK=64, grid=(5,), warmup=False)

    seen, _ = launches(function)
    assert [grid[0] for _, grid, _ in seen] == [3, 4, 5]
    assert [kernel.options["num_warps"] for kernel, _, _ in seen] == [2, 2, 4]


def test_nothing_is_left_on_the_kernel_objects(monkeypatch):
    tuned = tuned_kernel(CONFIGS)
    inner = tuned.fn.fn
    objects = (copy_kernel, double, tuned, tuned.fn, inner)

    def state():
        kinds = (dict, list, set)
        return [
            {k: copy.copy(v) if type(v) in kinds else v for k, v in vars(o).items()}
            for o in objects
        ]

    before = state()
    launches(lambda: (copy_kernel[(1,)](X, X, 100, BLOCK=64), tuned[(1,)](X, X, 96)))
    assert state() == before
    assert not copy_kernel.device_caches and copy_kernel.hash is None


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
