"""What a host function does to tensors, as events: the ear on torch's dispatcher.

Allocations, fills, copies and views are data movement and become events that the judge can repeat.
What torch computes without looking at the inputs becomes constant bytes. Everything else that
depends on the inputs is ``Foreign``: values that torch computed and that earn nothing.

A buffer is one untyped storage. It is *tainted* once it may hold something that depends on the
inputs: an input, a target of a launch, a copy of either.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from autograder.floats import ITEMSIZE
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

# Caps of one recording; a course solution needs a hundredth of any of them.
MAX_EVENTS = 20_000
MAX_BYTES = 1 << 30
MAX_CONSTANT_BYTES = 16 << 20
MAX_KERNELS = 128

Execute = Callable[[Kernel, Launch, Mapping[int, np.ndarray]], None]

_EMPTY = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty"}
_EMPTY |= {"new_empty_strided", "empty_quantized"}
_FILLED = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "ones": 1, "ones_like": 1, "new_ones": 1}
_FULL = {"full", "full_like", "new_full"}  # their fill_value is an argument
_SHAPE_ONLY = {"rand_like", "randn_like", "randint_like"}  # look at the shape of their tensor only
_COPIES = {"clone", "_to_copy"}
# In-place changes of how a tensor looks at its storage; nothing is written.
_RELOOKS = {"set_", "resize_", "resize_as_", "as_strided_", "transpose_", "t_", "squeeze_"}
_RELOOKS |= {"unsqueeze_", "detach_", "swapaxes_", "swapdims_", "lift_fresh", "lift"}
_ASKS = {"is_pinned", "is_same_size", "size", "stride", "sym_size", "sym_stride", "sym_numel"}
_ASKS |= {"sym_storage_offset", "dim", "numel", "is_contiguous", "storage_offset", "record_stream"}

_TENSOR = torch.Tensor
_TAKES = {  # ways to a tensor's values that do not pass the dispatcher
    _TENSOR.tolist: "tolist()",
    _TENSOR.numpy: "numpy()",
    _TENSOR.__array__: "numpy.asarray()",
    _TENSOR.__dlpack__: "from_dlpack()",
}
_SHOWS = (_TENSOR.__repr__, _TENSOR.__format__)

_LIBRARIES = tuple(
    str(Path(root).resolve()) + "/"
    for root in {
        *(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        Path(torch.__file__).parent,
        Path(triton.__file__).parent,
        Path(__file__).parents[1],
    }
)


def is_library(file: str) -> bool:
    """Whether a frame's file is torch's, Triton's, Python's or ours rather than the student's."""
    return file.startswith(("<frozen", "<string>", "<__", *_LIBRARIES))


