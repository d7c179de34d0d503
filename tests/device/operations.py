"""On a card: every operation of the tests' tables, in the interpreter and there, side by side.

`python -m tests.device.operations [FILE]` prints one line a launch: how many of its results are
bit-equal, how many lie within what the card's function is allowed, and each other one by name with
its distance in units of the last place. FILE gets every result on a line of its own. The exit
status is 1 if a result differs for no reason that the tables name. Needs a GPU; nothing here runs
in CI.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import torch
import triton

from autograder.checking import inspect_call
from autograder.floats import UNIT, is_float, rounded
from autograder.trace.record import record
from autograder.trace.replay import replay
from tests.kernels import operation_casts as casts
from tests.kernels import operation_dots, operation_library  # noqa: F401 - they add samples
from tests.kernels import operation_memory as memory
from tests.kernels import operation_numbers as numbers
from tests.kernels.operation_tables import groups
from tests.kernels.operations import launch

SEED = 7
THREADS = 16


@dataclass
class Job:
    """One launch: what it gives here, and the bound of each row of each output."""

    label: str
    function: object
    given: list  # (held array, dtype)
    rows: list  # one an output: list of (name, bound in ulp, slack), or (name, bound) of the whole
    why: str = ""  # the order of elements is the card's own
    tf32: bool = False
    here: list = field(default_factory=list)
    error: str = ""
    card: list = field(default_factory=list)
    missing: str = ""  # why the card did not run it

    def tensors(self, device):
        return [numbers.tensor(v, t).to(device) for v, t in self.given]


def jobs():
    for label, entries, types, result in groups():
        entries = tuple(e for e in entries if not e.only or types[0] in e.only)
        given = numbers.operands(SEED, entries, types)
        to = getattr(torch, result)
        yield Job(
            label,
            lambda *xs, entries=entries, to=to: launch(entries, to, *xs),
            list(zip(given, types, strict=True)),
            [[(e.name, e.card + _own(e, result), e.slack) for e in entries]],
        )
    for sample in memory.SAMPLES:
        for dtype in sample.dtypes:
            given = sample.given(np.random.default_rng(SEED), dtype)
            yield Job(
                f"{sample.name}, {dtype}",
                sample.run,
                [(rounded(v, dtype), dtype) for v in given],
                [(sample.name, sample.terms)],
                sample.why,
                tf32="tf32" in sample.name or "bf16x" in sample.name,
            )
    generator = np.random.default_rng(SEED)
    for source in (*casts.INTEGERS, *casts.FLOATS, "float8_e4m3fn", "float8_e5m2"):
        x = numbers.operand(generator, "any", source)
        names = [(f"{source} to {t}", 0) for t in casts.targets(source)]
        yield Job(f"conversions of {source}", casts.casts, [(x, source)], names)
    for dtype in (*casts.FLOATS, "float8_e4m3fn", "float8_e5m2"):
        x = numbers.operand(generator, (-9.0, 9.0), dtype)
        names = [("bits", 0), ("and back", 0)]
        yield Job(f"bitcast of {dtype}", casts.bitcasts, [(x, dtype)], names)
    for to in ("float16", "bfloat16", "float8_e5m2"):
        x = numbers.operand(generator, (-90.0, 90.0), "float32")
        names = [("to nearest", 0), ("towards zero", 0)]
        yield Job(f"rounding to {to}", casts.roundings(to), [(x, "float32")], names)


def _own(entry, result) -> float:
    """What the interpreter itself may be off; nothing where it rounds the exact value once."""
    own = entry.double if result == "float64" and entry.double else entry.cpu
    return own if own > 0.51 else 0.0 if entry.card <= 0.5 else 1.0


def interpret(job: Job) -> None:
    tensors = job.tensors("cpu")
    try:
        if job.tf32:
            trace = record(job.function, tuple(tensors), values=tensors)
            run = replay(trace, [v for v, _ in job.given], tf32=True)
        else:
            run = inspect_call(job.function, *tensors, keep_accesses=False)
        job.here = [(o.values, o.dtype) for o in run.outputs]
        job.error = "; ".join(str(f.message) for f in run.findings)
    except Exception as error:  # one operation that fails must not hide the others
        job.error = f"{type(error).__name__}: {error}"


def on_card(job: Job) -> None:
    triton.set_allocator(_room)  # each thread has its own
    try:
        out = job.function(*job.tensors("cuda"))
        outs = out if isinstance(out, tuple) else (out,)
        job.card = [numbers.array(o, str(o.dtype).removeprefix("torch.")) for o in outs]
    except Exception as error:  # likewise
        job.missing = f"{type(error).__name__}: {str(error).strip().splitlines()[-1:]}"[:160]


def _room(size, align, stream):
    """On compute capability 9.0, descriptors made in a kernel need memory from the host."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


TINY = float(np.finfo(np.float32).tiny)
FLUSHED = "fp32 functions of libdevice take numbers below 2^-126 for 0"
SHIFTED = "a card moves the bits of e5m2: infinities and NaN become numbers from 65536 on"


