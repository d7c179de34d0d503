"""Which parameters' memory a kernel may write, or read.

Reads of what no kernel writes need no race tracking; what is read and written is changed in place.
Values that may hold the same pointer are united (flow-insensitive, over-approximate); a parameter
is written if a store or an atomic goes through a pointer of its class.
"""

from __future__ import annotations

from autograder.ir.parse import Function, Op, Region

_WRITES = {
    "tt.store",
    "tt.atomic_rmw",
    "tt.atomic_cas",
    "tt.atomic_load",  # as one that changes nothing
    "tt.atomic_store",
    "tt.atomic_poll",
    "tt.descriptor_store",
    "tt.descriptor_reduce",
    "tt.descriptor_scatter",
}
_READS = {
    "tt.load",
    "tt.atomic_rmw",
    "tt.atomic_cas",
    "tt.atomic_load",
    "tt.atomic_poll",
    "tt.descriptor_load",
    "tt.descriptor_gather",
    "tt.descriptor_reduce",
}


class _Classes:
    def __init__(self):
        self.parent: dict[str, str] = {}

    def find(self, name: str) -> str:
        while (up := self.parent.get(name, name)) != name:
            self.parent[name] = self.parent.get(up, up)
            name = up
        return name

    def unite(self, a: str, b: str) -> None:
        self.parent[self.find(a)] = self.find(b)


def may_write(function: Function) -> frozenset[int] | None:
    """Positions of the parameters that the kernel may write; None: any of them."""
    return _touched(function, _WRITES)


def may_read(function: Function) -> frozenset[int] | None:
    """Positions of the parameters that the kernel may read; None: any of them."""
    return _touched(function, _READS)


def _touched(function: Function, operations: set[str]) -> frozenset[int] | None:
    classes, touched, opaque = _Classes(), set(), [False]
    for body in {id(f): f.body for f in (function, *function.callees.values())}.values():
        _visit(body, classes, touched, opaque, function, operations)
    if opaque[0]:
        return None
    targets = {classes.find(name) for name in touched}
    return frozenset(
        i for i, (name, _) in enumerate(function.parameters) if classes.find(name) in targets
    )


def _visit(region: Region, classes, touched: set, opaque: list, function, operations) -> None:
    for block in region.blocks:
        for op in block.ops:
            _unite(op, classes, opaque, function)
            if op.name in operations:
                touched.add(op.operands[0])
            for label, arguments in op.successors:
                target = next((b for b in region.blocks if b.label == label), None)
                for a, b in zip(arguments, target.arguments if target else (), strict=False):
                    classes.unite(a, b)
            for inner in op.regions:
                _visit(inner, classes, touched, opaque, function, operations)


def _unite(op: Op, classes, opaque: list, function: Function) -> None:
    if op.name == "tt.int_to_ptr":
        opaque[0] = True
    elif op.name in ("scf.for", "scf.while"):
        carried = op.operands[3:] if op.name == "scf.for" else op.operands
        for region in op.regions:
            names = region.arguments[1:] if op.name == "scf.for" else region.arguments
            last = region.ops[-1].operands
            passed = last[1:] if region.ops[-1].name == "scf.condition" else last
            for column in zip(carried, names, passed, op.results, strict=False):
                for other in column[1:]:
                    classes.unite(column[0], other)
    elif op.name == "scf.if":
        for region in op.regions:
            for a, b in zip(
                op.results, region.ops[-1].operands if region.ops else (), strict=False
            ):
                classes.unite(a, b)
    elif op.name == "tt.call":
        name = op.callee
        callee = function.callees.get(name)
        if callee:
            for a, (b, _) in zip(op.operands, callee.parameters, strict=False):
                classes.unite(a, b)
            for block in callee.body.blocks:
                for a, b in zip(op.results, block.ops[-1].operands, strict=False):
                    classes.unite(a, b)
    elif op.results and op.result_types and _holds_pointers(op):
        # The offsets of tt.addptr are numbers: uniting them would unite every pointer they move.
        for operand in op.operands[:1] if op.name == "tt.addptr" else op.operands:
            classes.unite(operand, op.results[0])


def _holds_pointers(op: Op) -> bool:
    """addptr prints the pointer's type first; shape operations and casts carry it in the result."""
    if op.name in _READS:
        return False
    return any(t.kind != "value" for t in (*op.types, *op.result_types))
