"""On a card: bytes that cross the memory bus by the hardware's counters, beside the L2 model's.

`python -m tests.device.dram OUT.json` starts itself under `ncu` (Nsight Compute), which empties the
L2 cache before each launch, and prints a line a launch: the grouped matmul of lesson 05 at 4096 and
8192 with GROUP_M 1 and 8, in a tile that lets one program onto an SM and in the course's own, and
softmax. Needs a GPU whose counters may be read; elsewhere it says so.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import triton

from autograder.ir.cards import card
from autograder.ir.l2 import EFFECTIVE, fetched, grouped, matmul_programs
from lab_setup.roofline.command import function_of
from lab_setup.roofline.kernels import KERNELS

METRICS = ("dram__bytes_read.sum", "dram__bytes_write.sum")
ONE_A_SM = dict(BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, num_warps=8, num_stages=3)
COURSE = dict(BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)  # as the solution launches it
MATMULS = [(n, group, ONE_A_SM) for n in (4096, 8192) for group in (1, 8)]
MATMULS += [(4096, group, COURSE) for group in (1, 8)]
ROWS, COLUMNS = 4096, 16384
SECONDS = 100  # most that ncu may take


def launch_all() -> None:
    """What ncu looks at: each kernel once. Prints how many programs fit on an SM."""
    by_id = {kernel.id: kernel for kernel in KERNELS}
    with tempfile.TemporaryDirectory() as folder:
        matmul = function_of(by_id["05.grouping"], None, Path(folder), on_card=True)
        softmax = function_of(by_id["03.softmax"], None, Path(folder), on_card=True)
        kernel = matmul.__globals__["grouped_matmul_kernel"]
        kernel = getattr(kernel, "fn", kernel) if hasattr(kernel, "configs") else kernel
        fits = []
        for n, group, blocks in MATMULS:
            a, b = torch.randn(2, n, n, device="cuda").bfloat16()
            c = torch.empty_like(a)
            grid = (triton.cdiv(n, blocks["BLOCK_M"]) * triton.cdiv(n, blocks["BLOCK_N"]),)
            strides = (*a.stride(), *b.stride(), *c.stride())
            made = kernel[grid](a, b, c, n, n, n, *strides, GROUP_M=group, **blocks)
            fits.append(resident(made))
        softmax(torch.randn(ROWS, COLUMNS, device="cuda").bfloat16())
        torch.cuda.synchronize()
    print("FITS " + json.dumps(fits), flush=True)


def resident(made) -> int:
    """Programs of a compiled kernel that fit on one SM: by registers, shared memory, threads.

    Registers come in pieces of 256 a warp, a block takes 1 KB of shared memory more than it asks
    for (CUDA C++ Programming Guide, compute capabilities).
    """
    seen = torch.cuda.get_device_properties(0)
    warps = made.metadata.num_warps
    registers = -(-made.n_regs * 32 // 256) * 256 * warps
    shared = seen.shared_memory_per_multiprocessor // (made.metadata.shared + 1024)
    return max(
        1, min(65536 // registers, shared, seen.max_threads_per_multi_processor // 32 // warps)
    )


def counters() -> tuple[list[dict], list[int], str]:
    """By launch, what ncu read; how many programs fit; or why there is nothing."""
    ncu = shutil.which("ncu") or next(map(str, Path("/usr/local").glob("cuda*/bin/ncu")), None)
    if ncu is None:
        return [], [], "ncu is not on this machine: no hardware counters."
    wanted = "regex:(grouped_matmul_kernel|softmax_fwd_kernel)"
    command = [ncu, "--clock-control", "none", "--metrics", ",".join(METRICS), "--csv"]
    command += [
        "--page",
        "raw",
        "--print-units",
        "base",
        "--target-processes",
        "all",
        "--kernel-name",
        wanted,
    ]
    command += [sys.executable, "-m", "tests.device.dram", "--launch"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return [], [], f"ncu did not end within {SECONDS} seconds."
    lines = done.stdout.splitlines()
    fits = [json.loads(line[5:]) for line in lines if line.startswith("FITS ")]
    table = [line for line in lines if line.startswith('"')]
    rows = [
        row for row in csv.DictReader(io.StringIO("\n".join(table))) if row.get("ID", "").strip()
    ]
    if len(rows) != len(MATMULS) + 1 or not fits:
        said = " ".join((done.stdout + done.stderr).split())[-600:]
        return [], [], f"ncu gave {len(rows)} launches, exit status {done.returncode}: {said}"
    return rows, fits[0], ""


def number(row: dict, metric: str) -> float:
    (text,) = [value for name, value in row.items() if name and name.startswith(metric)]
    return float(text.replace(",", ""))


def model_reads(n: int, group: int, blocks: dict, at_once: int, capacity: float) -> int:
    rows, columns = -(-n // blocks["BLOCK_M"]), -(-n // blocks["BLOCK_N"])
    tile = (blocks["BLOCK_M"], blocks["BLOCK_N"], blocks["BLOCK_K"])
    order = grouped(rows, columns, group)
    return fetched(matmul_programs(n, n, n, order, tile), at_once, capacity)


def main(words: list[str]) -> int:
    if words == ["--launch"]:
        launch_all()
        return 0
    if not torch.cuda.is_available():
        print("No card here, so there are no counters to read.")
        return 2
    start = time.monotonic()
    rows, fits, why = counters()
    if why:
        print(f"DRAM bytes: {why}")
        return 1
    name = torch.cuda.get_device_name()
    row = card(name)
    sms, capacity = torch.cuda.get_device_properties(0).multi_processor_count, row.l2_mb * 2**20
    print(
        f"{name}: DRAM bytes read, MB (10^6), counted and by the model; ncu took "
        f"{time.monotonic() - start:.0f} s"
    )
    found = []
    for (n, group, blocks), seen, fit in zip(MATMULS, rows, fits, strict=False):
        read, wrote = (number(seen, metric) for metric in METRICS)
        said = model_reads(n, group, blocks, sms * fit, EFFECTIVE * capacity)
        tile = f"{blocks['BLOCK_M']} × {blocks['BLOCK_N']} × {blocks['BLOCK_K']}"
        what = f"matmul {n}, GROUP_M {group}, tile {tile}"
        found.append(dict(what=what, fit=fit, read=read, wrote=wrote, model=said))
    read, wrote = (number(rows[-1], metric) for metric in METRICS)
    nbytes = 2 * ROWS * COLUMNS
    found.append(
        dict(what=f"softmax {ROWS} × {COLUMNS}", fit=0, read=read, wrote=wrote, model=nbytes)
    )
    for line in found:
        print(
            f"{line['what']:44} {line['fit']} an SM   read {line['read'] / 1e6:8.1f}   "
            f"model {line['model'] / 1e6:8.1f}   {line['model'] / line['read'] - 1:+7.1%}   "
            f"written {line['wrote'] / 1e6:8.1f}",
            flush=True,
        )
    if words:
        about = {"card": name, "date": time.strftime("%Y-%m-%d"), "launches": found}
        Path(words[0]).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
