"""The compile proof: what the real compiler says, what a student reads, what is kept on disk."""

from __future__ import annotations

import json
import signal

import pytest
import torch
import triton
import triton.language as tl

from autograder.ir import compile_answers
from autograder.ir.cards import CARDS, card
from autograder.ir.compile import compile_all, compile_facts, run_child
from autograder.ir.lower import lower
from autograder.records import CouldNotCheck, Kernel


@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(out + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.arange(0, BM)
    n = tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + start + k[None, :])
        y = tl.load(b + (start + k)[:, None] * BN + n[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * BN + n[None, :], acc)


@triton.jit
def widen(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i).to(tl.float32))


def lowered_add(block: int = 1024, n: int = 98432, **options) -> Kernel:
    x = torch.empty(2048)
    return lower(add, (x, x, torch.empty_like(x), n), {"B": block, **options})[0]


def lowered_matmul(dtype, m: int, n: int, k: int, **options) -> Kernel:
    a, b, c = torch.empty(16, dtype=dtype), torch.empty(16, dtype=dtype), torch.empty(16)
    return lower(matmul, (a, b, c, 256), {"BM": m, "BN": n, "BK": k, **options})[0]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOGRADER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


# ---------------------------------------------------------------- facts


def test_add_has_wide_loads_and_no_spills():
    facts = compile_facts(lowered_add())
    assert facts.error == ""
    assert (facts.kernel, facts.card, facts.num_warps) == ("add", "RTX 4080", 4)
    assert facts.shared == 0 and facts.shared_limit == 101376
    assert 0 < facts.registers < 64 and facts.spills == 0
    # Two loads and a store of 1024 numbers by 128 threads: 8 numbers a thread, 4 in one move.
    assert facts.instructions["ld.global"] == facts.instructions["ld.global.v4"] == 4
    assert facts.instructions["st.global"] == facts.instructions["st.global.v4"] == 2
    assert facts.instructions["mma.sync"] == 0


def test_a_length_that_is_not_divisible_has_narrow_loads():
    facts = compile_facts(lowered_add(n=98431))
    assert facts.instructions["ld.global"] > 0 and facts.instructions["ld.global.v4"] == 0


def test_a_dot_in_fp16_uses_tensor_cores_and_asynchronous_copies():
    facts = compile_facts(lowered_matmul(torch.float16, 64, 64, 64))
    assert facts.error == ""
    assert facts.instructions["mma.sync"] > 0 and facts.instructions["cp.async"] > 0
    assert 0 < facts.shared <= facts.shared_limit


def test_a_dot_on_hopper_uses_wgmma():
    facts = compile_facts(lowered_matmul(torch.float16, 64, 64, 64), "H200 SXM")
    assert facts.instructions["wgmma"] > 0 and facts.instructions["mma.sync"] == 0
    assert facts.shared_limit == 232448


def test_warps_of_the_launch_are_used():
    facts = compile_facts(lowered_add(num_warps=8))
    assert facts.num_warps == 8
    assert facts.instructions["ld.global.v4"] == 2  # half as much for each of 256 threads


# ---------------------------------------------------------------- what a student reads


def test_too_much_shared_memory():
    facts = compile_facts(lowered_matmul(torch.float32, 128, 128, 64, num_stages=3, num_warps=8))
    # Two tiles of fp32 a stage, two of the three stages in flight: 2 * 4 * 64 * (128 + 128).
    assert facts.shared == 131072
    assert facts.error == (
        f"{facts.kernel} needs 131072 bytes of shared memory a block, the RTX 4080 has 101376: "
        "use smaller tiles or fewer stages."
    )


def test_too_many_threads_and_clusters():
    facts = compile_all(
        [
            Kernel("wide", lowered_add().ir, (), options={"num_warps": 64}),
            Kernel("cluster", lowered_add().ir, (), options={"num_ctas": 2}),
        ]
    )
    assert "2048 threads a block" in facts[0].error and "num_warps=32" in facts[0].error
    assert "num_ctas=2" in facts[1].error and "RTX 4080" in facts[1].error


def test_a_register_limit_that_no_code_fits():
    kernel = lowered_matmul(torch.float16, 64, 64, 32)
    facts = compile_facts(Kernel("tight", kernel.ir, (), options={"maxnreg": 16}))
    assert facts.error.startswith("needs more registers than a thread may have")


def test_fp8_on_a_card_that_does_not_know_it():
    kernel, _ = lower(
        widen, (torch.empty(16, dtype=torch.float8_e4m3fn), torch.empty(16)), {"B": 16}
    )
    assert compile_facts(kernel).error == ""
    assert "float8_e4m3fn" in compile_facts(kernel, "A100 80 GB SXM").error


def test_ir_that_does_not_parse_is_a_sentence_and_hurts_no_other():
    good = lowered_add()
    broken, fine = compile_all(
        [Kernel("broken", good.ir.replace("tt.store", "tt.stroe"), ()), good]
    )
    assert broken.error.startswith("does not compile for the RTX 4080 (cc 8.9): ")
    assert "stroe" in broken.error and "/" not in broken.error
    assert fine.error == "" and fine.registers > 0


# ---------------------------------------------------------------- the child


def _answer(**changes) -> bytes:
    answer = {"shared": 1, "registers": 2, "spills": 3, "num_warps": 4, "instructions": {}}
    return json.dumps(answer | changes).encode() + b"\n"


def test_a_child_that_crashes_costs_its_kernel_only():
    calls = []

    def run(argv, request):
        calls.append(len(json.loads(request)["kernels"]))
        if len(calls) == 1:  # answers the first, dies of the second
            return -signal.SIGABRT, _answer(), b"\0\0LLVM ERROR: cannot select\n"
        return 0, _answer(registers=9), b"\0"

    kernels = [Kernel(name, name, ()) for name in ("first", "second", "third")]
    first, second, third = compile_all(kernels, run=run)
    assert calls == [3, 1]
    assert (first.error, third.error) == ("", "") and third.registers == 9
    assert second.error == "crashes Triton's compiler for the RTX 4080 (cc 8.9): cannot select"