def _excuse(name, here, given, bound, card, dtype, slack):
    """Why these lanes may differ, if all others agree."""
    tiny = [(np.abs(v.astype(np.float64)) < TINY) & (v != 0) for v in (here, *given)]
    reasons = [(FLUSHED, np.any(tiny, axis=0))] if dtype == "float32" else []
    if name == "float8_e5m2 to bfloat16":
        reasons.append((SHIFTED, ~np.isfinite(given[0])))
    for why, lanes in reasons:
        if numbers.distance(here[~lanes], card[~lanes], dtype, slack) <= bound:
            return why
    return ""


def verdicts(job: Job):
    """(name, status, distance, reason) of every row: "bit-equal", "within", "known", "DIFFERS"."""
    for k, ((here, dtype), card) in enumerate(zip(job.here, job.card, strict=True)):
        named = job.rows[min(k, len(job.rows) - 1)]
        if isinstance(named, list):
            for f, (name, bound, slack) in enumerate(named):
                theirs = card[f].astype(_wide(dtype))
                off = numbers.distance(here[f], theirs, dtype, slack)
                operands = [v[f] for v, _ in job.given]
                why = _excuse(name, here[f], operands, bound, theirs, dtype, slack)
                yield _judge(name, here[f], card[f], off, bound, why)
            continue
        name, bound = named
        if is_float(dtype) and bound:  # sums: in ulp of the largest result
            most = np.nanmax(np.abs(card.astype(np.float64))) or 1.0
            far = np.abs(here.astype(np.float64) - card).max()
            off = float(far / (2 * UNIT[dtype] * most))
        else:
            off = numbers.distance(here, card.astype(_wide(dtype)), dtype)
        why = job.why if np.array_equal(np.sort(here, None), np.sort(card, None)) else ""
        if name == "float8_e5m2 to bfloat16":
            why = _excuse(name, here, [job.given[0][0]], bound, card, dtype, 0.0)
        yield _judge(name, here, card, off, bound, why)


def _wide(dtype):
    return np.float64 if is_float(dtype) else np.int64 if dtype != "uint64" else np.uint64


def _judge(name, here, card, off, bound, why):
    here, card = np.asarray(here), np.asarray(card)
    if here.tobytes() == card.astype(here.dtype).tobytes() or (
        here.dtype.kind == "f"
        and np.array_equal(here, card, equal_nan=True)
        and np.array_equal(np.signbit(here) & ~np.isnan(here), np.signbit(card) & ~np.isnan(card))
    ):
        return name, "bit-equal", 0.0, ""
    if off <= bound:
        return name, "within", off, ""
    return name, "known" if why else "DIFFERS", off, why


def main() -> int:
    if not torch.cuda.is_available():
        print("No card here: this compares the interpreter with a real one.")
        return 2
    print(
        f"{torch.cuda.get_device_name()}, compute capability {torch.cuda.get_device_capability()}, "
        f"torch {torch.__version__}, triton {triton.__version__}, numpy {np.__version__}"
    )
    memory.PRINT = False
    warnings.simplefilter("ignore")  # old names of tl are run as well
    everything, start = list(jobs()), time.perf_counter()
    for job in everything:
        interpret(job)
    print(
        f"{len(everything)} launches interpreted in {time.perf_counter() - start:.0f} s", flush=True
    )
    start = time.perf_counter()
    torch.zeros(1).cuda()
    with ThreadPoolExecutor(THREADS) as pool:  # compilers wait for one another little
        list(pool.map(on_card, everything))
    torch.cuda.synchronize()
    print(f"and run on the card in {time.perf_counter() - start:.0f} s", flush=True)
    return report(everything, sys.argv[1] if len(sys.argv) > 1 else None)


def report(everything: list[Job], path: str | None) -> int:
    counts, lines, bad = Counter(), [], 0
    for job in everything:
        if job.error or job.missing:
            kind = "interpreter" if job.error else "card"
            counts[f"not run by the {kind}"] += 1
            bad += bool(job.error)
            print(f"{job.label:48} {kind}: {job.error or job.missing}"[:220])
            continue
        rows = list(verdicts(job))
        lines += [
            "\t".join((job.label, name, status, f"{off:.3g} ulp", why))
            for name, status, off, why in rows
        ]
        status = Counter(s for _, s, _, _ in rows)
        counts.update(status)
        bad += status["DIFFERS"]
        if status["bit-equal"] < len(rows):
            most = max((o for _, s, o, _ in rows if s == "within"), default=0)
            print(
                f"{job.label[:48]:48} {status['bit-equal']} bit-equal, {status['within']} within "
                f"(at most {most:.3g} ulp)"
            )
        for name, status, off, why in rows:
            if status in ("known", "DIFFERS"):
                print(f"    {status} {name}: {off:.3g} ulp. {why}")
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    print(", ".join(f"{n} {name}" for name, n in counts.most_common()))
    print("all agree" if not bad else f"{bad} results differ for no reason that the tables name")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
