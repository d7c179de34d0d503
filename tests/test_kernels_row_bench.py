"""What is measured of the memory-bound kernels: ladders begin with the course, rivals agree."""

import ast
from pathlib import Path

import pytest
import torch
import triton

from autograder import interpret
from autograder.solutions import load_solution
from lab_setup.kernels.bench import row_rivals, row_steps, row_tasks
from lab_setup.kernels.bench.checking import error
from lab_setup.kernels.bench.rows import LADDERS, TASKS

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(10)


def _body(kernel: triton.JITFunction) -> str:
    """The statements of a kernel, without docstring and comments."""
    (function,) = ast.parse(kernel.src).body
    return ast.dump(ast.Module(function.body[1:], []))


@pytest.mark.parametrize(
    "unit, name, ours",
    (
        ("03_softmax", "softmax_fwd_kernel", row_steps.plain_softmax_kernel),
        ("04_norms", "rmsnorm_bwd_kernel", row_steps.plain_norm_kernel),
    ),
)
def test_a_ladder_begins_with_the_course(unit, name, ours):
    course = load_solution(str(ROOT / "source" / unit / f"{unit}.ipynb"))
    assert _body(course[name]) == _body(ours)
    for n in (256, 4096, 16384):
        with interpret() as record:
            x = torch.randn(2, n).bfloat16()
            if unit == "03_softmax":
                course["triton_softmax"](x), row_steps.softmax_plain(x)
            else:
                w, x = torch.ones(n).bfloat16(), x.requires_grad_()
                course["TritonRMSNorm"].apply(x, w.requires_grad_(), 1e-6).sum().backward()
                r = torch.ones(2)
                row_steps.rmsnorm_plain(x.detach(), w.detach(), r, torch.ones_like(x))
        theirs, mine = record.launches[-2:]
        assert theirs[0].options == mine[0].options and theirs[1].grid == mine[1].grid


@pytest.mark.parametrize("ladder", LADDERS, ids=lambda ladder: ladder.name)
def test_every_step_computes_the_same(ladder):
    if ladder.name == "fp8":
        a, scale_a = torch.randn(16, 512).to(torch.float8_e4m3fn), torch.ones(1)
        layers = [(torch.randn(256, 512).to(torch.float8_e4m3fn), torch.ones(1)) for _ in range(2)]
        tensors = a, scale_a, layers
        references = [a.double() @ w.double().t() for w, _ in layers]
    else:
        x, dy = (torch.randn(5, 1024).bfloat16() for _ in range(2))
        w = torch.randn(1024).bfloat16()
        d, v = x.double().requires_grad_(), w.double().requires_grad_()
        if ladder.name == "softmax":
            tensors, references = (x,), (torch.softmax(d, 1),)
        else:
            tensors = x, w, torch.rsqrt(x.float().square().mean(1) + 1e-6), dy
            y = torch.nn.functional.rms_norm(d, (1024,), v, 1e-6)
            references = torch.autograd.grad(y, (d, v), dy.double())
    for step in ladder.steps:
        with interpret() as record:
            found = step.make(*tensors)()
        found = (found,) if isinstance(found, torch.Tensor) else found
        for ours, reference in zip(found, references, strict=True):
            assert error(ours, reference) <= 2**-8, step.label
        # Atomics on one address are no race, but the order of their sums is open.
        assert not record.findings, step.label
        assert step.label == ladder.steps[0].label or step.expect


def test_tasks_name_their_rivals():
    for task in TASKS:
        labels = {v.label for v in task.own} | set(task.rivals)
        for target in task.targets:
            assert {target.own, target.rival} <= labels and set(target.sizes) <= set(task.sizes)
        assert set(task.unchecked) <= set(task.rivals)
        assert list(task.rivals)[-1] not in task.unchecked
    for ladder in LADDERS:
        assert ladder.task in TASKS and set(ladder.rivals) <= set(ladder.task.rivals)
        assert set(ladder.sizes) <= set(ladder.task.sizes)


def test_a_copy_moves_as_many_bytes_as_its_rival():
    for task in TASKS:
        if "copy" in task.rivals:
            run = task.rivals["copy"](torch.randn(6, 4, dtype=torch.bfloat16))
            planes = task.bytes(256) // (2 << 26)
            assert 2 * run().nbytes == planes * 6 * 4 * 2, task.name


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_rivals_compute_what_ours_does(task, monkeypatch):
    """On this machine's tensors, made by the task at a small part of its size."""
    for name, tiny in (("NUMBERS", 1 << 12), ("SMALL", 64)):
        monkeypatch.setattr(row_tasks, name, tiny)
    monkeypatch.setattr(row_tasks, "_layers", lambda n: 1)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    randn = torch.randn
    monkeypatch.setattr(torch, "randn", lambda *shape, device="", **o: randn(*shape, **o))
    size = {"add": 1000, "launches": 3}.get(task.name, 256 if "fp8" not in task.name else 16)
    tensors_of = row_tasks.fp8_tensors(256) if "fp8" in task.name else task.tensors
    with interpret():
        tensors = tensors_of(size)
        found = task.own[0].make(*tensors)()
    for label, make in task.rivals.items():
        if label not in (*task.unchecked, "compile"):
            with interpret():
                other = make(*tensors)()
            atol = task.atol(size) if task.atol else 1e-5
            torch.testing.assert_close(found, other, rtol=1.6e-2, atol=atol)


def test_plain_launches_refuse_to_be_captured(monkeypatch):
    x = torch.zeros(2, 64)
    run = row_rivals.plain_launches(x, x)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with interpret() as record, pytest.raises(RuntimeError, match="one launch after the other"):
        run()
    assert not record.launches
