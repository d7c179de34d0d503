"""Compile proof: what Triton's compiler and ptxas say about a kernel for a card that is not here.

The compiler runs in a child process: MLIR, LLVM or ptxas may abort on a strange kernel, and a
student's notebook has to survive that; in grading, hostile IR must not meet them in the judge. The
child reads one JSON request on stdin and writes one line of JSON a kernel:

    echo '{"cc": 89, "kernels": [{"ir": "...", "options": {"num_warps": 4}}]}' \
        | python -m autograder.ir.compile

Answers hold integers and short failures only and are read strictly, so that whatever the child
became, nothing worse than a wrong number reaches the caller. Answers are cached on disk.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from autograder.ir import compile_answers, ptx
from autograder.ir.cards import DEFAULT, Card, card
from autograder.records import CompileFacts, CouldNotCheck, Kernel

__all__ = ["compile_all", "compile_facts", "run_child", "run_here", "triton_version"]

_OPTIONS = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": None}  # Triton's defaults
_THREADS_PER_BLOCK = 1024  # CUDA C++ Programming Guide, every compute capability of the table
_MARK = (
    "\0"  # the child writes it to stderr before each kernel, so that complaints can be told apart
)

# What the child gets of ours: TRITON_INTERPRET, dump, override and optimiser settings that a
# student made must not steer the proof.
_ENVIRONMENT = (
    *("PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH"),
    *("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH", "TRITON_LIBDEVICE_PATH"),
)

Runner = Callable[[Sequence[str], bytes], tuple[int, bytes, bytes]]


# ------------------------------------------------------------------------ asked by the caller


def compile_facts(
    kernel: Kernel, on: Card | str = DEFAULT, *, run: Runner | None = None
) -> CompileFacts:
    """What the compiler says about one ``kernel`` for the card ``on`` (a name or a row).

    ``kernel.ir`` is TTIR text, not yet optimised, whose pointer arguments carry their divisibility
    (without it no wide load appears); ``kernel.options`` may hold num_warps, num_stages, num_ctas.
    Returns ``CompileFacts``; ``error`` is empty or ends the sentence that begins with the kernel's
    name. ``shared`` counts bytes a block, ``spills`` bytes a thread that ptxas stores to local
    memory for want of registers (no error: slow, not wrong).

    Raises ``CouldNotCheck`` when Triton is missing or the child died for a reason of its own.
    """
    return compile_all([kernel], on, run=run)[0]


def compile_all(
    kernels: Sequence[Kernel], on: Card | str = DEFAULT, *, run: Runner | None = None
) -> tuple[CompileFacts, ...]:
    """``compile_facts`` of several kernels, with one child for all that are not in the cache.

    ``run(argv, request) -> (exit status, stdout, stderr)`` starts the child; pass one that uses a
    sandbox and limits where the IR is not trusted. Status is negative for a signal, as in
    ``subprocess``.
    """
    row = card(on) if isinstance(on, str) else on
    requests = [
        {"ir": _without_locations(kernel.ir), "options": _options(kernel.options)}
        for kernel in kernels
    ]
    entries = [compile_answers.entry(request, row.cc, triton_version()) for request in requests]
    answers = [compile_answers.kept(entry) for entry in entries]
    missing = [i for i, answer in enumerate(answers) if answer is None]
    while missing:
        fresh = _ask([requests[i] for i in missing], row.cc, run or run_child)
        for i, answer in zip(missing, fresh, strict=False):
            answers[i] = answer
            compile_answers.keep(entries[i], answer)
        missing = missing[len(fresh) :]
    return tuple(
        _facts(kernel, row, request["options"], answer)
        for kernel, request, answer in zip(kernels, requests, answers, strict=True)
    )


def _options(given: Mapping[str, int | None]) -> dict[str, int]:
    """Triton's defaults and what was ``given`` of the options that change the machine code."""
    chosen = {name: given.get(name, default) for name, default in _OPTIONS.items()}
    return {name: int(value) for name, value in chosen.items() if value is not None}


def _without_locations(ir: str) -> str:
    """Lines and variable names cost nothing in the cubin; without them an edit elsewhere in the
    notebook does not compile the same kernel again."""
    ir = re.sub(r"^#loc\d* = loc\(.*\)\n", "", ir, flags=re.M)
    return re.sub(r' loc\((?:[^()"\n]|"(?:[^"\\\n]|\\.)*"|\([^()\n]*\))*\)', "", ir)


