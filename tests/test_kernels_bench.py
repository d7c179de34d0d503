"""The bench of the fast kernels, on a machine without a card: a table of times in place of one."""

from __future__ import annotations

import json
import sys
import textwrap
import time
from dataclasses import asdict, replace

import pytest
import torch

from autograder.records import Rejected
from lab_setup.__main__ import main as lab_setup
from lab_setup.kernels.bench import command, families, offline
from lab_setup.kernels.bench.page import FITS, PAGE, page
from lab_setup.kernels.bench.plot import figures, write_all
from lab_setup.kernels.bench.results import (
    PLAIN,
    block_lines,
    join,
    load,
    new,
    plain_ratio,
    save,
    summary,
    target_rows,
)
from lab_setup.kernels.bench.run import Bench, CardLost
from lab_setup.kernels.bench.tasks import Ladder, Variant
from lab_setup.roofline.ladders import STORED
from tests import kernels_fake as fake
from tests.lesson_pages import said_in

TIMES = {"fast": 1.0, "torch": 0.97, "copy": 0.85, "plain": 3.0, "wider": 1.5, "descriptors": 1.2}


@pytest.fixture
def bench(tmp_path):
    def made(**more):
        made = {"card": "a table", "date": "2026-01-01 00:00 UTC"}
        made["versions"] = {"torch": "2.0", "triton": "3.0"}
        record = more.pop("record", None) or new(made)
        more = {"measure": fake.measured(TIMES)} | more
        return Bench(record, tmp_path / "kernels.json", more.pop("cc", 90), **more)

    return made


@pytest.fixture
def fake_family(monkeypatch):
    """Children of the bench find the family of tests under the name "fake"."""
    monkeypatch.setattr(families, "FAMILIES", ("fake",))
    monkeypatch.setitem(sys.modules, "lab_setup.kernels.bench.fake", fake)


def test_a_function_that_fails_is_named_and_keeps_no_other_waiting(bench):
    block = bench().block_of(fake.TASK, fake.N)
    assert [t["name"] for t in block["timings"]] == ["fast", "hopper", "copy", "torch"]
    assert block["failed"]["wrong"].startswith("does not give what torch gives. Tensor-likes")
    assert "does not give" in block["failed"]["poisoned"]
    assert block["failed"]["raises"] == "ValueError: no such tile"
    assert block["rivals"] == ["copy", "torch"]  # the reference is the last


def test_a_variant_that_the_card_lacks_is_left_out(bench):
    names = [t["name"] for t in bench(cc=89).block_of(fake.TASK, fake.N)["timings"]]
    assert "hopper" not in names and "fast" in names
    steps = [s["label"] for s in bench(cc=89).block_of(fake.LADDER, fake.N)["steps"]]
    assert steps == ["plain", "wider"]


def test_a_block_whose_reference_does_not_run_takes_the_rival_before(bench):
    task = replace(fake.TASK, rivals={"eager": fake._double, "absent": fake._raises})
    block = bench().block_of(task, fake.N)
    assert block["rivals"] == ["eager"] and "absent" in block["failed"]
    assert block["failed"]["wrong"].startswith("does not give what eager gives")


def test_blocks_come_in_order_and_the_record_is_saved_after_each(bench, tmp_path, capsys):
    seen = []
    ready = bench(step=lambda what: seen.append((what, _blocks(tmp_path))))
    ready.measure_all([fake.FAMILY])
    assert seen == [
        ("task double, n = 64", 0),
        ("task double, n = 128", 1),
        ("ladder double, n = 64", 2),
    ]
    said = capsys.readouterr().out
    assert "gain 2.000 (expected 1.50)" in said and "gain 1.250 (expected 1.10)" in said
    assert "raises: FAILED: ValueError: no such tile" in said


def _blocks(folder) -> int:
    path = folder / "kernels.json"
    return len(load(path)["blocks"]) if path.exists() else 0


def test_targets_are_ratios_of_times_within_one_block(bench):
    ready = bench()
    ready.measure_all([fake.FAMILY])
    rows = [(r["size"], r["own"], r["rival"], r["verdict"]) for r in target_rows(ready.record)]
    assert rows == [
        (64, "fast", "torch", "met"),
        (64, "fast", "copy", "missed"),
        (64, "raises", "torch", "not measured"),
        (128, "fast", "torch", "met"),
    ]
    said = summary(ready.record)
    assert "double n=64 fast / torch" in said and "0.970" in said
    assert "MISSED" in said and "NOT MEASURED" in said
    quicker = bench(measure=fake.measured(TIMES | {"fast": 0.9}))
    quicker.measure_all([fake.FAMILY])
    assert next(target_rows(quicker.record))["verdict"] == "stretch"


