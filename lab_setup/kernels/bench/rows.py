"""The memory-bound kernels on the bench: add, softmax, RMSNorm, fp8 and small launches."""

from lab_setup.kernels.bench.row_checks import checks
from lab_setup.kernels.bench.row_ladders import LADDERS
from lab_setup.kernels.bench.row_launches import launches
from lab_setup.kernels.bench.row_tasks import TASKS

__all__ = ["LADDERS", "TASKS", "checks", "launches"]