class Tape(TorchDispatchMode):
    """Records while it is entered. ``execute`` runs launches on the dummies; None: nothing runs."""

    def __init__(self, execute: Execute | None = None) -> None:
        super().__init__()
        self.events: list[Event] = []
        self.kernels: list[Kernel] = []
        self.warnings: list[str] = []
        self.peeks: list[Peek] = []
        self.on_launch: Callable[[torch.Tensor, str], None] = lambda tensor, argument: None
        self._execute = execute
        self._numbers: dict[int, int] = {}  # storage -> buffer
        self._storages: list[Any] = []  # by buffer; kept so that no address comes twice
        self._sizes: list[int] = []
        self._tainted: set[int] = set()
        self._stale: set[int] = set()  # constants whose bytes are not in the events yet
        self._constant_bytes = 0
        self._quiet = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch from importing its compiler for us, which takes as long as torch itself."""
        return False

    # ------------------------------------------------------------ buffers and views

    def input(self, tensor: torch.Tensor, index: int) -> None:
        """Register a tensor that comes from outside."""
        number = self._new(tensor.untyped_storage())
        view = self._look(tensor)
        self._emit(Input(number, self._sizes[number], index, view))
        self._tainted.add(number)

    def view(self, tensor: torch.Tensor) -> View:
        """A tensor as a window on its buffer, whose contents are in the events up to here.

        Raises CouldNotCheck for dtypes that kernels do not know.
        """
        self._settle(self._buffer(tensor))
        view = self._look(tensor)
        if view.dtype not in ITEMSIZE:
            raise CouldNotCheck(f"Tensors of type {view.dtype} cannot be checked.")
        return view

    def memory(self) -> dict[int, np.ndarray]:
        """The bytes of every buffer as they are now; writing to them writes to the tensors."""
        return {number: _bytes(storage) for number, storage in enumerate(self._storages)}

    def _look(self, tensor: torch.Tensor) -> View:
        return View(
            self._buffer(tensor),
            tensor.storage_offset(),
            tuple(tensor.shape),
            tuple(tensor.stride()),
            str(tensor.dtype).removeprefix("torch."),
        )

    def _buffer(self, tensor: torch.Tensor, fresh: bool = False) -> int:
        """The buffer of a tensor. One that was never seen holds what it holds: a constant."""
        storage = tensor.untyped_storage()
        number = self._numbers.get(storage._cdata)
        if number is not None and self._sizes[number] == storage.nbytes():
            return number
        old = number
        number = self._new(storage)
        self._emit(Allocate(number, self._sizes[number]))
        if old is not None:  # resized in place: what was there is still there
            self._carry(old, number)
        elif not fresh:
            self._stale.add(number)
        return number

    def _new(self, storage: Any) -> int:
        number = len(self._storages)
        self._numbers[storage._cdata] = number
        self._storages.append(storage)
        self._sizes.append(storage.nbytes())
        if sum(self._sizes) > MAX_BYTES:
            raise Rejected(f"The function allocates more than {MAX_BYTES >> 20} MB.")
        return number

    def _carry(self, old: int, new: int) -> None:
        """Move the contents of a buffer that was resized."""
        size = min(self._sizes[old], self._sizes[new])
        for taint in (self._tainted, self._stale):
            if old in taint:
                taint.add(new)
        if new not in self._stale and size:
            window = (0, (size,), (1,), "uint8")
            self._emit(Copy(View(new, *window), View(old, *window)))

    def _settle(self, number: int) -> None:
        """Put a constant's bytes into the events before something else needs them there."""
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
        self._emit(Constant(number, _bytes(self._storages[number]).tobytes()))

    def _emit(self, event: Event) -> None:
        if len(self.events) >= MAX_EVENTS:
            raise Rejected(
                f"The function does more than {MAX_EVENTS} operations on tensors and launches."
            )
        self.events.append(event)

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
            bindings = tuple(
                self._binding(value, name, kernel.name)
                for value, name in zip(values, kernel.parameters, strict=True)
            )
            launch = Launch(number, grid, bindings, _line())
            self._emit(launch)
            for binding in bindings:
                if isinstance(binding, (View, Descriptor)):
                    view = binding.view if isinstance(binding, Descriptor) else binding
                    self._tainted.add(view.buffer)
            if self._execute is not None:
                self._execute(kernel, launch, self.memory())

    def _binding(self, value: Any, name: str, kernel: str) -> Any:
        if isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, torch.Tensor):
            self.on_launch(value, name)
            return self.view(value)
        if hasattr(value, "block_shape"):
            base = self._binding(value.base, name, kernel)
            view = View(
                base.buffer,
                base.offset,
                tuple(int(n) for n in value.shape),
                tuple(int(n) for n in value.strides),
                base.dtype,
            )
            return Descriptor(view, tuple(value.block_shape), getattr(value, "padding", "zero"))
        if isinstance(value, triton.runtime.jit.TensorWrapper):
            view = self._binding(value.base, name, kernel)
            dtype = _TRITON_DTYPES.get(str(value.dtype))
            if dtype and ITEMSIZE[dtype] == ITEMSIZE[view.dtype]:
                return View(view.buffer, view.offset, view.shape, view.strides, dtype)
        raise Rejected(
            f"{kernel} got a {type(value).__name__} for `{name}`; a launch takes tensors and numbers."
        )

    # ------------------------------------------------------------ torch's operations

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self._quiet:
            return func(*args, **kwargs)
        custom = torch._library.custom_ops.OPDEFS.get(func._schema.name)
        if custom is not None:  # an operation of the student's own: listen inside
            with self:
                return custom._init_fn(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            return self._operation(func, args, kwargs)

    def _operation(self, func, args: tuple, kwargs: dict) -> Any:
        schema = func._schema
        name = schema.name.partition("::")[2]
        given = dict(zip((a.name for a in schema.arguments), args, strict=False)) | kwargs
        written = _tensors([given.get(a.name) for a in schema.arguments if _is_written(a)])
        read = _tensors([given.get(a.name) for a in schema.arguments if not a.is_out])
        opaque = any(not _has_storage(t) for t in (*read, *written))
        if name not in _RELOOKS and not opaque:
            for tensor in (*read, *written):
                self._buffer(tensor)
            for tensor in written:
                self._settle(self._buffer(tensor))
        depends = opaque or any(self._buffer(t) in self._tainted for t in read)
        result = func(*args, **kwargs)
        made = [t for t in _tensors(result) if _has_storage(t)]
        if name in _RELOOKS:
            return result
        new = [t for t in made if t.untyped_storage()._cdata not in self._numbers]
        new = list({t.untyped_storage()._cdata: t for t in new}.values())
        for tensor in new:
            self._buffer(tensor, fresh=True)
        if name in _EMPTY:
            pass
        elif (name in _FILLED or name in _FULL) and new:
            self._fill(made[0], given.get("fill_value", _FILLED.get(name)))
        elif name in ("fill_", "zero_") and _number(given.get("value", 0), self) is not None:
            self._fill(written[0], _number(given.get("value", 0), self))
        elif name in _COPIES and new and self._known(made[0], read[0]):
            self._copy(made[0], read[0])
        elif name == "copy_" and self._known(written[0], given["src"]):
            self._copy(written[0], given["src"].expand(written[0].shape))
        elif new or written:
            self._computed(name, new, written, depends and name not in _SHAPE_ONLY)
        elif not made and depends and name not in _ASKS:
            self.peek(_PEEKS.get(name, f"torch.{name}()"))
        return result

    def _fill(self, tensor: torch.Tensor, value: Any) -> None:
        if str(tensor.dtype).removeprefix("torch.") not in ITEMSIZE or isinstance(value, complex):
            self._computed("fill", [], [tensor], True)
        else:
            self._emit(Fill(self.view(tensor), value))

    def _copy(self, destination: torch.Tensor, source: torch.Tensor) -> None:
        view = self.view(source)
        self._emit(Copy(self.view(destination), view))
        if view.buffer in self._tainted:
            self._tainted.add(self._buffer(destination))

    def _known(self, *tensors: torch.Tensor) -> bool:
        return all(
            _has_storage(t) and str(t.dtype).removeprefix("torch.") in ITEMSIZE for t in tensors
        )

    def _computed(self, name: str, new: list, written: list, depends: bool) -> None:
        """Values that torch computed: foreign if they depend on the inputs, constants if not."""
        touched = [t for t in (*new, *written) if _has_storage(t)]
        if depends:
            for tensor in touched:
                self._settle(self._buffer(tensor))
                self._tainted.add(self._buffer(tensor))
            views = tuple(_as_known(self._look(t)) for t in touched)
            self._emit(Foreign(f"torch.{name}", views, _line()))
            return
        for tensor in touched:
            number = self._buffer(tensor)
            if number not in self._tainted:
                self._stale.add(number)
            elif self._known(tensor):  # a constant into a part of something that is none
                part = tensor.detach().clone(memory_format=torch.contiguous_format)
                self._copy(tensor, part)

    # ------------------------------------------------------------ the host looks at values

    def peek(self, operation: str) -> None:
        """The host read a value that depends on the inputs."""
        peek = Peek(operation, _line())
        self.peeks.append(peek)
        self._emit(peek)

    def look(self, func, args: tuple, kwargs: dict) -> Any:
        """A call that passes the dispatcher by, or that only shows a tensor."""
        if func in _SHOWS:
            self._quiet += 1
            try:
                return func(*args, **kwargs)
            finally:
                self._quiet -= 1
        if func in _TAKES and isinstance(args[0], torch.Tensor):
            with torch._C.DisableTorchFunction():
                if not _has_storage(args[0]) or self._buffer(args[0]) in self._tainted:
                    self.peek(_TAKES[func])
        return func(*args, **kwargs)


class Looks(TorchFunctionMode):
    """Tells the tape of looks at values that torch's dispatcher does not see."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self._tape = tape

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return self._tape.look(func, args, kwargs or {})


_PEEKS = {
    "_local_scalar_dense": ".item()",
    "is_nonzero": "bool(tensor)",
    "equal": "torch.equal()",
    "allclose": "torch.allclose()",
}
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


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _has_storage(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a strided window on memory (sparse and fake ones are not)."""
    if tensor.layout != torch.strided or tensor.device.type != "cpu":
        return False
    try:
        return tensor.untyped_storage().data_ptr() != 0 or tensor.untyped_storage().nbytes() == 0
    except (NotImplementedError, RuntimeError):
        return False


def _number(value: Any, tape: Tape) -> Any:
    """A fill value as a number; None for a tensor that depends on the inputs."""
    if not isinstance(value, torch.Tensor):
        return value
    if not _has_storage(value) or tape._buffer(value) in tape._tainted:
        return None
    return value.item()


def _as_known(view: View) -> View:
    """A view of a dtype that kernels do not know (complex …), as bytes."""
    if view.dtype in ITEMSIZE:
        return view
    size = getattr(torch, view.dtype).itemsize
    strides = (*(s * size for s in view.strides), 1)
    return View(view.buffer, view.offset * size, (*view.shape, size), strides, "uint8")


def _bytes(storage: Any) -> np.ndarray:
    """A storage's memory as uint8, shared."""
    size = storage.nbytes()
    if size == 0:
        return np.zeros(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(storage.data_ptr()))


def _line() -> int:
    """The line of the student's code that is running, 0 if there is none."""
    frame = sys._getframe(1)
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 0
