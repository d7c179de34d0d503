"""docs/KERNELS.md, written from what was measured: no figure on it is typed by hand.

``python -m lab_setup kernels --page`` reads docs/measured/kernels_h200.json (a run on a card) and
docs/measured/kernels_fits_89.json (compiled without one), draws the figures beside them and writes
the page.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lab_setup.kernels.bench.offline import Fit, limit
from lab_setup.kernels.bench.plot import write_all
from lab_setup.kernels.bench.results import load, plain_ratio, target_rows
from lab_setup.roofline.ladders import STORED, climbed, facts_of

__all__ = ["FITS", "PAGE", "page", "write"]

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/KERNELS.md"
FITS = ROOT / "docs/measured/kernels_fits_89.json"
Record = Mapping[str, Any]

_HEAD = """# Fast kernels: the course's beside the vendor's

<!-- Written by `python -m lab_setup kernels --page` from docs/measured/. Edit
lab_setup/kernels/bench/page.py, not this file. -->

The kernels that the course teaches, as fast as plain Triton gets, still short enough to read. They
answer exercises, so they are no part of the students' copy. Lesson 11 climbs the ladders below,
from the stored figures.

| module of lab_setup/kernels | what it is |
|---|---|
{modules}

A host function chooses by the card: tensor descriptors (TMA) and warp specialisation where the
compute capability is 9.0 or more, pointers else. Configs are tuned at the first call, among those
that fit the card's shared memory.

## Run it
```
python -m lab_setup kernels                   compile, check at full size, measure on this card
python -m lab_setup kernels --only products   one family: rows, products, attentions
python -m lab_setup kernels --seconds 300     begin nothing after 300 s; --json OUT: the figures
python -m lab_setup kernels --resume          go on with the figures that are there
python -m lab_setup kernels --offline 89      compile all configs for a card that is not there
python -m lab_setup kernels --plot OUT        pictures of such a file
python -m lab_setup kernels --join A B        one file, kernels.json, of several runs
python -m lab_setup kernels --page            this page
python -m tests.device.kernels OUTDIR 520     all of it in one call, for a lent card
```

Functions that are compared take turns on the card, with the L2 cache emptied before each run and
launches captured as CUDA graphs: ratios within a block are good to about 1.5 %, times in different
blocks are not to be compared. A function that fails or gives something else than the reference is
named and not timed. Figures above the card's roof are refused.
"""


# Of three tries each on one H200 on 2026-11-30: two whole runs, and single configs in turn between.
_LIMITS = """## What limits the four that are missed

- **Attention forward, D = 64, full, T = 1024, over FlashAttention-2** (at least 1.45; best of three
  tries 1.40). 0.15 ms of work for 132 multiprocessors: no kernel reaches its speed of longer rows,
  and FlashAttention-2 loses least. Over cuDNN the target is met.
- **Attention backward, D = 64, full, T = 16384, over cuDNN** (0.84; 0.835). 29 ms at full power,
  at a lower clock than short runs have; ours reads q and k twice, for dk and dv and for dq.
- **Attention backward, D = 128, full, T = 16384, over cuDNN** (0.72; 0.708 through autograd, 0.747
  for the same kernels without it in the same block). Who follows cuDNN in turn meets the clock that
  cuDNN leaves, and each function follows the same one in every round.
- **Softmax backward, 4096 columns, over torch.compile** (0.97; 0.969, and 1.003 where the length of
  its loop is a constant of the kernel). The compiler then drops the loop, which ours keeps.
