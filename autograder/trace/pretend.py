"""A card that is not there: host code written for CUDA runs on CPU tensors and notices nothing.

``pretend_card()`` is for recording and for loading a solution: ``x.is_cuda``, ``device="cuda"``,
``torch.cuda.synchronize()``, ``triton.runtime.driver.active`` … all answer as an RTX 4080 would,
and tensors stay in the computer's memory. Everything is put back at the end, also after an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch.autograd.function import BackwardCFunction
from torch.overrides import TorchFunctionMode
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from autograder.ir.cards import DEFAULT, card

_CARD = card(DEFAULT)
_CUDA = torch.device("cuda", 0)
_MEMORY = 16 * 10**9  # bytes on the card, as its name says

# Calls that make a tensor out of nothing: without ``device=`` they make it on the host.
_FACTORIES = frozenset(
    getattr(torch, name)
    for name in (
        *("empty", "zeros", "ones", "full", "empty_strided", "tensor", "arange", "linspace"),
        *("rand", "randn", "randint", "randperm", "eye", "as_tensor", "logspace"),
    )
)
_TENSOR = torch.Tensor
# Method wrappers: made anew at every look, so compared by ==.
_IS_CUDA, _DEVICE = _TENSOR.is_cuda.__get__, _TENSOR.device.__get__


class Pretend(TorchFunctionMode):
    """Answers for the card, and remembers which tensors a GPU program would have on the host."""

    def __init__(self) -> None:
        super().__init__()
        self.default_cuda = False
        self._host: dict[int, Any] = {}  # storages made without a device, kept alive

    def on_host(self, tensor: torch.Tensor) -> bool:
        """Whether a GPU program would hold this tensor in the computer's memory."""
        with torch._C.DisableTorchFunction():
            return tensor.layout == torch.strided and _key(tensor) in self._host

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func == _DEVICE:
            return torch.device("cpu") if self.on_host(args[0]) else _CUDA
        if func == _IS_CUDA:
            return not self.on_host(args[0])
        if func is _TENSOR.get_device:
            return -1 if self.on_host(args[0]) else 0
        if func is torch.device:
            return func(*args, **kwargs)
        if func is _TENSOR.pin_memory:
            return args[0]
        if func is _TENSOR.record_stream:
            return None
        if func is _TENSOR.cuda or func is _TENSOR.cpu:
            return self._moved(args[0], args[0], func is _TENSOR.cpu)
        asked = [d for a in (*args, *kwargs.values()) if (d := _device(a)) is not None]
        args = tuple("cpu" if _device(a) == "cuda" else a for a in args)
        kwargs = {k: "cpu" if _device(v) == "cuda" else v for k, v in kwargs.items()}
        kwargs.pop("pin_memory", None)
        result = func(*args, **kwargs)
        if func in _FACTORIES and not asked and not self.default_cuda:
            if not any(isinstance(a, torch.Tensor) for a in args):
                self._mark(result)
        elif func is _TENSOR.to and asked:
            return self._moved(args[0], result, asked[0] == "cpu")
        return result

    def _moved(self, before: torch.Tensor, after: torch.Tensor, to_host: bool) -> torch.Tensor:
        """``after``, as a copy of its own where a GPU program would have made one."""
        if to_host == self.on_host(before):
            return after
        if after is before:
            with torch._C.DisableTorchFunction():
                after = before.clone()
        if to_host:
            self._mark(after)
        return after

    def _mark(self, tensor: Any) -> None:
        with torch._C.DisableTorchFunction():
            if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided:
                self._host[_key(tensor)] = tensor.untyped_storage()


