"""Triton's own tutorials, read from a directory of their files.

They launch and measure while they are loaded: only definitions are taken, at their own lines.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import torch

from tests.others.cases import Case, compared, normal, pair


def loaded(path: Path) -> ModuleType:
    """The definitions of a tutorial: functions, classes, imports, and what is assigned without a
    call that hands something to a function of the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    kept = [node for node in tree.body if _defines(node, own)]
    spec = importlib.util.spec_from_file_location(f"tutorial_{path.stem.replace('-', '_')}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    for node in kept:  # what needs a library of a card that is not here is left undefined
        try:
            exec(compile(ast.Module([node], []), str(path), "exec"), vars(module))
        except Exception as error:
            print(f"{path.name}:{node.lineno} is passed over: {error}", file=sys.stderr)
    return module


def _defines(node: ast.stmt, own: set[str]) -> bool:
    if isinstance(node, ast.FunctionDef) and any(
        "perf_report" in ast.unparse(d) for d in node.decorator_list
    ):
        return False  # a benchmark
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
        return True
    if isinstance(node, ast.If):
        return "__name__" not in ast.unparse(node.test)
    if not isinstance(node, ast.Assign):
        return False
    calls = [n for n in ast.walk(node.value) if isinstance(n, ast.Call)]
    return not any(isinstance(c.func, ast.Name) and c.func.id in own and c.args for c in calls)


def cases(directory: Path) -> list[Case]:
    files = {
        path.name[:2]: path
        for path in sorted(directory.glob("[01][0-9]-*.py"))
        if "cpu" not in path.name
    }
    modules = {number: loaded(path) for number, path in files.items()}

    def add():
        x, y, out = normal(1000), normal(1000, seed=1), torch.empty(1000)
        modules["01"].add_kernel[(8,)](x, y, out, 1000, BLOCK_SIZE=128)
        return [pair("out", out, x.double() + y.double())]

    def softmax():
        return compared(
            modules["02"].softmax, lambda x: x.softmax(-1), (normal(70, 300),), 300, backward=False
        )

    def matmul():
        def reference(a, b):
            return torch.nn.functional.leaky_relu(a @ b, 0.01)

        call = lambda a, b: modules["03"].matmul(a, b, activation="leaky_relu")  # noqa: E731
        arguments = (
            normal(70, 90, dtype=torch.float16),
            normal(90, 50, seed=1, dtype=torch.float16),
        )
        return compared(call, reference, arguments, backward=False)

    def dropout():
        keep = (normal(1000, seed=1) > 0).to(torch.int32)
        return compared(
            lambda x: modules["04"].dropout(x, x_keep=keep, p=0.5),
            lambda x: torch.where(keep == 1, x / 0.5, 0.0),
            (normal(1000),),
            backward=False,
        )

    def seeded_dropout():
        """Which elements stay is Triton's choice; that they are x / (1 − p) is not, and twice the
        same seed stays the same."""
        x = normal(4000)
        first, again = (modules["04"].seeded_dropout(x, p=0.25, seed=123) for _ in range(2))
        want = torch.where(first != 0, x.double() / 0.75, 0.0)
        share = (first != 0).double().mean().view(1)
        spread = 4 * (0.25 * 0.75 / 4000) ** 0.5  # four standard deviations of a fair draw
        close = torch.where((share - 0.75).abs() < spread, 0.75, share)
        return [
            pair("out", first, want),
            pair("again", again, first),
            pair("share", close, torch.full((1,), 0.75)),
        ]

    def layer_norm():
        call = lambda x, w, b: modules["05"].layer_norm(x, (300,), w, b, 1e-5)  # noqa: E731
        reference = lambda x, w, b: torch.nn.functional.layer_norm(x, (300,), w, b, 1e-5)  # noqa: E731
        return compared(
            call, reference, (normal(70, 300), normal(300, seed=1), normal(300, seed=2)), 300
        )

    def attention(causal):
        def reference(q, k, v):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal, scale=0.5
            )

        call = lambda q, k, v: modules["06"].attention(q, k, v, causal, 0.5, False)  # noqa: E731
        arguments = [normal(1, 2, 256, 64, seed=i, dtype=torch.float16) / 2 for i in range(3)]
        return compared(call, reference, arguments, 256)

    def asin():
        x, out = normal(1000).tanh(), torch.empty(1000)
        modules["07"].asin_kernel[(8,)](x, out, 1000, BLOCK_SIZE=128)
        return [pair("out", out, x.double().asin())]

    def group(name, transposed):
        modules["08"].supports_tma = lambda: True  # descriptors need no card here
        half = torch.float16  # whole tiles: the kernel has no masks
        a = [normal(128, 64, dtype=half), normal(256, 128, seed=1, dtype=half)]
        b = [normal(64, 128, seed=2, dtype=half), normal(128, 256, seed=3, dtype=half)]
        given = [m.T.contiguous() for m in b] if transposed else b
        got = getattr(modules["08"], name)(a, given)
        return [
            pair(f"c{i}", c, x.double() @ y.double())
            for i, (c, x, y) in enumerate(zip(got, a, b, strict=True))
        ]

    def product(name, *options, transposed=True):
        def reference(a, b):
            return a @ (b.T if transposed else b)

        call = lambda a, b: getattr(modules["09"], name)(a, b, *options)  # noqa: E731
        shape = (200, 128) if transposed else (128, 200)
        arguments = (
            normal(150, 128, dtype=torch.float16),
            normal(*shape, seed=1, dtype=torch.float16),
        )
        return compared(call, reference, arguments, backward=False)

    def dependent_add():
        return compared(
            modules["11"].add,
            lambda x, y: x + y,
            (normal(3000), normal(3000, seed=1)),
            backward=False,
        )

    return [
        Case("01 add", add),
        Case("02 softmax", softmax),
        Case("03 matmul", matmul),
        Case("04 dropout", dropout),
        Case("04 seeded dropout", seeded_dropout),
        Case("05 layer norm", layer_norm),
        Case("06 attention", lambda: attention(False)),
        Case("06 attention, causal", lambda: attention(True)),
        Case("07 asin", asin),
        Case("08 group gemm", lambda: group("group_gemm_fn", False), ("grouped_matmul_kernel",)),
        Case(
            "08 group gemm, descriptors",
            lambda: group("group_gemm_tma_fn", True),
            ("grouped_matmul_tma_kernel",),
        ),
        Case("09 matmul", lambda: product("matmul", transposed=False)),
        Case("09 matmul, descriptors", lambda: product("matmul_tma", False)),
        Case("09 persistent", lambda: product("matmul_persistent", transposed=False)),
        Case("09 persistent, descriptors", lambda: product("matmul_tma_persistent", False)),
        Case(
            "09 persistent, device descriptors",
            lambda: product("matmul_descriptor_persistent", False),
        ),
        Case("11 dependent launch", dependent_add),
    ]