def test_what_comes_after_the_time_is_left_out_and_named(bench):
    late = bench(until=time.monotonic() - 1)
    late.check_all([fake.FAMILY])
    late.measure_all([fake.FAMILY])
    assert not late.record["blocks"] and len(late.record["notes"]) == 4 + 3
    assert "ladder double, n = 64: left out, the time was over." in late.record["notes"]


def test_a_run_that_goes_on_measures_only_what_is_missing(bench, tmp_path):
    bench().measure_all([fake.FAMILY])
    record = load(tmp_path / "kernels.json")
    del record["blocks"][1]
    seen = []
    bench(record=record, step=seen.append).measure_all([fake.FAMILY])
    assert seen == ["task double, n = 128"]


def test_runs_on_one_card_are_joined_and_the_last_figure_counts(bench):
    first = bench(until=time.monotonic() - 1)
    first.check_all([fake.FAMILY])
    first.measure_all([fake.FAMILY])
    second = bench(measure=fake.measured(TIMES | {"fast": 0.5}))
    second.measure_all([fake.FAMILY])
    joined = join([bench().record, first.record, second.record])
    assert [b["timings"][0]["ms"] for b in joined["blocks"]] == [0.5, 0.5, 3.0]
    assert all(note.startswith("check ") for note in joined["notes"]) and joined["notes"]
    older = bench().record
    older["made"] = older["made"] | {"versions": {"torch": "1.0", "triton": "3.0"}}
    with pytest.raises(Rejected, match="different versions are not joined"):
        join([older, second.record])


def test_checks_keep_their_bounds_and_nan_does_not(bench):
    ready = bench()
    ready.check_all([fake.FAMILY])
    found = {c["label"]: (c["ok"], c["error"]) for c in ready.record["checks"]}
    assert found == {
        "right": (True, 0.5),
        "too far": (False, 2.0),
        "not a number": (False, None),
        "raises": (False, None),
    }
    assert "failed: 3" in summary(ready.record)
    json.dumps(ready.record, allow_nan=False)


def test_after_a_fault_on_the_card_another_process_goes_on_without_the_culprit(bench, tmp_path):
    """``fast`` spoils the card: from then on every wait for it raises."""
    spoiled = []

    def sync():
        if spoiled:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def spoils(x):
        def run():
            spoiled.append(True)
            return 2 * x

        return run

    own = tuple(replace(v, make=spoils) if v.label == "fast" else v for v in fake.TASK.own)
    broken = families.Family("fake", (replace(fake.TASK, own=own, sizes=(fake.N,)),))
    with pytest.raises(CardLost, match="fast ended in a fault"):
        bench(sync=sync).measure_all([broken])
    assert _blocks(tmp_path) == 0
    spoiled.clear()
    second = bench(record=load(tmp_path / "kernels.json"), sync=sync)
    second.measure_all([broken])
    (block,) = second.record["blocks"]
    assert "illegal memory access" in block["failed"]["fast"]
    assert "hopper" in [t["name"] for t in block["timings"]]


def test_checks_that_cannot_be_made_keep_nothing_else_waiting(bench):
    def checks():
        yield "right", lambda: 0.5, 1.0
        raise MemoryError("no room for the operands")

    ready = bench()
    ready.check_all([families.Family("broken", checks=checks), fake.FAMILY])
    assert [c["label"] for c in ready.record["checks"]][:2] == ["right", "right"]
    assert ready.record["notes"] == [
        "checks of broken ended early: MemoryError: no room for the operands"
    ]


def test_what_ended_its_process_is_not_tried_again(bench):
    record = new({}) | {"trying": ["task", "double", fake.N, "fast"]}
    ready = bench(record=record)
    assert ready.block_of(fake.TASK, fake.N)["failed"]["fast"].startswith("it ended or hung")
    whole = bench(record=new({}) | {"trying": ["ladder", "double", fake.N, ""]})
    block = whole.block_of(fake.LADDER, fake.N)
    assert not block["timings"] and "ended or hung" in block["notes"][0]
    checked = bench(record=new({}) | {"trying": ["check", "fake", 0, "right"]})
    checked.check_all([fake.FAMILY])
    assert checked.record["checks"][0]["why"].startswith("it ended or hung")
    assert "trying" not in checked.record


