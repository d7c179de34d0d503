"""No name of triton.language or libdevice is forgotten, and what is refused is refused by name."""

import re
from pathlib import Path
from types import ModuleType

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice

from autograder.checking import inspect_call
from autograder.ir.ops_libdevice import LIBDEVICE, REFUSED
from autograder.records import CouldNotCheck
from tests.kernels import language, operation_dots, operation_library, operation_memory  # noqa: F401
from tests.kernels.operation_blocks import SAMPLES
from tests.kernels.operation_tables import groups

# Submodules appear once somebody has imported them, so they are left out: they are no operations.
PUBLIC = {
    n for n in dir(tl) if not n.startswith("_") and not isinstance(getattr(tl, n), ModuleType)
}
# Called by the conversions of operation_casts, which are no samples.
CONVERSIONS = {"cast"}


def called() -> tuple[set[str], set[str]]:
    """Names of triton.language and of libdevice that kernels of the tables call."""
    language_ = {name for sample in SAMPLES for name in sample.covers} | CONVERSIONS
    device = set()
    for _, entries, _, _ in groups():
        for entry in entries:
            home = getattr(entry.function, "__module__", "")
            names = device if home.endswith("libdevice") else language_
            names.add(entry.function.__name__)
            source = getattr(entry.function, "src", "")
            language_.update(re.findall(r"\btl\.(\w+)\(", source))
    return language_, device


def test_every_name_stands_in_the_table():
    assert sorted(PUBLIC - language.NAMES.keys()) == []


def test_what_is_called_interpreted_is_run():
    interpreted = {n for n, kind in language.NAMES.items() if kind == "interpreted"}
    assert sorted((interpreted & PUBLIC) - called()[0]) == []


def test_every_function_of_libdevice_is_run_or_refused():
    names = {n for n, f in vars(libdevice).items() if hasattr(f, "__triton_builtin__")}
    assert len(names) > 190
    assert sorted(names - called()[1] - language.LIBDEVICE.keys()) == []


def test_every_symbol_of_libdevice_is_in_the_interpreters_table():
    symbols = set(re.findall(r'"__nv_(\w+)"', Path(libdevice.__file__).read_text()))
    assert sorted(symbols - LIBDEVICE.keys() - REFUSED.keys()) == []


@triton.jit
def scaled(a_ptr, s_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    a = tl.load(a_ptr + at)
    s = tl.load(s_ptr + i[:, None] * (N // 32) + tl.arange(0, N // 32)[None, :])
    tl.store(out_ptr + at, tl.dot_scaled(a, s, "e5m2", a, s, "e5m2"))


@triton.jit
def assembly(a_ptr, s_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(out_ptr + i)
    b = tl.inline_asm_elementwise("neg.f32 $0, $1;", "=r,r", [a], tl.float32, is_pure=True, pack=1)
    tl.store(out_ptr + i, b)


@triton.jit
def guessed(a_ptr, s_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, libdevice.rcp64h(i.to(tl.float64)).to(tl.float32))


@pytest.mark.parametrize(
    "kernel, said", [(scaled, "tt.dot_scaled"), (assembly, "inline assembly"), (guessed, "rcp64h")]
)
def test_what_is_refused_is_refused_by_name(kernel, said):
    def run(a, s, out):
        kernel[(1,)](a, s, out, N=64)
        return out

    a, s = torch.zeros(64, 64, dtype=torch.uint8), torch.zeros(64, 2, dtype=torch.uint8)
    with pytest.raises(CouldNotCheck, match=said):
        inspect_call(run, a, s, torch.zeros(64, 64))
