"""What a sandboxed run of unit 01 reports, as JSON, and back again under suspicion.

Counters and findings are the student's word there (the kernels are plain Python); the values are
compared by the judge. Texts are cut and numbers bounded, so that a forged report stays small.
"""

from __future__ import annotations

from typing import Any

from autograder.grading.arrays import from_npy, to_npy
from autograder.records import FINDING_KINDS, Finding, Output, Rejected, Run, Traffic

_MOST = 100  # findings, arguments, outputs
_LARGEST = 1 << 53


def run_to_json(run: Run) -> dict[str, Any]:
    """Outputs, findings, traffic, warnings and changed inputs; pictures stay behind."""
    return {
        "outputs": [to_npy(output.values) for output in run.outputs],
        "findings": [
            {
                "kind": f.kind,
                "message": f.message,
                "kernel": f.kernel,
                "argument": f.argument,
                "line": f.line,
                "program": f.program and [int(p) for p in f.program],
                "lanes": int(f.lanes),
            }
            for f in run.findings[:_MOST]
        ],
        "traffic": [t.__dict__ for t in run.traffic[:_MOST]],
        "warnings": list(run.warnings[:10]),
        "changed": list(run.changed[:_MOST]),
    }


def run_from_json(data: Any) -> Run:
    """The run that ``data`` claims. Raises Rejected where it is malformed."""
    try:
        outputs = tuple(from_npy(text) for text in _list(data["outputs"]))
        return Run(
            outputs=tuple(Output(values, values.dtype.name) for values in outputs),
            findings=tuple(_finding(f) for f in _list(data["findings"])),
            traffic=tuple(_traffic(t) for t in _list(data["traffic"])),
            warnings=tuple(_text(w) for w in _list(data["warnings"])),
            changed=tuple(_text(name, 80) for name in _list(data["changed"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Rejected("What the functions returned could not be read.") from None


def _finding(data: dict) -> Finding:
    if data["kind"] not in FINDING_KINDS:
        raise ValueError("kind")
    program = data["program"]
    return Finding(
        kind=data["kind"],
        message=_text(data["message"]),
        kernel=_text(data["kernel"], 80),
        argument=_text(data["argument"], 80),
        line=_count(data["line"]),
        program=None if program is None else tuple(_count(p) for p in _list(program)[:3]),
        lanes=_count(data["lanes"]),
    )


def _traffic(data: dict) -> Traffic:
    names = ("itemsize", "loaded", "stored", "masked", "sectors")
    return Traffic(_text(data["argument"], 80), **{name: _count(data[name]) for name in names})


def _list(value: Any) -> list:
    if not isinstance(value, list) or len(value) > _MOST:
        raise ValueError("list")
    return value


def _text(value: Any, most: int = 600) -> str:
    if not isinstance(value, str):
        raise ValueError("text")
    return value[:most]


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise ValueError("number")
    return value