def test_nothing_is_measured_where_measure_refuses(bench):
    def refuses(*_, **__):
        raise RuntimeError("out of memory")

    block = bench(measure=refuses).block_of(fake.TASK, fake.N)
    assert block["notes"] == ["not measured: RuntimeError: out of memory"]
    assert block_lines(block)  # still told


def test_the_first_step_is_compared_with_the_courses_solution():
    timings = [{"name": "plain", "ms": 3.0}, {"name": PLAIN, "ms": 2.5}]
    block = {"kind": "ladder", "steps": [{"label": "plain"}], "timings": timings}
    assert plain_ratio(block) == pytest.approx(1.2)
    assert plain_ratio(block | {"timings": timings[:1]}) is None


def test_the_courses_own_solution_stands_beside_its_ladder(bench, monkeypatch):
    loaded = []

    def solution(kernel, path, folder, on_card):
        loaded.append((kernel.id, path, on_card))
        return lambda a, b: a @ b

    monkeypatch.setattr("lab_setup.roofline.command.function_of", solution)
    product = lambda a, b: lambda: a @ b  # noqa: E731
    task = replace(
        fake.TASK,
        tensors=lambda n: (torch.eye(n), torch.ones(n, n)),
        rivals={"cuBLAS": product},
    )
    steps = (Variant("plain", product), Variant("other", lambda a, b: lambda: b @ b))
    block = bench().block_of(Ladder("matmul", task, (fake.N,), steps), fake.N)
    assert loaded == [("05.matmul", None, True)]
    assert [t["name"] for t in block["timings"]] == ["plain", PLAIN, "cuBLAS"]
    assert list(block["failed"]) == ["other"] and plain_ratio(block) == 3.0


# ------------------------------------------------------------------ figures and the page


def test_every_ladder_and_family_has_a_figure_that_names_card_and_date(bench, tmp_path):
    ready = bench()
    ready.measure_all([fake.FAMILY])
    drawn = dict(figures(ready.record))
    assert list(drawn) == ["ladder_double_64", "fake"]
    for figure in drawn.values():
        assert "measured on one a table, 2026-01-01, triton 3.0, torch 2.0" in said_in(figure)
    said = said_in(drawn["ladder_double_64"])
    assert "2.00" in said and "wider" in said and "copy" in said
    assert "target, at least" in said_in(drawn["fake"])
    written = write_all(ready.record, tmp_path / "kernels.json")
    assert [path.name for path in written] == ["kernels_ladder_double_64.png", "kernels_fake.png"]
    with pytest.raises(Rejected, match="holds no timings"):
        write_all(bench().record, tmp_path / "kernels.json")


def test_the_page_is_written_from_the_figures(bench):
    ready = bench()
    ready.check_all([fake.FAMILY])
    ready.measure_all([fake.FAMILY])
    fit = offline.Fit("fake", "double_kernel", "double 256", 89, 1024, 20, 0)
    spilled = offline.Fit("fake", "other_kernel", "other", 89, 1024, 255, 8)
    fits = new({"cc": 89, "versions": {"triton": "3.0"}})
    fits["fits"] = [asdict(fit), asdict(spilled)]
    said = page(ready.record, fits)
    assert (
        "| double, n numbers | fast / torch | 64: 0.970 · 128: 0.970 | 0.95 | 1.00 | met |" in said
    )
    assert "fast / copy | 64: 0.850 | 0.90 | – | **missed** at 64 |" in said
    assert "raises / torch | 64: – | 0.50 | – | **not measured** at 64 |" in said
    assert "| wider | Twice the block. | 1.50 | 0.65 | 2.00 |" in said
    assert "| descriptors (9.0) | The copy engine. | 1.10 | 0.81 | 1.25 |" in said
    assert "1 of 4 checks on the card passed" in said and "**failed**: too far" in said
    assert "| `double_kernel` | 1 | 1 | 1,024 | 20 |" in said
    assert "| `other_kernel` | 1 | **0** | – | – |" in said


def test_the_page_in_docs_is_what_the_figures_say():
    """Without measurements there is no page, so that none shows figures that nobody measured."""
    assert STORED.exists() == FITS.exists() == PAGE.exists()
    if PAGE.exists():
        assert PAGE.read_text(encoding="utf-8") == page(load(STORED), load(FITS))


# ------------------------------------------------------------------ children


CHILD = """
import json, pathlib, sys, time
target = pathlib.Path(sys.argv[sys.argv.index("--json") + 1])
runs = json.loads(target.read_text())["runs"] if target.exists() else []
status = {statuses}[len(runs)]
if status != 4:
    target.write_text(json.dumps({{"runs": runs + [sys.argv[-1]]}}))
if status == 9:
    time.sleep(60)
sys.exit(status)
"""


