"""One call of a host function as data: what it allocated, copied, launched and returned.

The function is called once on dummy tensors of the right geometry. No kernel runs: launches are
lowered to IR and noted. This is the student's side; what it writes is a program that the judge
runs on inputs of its own, and believes in nothing else.
"""

from __future__ import annotations

import contextlib
import inspect
import linecache
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import triton

from autograder.ir.hook import hooked
from autograder.records import CouldNotCheck, Peek, Rejected, Tensor, Trace, View
from autograder.trace.pretend import pretend_card
from autograder.trace.tape import Execute, Looks, Tape, is_library

__all__ = ["record"]

Values = Mapping[int, np.ndarray] | Sequence[np.ndarray]


def record(
    function: Callable,
    arguments: Sequence[Any],
    *,
    backward: bool = False,
    config: int = 0,
    values: Values | None = None,
    execute: Execute | None = None,
) -> Trace:
    """Call ``function(*arguments)`` and note what it does.

    * ``arguments``: a ``Tensor`` becomes a dummy tensor of that shape, dtype and strides (elements;
      storage padded so that every row has its full stride); anything else is passed on.
    * ``backward``: all floating tensors require a gradient. Outputs are those of the call, then the
      gradient of every floating argument, for incoming gradients that are ``Input`` −1, −2 …
    * ``config``: which autotune configuration; ``Trace.configs`` says how many there are.
    * ``values``: contents of the dummies by index of the tensor argument, in the held types of
      their dtypes; random numbers where there are none.
    * ``execute(kernel, launch, memory)``: runs one launch on ``memory``, the bytes of all buffers
      by number, in place. It is used when the function looks at values (``.item()``, a self-check
      with ``assert``); without it such a look sees what is in the dummies.

    Raises Rejected, one sentence for the student, if the call cannot be made or ends in an error,
    or if a kernel does not compile.
    """
    name = _name(function)
    _check_signature(name, function, arguments)
    call = _Call(function, name, tuple(arguments), backward, config, values)
    # Host code may have chosen its device outside: without a card it then expects CPU tensors.
    errors: list[_Raised] = []
    for pretend in (True, False):
        try:
            tape, trace = call.attempt(pretend, None)
            if execute is not None and tape.peeks:
                tape, trace = call.attempt(pretend, execute)
            return trace
        except _Raised as raised:
            errors.append(raised)
        if execute is not None and errors[-1].peeks and not errors[-1].executed:
            try:
                return call.attempt(pretend, execute)[1]
            except _Raised as raised:
                errors[-1] = raised
    raise Rejected(errors[0].sentence) from None


class _Raised(Exception):
    """The student's function ended in an error; ``sentence`` tells it."""

    def __init__(self, sentence: str, peeks: list[Peek], executed: bool) -> None:
        super().__init__(sentence)
        self.sentence, self.peeks, self.executed = sentence, peeks, executed