def _facts(kernel: Kernel, row: Card, options: dict, answer: dict) -> CompileFacts:
    error = ""
    if "failure" in answer:
        error = _sentence(answer["failure"], answer["detail"], row, options)
    elif answer["shared"] > row.shared_per_block:
        error = (
            f"{kernel.name} needs {answer['shared']} bytes of shared memory a block, the "
            f"{row.name} has {row.shared_per_block}: use smaller tiles or fewer stages."
        )
    return CompileFacts(
        kernel=kernel.name,
        card=row.name,
        shared=answer.get("shared", 0),
        shared_limit=row.shared_per_block,
        registers=answer.get("registers", 0),
        spills=answer.get("spills", 0),
        instructions=dict(answer.get("instructions", {})),
        num_warps=answer.get("num_warps", options["num_warps"]),
        error=error,
    )


def _sentence(failure: str, detail: str, row: Card, options: dict) -> str:
    """The end of a sentence that begins with the kernel's name."""
    cc = f"{row.cc // 10}.{row.cc % 10}"
    warps = options["num_warps"]
    match failure:
        case "threads":
            return (
                f"asks for {32 * warps} threads a block (num_warps={warps}), and a card takes at "
                f"most {_THREADS_PER_BLOCK}: num_warps={_THREADS_PER_BLOCK // 32} or fewer"
            )
        case "clusters":
            return (
                f"asks for num_ctas={options['num_ctas']}, and the {row.name} (cc {cc}) has no "
                "block clusters, which begin with cc 9.0: num_ctas=1"
            )
        case "fp8":
            return (
                f"computes in float8_e4m3fn, which the {row.name} (cc {cc}) cannot convert: that "
                "begins with cc 8.9; float8_e5m2 works from 8.0 on"
            )
        case "registers":
            return (
                "needs more registers than a thread may have, even with spilling: smaller tiles "
                "or more warps"
            )
        case "ptxas":
            return f"is refused by NVIDIA's assembler for the {row.name} (cc {cc}): {detail}"
        case "crash":
            return f"crashes Triton's compiler for the {row.name} (cc {cc}): {detail}"
    return f"does not compile for the {row.name} (cc {cc}): {detail}"


# ------------------------------------------------------------------------ the child, from outside


@functools.cache
def triton_version() -> str:
    """The version of the installed Triton. Raises ``CouldNotCheck`` where there is none."""
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        pass  # builds that come under another name carry their version only inside
    try:
        import triton
    except ImportError as error:
        raise CouldNotCheck(
            "Triton is not installed here, so nothing can be compiled: it needs Linux and "
            "`pip install -r requirements.txt`."
        ) from error
    return triton.__version__


def run_child(argv: Sequence[str], request: bytes) -> tuple[int, bytes, bytes]:
    """Start ``argv`` beside us, feed it ``request``, wait at most ten minutes."""
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    root = Path(__file__).parents[2]  # so that a file `triton.py` beside a notebook is not imported
    try:
        done = subprocess.run(
            argv, input=request, capture_output=True, cwd=root, env=environment, timeout=600
        )
    except subprocess.TimeoutExpired as error:
        raise CouldNotCheck("Triton's compiler was stopped after ten minutes.") from error
    return done.returncode, done.stdout, done.stderr


def _ask(requests: list[dict], cc: int, run: Runner) -> list[dict]:
    """The answers to the first of ``requests``: to all of them, or up to the one that killed the
    child, which is then the last answer."""
    argv = [sys.executable, "-m", "autograder.ir.compile"]
    request = json.dumps({"cc": cc, "kernels": requests}).encode()
    status, out, err = run(argv, request)
    lines = out.split(b"\n")[:-1][: len(requests)]  # a last line without its end was cut off
    try:
        answers = [compile_answers.read(line) for line in lines]
    except ValueError as error:
        raise CouldNotCheck(f"The compiler's child process answered nonsense: {error}.") from error
    complaints = err.decode(errors="replace").split(_MARK)
    if len(answers) < len(requests):
        if status not in (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL):
            last = compile_answers.short(complaints[-1].strip().split("\n")[-1])
            raise CouldNotCheck(f"The compiler's child process ended with status {status}: {last}")
        answers.append({"failure": "crash", "detail": f"signal {-status}"})
    for i, answer in enumerate(answers):
        if answer.get("failure") in ("compiler", "crash") and i + 1 < len(complaints):
            answers[i] = _explained(answer, complaints[i + 1])
    return answers


