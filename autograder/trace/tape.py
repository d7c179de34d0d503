"""Buffers and events of one recording, in the order in which they happen.

A buffer is one untyped storage. It is *tainted* once it may hold something that depends on the
inputs: an input, an argument of a launch, a copy of either, or what torch computed from them.
The other buffers hold constants; their bytes go into the events when something first needs them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import triton

from autograder.floats import ITEMSIZE
from autograder.ir.habits import reduced_stores
from autograder.records import (
    Allocate,
    Constant,
    Copy,
    CouldNotCheck,
    Descriptor,
    Event,
    Fill,
    Foreign,
    Input,
    Kernel,
    Launch,
    Peek,
    Rejected,
    View,
)
from autograder.trace.lines import student_line

# Caps of one recording; a course solution needs a hundredth of any of them.
MAX_EVENTS = 20_000
MAX_BYTES = 1 << 30
MAX_CONSTANT_BYTES = 16 << 20
MAX_KERNELS = 128

Execute = Callable[[Kernel, Launch, Mapping[int, np.ndarray]], None]


class Tape:
    """``execute`` runs every launch on the recorded tensors; None: nothing runs.

    ``on_tensor(tensor, argument)`` is told of every tensor that a launch is given.
    """

    def __init__(self, execute: Execute | None = None) -> None:
        self.events: list[Event] = []
        self.kernels: list[Kernel] = []
        self.warnings: list[str] = []
        self.peeks: list[Peek] = []
        self.on_tensor: Callable[[torch.Tensor, str], None] = lambda tensor, argument: None
        self.quiet = 0
        self._execute = execute
        self._numbers: dict[int, int] = {}  # storage -> buffer
        self._storages: list[Any] = []  # by buffer; kept so that no address comes twice
        self._sizes: list[int] = []
        self._total = 0
        self._tainted: set[int] = set()
        self._stale: set[int] = set()  # constants whose bytes are not in the events yet
        self._constant_bytes = 0

    @property
    def runs(self) -> bool:
        """Whether launches really happen."""
        return self._execute is not None

    # ------------------------------------------------------------ buffers and views

    def input(self, tensor: torch.Tensor, index: int) -> None:
        """Register a tensor that comes from outside."""
        number = self._new(tensor.untyped_storage())
        self._emit(Input(number, self._sizes[number], index, self._look(tensor)))
        self._tainted.add(number)

    def allocate(self, tensor: torch.Tensor) -> None:
        """Register the storage of a tensor that was just made."""
        number = self._new(tensor.untyped_storage())
        self._emit(Allocate(number, self._sizes[number]))

    def knows(self, tensor: torch.Tensor) -> bool:
        return storage_key(tensor) in self._numbers

    def is_tainted(self, tensor: torch.Tensor) -> bool:
        return self._buffer(tensor) in self._tainted

    def view(self, tensor: torch.Tensor) -> View:
        """A tensor as a window on its buffer, whose contents are in the events up to here.

        Raises CouldNotCheck for dtypes that kernels do not know.
        """
        self.settle(tensor)
        view = self._look(tensor)
        if view.dtype not in ITEMSIZE:
            raise CouldNotCheck(f"Tensors of type {view.dtype} cannot be checked.")
        return view

    def settle(self, tensor: torch.Tensor) -> None:
        """Put a constant's bytes into the events before something else needs them there."""
        number = self._buffer(tensor)
        if number not in self._stale:
            return
        self._stale.discard(number)
        size = self._sizes[number]
        if size == 0:
            return
        if self._constant_bytes + size > MAX_CONSTANT_BYTES:
            self.warnings.append(
                f"A tensor of {size >> 20} MB that does not depend on the inputs is too large to "
                "carry along; its contents count as uninitialised."
            )
            return
        self._constant_bytes += size
        self._emit(Constant(number, as_bytes(self._storages[number]).tobytes()))

    def memory(self) -> dict[int, np.ndarray]:
        """The bytes of every buffer as they are now; writing to them writes to the tensors."""
        return {number: as_bytes(storage) for number, storage in enumerate(self._storages)}

    def _look(self, tensor: torch.Tensor) -> View:
        return View(
            self._buffer(tensor),
            tensor.storage_offset(),
            tuple(tensor.shape),
            tuple(tensor.stride()),
            str(tensor.dtype).removeprefix("torch."),
        )

    def _buffer(self, tensor: torch.Tensor) -> int:
        """The buffer of a tensor. One that was never seen holds what it holds: a constant."""
        storage = tensor.untyped_storage()
        old = self._numbers.get(storage._cdata)
        if old is not None and self._sizes[old] == storage.nbytes():
            return old
        number = self._new(storage)
        self._emit(Allocate(number, self._sizes[number]))
        if old is None:
            self._stale.add(number)
            return number
        # Resized in place: what was there is still there.
        for marked in (self._tainted, self._stale):
            if old in marked:
                marked.add(number)
        size = min(self._sizes[old], self._sizes[number])
        if size and number not in self._stale:
            window = (0, (size,), (1,), "uint8")
            self._emit(Copy(View(number, *window), View(old, *window)))
        return number

    def _new(self, storage: Any) -> int:
        number = len(self._storages)
        self._numbers[storage._cdata] = number
        self._storages.append(storage)
        self._sizes.append(storage.nbytes())
        self._total += storage.nbytes()
        if self._total > MAX_BYTES:
            raise Rejected(
                f"The function allocates more than {MAX_BYTES >> 20} MB.", line=student_line()
            )
        return number

    def _emit(self, event: Event) -> None:
        if len(self.events) >= MAX_EVENTS:
            raise Rejected(
                f"The function does more than {MAX_EVENTS} operations on tensors and launches.",
                line=student_line(),
            )
        self.events.append(event)

    # ------------------------------------------------------------ what the host does

    def fill(self, tensor: torch.Tensor, value: Any) -> None:
        self._emit(Fill(self.view(tensor), value))

    def copy(self, destination: torch.Tensor, source: torch.Tensor) -> None:
        """``destination[...] = source``, equal shapes."""
        view = self.view(source)
        self._emit(Copy(self.view(destination), view))
        if view.buffer in self._tainted:
            self._tainted.add(self._buffer(destination))

    def foreign(self, operation: str, tensors: Sequence[torch.Tensor]) -> None:
        """Values that torch computed from the inputs now stand in these tensors."""
        for tensor in tensors:
            self.settle(tensor)
            self._tainted.add(self._buffer(tensor))
        views = tuple(_as_known(self._look(tensor)) for tensor in tensors)
        self._emit(Foreign(operation, views, student_line()))

    def constant(self, tensors: Sequence[torch.Tensor]) -> None:
        """Values that torch computed without the inputs now stand in these tensors."""
        for tensor in tensors:
            number = self._buffer(tensor)
            if number not in self._tainted:
                self._stale.add(number)
            elif is_known(tensor):  # a constant into a part of something that is none
                part = tensor.detach().clone(memory_format=torch.contiguous_format)
                self.copy(tensor, part)

    def addressed(self, tensor: torch.Tensor) -> None:
        """The host asked for a tensor's address. A trace has no word for one."""

    def peek(self, operation: str) -> None:
        """The host read a value that depends on the inputs."""
        peek = Peek(operation, student_line())
        self.peeks.append(peek)
        self._emit(peek)

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Nothing is recorded inside."""
        self.quiet += 1
        try:
            yield
        finally:
            self.quiet -= 1

    # ------------------------------------------------------------ launches

    def launch(self, kernel: Kernel, grid: tuple[int, int, int], values: tuple) -> None:
        """Record one launch; what ``hooked`` calls."""
        with torch._C.DisableTorchFunction():
            number = next((i for i, k in enumerate(self.kernels) if k is kernel), None)
            if number is None:
                if len(self.kernels) >= MAX_KERNELS:
                    raise Rejected(f"The function launches more than {MAX_KERNELS} kernels.")
                number = len(self.kernels)
                self.kernels.append(kernel)
                self.warnings += reduced_stores(kernel)
            bindings = self.bindings(kernel, values)
            launch = Launch(number, grid, bindings, student_line())
            self._emit(launch)
            for binding in bindings:
                if isinstance(binding, Descriptor):
                    binding = binding.view
                if isinstance(binding, View):
                    self._tainted.add(binding.buffer)
            if self._execute is not None:
                self._execute(kernel, launch, self.memory())

    def bindings(self, kernel: Kernel, values: tuple) -> tuple:
        """What a launch gives to every parameter of a kernel. Raises Rejected for anything that is
        neither a tensor nor a number."""
        return tuple(
            self._binding(value, name, kernel.name)
            for value, name in zip(values, kernel.parameters, strict=True)
        )

    def _binding(self, value: Any, name: str, kernel: str) -> Any:
        if isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, torch.Tensor) and has_storage(value):
            self.on_tensor(value, name)
            return self.view(value)
        if isinstance(value, triton.tools.tensor_descriptor.TensorDescriptor):
            base = self._binding(value.base, name, kernel)
            shape, strides = (tuple(map(int, n)) for n in (value.shape, value.strides))
            view = View(base.buffer, base.offset, shape, strides, base.dtype)
            block = tuple(map(int, value.block_shape))
            return Descriptor(view, block, getattr(value, "padding", "zero"))
        if isinstance(value, triton.runtime.jit.TensorWrapper):  # triton.reinterpret
            base = self._binding(value.base, name, kernel)
            dtype = _TRITON_DTYPES.get(str(value.dtype), "")
            if ITEMSIZE.get(dtype) == ITEMSIZE[base.dtype]:
                return View(base.buffer, base.offset, base.shape, base.strides, dtype)
        if all(hasattr(value, name) for name in _DROP_IN):  # what stands in for a tensor
            storage = value.untyped_storage()
            dtype = str(value.dtype).removeprefix("torch.")
            start = value.data_ptr() - storage.data_ptr()
            if dtype in ITEMSIZE and min(value.stride(), default=0) >= 0:
                self.settle(value)
                offset = start // ITEMSIZE[dtype]
                strides = tuple(value.stride())
                return View(self._buffer(value), offset, tuple(value.shape), strides, dtype)
        kind = type(value).__name__
        raise Rejected(
            f"{kernel} got a {kind} for `{name}`; a launch takes tensors and numbers.",
            line=student_line(),
            kernel=kernel,
        )


_DROP_IN = ("data_ptr", "untyped_storage", "shape", "stride", "dtype")
_TRITON_DTYPES = {
    "fp8e4nv": "float8_e4m3fn",
    "fp8e5": "float8_e5m2",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "int1": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


# ---------------------------------------------------------------- tensors


def storage_key(tensor: torch.Tensor) -> int:
    """Which storage a tensor looks at."""
    return tensor.untyped_storage()._cdata


def has_storage(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a strided window on memory (sparse and fake ones are not)."""
    if tensor.layout != torch.strided or tensor.device.type != "cpu":
        return False
    try:
        storage = tensor.untyped_storage()
        return storage.nbytes() == 0 or storage.data_ptr() != 0
    except (NotImplementedError, RuntimeError):
        return False


def is_known(*tensors: torch.Tensor) -> bool:
    """Whether these are windows on memory of dtypes that kernels know."""
    return all(has_storage(t) and str(t.dtype).removeprefix("torch.") in ITEMSIZE for t in tensors)


def _as_known(view: View) -> View:
    """A view of a dtype that kernels do not know (complex …), as bytes."""
    if view.dtype in ITEMSIZE:
        return view
    size = getattr(torch, view.dtype).itemsize
    strides = (*(s * size for s in view.strides), 1)
    return View(view.buffer, view.offset * size, (*view.shape, size), strides, "uint8")


def as_bytes(storage: Any) -> np.ndarray:
    """A storage's memory as uint8, shared."""
    size = storage.nbytes()
    if size == 0:
        return np.zeros(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(storage.data_ptr()))
