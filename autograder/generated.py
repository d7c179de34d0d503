"""For lessons: the Triton kernels that torch.compile writes for a card, with no card there.

Inductor, torch.compile's code generator, asks the driver what card it writes for; here
``trace.pretend`` answers as an RTX 4080. The text is generated on every call, and nothing of it is
run here: ``autograder.interpret`` and ``autograder.compiled.facts_of`` take ``Generated.kernel``.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
import triton

from autograder.records import CouldNotCheck
from autograder.trace.pretend import card_answers

__all__ = ["Generated", "generated"]

_KERNEL = re.compile(r"async_compile\.triton\('(\w+)', '''\n(.*?)'''", re.S)
_IMPORTS = """import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math
"""


@dataclass(frozen=True)
class Generated:
    """One kernel that inductor wrote.

    * ``name``: the kernel's; ``source``: its Python text, from ``@triton.jit`` on;
    * ``call``: the line of the generated host code that launches it;
    * ``kernel``: the text as a kernel of Triton. Sizes of blocks are free: on a card inductor
      chooses them when it runs.
    """

    name: str
    source: str
    call: str
    kernel: Any


def generated(function: Callable, *inputs: torch.Tensor) -> tuple[Generated, ...]:
    """The kernels that torch.compile makes of ``function(*inputs)``, in the order of their launch.

    ``inputs`` lend their shapes, strides and types; ``function`` returns a tensor and changes none
    in place. Raises CouldNotCheck where this torch generates code in another way.
    """
    text = _source(function, inputs)
    found = _KERNEL.findall(text)
    if not found:
        raise CouldNotCheck(
            f"torch {torch.__version__} wrote no Triton kernel for {function.__name__}."
        )
    kernels = []
    for name, module in found:
        source = module[module.index("@triton.jit") :].strip() + "\n"
        call = re.search(rf"^ *({name}\.run\(.*\))$", text, re.M)
        kernels.append(Generated(name, source, call[1] if call else "", _loaded(name, source)))
    return tuple(kernels)


def _source(function: Callable, inputs: tuple[torch.Tensor, ...]) -> str:
    """Inductor's module for ``function``: the graph by tracing on tensors without contents, its
    passes over the graph, then the code for an RTX 4080."""
    from torch._dynamo.device_interface import CudaInterface
    from torch._inductor.compile_fx import (
        _recursive_joint_graph_passes,
        _recursive_post_grad_passes,
        record_original_output_strides,
    )
    from torch._inductor.debug import DebugContext
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    with ExitStack() as stack:
        stack.enter_context(card_answers())
        # It took its functions from torch.cuda when it was imported.
        for owner in (CudaInterface, CudaInterface.Worker):
            names = ("get_device_properties", "current_device", "get_compute_capability")
            for name in (n for n in names if n in vars(owner)):
                answer = {
                    "get_device_properties": torch.cuda.get_device_properties,
                    "current_device": torch.cuda.current_device,
                    "get_compute_capability": lambda device=None: _capability(),
                }[name]
                stack.enter_context(mock.patch.object(owner, name, staticmethod(answer)))
        tensors = FakeTensorMode()
        with tensors:
            empty = [
                torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="cuda")
                for x in inputs
            ]
            module = make_fx(function, decomposition_table=select_decomp_table())(*empty)
        output = module.graph.output_node()  # what the caller sees keeps its strides
        output.meta["user_visible_output_idxs"] = list(range(len(output.all_input_nodes)))
        record_original_output_strides(module)
        with V.set_fake_mode(tensors):
            _recursive_joint_graph_passes(module, input_device=torch.device("cpu"))
            _recursive_post_grad_passes(module)
            graph = GraphLowering(module, example_inputs=empty)
            with V.set_graph_handler(graph), V.set_debug_handler(DebugContext()):
                graph.run(*empty)
                code, _ = graph.codegen()
    return code if isinstance(code, str) else code.value


def _capability() -> int:
    major, minor = torch.cuda.get_device_capability()
    return 10 * major + minor


def _loaded(name: str, source: str) -> Any:
    """The kernel of this text; its lines are kept where Python's ``inspect`` looks for them."""
    text = _IMPORTS + source
    page = f"<generated {name}>"
    linecache.cache[page] = (len(text), None, text.splitlines(True), page)
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, page, "exec"), names)
    kernel = names[name]
    assert isinstance(kernel, triton.JITFunction)
    return kernel
