"""Loads whose undefined lanes cannot matter: what runs with other poisons need not ask about.

A load under a mask without ``other`` leaves lanes undefined. Mostly they are computed with, lane by
lane, and never stored, because the store has the same mask. Where the IR shows that, no output, no
address and no branch can depend on them, whatever they hold, so the kernel need not be run again.
"""

from __future__ import annotations

from autograder.ir.ops import COUNTED
from autograder.ir.parse import Function, Op, Region

# Besides arith.* and math.*, which MLIR defines lane by lane, and arithmetic that is counted.
_LANEWISE = COUNTED | {"tt.bitcast", "tt.fp_to_fp", "tt.clampf", "tt.mulhiui"}


def settled(function: Function) -> frozenset[str]:
    """Results of the loads without ``other`` for which this is proved.

    The proof for a load under mask m: everything computed from it depends, in lane i, on undefined
    bits only where m[i] is false. That holds for the load, and lane-wise operations keep it; the
    only others that may use such a value are stores of it under a mask that implies m. All of them
    stand in the load's own block, so that they mean the same round of a loop and the same mask.
    """
    if any(callee is not function for callee in function.callees.values()):
        return frozenset()  # names are unique in one function only
    makers: dict[str, Op | None] = {}
    users: dict[str, list[tuple[int, Op]]] = {}
    loads: list[tuple[int, Op]] = []
    _collect(function.body, makers, users, loads)
    return frozenset(op.results[0] for at, op in loads if _harmless(op, at, makers, users))


def _collect(region: Region, makers: dict, users: dict, loads: list) -> None:
    for block in region.blocks:
        for op in block.ops:
            for name in op.results:  # regions side by side may use one name for two values
                makers[name] = None if name in makers else op
            passed = [name for _, arguments in op.successors for name in arguments]
            for name in {*op.operands, *passed}:
                users.setdefault(name, []).append((id(block), op))
            if op.name == "tt.load" and len(op.operands) == 2 and op.types[0].kind == "pointer":
                loads.append((id(block), op))
            for inner in op.regions:
                _collect(inner, makers, users, loads)


def _harmless(load: Op, at: int, makers: dict, users: dict) -> bool:
    mask, shape = load.operands[1], load.result_types[-1].shape
    seen, waiting = {load.results[0]}, [load.results[0]]
    while waiting:
        name = waiting.pop()
        for where, op in users.get(name, ()):
            if where != at or op.regions or op.successors:
                return False
            if op.name == "tt.store":
                pointer, value, *masks = op.operands
                if name == pointer or name in masks or len(masks) != 1:
                    return False
                if value == name and not _implies(masks[0], mask, makers):
                    return False
            elif op.name.startswith(("arith.", "math.")) or op.name in _LANEWISE:
                if len(op.results) != 1 or op.result_types[-1].shape != shape:
                    return False
                if op.results[0] not in seen:
                    seen.add(op.results[0])
                    waiting.append(op.results[0])
            else:
                return False
    return True


def _implies(mask: str, wanted: str, makers: dict, depth: int = 0) -> bool:
    """Whether ``mask`` is ``wanted``, or ``wanted`` and more."""
    if mask == wanted:
        return True
    op = makers.get(mask)
    if op is None or op.name != "arith.andi" or depth > 8:
        return False
    return any(_implies(part, wanted, makers, depth + 1) for part in op.operands)