"""


def write() -> Path:
    """Draws the figures and writes the page. Raises Rejected where the measurements are missing."""
    record = load(STORED)
    text = page(record, load(FITS))
    write_all(record, STORED, re.findall(rf"measured/{STORED.stem}_(\w+)\.png", text))
    PAGE.write_text(text, encoding="utf-8")
    return PAGE


def page(record: Record, fits: Record) -> str:
    """The page for a record of measurements and one of compilations."""
    parts = [_HEAD.format(modules="\n".join(_modules()))]
    parts += ["\n".join(_targets(record)), _LIMITS]
    ladders = [block for block in record["blocks"] if block["kind"] == "ladder"]
    for name in dict.fromkeys(block["name"] for block in ladders):
        blocks = [b for b in ladders if b["name"] == name and _has_vendor(b)]
        if blocks:
            parts.append("\n".join(_ladder(sorted(blocks, key=lambda b: b["size"]))))
    parts += ["\n".join(_figures(record)), "\n".join(_checks(record)), "\n".join(_fits(fits))]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _modules() -> Iterator[str]:
    for path in sorted((ROOT / "lab_setup/kernels").glob("*.py")):
        if path.name != "__init__.py":
            said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            yield f"| `{path.name}` | {' '.join(said.partition(chr(10) * 2)[0].split())} |"


def _targets(record: Record) -> Iterator[str]:
    yield f"## Targets, {facts_of(record)}\n"
    yield "Ratios are times, the rival's over ours: above 1 the course's kernel is faster.\n"
    yield "| task | kernel / rival | ratio at size | at least | stretch | |"
    yield "|---|---|---|---|---|---|"
    grouped: dict[tuple, list[dict]] = {}
    for row in target_rows(record):
        key = row["title"], row["own"], row["rival"], row["at_least"], row["stretch"]
        grouped.setdefault(key, []).append(row)
    for (title, own, rival, least, stretch), rows in grouped.items():
        rows.sort(key=lambda row: row["size"])
        ratios = " · ".join(f"{row['size']}: {_number(row['ratio'], 3)}" for row in rows)
        verdicts = {row["verdict"] for row in rows}
        worst = next(v for v in ("not measured", "missed", "met", "stretch") if v in verdicts)
        if worst in ("missed", "not measured"):
            short = [row["size"] for row in rows if row["verdict"] == worst]
            worst = f"**{worst}** at {', '.join(map(str, short))}"
        goal = f"{stretch:.2f}" if stretch else "–"
        yield f"| {title} | {own} / {rival} | {ratios} | {least:.2f} | {goal} | {worst} |"


def _has_vendor(block: Mapping[str, Any]) -> bool:
    return bool({t["name"] for t in block["timings"]}.intersection(block["rivals"][-1:]))


def _ladder(blocks: list[Mapping[str, Any]]) -> Iterator[str]:
    """One ladder at all its sizes; the picture is that of the middle one."""
    middle = blocks[len(blocks) // 2]
    name, vendor = middle["name"], middle["rivals"][-1]
    yield f"## Ladder: {name}\n"
    yield f"{middle['title']}. Speed, {vendor} = 1, and gain over the step before.\n"
    picture = f"measured/{STORED.stem}_ladder_{name}_{middle['size']}.png"
    yield f"![the ladder {name}, step by step, at n = {middle['size']}]({picture})\n"
    heads = "".join(f" n = {b['size']} | gain |" for b in blocks)
    yield f"| step | why | gain predicted |{heads}"
    yield "|---|---|---|" + "---|---|" * len(blocks)
    columns = [climbed(block)[0] for block in blocks]
    for i, step in enumerate(columns[0]):
        needs = " (9.0)" if step["needs"] >= 90 else ""
        cells = "".join(f" {_number(c[i]['ratio'])} | {_number(c[i]['gain'])} |" for c in columns)
        yield f"| {step['label']}{needs} | {step['reason']} | {_number(step['expect'])} |{cells}"
    yield ""
    if any(step["needs"] >= 90 for step in columns[0]):
        yield "(9.0): needs compute capability 9.0.\n"
    for block in blocks:
        rivals = climbed(block)[1]
        said = [f"{rival} {ratio:.2f}" for rival, ratio in list(rivals.items())[:-1]]
        if ratio := plain_ratio(block):
            said.append(f"time of the first step over the course's own solution {ratio:.2f}")
        if said:
            yield f"- n = {block['size']}: {', '.join(said)}"


def _figures(record: Record) -> Iterator[str]:
    yield "## By size\n"
    for family in dict.fromkeys(b["family"] for b in record["blocks"] if b["kind"] == "task"):
        yield f"![{family}, ratio to the vendor by size](measured/{STORED.stem}_{family}.png)\n"


def _checks(record: Record) -> Iterator[str]:
    checks = record["checks"]
    bad = [check for check in checks if not check["ok"]]
    yield "## Right at full size\n"
    yield (
        f"{len(checks) - len(bad)} of {len(checks)} checks on the card passed: sizes that divide "
        "nothing and the largest of the table, outputs poisoned with NaN, repeated runs equal."
    )
    for check in bad:
        yield f"- **failed**: {check['label']}: {check['why']}"


def _fits(record: Record) -> Iterator[str]:
    cc = record["made"]["cc"]
    most = limit(cc)
    yield f"## On compute capability {cc // 10}.{cc % 10}: compiled, Triton {_triton(record)}\n"
    yield (
        f"A program may have {most:,} bytes of shared memory. A config fits if it compiles within "
        "that and spills no register.\n"
    )
    yield "| kernel | configs | fit | least shared memory | registers a thread of that one |"
    yield "|---|---|---|---|---|"
    fits = [Fit(**row) for row in record["fits"]]
    for name in sorted({fit.kernel for fit in fits}):
        own = [fit for fit in fits if fit.kernel == name]
        good = sorted((f for f in own if f.fits(most)), key=lambda f: f.shared)
        least = f"{good[0].shared:,} | {good[0].registers}" if good else "– | –"
        yield f"| `{name}` | {len(own)} | {len(good) or '**0**'} | {least} |"


def _triton(record: Record) -> str:
    return record["made"]["versions"]["triton"]


def _number(value: float | None, digits: int = 2) -> str:
    return f"{value:.{digits}f}" if value else "–"