def _run(tmp_path, statuses, seconds=30.0) -> tuple[int, int]:
    program = tmp_path / "child.py"
    program.write_text(textwrap.dedent(CHILD).format(statuses=statuses))
    target = tmp_path / "out.json"
    given = (sys.executable, str(program))
    status = command.measured_in_children(("rows",), target, seconds, given)
    return status, len(json.loads(target.read_text())["runs"]) if target.exists() else 0


def test_children_follow_one_another_until_one_ends_by_itself(tmp_path):
    assert _run(tmp_path, [75, -6 % 256, 3, 0]) == (3, 3)


def test_a_child_that_cannot_begin_is_not_started_for_ever(tmp_path):
    assert _run(tmp_path, [4]) == (4, 0)


def test_a_child_that_hangs_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "HANGS", 2)
    assert _run(tmp_path, [9, 0]) == (0, 2)


OFFLINE_CHILD = """
import sys
sys.path.insert(0, {root!r})
from lab_setup.kernels.bench import families, offline
from lab_setup.roofline.ladders import STORED
from tests import kernels_fake as fake
from tests.lesson_pages import said_in
families.FAMILIES = ("fake",)
sys.modules["lab_setup.kernels.bench.fake"] = fake
if {crash!r}:
    compiled = offline._compile
    def crash(launch):
        import os
        if launch.label == {crash!r}:
            os.write(2, b"LLVM ERROR: out of ideas")
            os.abort()
        return compiled(launch)
    offline._compile = crash
sys.exit(offline.main(sys.argv[1:]))
"""


def _compiled(tmp_path, cc: int, crash: str = "") -> list[offline.Fit]:
    program = tmp_path / "child.py"
    program.write_text(OFFLINE_CHILD.format(root=str(offline.ROOT), crash=crash))
    child = lambda name, cc: [sys.executable, str(program), name, str(cc)]  # noqa: E731
    return offline.compiled(["fake"], cc, workers=1, command=child)


def test_launches_are_compiled_without_a_card_into_tritons_cache(
    tmp_path, monkeypatch, fake_family
):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    fits = _compiled(tmp_path, 89)
    assert [fit.label for fit in fits] == ["double 256", "unknown", "double 512"]
    assert fits[0].registers > 0 and fits[0].stack == 0 and fits[0].fits(99 * 1024)
    assert "no_such_name" in fits[1].error and not fits[1].fits(99 * 1024)
    assert len(list((tmp_path / "cache").rglob("*.cubin"))) == 2
    assert offline.without_fit(fits, 99 * 1024) == ["unknown_kernel"]
    said = offline.table(fits, 99 * 1024)
    assert "double 256" in said and "no_such_name" in said
    assert [launch.label for launch in offline._launches("fake", 90)][2] == "hopper"


def test_a_family_without_launches_to_tell_is_named(monkeypatch, fake_family):
    def launches(cc):
        raise TypeError("no such config")
        yield

    monkeypatch.setattr(fake, "launches", launches)
    (fit,) = offline.compiled(["fake"], 89)
    assert fit.error == "TypeError: no such config" and not fit.fits(1 << 20)


def test_a_crash_of_the_compiler_costs_one_launch(tmp_path, monkeypatch, fake_family):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    fits = _compiled(tmp_path, 89, crash="double 256")
    assert "LLVM ERROR: out of ideas" in fits[0].error
    assert not fits[2].error


# ------------------------------------------------------------------ the command


def test_without_a_card_the_command_says_what_can_be_done(monkeypatch, capsys):
    monkeypatch.setattr(command, "gpus", tuple)
    assert lab_setup(["kernels"]) == 2
    assert "--offline 89" in capsys.readouterr().err
    assert lab_setup(["kernels", "--only", "nonsense"]) == 2
    assert "There is no family 'nonsense'" in capsys.readouterr().err
    assert lab_setup(["kernels", "--offline", "42"]) == 2
    assert "No card of compute capability 42" in capsys.readouterr().err


def test_a_file_that_is_no_record_is_refused(tmp_path):
    path = tmp_path / "x.json"
    with pytest.raises(Rejected, match="There is no file"):
        load(path)
    path.write_text("{")
    with pytest.raises(Rejected, match="is not JSON"):
        load(path)
    path.write_text("{}")
    with pytest.raises(Rejected, match="is no record"):
        load(path)
    save(new({"card": "x"}), path)
    assert load(path)["made"] == {"card": "x"}