def _key(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _device(value: Any) -> str | None:
    """``"cuda"`` or ``"cpu"`` if the value names a device."""
    if isinstance(value, torch.device):
        return value.type
    if isinstance(value, str) and (value == "cpu" or value.startswith("cuda")):
        return value[:4].rstrip(":")
    return None


@contextlib.contextmanager
def pretend_card(available: bool = True) -> Iterator[Pretend]:
    """While it lasts, torch and Triton answer as if an RTX 4080 were there.

    ``available=False``: they do what they are asked, but ``torch.cuda.is_available()`` says no, so
    that code which measures only where a card is stays silent.
    """
    mode = Pretend()

    def set_default_device(device: Any) -> None:
        mode.default_cuda = device is not None and torch.device(device).type == "cuda"

    backward = BackwardCFunction.apply

    def in_mode(self, *args):  # torch leaves a mode for as long as `backward()` runs
        with mode:
            return backward(self, *args)

    with contextlib.ExitStack() as stack:
        stack.enter_context(card_answers(available))
        stack.enter_context(mock.patch.object(torch, "set_default_device", set_default_device))
        stack.enter_context(mock.patch.object(BackwardCFunction, "apply", in_mode))
        stack.enter_context(mode)
        yield mode


@contextlib.contextmanager
def card_answers(available: bool = True) -> Iterator[None]:
    """``pretend_card`` without its tensors: torch.cuda and Triton's driver answer, no more."""
    answers = {
        name: value for name, value in _cuda_answers(available).items() if hasattr(torch.cuda, name)
    }
    active, before = driver._active, {name: getattr(torch.cuda, name) for name in answers}
    try:
        vars(torch.cuda).update(answers)
        driver.set_active(_Driver())
        yield
    finally:
        driver._active = active
        vars(torch.cuda).update(before)


class _Null(contextlib.nullcontext):
    """A device, stream or guard that does nothing, whatever it is made of."""

    cuda_stream = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(self)

    def nothing(self, *args: Any, **kwargs: Any) -> None:
        """Answers ``record``, ``wait``, ``synchronize`` …"""

    record = wait = synchronize = wait_stream = wait_event = record_event = nothing

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Any) -> float:
        return 1.0  # milliseconds; nothing runs, and callers divide by it


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _properties() -> SimpleNamespace:
    return SimpleNamespace(
        name=f"NVIDIA GeForce {_CARD.name}",
        major=_CARD.capability[0],
        minor=_CARD.capability[1],
        multi_processor_count=_CARD.sms,
        total_memory=_MEMORY,
        warp_size=32,
        L2_cache_size=int(_CARD.l2_mb * 2**20),
        regs_per_multiprocessor=_CARD.registers_per_sm,
        max_threads_per_multi_processor=1536,  # CUDA C++ Programming Guide, cc 8.9
        shared_memory_per_block=48 * 1024,
        shared_memory_per_block_optin=_CARD.shared_per_block,
        shared_memory_per_multiprocessor=100 * 1024,
    )


@cache
def _cuda_answers(available: bool) -> dict[str, Any]:
    """What stands in for the functions of torch.cuda, each an object of its own (torch's compiler
    insists on that when it makes its list of torch's functions)."""

    def constant(value: Any) -> Any:
        return lambda *args, **kwargs: value

    def kind(name: str) -> type:
        return type(name, (_Null,), {})

    nothing = ("reset_peak_memory_stats", "set_device", "synchronize", "empty_cache", "init")
    values = {
        "is_available": available,
        "is_bf16_supported": available,
        "device_count": int(available),
        "current_device": 0,
        "get_device_name": _properties().name,
        "get_device_capability": _CARD.capability,
        "get_device_properties": _properties(),
        "mem_get_info": (_MEMORY, _MEMORY),
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        **dict.fromkeys(nothing),
    }
    kinds = ("device", "device_of", "stream", "Stream", "Event")
    streams = dict.fromkeys(("current_stream", "default_stream"), _Null())
    return {
        **{name: constant(value) for name, value in (values | streams).items()},
        **{name: kind(name) for name in kinds},
    }


class _Driver:
    """Stands in for Triton's driver of the card. It loads and launches nothing."""

    def __init__(self) -> None:
        self.utils = SimpleNamespace(
            get_device_properties=lambda device: {
                "max_shared_mem": _CARD.shared_per_block,
                "max_num_regs": _CARD.registers_per_sm,
                "multiprocessor_count": _CARD.sms,
                "warpSize": 32,
                "mem_bus_width": 256,
            },
            # module, function, registers, spills, most threads a block
            load_binary=lambda *args: (0, 0, 32, 0, 1024),
            unload_module=_nothing,
        )

    @staticmethod
    def is_active() -> bool:
        return True

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one device."""

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", _CARD.cc, 32)

    def get_active_torch_device(self) -> torch.device:
        return _CUDA

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(1, dtype=torch.int32)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """No cache to clear."""

    def get_benchmarker(self) -> Any:
        from triton.testing import do_bench

        return do_bench

    def launcher_cls(self, *args: Any) -> Any:
        return _nothing
