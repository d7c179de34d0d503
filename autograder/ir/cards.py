"""The device table: what a kernel may use on a card, and how fast the card is at best.

Figures are the data sheets' and NVIDIA's programming guide's; tensor-core rates are dense, without
sparsity, accumulating in fp32. Many tables list GeForce cards at twice that, which is the rate with
fp16 accumulation.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CARDS", "DEFAULT", "Card", "card"]


@dataclass(frozen=True)
class Card:
    """One NVIDIA card.

    * ``cc``: compute capability as one number, 89 for 8.9; ``sms``: streaming multiprocessors;
    * ``bandwidth``: memory, GB/s (10^9 bytes); ``l2_mb``: L2 cache, MB (2^20 bytes);
    * ``shared_per_block``: most bytes of shared memory that one block may ask for;
    * ``registers_per_sm``: 32-bit registers of one SM, shared by its resident blocks;
    * ``bf16_tflops`` and ``fp32_tflops``: peaks in TFLOP/s, tensor cores with fp32 accumulation
      (fp16 is as fast as bf16) and plain fp32.
    """

    name: str
    cc: int
    sms: int
    bandwidth: float
    l2_mb: float
    shared_per_block: int
    bf16_tflops: float
    fp32_tflops: float
    registers_per_sm: int = 65536
    driver: str = ""  # what the driver calls it, where that is not the name with NVIDIA before it

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability as torch gives it: ``(8, 9)``."""
        return divmod(self.cc, 10)


_KB = 1024

# Shared memory a block: CUDA C++ Programming Guide, table of technical specifications by compute
# capability (8.0: 163 KB, 8.9: 99 KB, 9.0: 227 KB). The same table gives 64 K registers per SM.
_ROWS = (
    # NVIDIA Ada GPU Architecture whitepaper, tables of full specifications.
    Card("RTX 4080", 89, 76, 716.8, 64, 99 * _KB, 97.5, 48.7),
    Card("RTX 4090", 89, 128, 1008.0, 72, 99 * _KB, 165.2, 82.6),
    # NVIDIA A100 Tensor Core GPU data sheet, 80 GB SXM.
    Card("A100 80 GB SXM", 80, 108, 2039.0, 40, 163 * _KB, 312.0, 19.5, driver="A100-SXM4-80GB"),
    # NVIDIA H100 Tensor Core GPU data sheet, SXM.
    Card("H100 SXM", 90, 132, 3350.0, 50, 227 * _KB, 989.0, 67.0, driver="H100 80GB HBM3"),
    # NVIDIA H200 Tensor Core GPU data sheet, SXM. The driver reports 60 MB of L2.
    Card("H200 SXM", 90, 132, 4800.0, 50, 227 * _KB, 989.0, 67.0, driver="H200"),
)

CARDS: dict[str, Card] = {row.name: row for row in _ROWS}
DEFAULT = "RTX 4080"


def card(name: str = DEFAULT) -> Card:
    """The row called ``name``, by us or by the driver; case and a leading "NVIDIA" or "GeForce" do
    not matter.

    Raises ``ValueError`` with the known names when there is no such row.
    """
    words = [w for w in name.lower().split() if w not in ("nvidia", "geforce")]
    for row in _ROWS:
        if words and words in (row.name.lower().split(), row.driver.lower().split()):
            return row
    raise ValueError(f"no card called {name!r} in the table; it has {', '.join(CARDS)}")