def _explained(answer: dict, complaint: str) -> dict:
    """The failure with the reason that MLIR or LLVM wrote to stderr, where it wrote one."""
    # Not only at the beginning: Triton 3.9 warns of its options first.
    reasons = re.findall(r"(?:^LLVM ERROR: |Assertion |\berror: )(.+)", complaint, re.M)
    if not reasons:
        return answer
    if "f8e4m3nv is only supported" in reasons[0]:
        return {"failure": "fp8", "detail": ""}
    return {**answer, "detail": compile_answers.short(reasons[0])}


# ------------------------------------------------------------------------ the child, from inside


def _compile(ir: str, cc: int, options: dict[str, int]) -> dict:
    """Run every stage of Triton's CUDA backend on ``ir`` and read off the facts.

    Raises CouldNotCheck where this machine, not the kernel, keeps it from that.
    """
    if 32 * options["num_warps"] > _THREADS_PER_BLOCK:
        return {"failure": "threads", "detail": ""}
    if options["num_ctas"] > 1 and cc < 90:
        return {"failure": "clusters", "detail": ""}

    from triton import knobs
    from triton._C.libtriton import ir as mlir
    from triton.backends.compiler import GPUTarget, Language
    from triton.compiler import make_backend
    from triton.runtime.errors import PTXASError

    backend = make_backend(GPUTarget("cuda", cc, 32))
    context = mlir.context()
    mlir.load_dialects(context)
    backend.load_dialects(context)
    said = io.StringIO()  # ptxas -v, which the backend prints when asked
    metadata: dict = {}
    products: dict = {}
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".ttir") as file:
            file.write(ir)
            file.flush()
            module = mlir.parse_mlir_module(file.name, context)
        module.context = context  # the stages look for it there
        parsed = backend.parse_options(dict(options))
        stages: dict = {}
        backend.add_stages(stages, parsed, Language.TRITON)
        with knobs.nvidia.scope(), contextlib.redirect_stdout(said):
            knobs.nvidia.dump_ptxas_log = True
            for name, stage in stages.items():
                module = products[name] = stage(module, metadata)
    except PTXASError as error:
        return ptx.failure(str(error))
    except Exception as error:  # MLIR's refusals come as RuntimeError, ours to report either way
        # No ptxas, one that may not run, a full disk: nothing that the kernel did.
        if isinstance(error, OSError) or str(error).startswith("Cannot find"):
            raise CouldNotCheck(
                f"Triton's compiler cannot work on this machine: {type(error).__name__}: {error}. "
                "`make setup` in a fresh .venv installs Triton with the assembler that it brings."
            ) from error
        return {"failure": "compiler", "detail": f"{type(error).__name__}: {error}"}
    registers, spills = ptx.registers_and_spills(said.getvalue())
    return {
        "shared": metadata["shared"],
        "registers": registers,
        "spills": spills,
        "num_warps": metadata.get("num_warps", options["num_warps"]),
        "instructions": ptx.counts(products["ptx"]),
    }


def main() -> int:
    """Read one request on stdin, answer a line a kernel on stdout."""
    try:
        request = json.load(sys.stdin)
        cc, kernels = int(request["cc"]), list(request["kernels"])
    except (ValueError, KeyError, TypeError):
        print('expected {"cc": 89, "kernels": [{"ir": …, "options": …}]} on stdin', file=sys.stderr)
        return 2
    try:
        for kernel in kernels:
            print(_MARK, end="", file=sys.stderr, flush=True)
            print(json.dumps(compiled(kernel, cc)), flush=True)
    except (CouldNotCheck, ImportError, KeyError, TypeError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return 0


def run_here(argv: Sequence[str], request: bytes, otherwise: Runner) -> tuple[int, bytes, bytes]:
    """The child's work in this process, for one that may die of it: another process costs as much
    as a small kernel. Why something does not compile stands on a child's stderr, so then
    ``otherwise`` starts one."""
    asked = json.loads(request)
    answers = [compiled(kernel, asked["cc"]) for kernel in asked["kernels"]]
    if any("failure" in answer for answer in answers):
        return otherwise(argv, request)
    return 0, b"".join(json.dumps(answer).encode() + b"\n" for answer in answers), b""


def compiled(kernel: dict, cc: int) -> dict:
    """The child's answer to one of a request's kernels, in a process that may die of it."""
    return _compile(kernel["ir"], cc, _options(kernel["options"]))


if __name__ == "__main__":
    sys.exit(main())
