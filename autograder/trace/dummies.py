"""Tensors of a given geometry that stand in for the arguments of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from autograder.floats import encode, stored
from autograder.records import Tensor

Values = Mapping[int, Any] | Sequence[Any]  # arrays or torch tensors by tensor argument

_DISTINCT = 1 << 16  # random numbers before they repeat


def dummy(like: Tensor | torch.Tensor, index: int, values: Values | None) -> torch.Tensor:
    """A CPU tensor of ``like``'s shape, dtype and strides, on a storage with whole rows.

    Its contents are ``values[index]`` if there is such an entry, else ``like``'s own, else random:
    standard normal numbers, or integers from 0 to 7.
    """
    given = _given(values, index)
    if isinstance(like, torch.Tensor):
        given = like if given is None else given
        name = str(like.dtype).removeprefix("torch.")
        like = Tensor(tuple(like.shape), name, tuple(like.stride()))
    dtype = getattr(torch, like.dtype)
    strides = like.strides
    if strides is None:
        strides = torch.empty(like.shape, device="meta").stride()
    storage = torch.empty(_cells(like.shape, strides) * dtype.itemsize, dtype=torch.uint8)
    tensor = storage.view(dtype).as_strided(like.shape, strides)
    bits = storage.numpy().view(stored(like.dtype))  # the same memory; torch would start threads
    count = tensor.numel()
    if given is None and count == bits.size and tensor.is_contiguous():  # nothing left to zero
        block = _random(like.dtype, dtype.is_floating_point, index)
        for start in range(0, count, _DISTINCT):
            bits[start : start + _DISTINCT] = block[: count - start]
        return tensor
    bits[:] = 0
    if not count:
        return tensor
    if isinstance(given, torch.Tensor):
        held = torch.float32 if dtype.is_floating_point and dtype.itemsize < 4 else dtype
        given = given.detach().cpu().to(held).numpy()
    # Along a stride of 0 there is one cell, which is written several times; the last one stays.
    window = np.lib.stride_tricks.as_strided(
        bits, like.shape, [stride * bits.itemsize for stride in strides]
    )
    if given is None:
        block = _random(like.dtype, dtype.is_floating_point, index)
        window[...] = np.resize(block[:count], like.shape)
    else:
        window[...] = encode(np.asarray(given), like.dtype)
    return tensor


def _cells(shape: tuple[int, ...], strides: Sequence[int]) -> int:
    """Elements of a storage that holds the view and the padding of its last row."""
    if 0 in shape:
        return 0
    last = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    return max([last, *(n * s for n, s in zip(shape, strides, strict=True))])


def _given(values: Values | None, index: int) -> Any:
    if values is None:
        return None
    if isinstance(values, Mapping):
        return values.get(index)
    return values[index] if index < len(values) else None


@lru_cache(maxsize=64)
def _random(dtype: str, floating: bool, index: int) -> np.ndarray:
    """Numbers as they lie in memory."""
    generator = np.random.default_rng(index)
    numbers = generator.standard_normal(_DISTINCT)
    return encode(numbers if floating else generator.integers(0, 8, _DISTINCT), dtype)


def touch_torch() -> None:
    """Make torch look at the processor now. It reads /proc/cpuinfo when a tensor is first converted
    or multiplied, and a fork's /proc is empty: an honest ``x.to(torch.float16)`` would fail there.
    """
    torch.get_num_threads()
    floats = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    tensors = [torch.ones(32, 32, dtype=dtype) for dtype in floats]
    for tensor in tensors:
        for dtype in (*floats, torch.int32, torch.bool):
            tensor.to(dtype)
        for result in (tensor @ tensor, tensor.sum(), tensor + tensor, tensor.exp()):
            result.to(torch.float32)
