"""Brings edits made in JupyterLab back into the texts: ``python -m course.sync``.

Cells are matched by their ids, which Jupyter keeps. What was not edited keeps its text to the
byte, a lesson's holes get their solutions back, and outputs are dropped.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course.build import ROOT, build, notebooks_of, read_notebook, targets, texts
from course.text import (
    CourseError,
    built_digest,
    content_of,
    digest,
    header_of,
    is_edited,
    parse,
    source_of,
    stubs_of,
    unparse,
)


def sync(root: Path) -> list[str]:
    """Rewrites the texts whose notebooks were edited, and returns their paths from the checkout.

    Raises CourseError, before anything is written, where text and notebook have both changed or
    where an edit has no place in the text.
    """
    rewritten = {}
    for text in texts(root):
        path = targets(text)[0]
        if not (root / path).exists():
            continue
        edited = read_notebook(root / path)
        content = text.read_text(encoding="utf-8")
        fresh = notebooks_of(text, content)[path]
        if not is_edited(edited) or digest(edited) == digest(fresh):
            continue
        if digest(fresh) != built_digest(edited):
            raise CourseError(
                f"course/{text.parent.name}/{text.name} and {path} have both changed since the "
                "last build. Keep one: undo the text's change and run `make sync`, or drop the "
                "notebook's with `make build FORCE=1`."
            )
        try:
            merged = merge(content, fresh, edited)
        except CourseError as error:
            raise CourseError(f"{path}: {error} Nothing was changed.") from error
        if digest(notebooks_of(text, merged)[path]) != digest(edited):
            raise CourseError(
                f"{path} has an edit that the text cannot express. Nothing was changed: make the "
                f"edit in course/{text.parent.name}/{text.name}."
            )
        rewritten[text] = merged
    for text, content in rewritten.items():
        text.write_text(content, encoding="utf-8")
    return [text.relative_to(root).as_posix() for text in rewritten]


def merge(text: str, fresh: NotebookNode, edited: NotebookNode) -> str:
    """The text with the edits of ``edited``; ``fresh`` is what the text builds, cell for cell.

    Raises CourseError where a lesson's hole was edited away, or the call of a check cell.
    """
    pairs = zip(parse(text), fresh.cells, strict=True)
    origins = {built.id: (raw, built) for raw, built in pairs}
    cells = []
    for cell in edited.cells:
        if not cell.source.strip() and not header_of(cell):
            continue  # the empty cell that JupyterLab leaves at the end
        id = cell.id if cell.id in origins else _moved(cell, origins)
        cells.append(_merged(cell, *origins.pop(id, (None, None))))
    for raw, built in origins.values():
        if stubs_of(raw) and built.source != raw.source:
            raise CourseError(
                "the cell with a hole that begins "
                f"{built.source.splitlines()[0]!r} is gone; delete it in the text."
            )
    return unparse(cells)


def _moved(cell: NotebookNode, origins: dict) -> str | None:
    """The id of a cell that was cut and pasted, which gave it a new one."""
    return next((id for id, (_, built) in origins.items() if built.source == cell.source), None)


def _merged(
    cell: NotebookNode, raw: NotebookNode | None, built: NotebookNode | None
) -> NotebookNode:
    """The raw cell of a text for an edited cell: ``raw`` itself where nothing was edited."""
    if cell.get("attachments"):
        raise CourseError("a cell holds a pasted picture, which a text cannot; draw it by code.")
    if raw is not None and content_of(cell) == content_of(built):
        return raw
    header, source = header_of(cell), source_of(cell)
    if raw is not None and built.source != raw.source and "check" not in header:
        source = _refilled(source, raw)
        header |= {key: raw.metadata[key] for key in ("stub",) if key in raw.metadata}
    new = getattr(nbformat.v4, f"new_{cell.cell_type}_cell")
    return new(source.strip("\n"), metadata=nbformat.from_dict(header))


def _refilled(source: str, raw: NotebookNode) -> str:
    """The source of a lesson's cell with the text's solutions in place of the stubs."""
    lines, start = source.split("\n"), 0
    for stub, region in stubs_of(raw):
        ends = range(start, len(lines) - len(stub) + 1)
        place = next((i for i in ends if lines[i : i + len(stub)] == stub), None)
        if place is None:
            raise CourseError(
                f"the stub {stub[0].strip()!r} of a hole was edited. Put it back, or change the "
                "hole in the text."
            )
        lines[place : place + len(stub)] = region
        start = place + len(region)
    return "\n".join(lines)


def main() -> int:
    """Sync, then build; 1 with a sentence where something is wrong."""
    try:
        for path in sync(ROOT):
            print(f"brought the edits back into {path}")
        for path in build(ROOT):
            print(f"built {path}")
    except CourseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
