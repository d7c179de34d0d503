"""What stands where a solution was, chosen cell by cell.

nbgrader has one stub for a whole course. Its default, a ``raise``, inside ``@triton.jit`` ends in a
compiler's message that names no line of the student, and a hole in a lesson wants a line that runs.
"""

from __future__ import annotations

from nbgrader.preprocessors import ClearSolutions

_PLACE = "<stub>"  # no line of Python; nbgrader puts it where a region was


class ClearSolutionsByCell(ClearSolutions):
    """nbgrader's ClearSolutions with the stub from the cell's metadata, key ``stub``.

    A string serves every region of the cell, a list one region each.
    Also drops the builder's marks, which mean nothing to students.
    """

    MARKERS = ("BEGIN SOLUTION", "END SOLUTION")
    DEFAULT = "pass  # your lines here"

    def preprocess(self, nb, resources):
        self.code_stub = {"python": _PLACE}
        nb, resources = super().preprocess(nb, resources)
        nb.metadata.pop("course", None)
        return nb, resources

    def preprocess_cell(self, cell, resources, cell_index):
        stub = cell.metadata.pop("stub", self.DEFAULT)
        first = cell.source.partition("\n")[0]
        where = f"in the cell that begins {first!r}"
        try:
            cell, resources = super().preprocess_cell(cell, resources, cell_index)
        except RuntimeError as error:  # nbgrader's words, which name no cell
            raise RuntimeError(f"{str(error).rstrip('.')}, {where}") from error
        lines = cell.source.split("\n")
        places = [i for i, line in enumerate(lines) if line.strip() == _PLACE]
        stubs = stub if isinstance(stub, list) else [stub] * len(places)
        if len(stubs) != len(places):
            raise RuntimeError(f"{len(stubs)} stubs for {len(places)} solution regions {where}")
        for place, text in zip(places, stubs, strict=True):
            indent = lines[place][: lines[place].index(_PLACE)]
            lines[place] = "\n".join(indent + line for line in text.split("\n"))
        cell.source = "\n".join(lines)
        return cell, resources
