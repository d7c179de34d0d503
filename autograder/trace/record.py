"""One call of a host function as data: what it allocated, copied, launched and returned.

The function is called on dummy tensors of the right geometry. No kernel runs: launches are lowered
to IR and noted. This is the student's side; what it writes is a program that the judge runs on
inputs of its own, and believes in nothing else.
"""

from __future__ import annotations

import inspect
import linecache
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from types import FunctionType, TracebackType
from typing import Any

import torch
import triton
from torch.utils._python_dispatch import _disable_current_modes

from autograder.ir.hook import hooked
from autograder.records import CouldNotCheck, Launch, Rejected, Tensor, Trace, View
from autograder.trace.dummies import Values, dummy
from autograder.trace.lines import is_library
from autograder.trace.listen import Listen, Looks
from autograder.trace.pretend import pretend_card
from autograder.trace.rehearse import rehearse
from autograder.trace.tape import Execute, Tape

__all__ = ["record"]

MAX_OUTPUTS = 32  # that a solution may return


def record(
    function: Callable,
    arguments: Sequence[Any],
    *,
    backward: bool = False,
    config: int = 0,
    values: Values | None = None,
    execute: Execute | None = rehearse,
) -> Trace:
    """Call ``function(*arguments)``, for an autograd.Function its ``apply``, and note what it does.

    * ``arguments``: a ``Tensor`` (or a torch tensor) becomes a dummy tensor of its shape, dtype and
      strides, on a storage in which every row has its full stride; anything else is passed on.
    * ``backward``: all floating tensors require a gradient. Outputs are those of the call, then the
      gradient of every floating argument, for incoming gradients that are ``Input`` −1, −2 …
    * ``config``: which autotune configuration; ``Trace.configs`` says how many there are.
    * ``values``: contents of the dummies by index of the tensor argument, in the held types of
      their dtypes; random numbers where there are none.
    * ``execute(kernel, launch, memory)``: runs one launch on ``memory``, the bytes of all buffers
      by number, in place. It is used, on a second call, when the function looks at values
      (``.item()``, a self-check with ``assert``); with None such a look sees what happens to be
      in the dummies.

    Raises Rejected, one sentence for the student, if the call cannot be made or ends in an error,
    or if a kernel does not compile.
    """
    if isinstance(function, type) and issubclass(function, torch.autograd.Function):
        function = function.apply
    name = _name(function)
    _check_signature(name, function, arguments)
    call = _Call(function, name, tuple(arguments), backward, config, values)
    # Host code may have chosen its device outside, where no card was: then it wants CPU tensors.
    first: _Raised | None = None
    for pretend in (True, False):
        try:
            return call.record(pretend, execute)
        except _Raised as raised:
            first = first or raised
    raise Rejected(first.sentence, line=first.line) from None


class _Raised(Exception):
    """The student's function ended in an error; ``sentence`` tells it."""

    def __init__(self, sentence: str, line: int) -> None:
        super().__init__(sentence)
        self.sentence, self.line = sentence, line


