"""The slice of a kernel that decides which addresses are touched: for counting without computing.

Needed are the operands of pointers, masks, loop bounds and conditions, and whatever those are
computed from; a load's value only where an address, a mask or a bound depends on it.
"""

from __future__ import annotations

from autograder.ir.parse import Function, Op, Region

# Operands of a memory operation that decide what it touches; the others are values.
_ADDRESSES = {
    "tt.load": slice(0, 2),  # pointer, mask
    "tt.descriptor_load": slice(None),
    "tt.descriptor_gather": slice(None),
}
_WHOLE = ("tt.atomic_cas", "tt.atomic_load", "tt.atomic_store", "tt.atomic_poll")
_WHOLE += ("tt.descriptor_reduce", "tt.call")


def needed(function: Function) -> frozenset[str]:
    """Names of the values that counting has to compute."""
    wanted: set[str] = set()
    producers: dict[str, list[Op]] = {}  # several: a name may come again in another region
    links: list[tuple[str, ...]] = []  # values that stand for one another around a region
    _collect(function.body, wanted, producers, links)
    for callee in function.callees.values():
        if callee is not function:  # what a call passes and gives back is computed whole
            _collect(callee.body, wanted, producers, links)
            wanted.update(callee.body.free, (n for n, _ in callee.parameters))
            wanted.update(o for b in callee.body.blocks for op in b.ops for o in op.operands)
    same: dict[str, list[tuple[str, ...]]] = {}
    for link in links:
        for name in link:
            same.setdefault(name, []).append(link)
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        more = [n for link in same.get(name, ()) for n in link]
        for op in producers.get(name, ()):
            if not op.name.startswith("scf."):
                more += [*op.operands, *(n for region in op.regions for n in _inside(region))]
        for other in more:
            if other not in wanted:
                wanted.add(other)
                waiting.append(other)
    return frozenset(wanted)


def _inside(region: Region):
    """Every name that a reduction's region computes with."""
    for block in region.blocks:
        yield from block.arguments
        for op in block.ops:
            yield from op.operands
            for inner in op.regions:
                yield from _inside(inner)


def _collect(region: Region, wanted: set, producers: dict, links: list) -> None:
    for block in region.blocks:
        for op in block.ops:
            for name in op.results:
                producers.setdefault(name, []).append(op)
            if op.name in _ADDRESSES:
                wanted.update(op.operands[_ADDRESSES[op.name]])
            elif op.name in ("tt.store", "tt.atomic_rmw"):  # pointer, value, mask
                wanted.update((op.operands[0], *op.operands[2:]))
            elif op.name in ("tt.descriptor_store", "tt.descriptor_scatter"):
                wanted.update(op.operands[:-1])
            elif op.name in _WHOLE:
                wanted.update(op.operands)
            elif op.name == "scf.for":
                wanted.update(op.operands[:3])
                body = op.regions[0]
                columns = (op.operands[3:], body.arguments[1:], body.ops[-1].operands, op.results)
                links += zip(*columns, strict=False)
            elif op.name == "scf.while":
                before, after = op.regions
                wanted.add(before.ops[-1].operands[0])
                links += zip(op.operands, before.arguments, after.ops[-1].operands, strict=False)
                links += zip(op.results, after.arguments, before.ops[-1].operands[1:], strict=False)
            elif op.name == "scf.if":
                wanted.add(op.operands[0])
                for branch in op.regions:
                    if op.results:
                        links += zip(op.results, branch.ops[-1].operands, strict=False)
            elif op.name == "cf.cond_br":
                wanted.add(op.operands[0])
            for label, passed in op.successors:
                target = next(b for b in region.blocks if b.label == label)
                links += zip(passed, target.arguments, strict=False)
            for inner in op.regions:
                _collect(inner, wanted, producers, links)
