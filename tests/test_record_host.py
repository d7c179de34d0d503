"""Host code that looks at values, wants a card, returns nonsense or fails."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
import triton
from triton.compiler import ASTSource
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from autograder.records import (
    Fill,
    Foreign,
    Launch,
    Peek,
    Rejected,
    Tensor,
)
from autograder.trace import tape
from autograder.trace.loading import loading
from autograder.trace.record import record
from tests.recorded import X, double_kernel, kinds, launch, only, outputs

# ---------------------------------------------------------------- what the host looks at


@pytest.mark.parametrize(
    ("look", "operation"),
    [
        (lambda x: x[0, 0].item(), ".item()"),
        (lambda x: float(x[0, 0]), ".item()"),
        (lambda x: bool((x > 5).any()), ".item()"),
        (lambda x: x.tolist(), "tolist()"),
        (lambda x: x.detach().numpy(), "numpy()"),
        (lambda x: np.asarray(x), "numpy.asarray()"),
        (lambda x: torch.equal(x, x), "torch.equal()"),
        (lambda x: torch.allclose(x, x), "torch.allclose()"),
    ],
)
def test_looks_at_values_are_noted(look, operation):
    def function(x):
        look(x)
        return x

    (peek,) = only(record(function, (X,), execute=None), Peek)
    assert peek == Peek(operation, look.__code__.co_firstlineno)


def test_shapes_prints_and_constants_are_no_looks(capsys):
    def function(x):
        print(x.shape, f"{x}"[:6], f"{x[0, 0]:.1f}"[:0], repr(x)[:6])
        assert x.is_contiguous() and len(x) == 4 and torch.arange(3).sum().item() == 3
        return launch(x, torch.empty_like(x))

    trace = record(function, (X,))
    assert kinds(trace).count("Launch") == 1 and not only(trace, Peek) and not only(trace, Foreign)
    assert "tensor" in capsys.readouterr().out


def checks_itself(x):
    out = launch(x, torch.empty_like(x))
    torch.testing.assert_close(out, x * 2)
    return out


def test_a_wrapper_that_checks_itself_sees_its_results():
    trace = record(checks_itself, (X,))
    assert only(trace, Peek) and trace.outputs[0].buffer == 1
    for dtype in ("bfloat16", "float16", "int32"):
        record(checks_itself, (Tensor((30, 7), dtype),))


def test_a_wrapper_that_finds_itself_wrong():
    def function(x):
        out = launch(x, torch.empty_like(x))
        assert torch.allclose(out, x * 3), "not three times"
        return out

    with pytest.raises(Rejected, match="function raised AssertionError: not three times"):
        record(function, (X,))


def test_without_execution_an_error_after_a_look_says_so():
    with pytest.raises(Rejected, match="its kernels have not run yet"):
        record(checks_itself, (X,), execute=None)


def test_the_executor_gets_every_launch_and_the_bytes():
    calls = []

    def execute(kernel, launched, memory):
        x, out, n = launched.bindings
        calls.append((kernel.name, n))
        memory[out.buffer].view(np.float32)[:] = memory[x.buffer].view(np.float32) * 2

    record(checks_itself, (X,), execute=execute)
    assert calls == [("double_kernel", 24)]


# ---------------------------------------------------------------- a card that is not there


def uses_the_card(x):
    assert x.is_cuda and not torch.empty(3).is_cuda and x.get_device() == 0
    assert x.device == torch.device("cuda", 0) and x.device.type == "cuda"
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1
    assert torch.cuda.get_device_capability() == (8, 9)
    properties = torch.cuda.get_device_properties(x.device)
    assert (properties.name, properties.multi_processor_count) == ("NVIDIA GeForce RTX 4080", 76)
    active = triton.runtime.driver.active
    device = active.get_active_torch_device()
    assert active.utils.get_device_properties(device.index)["multiprocessor_count"] == 76
    stream = torch.cuda.Stream()
    with torch.cuda.device(x.device), torch.cuda.stream(stream):
        out = torch.empty(x.shape, device=f"cuda:{torch.cuda.current_device()}")
        launch(x.cuda().to(device), out)
    torch.cuda.synchronize()
    kernel = double_kernel.warmup(x, out, 24, BLOCK=64, grid=(1,))
    assert 65536 // (kernel.n_regs * 32 * 4) > 0
    with torch.autocast("cuda", dtype=torch.float16):
        pass
    return out.to("cuda", torch.float32)


def test_host_code_for_a_card_runs_without_one():
    before = (torch.cuda.is_available, torch.cuda.device, driver._active, JITFunction.run)
    (found,), (x,) = outputs(uses_the_card, X)
    np.testing.assert_array_equal(found, 2 * x)
    assert before == (torch.cuda.is_available, torch.cuda.device, driver._active, JITFunction.run)


def test_a_copy_to_the_host_is_a_copy():
    def function(x):
        host = x.cpu()
        assert not host.is_cuda and host.data_ptr() != x.data_ptr()
        return host.cuda()

    assert kinds(record(function, (X,))).count("Copy") == 2


def test_a_kernel_compiled_by_hand(tmp_path):
    def function(x):
        source = ASTSource(
            double_kernel,
            {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
            {(3,): 32},
        )
        out = torch.empty_like(x)
        compiled = triton.compile(source)
        compiled[(1, 1, 1)](x, out, 24, 32)
        compiled[(2, 1, 1)](x, out, 24)
        return out

    with triton.knobs.cache.scope():
        triton.knobs.cache.dir = str(tmp_path)
        trace = record(function, (X,))
    assert [e.grid[0] for e in only(trace, Launch)] == [1, 2] and len(trace.kernels) == 1


def test_a_device_that_was_chosen_outside_without_a_card():
    device = torch.device("cpu")

    def function(x):
        assert x.device == device
        return launch(x, torch.empty(x.shape, device=device))

    assert kinds(record(function, (X,))) == "Input Allocate Launch"


def test_module_level_code_for_a_card_defines_what_it_defines():
    before = (torch.cuda.is_available, driver._active, JITFunction.run)
    with loading():
        device = triton.runtime.driver.active.get_active_torch_device()
        measured = torch.cuda.is_available()
        x = torch.arange(24.0, device=device).reshape(4, 6)
        out = launch(x, torch.empty_like(x))
        assert torch.equal(out, x * 2)
        torch.cuda.synchronize()
    assert device == torch.device("cuda", 0) and not measured
    assert before == (torch.cuda.is_available, driver._active, JITFunction.run)

    def function(x):
        assert x.device == device
        return launch(x, torch.empty(x.shape, device=device))

    assert kinds(record(function, (X,))) == "Input Allocate Launch"


def test_a_tensor_on_the_host_is_warned_about():
    trace = record(lambda x: launch(x, torch.empty(x.shape)), (X,))
    assert "`out_ptr` is made without `device=`" in trace.warnings[0]
    assert record(lambda x: launch(x, torch.empty(x.shape).to(x.device)), (X,)).warnings == ()


# ---------------------------------------------------------------- what comes back, what goes wrong


class Wrapped(torch.Tensor):
    pass


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (lambda x: None, "function returned None, and no kernel was launched. Are the"),
        (lambda x: 3.0, "function returned a float, where a tensor is expected."),
        (lambda x: np.zeros(3), "function returned a NumPy array, where a tensor is expected."),
        (lambda x: (), "function returned an empty tuple."),
        (lambda x: x.to_sparse(), "function returned a tensor of layout torch.sparse_coo"),
        (lambda x: torch.complex(x, x), "function returned a tensor of type torch.complex64"),
        (lambda x: [None], "function returned None"),
        (lambda x: (x, 3), "Output 1 of function is an int, where a tensor is expected."),
    ],
)
def test_what_is_no_tensor_becomes_a_sentence(returned, said):
    def function(x):
        return returned(x)

    assert record(function, (X,)).outputs[-1].startswith(said)


def test_subclasses_lists_and_constants_are_outputs():
    trace = record(lambda x: [x.as_subclass(Wrapped), torch.ones(3)], (X,))
    assert [o.buffer for o in trace.outputs] == [0, 1]
    assert only(trace, Fill)[0].value == 1


def raises_inside_torch(x):
    return x.view(7, 7)


def raises_two_lines(x):
    raise ValueError("one\ntwo")


def exits(x):
    sys.exit(3)


def no_grid(x):
    double_kernel(x, x, 24, BLOCK=64)


def whole_grid(x):
    double_kernel[1](x, x, 24, BLOCK=64)


def bad_block(x):
    double_kernel[(1,)](x, x, 24, BLOCK=63)


def takes_a_list(x):
    double_kernel[(1,)]([x], x, 24, BLOCK=64)


@pytest.mark.parametrize(
    ("function", "told", "kind"),
    [
        (raises_inside_torch, "raised RuntimeError: shape '[7, 7]' is invalid", "interface"),
        (raises_two_lines, "raised ValueError: one two (line", "interface"),
        (exits, "exits ended the program (line", "interface"),
        (no_grid, "a kernel is launched with a grid, name[(programs,)](arguments)", "interface"),
        (whole_grid, "must be a tuple, such as (97,), not 1 (int)", "interface"),
        (takes_a_list, "double_kernel cannot take a list", "interface"),
        (bad_block, "double_kernel, line", "compile"),
    ],
)
def test_errors_are_one_sentence_with_the_students_line(function, told, kind):
    with pytest.raises(Rejected) as caught:
        record(function, (X,))
    error = caught.value
    assert told in str(error) and "\n" not in str(error) and error.kind == kind
    line = function.__code__.co_firstlineno + 1
    if kind == "compile":
        line = double_kernel.starting_line_number + 2
    assert error.line == line and f"line {line}" in str(error)


def test_functions_that_do_not_fit_the_call():
    def one(x):
        return x

    with pytest.raises(Rejected) as caught:
        record(one, (X, 3))
    assert str(caught.value).startswith(
        "The check calls one(tensor of shape (4, 6), 3), which does not fit one(x): too many"
    )
    with pytest.raises(Rejected, match="missing a required .*argument: 'y'"):
        record(lambda x, *, y: x, (X,))
    with pytest.raises(Rejected, match="int is not a function"):
        record(3, (X,))


def endless(x):
    for _ in range(10**9):
        launch(x, x)


def hoards(x):
    return [torch.empty(1 << 20, device=x.device) for _ in range(10**9)]


def test_caps(monkeypatch):
    monkeypatch.setattr(tape, "MAX_EVENTS", 50)
    with pytest.raises(Rejected, match="more than 50 operations on tensors and launches") as caught:
        record(endless, (X,))
    assert caught.value.line == launch.__code__.co_firstlineno + 1
    with pytest.raises(Rejected, match="more than 50 operations"):
        record(hoards, (X,))
    monkeypatch.setattr(tape, "MAX_BYTES", 8 << 20)
    with pytest.raises(Rejected, match="allocates more than 8 MB"):
        record(hoards, (X,))
    monkeypatch.setattr(tape, "MAX_KERNELS", 2)

    def many(x):
        for i in range(4):
            double_kernel[(1,)](x, x, 24, BLOCK=16 << i)

    with pytest.raises(Rejected, match="launches more than 2 kernels"):
        record(many, (X,))


def test_nothing_that_fails_leaves_a_hook_behind():
    before = (torch.cuda.is_available, driver._active, JITFunction.run)
    for function in (exits, bad_block, raises_two_lines):
        with pytest.raises(Rejected):
            record(function, (X,))
        assert (torch.cuda.is_available, driver._active, JITFunction.run) == before
