"""The ladders of the memory-bound kernels, step by step, each with its reason and a prediction."""

from __future__ import annotations

from collections.abc import Callable

from lab_setup.kernels import fp8, rmsnorm, softmax
from lab_setup.kernels.bench import row_steps as steps
from lab_setup.kernels.bench.row_rivals import each_layer, no_grad
from lab_setup.kernels.bench.row_tasks import FP8, RMSNORM_BACKWARD, SOFTMAX
from lab_setup.kernels.bench.tasks import Ladder, Make, Variant

__all__ = ["LADDERS"]


def _softmax_step(rows: int, warps: Callable[[int], int], even: bool) -> Make:
    return no_grad(lambda x: steps.softmax_with(x, rows, warps(x.shape[1]), even))


_SOFTMAX_LADDER = Ladder(
    "softmax",
    SOFTMAX,
    (256, 4096, 16384),
    (
        Variant("plain", no_grad(steps.softmax_plain), "A row a program, as exercise 03.softmax."),
        Variant(
            "exp2, one division",
            _softmax_step(1, steps.warps_of, even=False),
            "The card computes powers of two and multiplies faster than it divides; but memory "
            "sets the pace, so nothing should change.",
            expect=1.0,
        ),
        Variant(
            "no masks",
            _softmax_step(1, steps.warps_of, even=True),
            "Where blocks cover the matrix exactly the compiler drops every comparison; again "
            "arithmetic, not bytes.",
            expect=1.0,
        ),
        Variant(
            "more warps",
            _softmax_step(1, lambda n: min(max(n // 512, 1), 32), even=True),
            "Sixteen numbers a thread at any width: short rows no longer leave lanes without a "
            "wide load, long ones have more loads under way.",
            expect=1.15,
        ),
        Variant(
            "tuned",
            no_grad(softmax.softmax_forward),
            "Several rows a program where rows are short, and the best of a few configs by the "
            "clock.",
            expect=1.1,
        ),
    ),
    ("copy", "torch"),
)


def _norm_step(stages: int) -> Make:
    def run(x, w, r, dy):
        # 2048 numbers a program or a row of more, 16 a thread; 512 threads a multiprocessor.
        rows = max(1, 2048 // x.shape[1])
        warps = min(max(x.shape[1] * rows // 512, 4), 16)
        return steps.rmsnorm_walking(x, w, r, dy, rows, warps, max(1, 16 // warps), stages)

    return no_grad(run)


_NORM_LADDER = Ladder(
    "rmsnorm_backward",
    RMSNORM_BACKWARD,
    (1024, 4096),
    (
        Variant(
            "plain",
            no_grad(steps.rmsnorm_plain),
            "A row a program and atomics for dw, as exercise 04.rmsnorm_backward.",
        ),
        Variant(
            "sums in registers",
            _norm_step(1),
            "A few programs a multiprocessor walk over the rows and keep dw to themselves: a "
            "write of dw a program in place of an atomic a row, for which all others wait.",
            expect=10.0,
        ),
        Variant(
            "rows ahead",
            _norm_step(3),
            "While a row is summed, the next two are on their way to shared memory: no program "
            "waits for memory at the head of each turn.",
            expect=1.3,
        ),
        Variant(
            "tuned",
            no_grad(rmsnorm.rmsnorm_backward),
            "Rows, warps and programs a multiprocessor by the clock.",
            expect=1.05,
        ),
    ),
    ("copy", "torch"),
)


def _fp8_step(block_n: int, block_k: int, stages: int, split: int) -> Make:
    return each_layer(lambda *operands: steps.fp8_with(*operands, block_n, block_k, stages, split))


_FP8_LADDER = Ladder(
    "fp8",
    FP8[0],
    (16,),
    (
        Variant(
            "a large tile",
            _fp8_step(128, 128, 4, 1),
            "128 columns a program, as for large matrices: 32 programs, for 132 multiprocessors.",
            needs=89,
        ),
        Variant(
            "the sum split in four",
            _fp8_step(128, 128, 4, 4),
            "Four programs share each tile's sum over K: 128 programs, and a second kernel that "
            "adds their parts.",
            needs=89,
            expect=1.6,
        ),
        Variant(
            "narrow tiles",
            _fp8_step(64, 256, 4, 1),
            "64 columns a program are 64 programs, without parts to add; longer steps along K keep "
            "more bytes under way in each.",
            needs=89,
            expect=1.1,
        ),
        Variant(
            "more steps ahead",
            _fp8_step(64, 256, 8, 1),
            "Eight steps under way in place of four: 64 programs, so each has to ask for twice as "
            "much to keep memory busy.",
            needs=89,
            expect=1.15,
        ),
        Variant(
            "tuned",
            each_layer(fp8.fp8_gemm),
            "The best of a few narrow tiles by the clock.",
            needs=89,
            expect=1.05,
        ),
    ),
    ("scaled_mm, fast",),
)

LADDERS: tuple[Ladder, ...] = (_SOFTMAX_LADDER, _NORM_LADDER, _FP8_LADDER)
