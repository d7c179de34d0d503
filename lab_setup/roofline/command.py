"""``python -m lab_setup roofline``: every kernel of the course, predicted or measured."""

from __future__ import annotations

import importlib.util
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from autograder.exercises import ASSIGNMENTS
from autograder.ir.cards import DEFAULT, Card, card
from autograder.records import CouldNotCheck, Rejected
from autograder.solutions import load_solution
from lab_setup.roofline import records
from lab_setup.roofline.extract import script_for
from lab_setup.roofline.kernels import KERNELS, CourseKernel, counted

__all__ = ["chosen", "function_of", "gather", "main", "measured", "predicted", "reference"]

ROOT = Path(__file__).resolve().parents[2]


def chosen(ids: Iterable[str]) -> tuple[CourseKernel, ...]:
    """The kernels with these exercise ids, all without one. Raises Rejected for an unknown id."""
    table = {kernel.id: kernel for kernel in KERNELS}
    for id in ids:
        if id not in table:
            raise Rejected(f"No kernel is measured for '{id}'. There are: {', '.join(table)}.")
    return tuple(table[id] for id in ids) or KERNELS


def function_of(kernel: CourseKernel, path: Path | None, folder: Path, on_card: bool) -> Any:
    """What a solution calls the kernel's function, loaded from ``path`` (a file or a notebook), or
    else from the course's own solutions. ``folder`` keeps the source, which Triton reads.

    Raises Rejected with one sentence where it is not there.
    """
    name = ASSIGNMENTS[kernel.id[:2]]
    if path is None:
        path = ROOT / "source" / name / f"{name}.ipynb"
        if not path.is_file():
            raise Rejected(
                "The course's solutions are not here; name yours: "
                f"--kernel {kernel.id} --file release/{name}/{name}.ipynb."
            )
    script = folder / f"{kernel.id.replace('.', '_')}.py"
    script.write_text(script_for(path, kernel.name, kernel.id), encoding="utf-8")
    if not on_card:
        return load_solution(str(script))[kernel.name]
    spec = importlib.util.spec_from_file_location(f"roofline_{script.stem}", script)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Triton and torch look a function's module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        raise Rejected(f"{path.name} stops with {type(error).__name__}: {said}") from None
    return getattr(module, kernel.name)


def predicted(id: str, on: Card, path: Path | None = None) -> dict[str, Any]:
    """The record's row for one kernel, from counts. Where it cannot be counted: a ``note``."""
    (kernel,) = chosen([id])
    with tempfile.TemporaryDirectory() as folder:
        try:
            function = function_of(kernel, path, Path(folder), on_card=False)
            return records.predicted_row(kernel, counted(kernel, function, on), on)
        except (Rejected, CouldNotCheck) as error:
            return {"note": f"{id}: not predicted: {error}"}


def measured(
    kernel: CourseKernel, path: Path | None, folder: Path
) -> tuple[list[dict[str, Any]], list[str]]:
    """The kernel's and its rivals' times on this machine's card: name, ms, low and high
    (20th and 80th percentile); and notes."""
    from lab_setup.roofline.measure import measure
    from lab_setup.roofline.rivals import functions_of

    function = function_of(kernel, path, folder, on_card=True)
    absent: list[str] = []

    def rivals(size: int):
        functions, said = functions_of(kernel, function)
        absent.extend(said)
        return functions

    found = measure(
        rivals,
        (kernel.size,),
        bytes_of=lambda size: kernel.bytes,
        flop_of=(lambda size: kernel.flop) if kernel.flop else None,
        atol_of=(lambda size: kernel.atol) if kernel.atol else None,
        unchecked=kernel.unchecked,
        dtype=kernel.dtype or "bfloat16",
        expect="",
    )
    rows = [{"name": t.name, "ms": t.ms, "low": t.low, "high": t.high} for t in found.timings]
    notes = [f"{kernel.id}: {line}" for line in found.note.splitlines()]
    return rows, absent + notes


def _measured(kernel: CourseKernel, path: Path | None) -> tuple[list[dict[str, Any]], list[str]]:
    """``measured``, but a kernel that fails, in whatever way, does not keep the others waiting."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return measured(kernel, path, Path(folder))
        except Exception as error:
            said = " ".join(str(error).split())[:300]
            return [], [f"{kernel.id}: not measured, {type(error).__name__}: {said}"]


def reference() -> dict[str, float]:
    """What this machine's card does at best: GB/s of a copy of 1 GiB, read and written, by a kernel
    or by the driver, and TFLOP/s of torch's product of two matrices of 8192 × 8192 in bfloat16."""
    import torch

    from lab_setup import card_test
    from lab_setup.roofline.measure import measure

    n, copied = 8192, 1 << 28  # numbers of 4 bytes

    def copy(size: int):
        x = torch.randn(size, device="cuda")
        y, z = torch.empty_like(x), torch.empty_like(x)

        def by_kernel():
            card_test.copy(x, y)
            return y

        return {"kernel": by_kernel, "driver": lambda: z.copy_(x)}

    def product(size: int):
        a, b = torch.randn(2, n, n, device="cuda").bfloat16()
        return {"matmul": lambda: a @ b}

    copies = measure(copy, (copied,), bytes_of=lambda size: 8 * size, expect="").timings
    products = measure(
        *(product, (n,)),
        bytes_of=lambda size: 6 * size * size,
        flop_of=lambda size: 2 * size**3,
        expect="",
    ).timings
    found = {}
    if copies:
        found["copy_gbs"] = max(t.gbs for t in copies)
    if products:
        found["matmul_tflops"] = products[0].tflops
    return found