@dataclass(frozen=True)
class _Call:
    function: Callable
    name: str
    arguments: tuple
    backward: bool
    config: int
    values: Values | None

    def attempt(self, pretend: bool, execute: Execute | None) -> tuple[Tape, Trace]:
        """Record once. Raises _Raised for an error in the student's code."""
        actual, dummies = self._dummies()
        tape = Tape(execute)
        for index, dummy in enumerate(dummies):
            tape.input(dummy, index)
        with contextlib.ExitStack() as stack:
            hook = stack.enter_context(hooked(tape.launch, self.config))
            card = stack.enter_context(pretend_card()) if pretend else None
            if card is not None:
                tape.on_launch = lambda tensor, argument: self._warn_host(
                    tape, card, tensor, argument
                )
            stack.enter_context(Looks(tape))
            stack.enter_context(tape)
            try:
                returned = self.function(*actual)
                outputs = self._outputs(tape, returned)
                if self.backward:
                    outputs += self._gradients(tape, returned, dummies)
            except (Rejected, CouldNotCheck):
                raise
            except (Exception, SystemExit) as error:
                sentence = self._sentence(error, tape.peeks if execute is None else [])
                raise _Raised(sentence, tape.peeks, execute is not None) from None
        trace = Trace(
            kernels=tuple(tape.kernels),
            events=tuple(tape.events),
            outputs=outputs,
            configs=hook.configs,
            warnings=tuple(dict.fromkeys((*tape.warnings, *hook.warnings))),
            triton=triton.__version__,
        )
        return tape, trace

    # ------------------------------------------------------------ what goes in

    def _dummies(self) -> tuple[list, list[torch.Tensor]]:
        """The call's arguments, and the tensors among them."""
        actual, dummies = [], []
        for argument in self.arguments:
            if isinstance(argument, Tensor):
                dummy = _dummy(argument, len(dummies), self.values)
                if self.backward and dummy.is_floating_point():
                    dummy.requires_grad_()
                dummies.append(dummy)
                argument = dummy
            actual.append(argument)
        return actual, dummies

    def _warn_host(self, tape: Tape, card: Any, tensor: torch.Tensor, argument: str) -> None:
        if card.on_host(tensor):
            tape.warnings.append(
                f"The tensor for `{argument}` is made without `device=`, so on a GPU it would lie in "
                "the computer's memory, and Triton would refuse it: say device=x.device."
            )

    # ------------------------------------------------------------ what comes back

    def _outputs(self, tape: Tape, returned: Any) -> tuple[View | str, ...]:
        if isinstance(returned, (tuple, list)):
            if not returned:
                return (f"{self.name} returned an empty {type(returned).__name__}.",)
            many = len(returned) > 1
            return tuple(
                self._output(tape, item, f"output {i} of {self.name}" if many else self.name)
                for i, item in enumerate(returned)
            )
        return (self._output(tape, returned, self.name),)

    def _output(self, tape: Tape, item: Any, who: str) -> View | str:
        verb = "is" if who.startswith("output") else "returned"
        who = who[0].upper() + who[1:] if verb == "is" else who
        if item is None:
            return f"{who} {verb} None. Did you forget `return out`?"
        if not isinstance(item, torch.Tensor):
            kind = type(item).__name__
            return f"{who} {verb} {_article(kind)} {kind} where a tensor is expected."
        with torch._C.DisableTorchFunction():
            if item.layout != torch.strided:
                return f"{who} {verb} a tensor of layout {item.layout}; a dense one is expected."
            try:
                return tape.view(item)
            except CouldNotCheck:
                return f"{who} {verb} a tensor of type {item.dtype}, which no kernel can make."

    def _gradients(self, tape: Tape, returned: Any, dummies: list[torch.Tensor]) -> tuple:
        """Run autograd for incoming gradients that the judge chooses, and note what comes back."""
        outputs = returned if isinstance(returned, (tuple, list)) else (returned,)
        outputs = [o for o in outputs if isinstance(o, torch.Tensor) and o.requires_grad]
        if not outputs:
            raise Rejected(
                f"No gradient can flow through {self.name}: its result does not depend on its "
                "inputs as far as autograd knows. Call your autograd.Function with .apply(...)."
            )
        incoming = []
        for k, output in enumerate(outputs):
            with torch.utils._python_dispatch._disable_current_modes():
                like = Tensor(tuple(output.shape), str(output.dtype).removeprefix("torch."))
                incoming.append(_dummy(like, len(dummies) + k, None))
            tape.input(incoming[-1], -1 - k)
        wanted = [d for d in dummies if d.requires_grad]
        found = torch.autograd.grad(outputs, wanted, incoming, allow_unused=True)
        return tuple(
            f"The gradient of tensor argument {i} is None: backward returns nothing for it."
            if gradient is None
            else self._output(tape, gradient, f"the gradient of tensor argument {i}")
            for i, gradient in enumerate(found)
        )

    # ------------------------------------------------------------ what went wrong

    def _sentence(self, error: BaseException, peeks: list[Peek]) -> str:
        """One sentence for an error in the student's code, with the student's own line."""
        if isinstance(error, SystemExit):
            text = f"{self.name} ended the program (exit)"
        else:
            message = " ".join(str(error).split())[:200]
            text = f"{self.name} raised {type(error).__name__}" + (
                f": {message}" if message else ""
            )
        frames = [
            f for f in traceback.extract_tb(error.__traceback__) if not is_library(f.filename)
        ]
        if frames:
            line = frames[-1].lineno or 0
            code = linecache.getline(frames[-1].filename, line).strip()
            text += f" (line {line}" + (f": `{code}`)" if code else ")")
        text += _ADVICE.get(_kind(error), ".")
        if peeks:
            text += (
                f" It looked at a tensor's values before, with {peeks[0].operation} in line "
                f"{peeks[0].line}: while a check records your function its kernels have not run yet."
            )
        return text


_ADVICE = {
    "no grid": ". A kernel is launched with a grid: name[(programs,)](arguments).",
}


def _kind(error: BaseException) -> str:
    return "no grid" if "Cannot call @triton.jit'd outside" in str(error) else ""


def _name(function: Callable) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    owner = getattr(function, "__self__", None)
    return f"{owner.__name__}.{name}" if isinstance(owner, type) else name


def _check_signature(name: str, function: Callable, arguments: Sequence[Any]) -> None:
    """Raises Rejected if the function cannot be called with so many arguments."""
    if not callable(function):
        raise Rejected(f"{name} is no function that could be called.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # built in: the call itself will tell
    try:
        signature.bind(*arguments)
    except TypeError as error:
        given = ", ".join(_describe(a) for a in arguments)
        raise Rejected(
            f"{name}{signature} does not fit the call {name}({given}): {error}."
        ) from None


def _describe(argument: Any) -> str:
    if isinstance(argument, Tensor):
        return f"tensor{list(argument.shape)}"
    return repr(argument)


def _article(noun: str) -> str:
    return "an" if noun[0].lower() in "aeiou" else "a"


def _dummy(tensor: Tensor, index: int, values: Values | None) -> torch.Tensor:
    """A tensor of this geometry on a storage in which every row has its full stride."""
    dtype = getattr(torch, tensor.dtype)
    strides = tensor.strides
    if strides is None:
        strides = torch.empty(tensor.shape, device="meta").stride()
    cells = 0
    if 0 not in tensor.shape:
        reach = [n * s for n, s in zip(tensor.shape, strides, strict=True)]
        cells = max(
            [1 + sum((n - 1) * s for n, s in zip(tensor.shape, strides, strict=True)), *reach]
        )
    dummy = torch.zeros(cells * dtype.itemsize, dtype=torch.uint8).view(dtype)
    dummy = dummy.as_strided(tensor.shape, strides)
    try:
        given = None if values is None else values[index]
    except (KeyError, IndexError):
        given = None
    if given is None:
        generator = np.random.default_rng(index)
        block = generator.standard_normal(min(dummy.numel(), 1 << 16))
        if not dtype.is_floating_point:
            block = generator.integers(0, 8, block.size)
        given = np.resize(block, tensor.shape)
    if dummy.numel():
        dummy.copy_(torch.from_numpy(np.ascontiguousarray(given)))
    return dummy