@dataclass(frozen=True)
class _Call:
    function: Callable
    name: str
    arguments: tuple
    backward: bool
    config: int
    values: Values | None

    def record(self, pretend: bool, execute: Execute | None) -> Trace:
        """Without running kernels, and again with ``execute`` if the function looked at values."""
        tape = Tape()
        try:
            trace = self._attempt(tape, pretend)
        except _Raised:
            if execute is None or not tape.peeks:
                raise
        else:
            if execute is None or not tape.peeks:
                return trace
        return self._attempt(Tape(execute), pretend)

    def _attempt(self, tape: Tape, pretend: bool) -> Trace:
        """Call the function once. Raises _Raised for an error in the student's code."""
        actual, tensors = self._dummies()
        for index, tensor in enumerate(tensors):
            tape.input(tensor, index)
        with ExitStack() as stack:
            # Triton's looks at its arguments are no business of the modes below.
            quiet = torch._C.DisableTorchFunction
            hook = stack.enter_context(hooked(tape.launch, self.config, quiet))
            if pretend:
                tape.on_tensor = partial(
                    _warn_host, tape.warnings, stack.enter_context(pretend_card())
                )
            stack.enter_context(Looks(tape))
            stack.enter_context(Listen(tape))
            try:
                returned = self.function(*actual)
                outputs = self._outputs(tape, returned)
                if self.backward:
                    outputs += self._gradients(tape, returned, tensors)
            except CouldNotCheck:
                raise
            except Rejected as error:
                raise _placed(error) from None
            except (Exception, SystemExit) as error:
                raise self._raised(error, tape) from None
        return Trace(
            kernels=tuple(tape.kernels),
            events=tuple(tape.events),
            outputs=outputs,
            configs=hook.configs,
            warnings=tuple(dict.fromkeys((*tape.warnings, *hook.warnings))),
            triton=triton.__version__,
        )

    def _dummies(self) -> tuple[list, list[torch.Tensor]]:
        """The call's arguments, and the tensors among them."""
        actual, tensors = [], []
        for argument in self.arguments:
            if isinstance(argument, (Tensor, torch.Tensor)):
                argument = dummy(argument, len(tensors), self.values)
                if self.backward and argument.is_floating_point():
                    argument.requires_grad_()
                tensors.append(argument)
            actual.append(argument)
        return actual, tensors

    # ------------------------------------------------------------ what comes back

    def _outputs(self, tape: Tape, returned: Any) -> tuple[View | str, ...]:
        if not isinstance(returned, (tuple, list)):
            return (self._output(tape, returned, f"{self.name} returned"),)
        if not returned:
            return (f"{self.name} returned an empty {type(returned).__name__}.",)
        kind = type(returned).__name__
        if not any(item is None or isinstance(item, torch.Tensor) for item in returned):
            items = f"{len(returned)} item{'s' * (len(returned) != 1)}"
            return (
                f"{self.name} returned a {kind} of {items}, the first of them "
                f"{_a(returned[0])}, where a tensor is expected.",
            )
        if len(returned) > MAX_OUTPUTS:
            return (f"{self.name} returned a {kind} of {len(returned)} items; tensors are few.",)
        if len(returned) == 1:
            return (self._output(tape, returned[0], f"{self.name} returned"),)
        return tuple(
            self._output(tape, item, f"Output {i} of {self.name} is")
            for i, item in enumerate(returned)
        )

    @staticmethod
    def _output(tape: Tape, item: Any, subject: str) -> View | str:
        if item is None and not any(isinstance(event, Launch) for event in tape.events):
            return f"{subject} None, and no kernel was launched. Are the lines still to come?"
        if item is None:
            return f"{subject} None. Did you forget `return out`?"
        if not isinstance(item, torch.Tensor):
            return f"{subject} {_a(item)}, where a tensor is expected."
        with torch._C.DisableTorchFunction():
            if item.layout != torch.strided:
                return f"{subject} a tensor of layout {item.layout}; a dense one is expected."
            try:
                return tape.view(item)
            except CouldNotCheck:
                return f"{subject} a tensor of type {item.dtype}, which no kernel can make."

    def _gradients(self, tape: Tape, returned: Any, tensors: list[torch.Tensor]) -> tuple:
        """Run autograd for incoming gradients that the judge chooses, and note what comes back."""
        if returned is None:
            raise Rejected(
                f"{self.name} returned None: forward, or the function around .apply, lacks a "
                "`return`."
            )
        outputs = returned if isinstance(returned, (tuple, list)) else (returned,)
        outputs = [o for o in outputs if isinstance(o, torch.Tensor) and o.requires_grad]
        if not outputs:
            raise Rejected(
                f"No gradient flows through {self.name}: its result does not depend on its inputs "
                "as far as autograd knows. Call your autograd.Function with .apply(...)."
            )
        incoming = []
        for k, output in enumerate(outputs):
            with _disable_current_modes(), torch._C.DisableTorchFunction():
                like = Tensor(tuple(output.shape), str(output.dtype).removeprefix("torch."))
                incoming.append(dummy(like, len(tensors) + k, None))
            tape.input(incoming[-1], -1 - k)
        wanted = [i for i, tensor in enumerate(tensors) if tensor.requires_grad]
        found = torch.autograd.grad(
            outputs, [tensors[i] for i in wanted], incoming, allow_unused=True
        )
        return tuple(
            f"The gradient of tensor argument {i} is None: backward returns nothing for it."
            if gradient is None
            else self._output(tape, gradient, f"The gradient of tensor argument {i} is")
            for i, gradient in zip(wanted, found, strict=True)
        )

    # ------------------------------------------------------------ what went wrong

    def _raised(self, error: BaseException, tape: Tape) -> _Raised:
        """An error in the student's code as a sentence, with the student's own line."""
        text = f"{self.name} raised {type(error).__name__}"
        message = " ".join(str(error).split())[:200]
        if isinstance(error, SystemExit):
            text = f"{self.name} ended the program"
        elif message:
            text += f": {message}"
        line, place = _place(error.__traceback__)
        text += place
        if "Cannot call @triton.jit'd outside" in message:
            text += ": a kernel is launched with a grid, name[(programs,)](arguments)"
        if "'function' object is not subscriptable" in message:
            text += ": only a kernel can be launched with [grid], and the function in front of it "
            text += "has no @triton.jit above its def"
        if "saved_tensors" in _source(error.__traceback__):
            text += _of_saved(message)
        if tape.peeks and not tape.runs:
            peek = tape.peeks[0]
            text += (
                f". It had looked at a tensor's values ({peek.operation}, line {peek.line}); while "
                "a check records your function, its kernels have not run yet"
            )
        return _Raised(f"{text}.", line)


