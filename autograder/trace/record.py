"""One call of a host function on dummy tensors, recorded as data (draft)."""

from __future__ import annotations

import numpy as np
import torch
import triton

from autograder.ir.lower import hooked
from autograder.records import Allocate, Input, Launch, Tensor, Trace, View


def record(function, arguments, *, backward=False, config=0, values=None) -> Trace:
    events, kernels, buffers, kept = [], [], {}, []

    def view(t):
        key = t.untyped_storage()._cdata
        if key not in buffers:
            buffers[key] = len(kept)
            kept.append(t)
            events.append(Allocate(buffers[key], t.untyped_storage().nbytes()))
        return View(
            buffers[key],
            t.storage_offset(),
            tuple(t.shape),
            tuple(t.stride()),
            str(t.dtype).removeprefix("torch."),
        )

    def on_launch(kernel, grid, bound):
        if kernel not in kernels:
            kernels.append(kernel)
        bindings = tuple(view(v) if isinstance(v, torch.Tensor) else v for v in bound)
        events.append(Launch(kernels.index(kernel), grid, bindings))

    actual = []
    for a in arguments:
        if isinstance(a, Tensor):
            dtype = getattr(torch, a.dtype)
            strides = a.strides or torch.empty(a.shape, device="meta").stride()
            span = 1 + sum((d - 1) * s for d, s in zip(a.shape, strides, strict=True))
            base = torch.from_numpy(np.random.default_rng(0).standard_normal(max(span, 0)))
            t = base.to(dtype).as_strided(a.shape, strides)
            index = sum(isinstance(x, torch.Tensor) for x in actual)
            v = view(t)
            events[-1] = Input(v.buffer, t.untyped_storage().nbytes(), index, v)
            actual.append(t)
        else:
            actual.append(a)
    with hooked(on_launch, config):
        out = function(*actual)
    outs = out if isinstance(out, (tuple, list)) else (out,)
    outputs = tuple(view(o) if isinstance(o, torch.Tensor) else repr(o) for o in outs)
    return Trace(tuple(kernels), tuple(events), outputs, triton=triton.__version__)
