"""The ear on torch: every tensor operation of a host function, told to the tape.

Allocations, fills, copies and views are data movement and become events that the judge can repeat.
What torch computes without looking at the inputs becomes constant bytes. Everything else that
depends on the inputs is ``Foreign``: values that torch computed and that earn nothing. A view needs
no event, as a window says by itself where it lies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from autograder.trace.tape import Tape, has_storage, is_known, storage_key

__all__ = ["Listen", "Looks"]

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
_PEEKS = {
    "_local_scalar_dense": ".item()",
    "is_nonzero": "bool(tensor)",
    "equal": "torch.equal()",
    "allclose": "torch.allclose()",
}

_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
# The student's own operations (torch.library.custom_op, triton_op), by qualified name.
_CUSTOM = getattr(getattr(torch._library, "custom_ops", None), "OPDEFS", {})


class Listen(TorchDispatchMode):
    """Tells the tape of every operation below autograd, while it is entered."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self._tape = tape

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch from importing its compiler for us, which takes as long as torch itself."""
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self._tape.quiet:
            return func(*args, **kwargs)
        custom = _CUSTOM.get(func._schema.name)
        if custom is not None:  # it may launch and allocate: listen inside
            with self:
                return custom._init_fn(*args, **kwargs)
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), _COMPOSITE):
            # Made of other operations, and not taken apart yet (inference mode, custom operations).
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        with torch._C.DisableTorchFunction():
            return self._operation(func, args, kwargs)

    def _operation(self, func: Any, args: tuple, kwargs: dict) -> Any:
        tape, arguments = self._tape, func._schema.arguments
        name = func._schema.name.partition("::")[2]
        if name in _RELOOKS:
            return func(*args, **kwargs)
        given = dict(zip((a.name for a in arguments), args, strict=False)) | kwargs
        written = _tensors([given.get(a.name) for a in arguments if _is_written(a)])
        read = _tensors([given.get(a.name) for a in arguments if not a.is_out])
        depends = any(not has_storage(t) or tape.is_tainted(t) for t in read)
        if depends or name in ("copy_", "fill_", "zero_"):
            for tensor in filter(has_storage, written):
                tape.settle(tensor)
        result = func(*args, **kwargs)
        made = _tensors(result)
        new = {storage_key(t): t for t in filter(has_storage, made) if not tape.knows(t)}
        for tensor in new.values():
            tape.allocate(tensor)
        if name in _EMPTY:
            return result
        if (name in _FILLED or name in _FULL) and is_known(made[0]):
            tape.fill(made[0], given.get("fill_value", _FILLED.get(name)))
        elif name in ("fill_", "zero_") and is_known(written[0]) and self._is_number(given):
            value = given.get("value", 0)
            tape.fill(written[0], value.item() if isinstance(value, torch.Tensor) else value)
        elif name in _COPIES and new and is_known(made[0], read[0]):
            tape.copy(made[0], read[0])
        elif name == "copy_" and is_known(written[0], given["src"]):
            tape.copy(written[0], given["src"].expand(written[0].shape))
        elif new or written or not all(map(has_storage, made)):
            touched = list(filter(has_storage, (*new.values(), *written)))
            if depends and name not in _SHAPE_ONLY:
                tape.foreign(f"torch.{name.lstrip('_')}", touched)
            else:
                tape.constant(touched)
        elif not made and depends and name not in _ASKS:
            tape.peek(_PEEKS.get(name, f"torch.{name}()"))
        return result

    def _is_number(self, given: dict) -> bool:
        """Whether the value of a fill is the same for all inputs."""
        value = given.get("value", 0)
        if isinstance(value, torch.Tensor):
            return has_storage(value) and not self._tape.is_tainted(value)
        return not isinstance(value, complex)


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


# ---------------------------------------------------------------- past the dispatcher

_TENSOR = torch.Tensor
_TAKES: dict[Callable, str] = {
    _TENSOR.tolist: "tolist()",
    _TENSOR.numpy: "numpy()",
    _TENSOR.__array__: "numpy.asarray()",
    _TENSOR.__dlpack__: "from_dlpack()",
}
_SHOWS = (_TENSOR.__repr__, _TENSOR.__format__)


class Looks(TorchFunctionMode):
    """Tells the tape of looks at values that torch's dispatcher does not see.

    Printing a tensor is not one: it runs many operations, none of which can change a result.
    """

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self._tape = tape

    def __torch_function__(self, func, types, args=(), kwargs=None):
        tape, kwargs = self._tape, kwargs or {}
        if func in _SHOWS:
            with tape.silence():
                return func(*args, **kwargs)
        if func is _TENSOR.data_ptr:
            tape.addressed(args[0])
        if func in _TAKES and isinstance(args[0], torch.Tensor):
            with torch._C.DisableTorchFunction():
                if not has_storage(args[0]) or tape.is_tainted(args[0]):
                    tape.peek(_TAKES[func])
                else:  # the array may be written to: take its bytes when they are next needed
                    tape.constant(args[:1])
        return func(*args, **kwargs)
