"""``interpret``: one kernel or a whole host function on CPU tensors, and what its record says."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from autograder import interpret
from autograder.records import CouldNotCheck, Finding, Rejected

N = 1000


@triton.jit
def twice(value):
    return value * 2


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, twice(tl.load(x_ptr + offs, mask=offs < n)), mask=offs < n)


@triton.jit
def double_unmasked(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, twice(tl.load(x_ptr + offs)), mask=offs < n)


@triton.jit
def add_to_one(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0))
    tl.store(out_ptr, tl.load(out_ptr) + total)


@triton.jit
def row_max(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0), tl.max(tl.load(x_ptr + offs, mask=offs < n)))


tuned = triton.autotune(
    configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 256})], key=["n"]
)(double)
chosen = triton.heuristics({"BLOCK": lambda given: triton.next_power_of_2(given["n"])})(double)


def kinds(record) -> list[str]:
    return [finding.kind for finding in record.findings]


def test_a_launch_writes_its_results_and_says_what_it_did():
    x, out = torch.randn(N), torch.zeros(N)
    record = interpret(double)[(triton.cdiv(N, 128),)](x, out, N, BLOCK=128)
    assert torch.equal(out, 2 * x)
    assert record.findings == ()
    assert {t.argument: (t.loaded, t.stored, t.masked) for t in record.traffic} == {
        "x_ptr": (N, 0, 24),
        "out_ptr": (0, N, 24),
    }
    assert record.bytes == 8 * N and record.operations.elementwise == 8 * 128


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "int64", "bool"])
def test_any_type_is_written_in_place(dtype):
    kind = getattr(torch, dtype)
    x = torch.randint(0, 2, (N,)).to(kind)
    out = torch.zeros(N, dtype=torch.float32 if dtype == "bool" else kind)
    interpret(double)[(1,)](x, out, N, BLOCK=1024)
    assert torch.equal(out, 2 * x.to(out.dtype))


def test_a_window_on_a_larger_tensor_is_all_a_kernel_may_touch():
    store = torch.randn(3, N)
    before = store.clone()
    record = interpret(double_unmasked)[(8,)](store[1], store[2, :N], N, BLOCK=128)
    assert kinds(record) == ["out_of_bounds"] and record.findings[0].argument == "x_ptr"
    assert torch.equal(store[:2], before[:2]) and torch.equal(store[2], 2 * before[1])


def test_tuned_kernels_and_heuristics_run_and_a_configuration_can_be_chosen():
    x = torch.randn(N)
    for config, programs in ((0, 16), (1, 4)):
        out = torch.zeros(N)
        grid = lambda given: (triton.cdiv(N, given["BLOCK"]),)  # noqa: E731
        record = interpret(tuned, config=config)[grid](x, out, N)
        assert torch.equal(out, 2 * x) and record.launches[0][1].grid == (programs, 1, 1)
    out = torch.zeros(N)
    interpret(chosen)[(1,)](x, out, N)
    assert torch.equal(out, 2 * x)


def test_a_race_shows_as_a_finding_and_in_the_order_of_programs():
    x = torch.ones(4096)
    record = interpret(add_to_one)[(32,)](x, torch.zeros(1), 4096, BLOCK=128)
    assert kinds(record) == ["race"] * len(record.findings) and record.findings


def test_lanes_that_no_other_defines_are_told_only_where_they_matter():
    x, out = -torch.ones(100), torch.empty(2)
    record = interpret(row_max)[(2,)](x, out, 100, BLOCK=128)
    assert kinds(record) == ["undefined_lane"]
    assert interpret(double)[(1,)](x, torch.empty(100), 100, BLOCK=128).findings == ()


def test_the_memory_of_a_told_launch_is_that_of_its_first_run():
    """Trying other contents of undefined lanes leaves no trace in the tensors."""
    x, first, again = -torch.ones(100), torch.zeros(2), torch.zeros(2)
    interpret(row_max)[(2,)](x, first, 100, BLOCK=128)
    interpret(row_max)[(2,)](x, again, 128, BLOCK=128)  # nothing undefined, 28 lanes outside
    assert torch.equal(first, torch.full((2,), -1.0))


# ---------------------------------------------------------------- host functions


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        assert x.is_cuda and x.device.type == "cuda"
        out = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out

    @staticmethod
    def backward(ctx, gradient):
        out = torch.empty(gradient.shape, device="cuda")
        double[(8,)](gradient.contiguous(), out, gradient.numel(), BLOCK=128)
        return out


def test_a_host_function_forward_and_backward_with_torch_in_between():
    x = torch.randn(N, requires_grad=True)
    with interpret() as record:
        y = Double.apply(x).exp().sum()
        assert y.item() > 0
        y.backward()
    torch.testing.assert_close(x.grad, 2 * (2 * x).exp().detach())
    assert len(record.launches) == 2 and record.findings == ()


def test_what_torch_empty_left_is_nobodys_until_somebody_writes_it():
    with interpret() as record:
        fresh, out = torch.empty(N), torch.empty(N)
        fresh[: N // 2] = 1.0
        double[(8,)](fresh, out, N, BLOCK=128)
    assert kinds(record) == ["uninitialised"] and record.findings[0].lanes == N // 2
    with interpret() as record:
        fresh, out = torch.empty(N), torch.empty(N)
        fresh.copy_(torch.randn(N))
        double[(8,)](fresh, out, N, BLOCK=128)
        double[(8,)](out, fresh, N, BLOCK=128)
        double[(8,)](torch.randn(N)[torch.randperm(N)], out.view(10, 100), N, BLOCK=128)
    assert record.findings == ()


def test_a_copy_of_nobodys_numbers_is_nobodys():
    with interpret() as record:
        double[(8,)](torch.empty(N).clone(), torch.empty(N), N, BLOCK=128)
    assert kinds(record) == ["uninitialised"]


def test_a_tensor_seen_as_bytes_keeps_what_is_known_of_it():
    with interpret() as record:
        words = torch.empty(N, dtype=torch.float32)
        double[(8,)](torch.ones(N), words, N, BLOCK=128)
        halves = words.view(torch.int16)
        double[(16,)](halves, torch.empty(2 * N, dtype=torch.int16), 2 * N, BLOCK=128)
    assert record.findings == ()


def test_long_work_lets_go_of_what_nobody_holds(monkeypatch):
    from autograder.trace import live

    monkeypatch.setattr(live, "_SWEEP", 1 << 16)
    monkeypatch.setattr("autograder.trace.tape.MAX_BYTES", 1 << 18)
    x = torch.randn(N)
    with interpret():
        for _ in range(200):  # 200 × 4000 bytes, three times what may be held at once
            x = x + 1
        out = torch.empty(N)
        double[(8,)](x, out, N, BLOCK=128)
    assert torch.equal(out, 2 * x)


def test_everything_is_put_back_after_an_error():
    with pytest.raises(ZeroDivisionError), interpret():
        assert torch.cuda.is_available()
        raise ZeroDivisionError
    assert not torch.ones(1).is_cuda


# ---------------------------------------------------------------- what it says


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: interpret(print), r"print is none. For a host function: with interpret\(\)"),
        (lambda x: interpret(double)(x), r"A launch needs a grid"),
        (lambda x: interpret()[(1,)], r"Which kernel\?"),
        (lambda x: interpret(double, order="backwards"), r"'forward', 'reversed' or 'shuffled'"),
        (lambda x: interpret(double)[(1,)](x, x, N), r"BLOCK"),
        (lambda x: interpret(double)[(1,)](x, x.to("meta"), N, BLOCK=128), r"pass x.cpu\(\)"),
        (lambda x: interpret(double)[(1,)](x, x, N, BLOCK=100), r"power of two"),
        (lambda x: interpret(double)[1](x, x, N, BLOCK=128), r"must be a tuple"),
    ],
)
def test_mistakes_are_one_sentence(call, words):
    with pytest.raises(Rejected, match=words) as raised:
        call(torch.randn(N))
    assert "\n" not in str(raised.value)


def test_the_record_as_text_page_and_picture():
    x, out = torch.randn(N), torch.zeros(N)
    record = interpret(double_unmasked)[(8,)](x, out, N, BLOCK=128)
    text = repr(record)
    assert text.startswith("double_unmasked (test_interpreting.py): 8 programs\n✗ load from x_ptr")
    row = next(line for line in text.splitlines() if line.strip().startswith("out_ptr"))
    assert row.split() == ["out_ptr", "0", "1000", "24", "4000", "125"]
    page = record._repr_html_()
    assert "<svg" in page and page.count("<tr>") == 3 and "double_unmasked" in page
    record.draw(), record.draw("out_ptr", program=7)
    with pytest.raises(Rejected, match="'y'.*lanes of: x_ptr, out_ptr"):
        record.draw("y")


def test_several_kernels_keep_their_arguments_apart():
    x, out = torch.randn(N), torch.zeros(N)
    with interpret() as record:
        double[(8,)](x, out, N, BLOCK=128)
        double_unmasked[(8,)](x, out, N, BLOCK=128)
        double_unmasked[(8,)](x, out, N, BLOCK=128)
    loaded = {t.argument: t.loaded for t in record.traffic if t.loaded}
    assert loaded == {"double.x_ptr": N, "double_unmasked.x_ptr": 2 * N}
    (finding,) = record.findings
    assert isinstance(finding, Finding) and finding.lanes == 48
    assert "double_unmasked (test_interpreting.py): 2 launches of 8 programs" in repr(record)
    with interpret() as nothing:
        assert repr(nothing) == "nothing was launched"


# ---------------------------------------------------------------- tensors by their addresses


@triton.jit
def double_all(addresses_ptr, out_ptr, n, BLOCK: tl.constexpr):
    x_ptr = tl.load(addresses_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(x_ptr + offs, 2 * x, mask=offs < n)
    tl.store(out_ptr + tl.program_id(0), tl.sum(tl.where(offs < n, x, 0.0)))


@pytest.mark.parametrize("n", [100, 101])
def test_a_tensor_of_addresses_leads_to_the_tensors(n):
    before = [torch.randn(100) for _ in range(3)]
    with interpret() as record:
        tensors = [x.clone() for x in before]
        addresses = torch.tensor([x.data_ptr() for x in tensors])
        double_all[(3,)](addresses, torch.empty(3), n, BLOCK=128)
    for x, old in zip(tensors, before, strict=True):
        assert torch.equal(x, 2 * old)
    found = {f.argument for f in record.findings if f.kind == "out_of_bounds"}
    assert found == ({"a tensor of 100 by its address"} if n > 100 else set())


def test_an_address_that_nobody_asked_for_is_told_as_unknown():
    x = torch.randn(100)
    addresses = torch.tensor([x.data_ptr()])
    with pytest.raises(CouldNotCheck, match="double_all: .*an address that no argument gave it"):
        interpret(double_all)[(1,)](addresses, torch.empty(1), 100, BLOCK=128)


class Every:
    """Every second element of a tensor, as a drop-in for one: what some packages launch with."""

    def __init__(self, base):
        self.base, self.dtype, self.shape = base, base.dtype, (len(base) // 2,)

    def stride(self):
        return (2,)

    def data_ptr(self):
        return self.base.data_ptr() + self.dtype.itemsize

    def untyped_storage(self):
        return self.base.untyped_storage()


@triton.jit
def double_strided(x_ptr, stride, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + stride * offs, mask=offs < n)
    tl.store(x_ptr + stride * offs, 2 * x, mask=offs < n)


def test_what_stands_in_for_a_tensor_is_taken_for_its_window():
    x = torch.randn(100)
    before = x.clone()
    record = interpret(double_strided)[(1,)](Every(x), 2, 50, BLOCK=64)
    assert record.findings == ()
    assert torch.equal(x[1::2], 2 * before[1::2]) and torch.equal(x[::2], before[::2])
    assert (
        kinds(interpret(double_strided)[(1,)](Every(x), 1, 50, BLOCK=64)) == ["out_of_bounds"] * 2
    )


@triton.jit
def one_flag(x_ptr, flags_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(flags_ptr + tl.zeros((BLOCK,), tl.int32), 1, mask=(offs < n) & (x == x))


def test_one_address_under_a_mask_of_many_lanes():
    flags = torch.zeros(1, dtype=torch.int32)
    interpret(one_flag)[(2,)](torch.ones(50), flags, 50, BLOCK=64)
    assert flags.item() == 1