@pytest.mark.parametrize("status", [1, -signal.SIGKILL])
def test_a_child_that_is_stopped_is_no_fault_of_the_kernel(status, cache):
    with pytest.raises(CouldNotCheck, match=f"status {status}"):
        compile_facts(Kernel("k", "ir", ()), run=lambda argv, request: (status, b"", b"no memory"))
    assert not list(cache.rglob("*.json"))


def test_an_assembler_that_does_not_run_is_no_fault_of_the_kernel(cache, tmp_path, monkeypatch):
    ptxas = tmp_path / "ptxas"
    ptxas.write_text("#!/bin/sh\n")  # unpacked without its right to be executed
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(ptxas))
    with pytest.raises(CouldNotCheck, match="cannot work on this machine.*make setup"):
        compile_facts(lowered_add())
    assert not list(cache.rglob("*.json"))  # or it would be so after the mend as well


@pytest.mark.parametrize(
    "line",
    [
        b"[]\n",
        b"not json\n",
        _answer(registers="9"),
        _answer(registers=True),
        _answer(spills=-1),
        _answer(shared=2**60),
        _answer(instructions={"<script>": 1}),
        b'{"failure": "<script>", "detail": ""}\n',
        b'{"failure": "ptxas", "detail": 3}\n',
    ],
)
def test_nothing_but_the_agreed_numbers_comes_out_of_a_child(line):
    with pytest.raises(CouldNotCheck, match="nonsense"):
        compile_facts(Kernel("k", "ir", ()), run=lambda argv, request: (0, line, b""))


def test_details_are_one_short_printable_line():
    detail = json.dumps({"failure": "ptxas", "detail": "\x1b[31m" + "x" * 9999 + "\n/home/me/file"})
    facts = compile_facts(Kernel("k", "ir", ()), run=lambda a, r: (0, detail.encode() + b"\n", b""))
    assert len(facts.error) < 300 and facts.error.isprintable()


def test_a_request_that_is_none_is_refused_in_one_sentence():
    import sys

    status, out, err = run_child([sys.executable, "-m", "autograder.ir.compile"], b"[1]")
    assert status == 2 and out == b"" and len(err.splitlines()) == 1 and b"Traceback" not in err


def test_settings_of_the_student_do_not_steer_the_child(monkeypatch, tmp_path):
    kernel = lowered_add()
    expected = compile_facts(kernel)
    for name in ("TRITON_INTERPRET", "TRITON_KERNEL_OVERRIDE", "DISABLE_PTXAS_OPT"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("AUTOGRADER_CACHE_DIR", str(tmp_path / "second"))
    assert compile_facts(kernel) == expected


# ---------------------------------------------------------------- the cache


def test_the_second_call_reads_the_cache(cache):
    kernel = lowered_add()
    compile_facts(kernel)
    (entry,) = cache.rglob("*.json")
    poisoned = json.loads(entry.read_text())
    poisoned["registers"] = 12345
    entry.write_text(json.dumps(poisoned))
    assert compile_facts(kernel).registers == 12345


def test_an_unreadable_entry_is_made_again(cache):
    def run(argv, request):
        return 0, _answer(registers=21), b""

    kernel = Kernel("k", "ir", ())
    facts = compile_facts(kernel, run=run)
    (entry,) = cache.rglob("*.json")
    for spoilt in ("{", "[]", '{"registers": "many"}', ""):
        entry.write_text(spoilt)
        assert compile_facts(kernel, run=run) == facts
        assert json.loads(entry.read_text())["registers"] == 21
    assert [f for f in cache.rglob("*") if f.is_file()] == [entry]  # no draft stays behind


def test_what_makes_another_entry(cache, monkeypatch):
    def entries():
        return len(list(cache.rglob("*.json")))

    def run(argv, request):
        return 0, _answer() * len(json.loads(request)["kernels"]), b""

    ir = 'tt.func @k(%x: !tt.ptr<f32> loc("x"(#loc))) loc(#loc1)\n#loc1 = loc("a.py":1:2)\n'
    compile_facts(Kernel("k", ir, ()), run=run)
    moved = ir.replace('"a.py":1:2', '"b.py":77:2').replace("#loc1", "#loc9")
    compile_facts(Kernel("renamed", moved, ()), run=run)
    assert entries() == 1  # neither names nor lines change the machine code
    compile_facts(Kernel("k", ir.replace("f32", "f16"), ()), run=run)
    compile_facts(Kernel("k", ir, (), options={"num_warps": 8}), run=run)
    compile_facts(Kernel("k", ir, ()), "H200 SXM", run=run)
    assert entries() == 4
    compile_facts(Kernel("k", ir, ()), "H100 SXM", run=run)
    assert entries() == 4  # the same compute capability


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("AUTOGRADER_CACHE_DIR", str(file))
    assert compile_facts(Kernel("k", "", ()), run=lambda a, r: (0, _answer(), b"")).registers == 2


def test_the_cache_follows_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("AUTOGRADER_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compile_answers.cache_directory() == tmp_path / "autograder"


# ---------------------------------------------------------------- the device table


def test_cards():
    assert card().name == "RTX 4080" and card().capability == (8, 9)
    assert card("nvidia geforce rtx 4090").sms == 128
    assert {c.shared_per_block for c in CARDS.values()} == {101376, 166912, 232448}
    with pytest.raises(ValueError, match="RTX 4080, RTX 4090"):
        card("RTX 9999")
