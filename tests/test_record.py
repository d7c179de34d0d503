"""A host function becomes a trace that, replayed on other inputs, gives what it would."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from autograder.records import (
    Allocate,
    Constant,
    Descriptor,
    Foreign,
    Input,
    Launch,
    Peek,
    Rejected,
    Tensor,
    View,
)
from autograder.trace import tape
from autograder.trace.record import record
from autograder.trace.replay import replay
from tests.recorded import X, double_kernel, kinds, launch, only, outputs

# ---------------------------------------------------------------- what torch moves


def test_the_simplest_launch():
    trace = record(lambda x: launch(x, torch.empty_like(x)), (X,))
    assert kinds(trace) == "Input Allocate Launch"
    x, out = View(0, 0, (4, 6), (6, 1), "float32"), View(1, 0, (4, 6), (6, 1), "float32")
    assert trace.events[0] == Input(0, 96, 0, x)
    assert trace.events[1] == Allocate(1, 96)
    assert trace.events[2].bindings == (x, out, 24) and trace.events[2].grid == (1, 1, 1)
    assert trace.outputs == (out,) and trace.warnings == () and trace.configs == 1
    assert trace.kernels[0].parameters == ("x_ptr", "out_ptr", "n")
    assert trace.triton == triton.__version__


def test_what_a_recording_holds_goes_when_it_ends():
    """Without the garbage collector, which comes once in many recordings."""
    gc.collect()
    gc.disable()
    try:
        record(lambda x: launch(x, torch.empty_like(x)), (X,))
        assert not [held for held in gc.get_objects() if isinstance(held, tape.Tape)]
    finally:
        gc.enable()


def transposed(x):
    return launch(x.t().contiguous(), x.new_empty((6, 4)))


def cast(x):
    return launch(x.half(), torch.zeros_like(x, dtype=torch.float16)).float()


def slices(x):
    out = torch.full_like(x, 7.0)
    out[1:, ::2] = x[1:, ::2]
    out[0] = 3.0
    out[0, 0] = x[1, 1]
    return out[:, 1:]


def reshaped(x):
    return launch(x.t().reshape(-1), torch.empty_like(x).view(-1)).view(6, 4).unsqueeze(0)


def repeated(x):
    wide = x[0].expand(3, 6)
    return launch(wide.contiguous(), torch.empty((3, 6), device=x.device))


def through_bits(x):
    bits = x.view(torch.int32)
    out = torch.empty_like(bits)
    out.copy_(bits)
    return out.view(torch.float32)


def strided_window(x):
    return launch(torch.as_strided(x, (3, 2), (6, 2), 1).contiguous(), x.new_empty((3, 2)))


def constants(x):
    steps = torch.arange(24, dtype=torch.float32, device=x.device)
    steps += 1
    steps[::2].mul_(2)
    return launch(steps, torch.empty_like(x))


def constant_into_result(x):
    out = launch(x, torch.empty_like(x))
    out[1] = torch.arange(6)
    torch.arange(6, out=out[2])
    return out


def resized(x):
    out = torch.empty(4, device=x.device)
    out[:] = x[0, :4]
    out.resize_(24)
    out[4:] = 1.0
    return out


def sliced(x):
    want = np.full((4, 6), 7.0, np.float32)
    want[1:, ::2], want[0], want[0, 0] = x[1:, ::2], 3.0, x[1, 1]
    return want[:, 1:]


def with_rows(x):
    want = 2 * x
    want[1:3] = np.arange(6)
    return want


MOVES = [
    (transposed, lambda x: 2 * x.T, "Input Allocate Copy Allocate Launch"),
    (cast, lambda x: (x.astype(np.float16) * 2).astype(np.float32), None),
    (slices, sliced, None),
    (reshaped, lambda x: 2 * x.T[None], "Input Allocate Copy Allocate Launch"),
    (repeated, lambda x: 2 * np.repeat(x[:1], 3, 0), None),
    (through_bits, lambda x: x, "Input Allocate Copy"),
    (strided_window, lambda x: 2 * x[:3, [1, 3]], None),
    (constants, lambda x: (np.arange(1, 25) * np.tile([2, 1], 12) * 2).reshape(4, 6), None),
    (constant_into_result, with_rows, None),
    (resized, lambda x: np.concatenate([x[0, :4], np.ones(20)]), None),
]


@pytest.mark.parametrize(
    ("function", "expected", "events"), MOVES, ids=[move[0].__name__ for move in MOVES]
)
def test_data_movement_is_repeated_on_other_inputs(function, expected, events):
    (found,), (x,) = outputs(function, X)
    np.testing.assert_array_equal(found, expected(x))
    trace = record(function, (X,))
    assert not only(trace, Foreign) and not only(trace, Peek)
    assert events is None or kinds(trace) == events


def test_constants_are_carried_once_and_late():
    trace = record(constants, (X,))
    assert kinds(trace) == "Input Allocate Allocate Constant Launch"


def test_tensors_from_outside_are_constants():
    weights = torch.arange(24.0).reshape(4, 6)
    trace = record(lambda x: launch(weights, torch.empty_like(x)), (X,))
    (constant,) = only(trace, Constant)
    assert constant.data == weights.numpy().tobytes()


def test_a_constant_beyond_the_cap_is_uninitialised_and_said(monkeypatch):
    monkeypatch.setattr(tape, "MAX_CONSTANT_BYTES", 64)
    trace = record(lambda x: launch(torch.ones(24) + 1, torch.empty_like(x)), (X,))
    assert not only(trace, Constant) and "too large to carry along" in trace.warnings[0]


def test_arguments_of_every_geometry():
    def function(wide, empty, spread, flags, n):
        assert empty.numel() == 0 and spread.stride() == (0, 1) and n == 3
        return launch(wide.contiguous(), torch.empty(wide.shape, dtype=wide.dtype, device="cuda"))

    trace = record(
        function,
        (
            Tensor((4, 6), "bfloat16", (8, 1)),
            Tensor((0, 3)),
            Tensor((3, 4), "int32", (0, 1)),
            Tensor((3,), "bool"),
            3,
        ),
    )
    sizes = [(e.nbytes, e.view.strides, e.view.dtype) for e in only(trace, Input)]
    assert sizes == [
        (64, (8, 1), "bfloat16"),  # whole rows: 4 rows of 8, though 30 cells are in reach
        (0, (3, 1), "float32"),
        (16, (0, 1), "int32"),
        (3, (1,), "bool"),
    ]


def test_values_of_the_caller():
    seen = []
    values = {0: np.arange(24.0).reshape(4, 6)}
    record(lambda x, y: seen.append((x.clone(), y.clone())) or x, (X, X), values=values)
    assert torch.equal(seen[0][0], torch.arange(24.0).reshape(4, 6))
    assert seen[0][1].unique().numel() == 24
    for dtype in (torch.float64, torch.bfloat16, torch.float8_e4m3fn, torch.int16, torch.bool):
        given = torch.tensor([[1.0, 0.1], [-3.0, 0.0]], dtype=torch.float64).to(dtype)
        record(lambda x: seen.append(x.clone()) or x, (given,))
        assert seen[-1].dtype == dtype and torch.equal(seen[-1].double(), given.double())
    tensor = torch.arange(6.0).reshape(2, 3).t()
    (event,) = only(record(lambda x: seen.append(x.clone()) or x, (tensor,)), Input)
    assert event.view.strides == (1, 3) and torch.equal(seen[-1], tensor)


# ---------------------------------------------------------------- what torch computes


@pytest.mark.parametrize(
    ("function", "operations"),
    [
        (lambda x: torch.exp(x) + 1, ["torch.exp", "torch.add"]),
        (lambda x: torch.exp(x, out=torch.empty(0)), ["torch.exp"]),
        (lambda x: launch(x, torch.empty_like(x)).mul_(2), ["torch.mul_"]),
        (lambda x: x @ x.t(), ["torch.mm"]),
        (lambda x: torch.empty_like(x).fill_(x[0, 0]), ["torch.fill_"]),
        (lambda x: torch.stack([x, x]), ["torch.stack"]),
        (lambda x: torch.where(x > 0, x, 0), ["torch.gt", "torch.where"]),
        (lambda x: torch.complex(x, x).real.clone(), ["torch.complex"]),
        (lambda x: x.to_sparse().to_dense(), ["torch.to_sparse", "torch.to_dense"]),
        (lambda x: x.softmax(-1), ["torch.softmax"]),
    ],
)
def test_what_torch_computes_is_foreign(function, operations):
    trace = record(function, (X,))
    foreign = only(trace, Foreign)
    assert [f.operation for f in foreign][: len(operations)] == operations
    assert only(trace, Peek) == []


def test_foreign_values_keep_their_line():
    def function(x):
        return torch.exp(x)

    (foreign,) = only(record(function, (X,)), Foreign)
    assert foreign.line == function.__code__.co_firstlineno + 1


def test_random_numbers_do_not_depend_on_inputs():
    def function(x):
        noise = torch.randn_like(x) + torch.empty(x.shape, device="cuda").random_()
        return launch(noise, torch.empty_like(x))

    assert kinds(record(function, (X,))).endswith("Constant Launch")


# ---------------------------------------------------------------- launches


@triton.jit
def descriptor_kernel(d, out_ptr, pair, BLOCK: tl.constexpr):
    block = d.load([0, 0])
    out = tl.make_tensor_descriptor(out_ptr, [4, 8], [8, 1], [4, 8])
    out.store([0, 0], block * pair[0])


def test_descriptors_tuples_and_numbers_are_bound():
    def function(x):
        out = torch.empty((4, 8), device=x.device)
        d = TensorDescriptor(x, [4, 6], [8, 1], [4, 8])
        descriptor_kernel[(1,)](d, out, (0.5, 2), BLOCK=8)
        return out

    trace = record(function, (Tensor((4, 6), strides=(8, 1)),))
    (event,) = only(trace, Launch)
    assert event.bindings[0] == Descriptor(View(0, 0, (4, 6), (8, 1), "float32"), (4, 8), "zero")
    assert event.bindings[1:5] == (4, 6, 8, 1) and event.bindings[6:] == (0.5, 2)
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    (out,) = replay(trace, [x]).outputs
    np.testing.assert_array_equal(out.values, np.pad(x, ((0, 0), (0, 2))) / 2)


@triton.jit
def move_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, offsets < n), offsets < n)


def test_reinterpreted_tensors_have_their_new_type():
    def function(x):
        out = torch.empty_like(x)
        seen = [triton.reinterpret(t, tl.float8e5) for t in (x, out)]
        move_kernel[(1,)](*seen, 24, BLOCK=32)
        return out

    (event,) = only(record(function, (Tensor((4, 6), "int8"),)), Launch)
    assert [b.dtype for b in event.bindings[:2]] == ["float8_e5m2"] * 2


def test_one_kernel_is_kept_once_and_lines_are_the_hosts():
    def function(x):
        out = torch.empty_like(x)
        for _ in range(3):
            double_kernel[(1,)](x, out, 24, BLOCK=32)
        double_kernel[(1,)](x, out, 24, BLOCK=64)
        return out

    trace = record(function, (X,))
    assert [e.kernel for e in only(trace, Launch)] == [0, 0, 0, 1] and len(trace.kernels) == 2
    first = function.__code__.co_firstlineno
    assert [e.line - first for e in only(trace, Launch)] == [3, 3, 3, 4]


def test_autotune_configurations_are_counted_and_picked():
    @triton.autotune([triton.Config({"BLOCK": 32 << i}) for i in range(3)], key=["n"])
    @triton.jit
    def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, offsets < n), offsets < n)

    def function(x):
        out = torch.empty_like(x)
        kernel[lambda meta: (triton.cdiv(24 * 8, meta["BLOCK"]),)](x, out, 24)
        return out

    for config, programs in enumerate((6, 3, 2)):
        trace = record(function, (X,), config=config)
        assert trace.configs == 3 and only(trace, Launch)[0].grid == (programs, 1, 1)


@torch.library.custom_op("course_test::double", mutates_args={})
def custom_double(x: torch.Tensor) -> torch.Tensor:
    return launch(x.contiguous(), torch.empty(x.shape, device=x.device))


@torch.library.triton_op("course_test::double2", mutates_args={})
def triton_double(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape, device=x.device)
    torch.library.wrap_triton(double_kernel)[(1,)](x.contiguous(), out, out.numel(), BLOCK=32)
    return out


@pytest.mark.parametrize("function", [custom_double, triton_double])
def test_custom_operations_are_seen_inside(function):
    found, (x,) = outputs(function, Tensor((4, 6), strides=(1, 4)))
    np.testing.assert_array_equal(found[0], 2 * x)


def test_inference_mode_and_composite_operations():
    def function(x):
        with torch.inference_mode():
            return launch(x.t().contiguous().to(torch.float32), torch.empty((6, 4), device="cuda"))

    (found,), (x,) = outputs(function, X)
    np.testing.assert_array_equal(found, 2 * x.T)


# ---------------------------------------------------------------- backward


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        return launch(x, torch.empty_like(x))

    @staticmethod
    def backward(ctx, dy):
        return launch(dy, torch.empty_like(dy)), None


def test_backward_is_recorded_with_incoming_gradients():
    for function, arguments in ((lambda x: Double.apply(x), (X,)), (Double.apply, (X, 2.0))):
        trace = record(function, arguments, backward=True)
        assert kinds(trace) == "Input Allocate Launch Input Allocate Launch"
        assert trace.events[3].index == -1 and trace.warnings == ()
        x, dy = np.random.default_rng(1).standard_normal((2, 4, 6)).astype(np.float32)
        forward, gradient = replay(trace, [x], [dy]).outputs
        np.testing.assert_array_equal(forward.values, 2 * x)
        np.testing.assert_array_equal(gradient.values, 2 * dy)


def test_a_gradient_that_autograd_derives_is_foreign():
    trace = record(lambda x: x.softmax(-1), (X,), backward=True)
    assert [f.operation for f in only(trace, Foreign)] == [
        "torch.softmax",
        "torch.softmax_backward_data",
    ]
    assert only(trace, Foreign)[1].line == 0  # autograd's own, no line of the student's


def test_a_missing_gradient_and_several_outputs():
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            lse = torch.empty(4, device=x.device)
            ctx.mark_non_differentiable(lse)
            return launch(x, torch.empty_like(x)), lse

        @staticmethod
        def backward(ctx, dy, _):
            return dy * 2, None

    trace = record(Two.apply, (X, Tensor((6,))), backward=True)
    assert len(only(trace, Input)) == 3  # the second output takes no gradient
    assert trace.outputs[3] == (
        "The gradient of tensor argument 1 is None: backward returns nothing for it."
    )


def test_a_backward_that_cannot_be():
    with pytest.raises(Rejected, match=r"Call your autograd.Function with .apply\(...\)"):
        record(lambda x: launch(x, torch.empty_like(x)), (X,), backward=True)
    with pytest.raises(Rejected, match=r"Double.apply raised TypeError: .*forward\(\) takes"):
        record(Double.apply, (X, 1, 2, 3))
