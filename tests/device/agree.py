"""On a card: check every solution kernel in the interpreter, then launch it, in one process.

`python -m tests.device.agree` prints, for each kernel and dtype, what the interpreter found and
how far its outputs lie from the card's: bit-equal, or the largest difference in units of the
spacing of the largest result. With TRITON_F32_DEFAULT=ieee, dots of fp32 leave TF32 out, which is
what the rest of their difference comes from. Needs a GPU; nothing here runs in CI.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
import triton

from autograder import exercises
from autograder.checking import inspect_call, load_solution
from autograder.floats import UNIT
from autograder.judging import inputs_of
from autograder.records import Case, Tensor
from tests.kernels.course import KERNELS

RIGHT = Path(__file__).parents[1] / "submissions" / "right"


def _tensors(arguments, dtype=None):
    """Random torch tensors for the argument list, on the CPU, in fp32 or in ``dtype``."""
    generator = torch.Generator().manual_seed(0)
    made = []
    for a in arguments:
        if isinstance(a, Tensor):
            t = torch.randn(a.shape, generator=generator)
            made.append(t.to(dtype) if dtype else t)
        else:
            made.append(a)
    return made


def _compare(name: str, function, arguments, gradients=()) -> bool:
    run = inspect_call(function, *arguments, gradients=gradients, keep_accesses=False)
    outs = _on_card(function, arguments, gradients)
    agree = not run.findings
    notes = []
    for ours, theirs in zip(run.outputs, outs, strict=True):
        card = theirs.detach().float().cpu().numpy()
        mine = ours.values.astype(np.float32)
        if np.array_equal(mine, card, equal_nan=True):
            notes.append("bit-equal")
            continue
        if not np.array_equal(np.isnan(mine), np.isnan(card)):
            notes.append("NaN in different places")
            agree = False
            continue
        mine, card = np.nan_to_num(mine), np.nan_to_num(card)
        scale = 2 * UNIT.get(ours.dtype, 2.0**-24) * np.maximum(np.abs(card).max(), 1e-30)
        worst = float(np.abs(mine.astype(np.float64) - card).max() / scale)
        share = float((mine != card).mean())
        notes.append(f"differs in {share:.1%}, at most {worst:.2f} ulp of the largest")
    findings = "; ".join(f"{f.kind} {f.argument} line {f.line}" for f in run.findings) or "none"
    print(f"{name:44} findings: {findings:12} {' | '.join(notes)}", flush=True)
    return agree


def _on_card(function, arguments, gradients) -> list[torch.Tensor]:
    """Outputs of the call on the card, then the gradients of its floating arguments."""
    function = getattr(function, "apply", function)  # a torch.autograd.Function
    given = [_as_strided_on_card(a) if isinstance(a, torch.Tensor) else a for a in arguments]
    wanted = [a for a in given if isinstance(a, torch.Tensor) and a.is_floating_point()]
    for tensor in wanted if gradients else ():
        tensor.requires_grad_()
    out = function(*given)
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    if gradients:
        outs += torch.autograd.grad(outs, wanted, [g.cuda() for g in gradients])
    torch.cuda.synchronize()
    return outs


def _as_strided_on_card(tensor: torch.Tensor) -> torch.Tensor:
    """A copy on the card that keeps the strides (``.cuda()`` may close gaps)."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    span = 1 + sum((n - 1) * stride for n, stride in steps) if tensor.numel() else 1
    room = torch.zeros(span, dtype=tensor.dtype, device="cuda")
    copy = room.as_strided(tensor.shape, tensor.stride())
    copy.copy_(tensor)
    return copy


def main() -> int:
    if not torch.cuda.is_available():
        print("No card here: this compares the interpreter with a real one.")
        return 2
    print(
        f"{torch.cuda.get_device_name()}, compute capability {torch.cuda.get_device_capability()}, "
        f"torch {torch.__version__}, triton {triton.__version__}, numpy {np.__version__}"
    )
    # On compute capability 9.0, descriptors made in a kernel need memory from the host.
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8).cuda())
    good = True
    for name, (function, arguments) in KERNELS.items():
        for dtype in (None, torch.float16, torch.bfloat16):
            label = f"{name} {str(dtype or torch.float32).removeprefix('torch.')}"
            good &= _compare(label, function, _tensors(arguments, dtype))
    for path in sorted(RIGHT.glob("*.py")):
        id = max(
            (i for i in exercises.ids() if path.name.startswith(i.replace(".", "_"))),
            key=len,
            default=None,
        )
        if id is None or exercises.get(id).machine != "triton":
            continue
        exercise = exercises.get(id)
        function = load_solution(str(path))[exercise.names[-1]]
        for case in exercise.cases[:1] + exercise.cases[-2:]:
            arguments, gradients = _call(exercise, case)
            good &= _compare(f"{path.stem}: {case.label}", function, arguments, gradients)
    print("all agree" if good else "the interpreter found faults in a right solution")
    return 0 if good else 1


def _call(exercise, case: Case) -> tuple[list, list]:
    """(arguments, incoming gradients) of a case as torch tensors, strides as the case has them."""
    asked = exercise.arguments(case)
    made = inputs_of(exercise, case)
    arguments = []
    for value, want in zip(made, asked, strict=False):
        if not isinstance(want, Tensor):
            arguments.append(value)
            continue
        tensor = _tensor(value, want.dtype)
        if want.strides is not None and tensor.numel():
            span = 1 + sum((n - 1) * s for n, s in zip(want.shape, want.strides, strict=True))
            room = torch.zeros(span, dtype=tensor.dtype).as_strided(want.shape, want.strides)
            tensor = room.copy_(tensor)
        arguments.append(tensor)
    types = [out.dtype for out in exercise.outputs(case)]
    return arguments, [_tensor(g, d) for g, d in zip(made[len(asked) :], types, strict=False)]


def _tensor(values: np.ndarray, dtype: str) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(getattr(torch, dtype))


if __name__ == "__main__":
    sys.exit(main())