def _a(item: Any) -> str:
    """What a value is, with its article: ``a float``, ``an int``, ``a NumPy array``."""
    kind = {"ndarray": "NumPy array"}.get(type(item).__name__, type(item).__name__)
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def _placed(error: Rejected) -> Rejected:
    """Add the student's line to a sentence about a launch."""
    if error.line:
        return error
    error_line, place = _place(error.__traceback__)
    return Rejected(f"{str(error).rstrip('.')}{place}.", error.kind, error_line, error.kernel)


def _place(trace: TracebackType | None) -> tuple[int, str]:
    """The innermost line of the student's code, as a number and in words."""
    frames = [f for f in traceback.extract_tb(trace) if not is_library(f.filename)]
    if not frames:
        return 0, ""
    line = frames[-1].lineno or 0
    code = linecache.getline(frames[-1].filename, line).strip()
    return line, f" (line {line}: `{code}`)" if code else f" (line {line})"


def _source(trace: TracebackType | None) -> str:
    """The innermost of the student's functions as text, up to the line that raised."""
    frames = [f for f, _ in traceback.walk_tb(trace) if not is_library(f.f_code.co_filename)]
    if not frames:
        return ""
    code = frames[-1].f_code
    lines = linecache.getlines(code.co_filename)
    return "".join(lines[code.co_firstlineno - 1 : frames[-1].f_lineno])


def _of_saved(message: str) -> str:
    """What an error says where ``ctx.saved_tensors`` was taken for something else."""
    if "not tuple" in message or "'tuple' object" in message:
        return ": ctx.saved_tensors is a tuple, also of one tensor; (y,) = … takes that one out"
    if "values to unpack" in message:
        return ": ctx.saved_tensors holds what forward gave to ctx.save_for_backward, no more"
    return ""


def _warn_host(warnings: list[str], card: Any, tensor: torch.Tensor, argument: str) -> None:
    if card.on_host(tensor):
        warnings.append(
            f"The tensor for `{argument}` is made without `device=`, so on a GPU it would lie in "
            "the computer's memory, and Triton would refuse it: say device=x.device."
        )


def _name(function: Callable) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    owner = getattr(function, "__self__", None)
    return f"{owner.__name__}.{name}" if isinstance(owner, type) else name


def _check_signature(name: str, function: Callable, arguments: Sequence[Any]) -> None:
    """Raises Rejected if the function cannot be called with so many arguments."""
    if not callable(function):
        raise Rejected(f"{name} is not a function.")
    if type(function) is FunctionType and not vars(function):  # inspect would take its time
        code = function.__code__
        if code.co_argcount == len(arguments) and not code.co_kwonlyargcount:
            return
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # built in: the call itself will tell
    try:
        signature.bind(*arguments)
    except TypeError as error:
        given = ", ".join(map(_describe, arguments))
        line = getattr(getattr(function, "__code__", None), "co_firstlineno", 0)
        raise Rejected(
            f"The check calls {name}({given}), which does not fit {name}{signature}: {error}.",
            line=line,
        ) from None


def _describe(argument: Any) -> str:
    if isinstance(argument, (Tensor, torch.Tensor)):
        return f"tensor of shape {tuple(argument.shape)}"
    return repr(argument)