def main(options) -> int:
    """Arguments as ``python -m lab_setup roofline`` has them; returns the exit status."""
    try:
        if options.plot:
            return _plot(records.load(Path(options.plot)), Path(options.plot), options.out)
        return _run(options)
    except (Rejected, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2


def _run(options) -> int:
    import torch

    kernels = chosen(options.kernel or ())
    path = Path(options.file) if options.file else None
    if path and len(kernels) != 1:
        raise Rejected("Which exercise is the file for? Say --kernel, for example --kernel 02.add.")
    here = torch.cuda.is_available() and not options.card
    if here:
        from lab_setup.roofline.machine import about, card_here

        on, made = card_here(), about()
        if on is None:
            raise Rejected(f"The limits of {made['card']} are unknown: name a card with --card.")
    else:
        on = card(options.card or DEFAULT)
        made = {"card": on.name, "date": datetime.now(UTC).strftime("%Y-%m-%d"), "predicted": True}
    record = records.new(on, made)
    target = Path(options.json or f"roofline-{on.name.replace(' ', '-')}.json")
    if here:
        record["reference"] = reference()
    gather(record, kernels, on, target, path=path, here=here)
    return _plot(record, target, options.out) if record["kernels"] else 1


def gather(
    record: dict[str, Any],
    kernels: Sequence[CourseKernel],
    on: Card,
    target: Path,
    *,
    path: Path | None = None,
    here: bool = False,
    until: float = math.inf,
) -> None:
    """Fills the record, prints row by row, and saves it after each to ``target``.

    ``here``: measures on this machine's card as well. ``until``: a reading of
    ``time.monotonic()`` after which nothing more is begun.
    """
    print(heading(record), flush=True)
    # Other processes count, which see no card, while this one measures.
    workers = min(4, len(kernels), os.cpu_count() or 1)
    with (
        ProcessPoolExecutor(workers, get_context("spawn"), _without_cards) as pool,
        _progress(len(kernels), "measuring" if here else "counting") as step,
    ):
        rows = [pool.submit(predicted, kernel.id, on, path) for kernel in kernels]
        for kernel, future in zip(kernels, rows, strict=True):
            if time.monotonic() > until:
                record["notes"].append(f"{kernel.id}: left out, the time was over.")
                future.cancel()
                continue
            timings, notes = _measured(kernel, path) if here else ([], [])
            row = future.result()
            if "note" in row:
                notes.insert(0, row["note"])
                notes += [f"{kernel.id}: {t['name']} {t['ms']:.4f} ms" for t in timings]
            else:
                row["measured"] = timings
                record["kernels"].append(row)
                print(lines_of(row), flush=True)
            for note in notes:
                print(f"    note: {note}", flush=True)
            record["notes"] += notes
            records.save(record, target)
            step(kernel.id)


def _without_cards() -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


def heading(record: dict[str, Any]) -> str:
    """Two lines or three above the rows: the card, what it reached, and the columns' names."""
    roof = record["roof"]
    lines = [
        f"{record['made']['card']}: {roof['bandwidth']:,.1f} GB/s, {roof['bf16_tflops']:g} TFLOP/s "
        "in bf16" + (" (predictions; nothing is measured)" if _predicts(record) else "")
    ]
    if reached := record.get("reference"):
        words = {"copy_gbs": "copy {:,.0f} GB/s", "matmul_tflops": "cuBLAS {:,.0f} TFLOP/s"}
        lines.append("reached: " + ", ".join(words[k].format(v) for k, v in reached.items()))
    columns = f"{'kernel':26}{'bound by':>14}{'FLOP/byte':>11}{'at the roof':>14}"
    return "\n".join([*lines, columns + f"{'expected, ms':>18}"])


def lines_of(row: dict[str, Any]) -> str:
    """One line of the kernel, and one for each function that was measured."""
    low, high = row["band"]
    lines = [
        f"{row['label']:26}{row['bound']:>14}{row['intensity']:11.2f}{row['ms']:11.4f} ms"
        f"{low:9.3f} –{high:7.3f}"
    ]
    for timing in row["measured"]:
        lines.append(
            f"    {timing['name']:22}{timing['ms']:10.4f} ms measured ({timing['low']:.4f}–"
            f"{timing['high']:.4f}), {row['least_ms'] / timing['ms']:.0%} of the roof"
        )
    return "\n".join(lines)


def _predicts(record: dict[str, Any]) -> bool:
    return bool(record["made"].get("predicted"))


def _plot(record: dict[str, Any], source: Path, out: str | None) -> int:
    from lab_setup.roofline.plot import write

    target = Path(out) if out else source.with_suffix(".png")
    write(record, target)
    print(f"figure: {target}   figures as data: {source}")
    return 0


@contextmanager
def _progress(total: int, word: str):
    """A bar on the terminal; ``step(what)`` moves it on."""
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(word, total=total)

        def step(what: str) -> None:
            bar.update(task, advance=1, description=f"{word} {what}")

        yield step
