"""Which loads without ``other`` are proved to be harmless, and what the proof must not cover."""

import pytest

from autograder.grading import judge
from autograder.grading.ahead import warm_job
from autograder.ir.lanes import settled
from autograder.ir.parse import parse

HEAD = """
tt.func public @k(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32) {
  %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %ns = tt.splat %n : i32 -> tensor<16xi32>
  %m = arith.cmpi slt, %r, %ns : tensor<16xi32>
  %odd = arith.cmpi sgt, %r, %ns : tensor<16xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %p = tt.addptr %xs, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %os = tt.splat %out : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %o = tt.addptr %os, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %v = tt.load %p, %m : tensor<16x!tt.ptr<f32>>
"""
STORE = "  tt.store %o, {}, {} : tensor<16x!tt.ptr<f32>>\n"
SUM = "  %w = arith.addf %v, %v : tensor<16xf32>\n"
BOTH = "  %b = arith.{} {} : tensor<16xi1>\n"
IF = "  scf.if %c {{\n{}  }}\n"
CASES = {
    "stored under its own mask": (SUM + STORE.format("%w", "%m"), True),
    "stored under its mask and more": (
        BOTH.format("andi", "%odd, %m") + STORE.format("%v", "%b"),
        True,
    ),
    "stored under its mask or another": (
        BOTH.format("ori", "%odd, %m") + STORE.format("%v", "%b"),
        False,
    ),
    "stored under another mask": (SUM + STORE.format("%w", "%odd"), False),
    "stored everywhere": ("  tt.store %o, %v : tensor<16x!tt.ptr<f32>>\n", False),
    "two stores, one of them wider": (STORE.format("%v", "%m") + STORE.format("%v", "%odd"), False),
    "an offset": (
        "  %i = arith.fptosi %v : tensor<16xf32> to tensor<16xi32>\n"
        "  %q = tt.addptr %os, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>\n"
        "  tt.store %q, %v, %m : tensor<16x!tt.ptr<f32>>\n",
        False,
    ),
    "a mask": (
        "  %z = arith.cmpf ogt, %v, %v : tensor<16xf32>\n"
        + BOTH.format("andi", "%z, %m")
        + STORE.format("%v", "%b"),
        False,
    ),
    "summed over the block": (
        '  %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({\n  ^bb0(%a: f32, %d: f32):\n'
        "    %t = arith.addf %a, %d : f32\n    tt.reduce.return %t : f32\n"
        "  }) : (tensor<16xf32>) -> f32\n"
        "  tt.store %out, %s : !tt.ptr<f32>\n",
        False,
    ),
    "stored in a branch": (
        "  %c = arith.cmpi slt, %n, %n : i32\n" + IF.format(STORE.format("%v", "%m")),
        False,
    ),
    "branches that use one name for two masks": (
        "  %c = arith.cmpi slt, %n, %n : i32\n"
        + IF.format(BOTH.format("andi", "%odd, %m"))
        + BOTH.format("andi", "%odd, %odd")
        + STORE.format("%v", "%b"),
        False,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_proved(case):
    body, harmless = CASES[case]
    function = parse(f"{HEAD}{body}  tt.return\n}}\n")
    assert settled(function) == (frozenset({"%v"}) if harmless else frozenset())


def test_the_judge_warms_up_with_a_kernel_that_runs():
    lines = []
    judge.perform(warm_job(), lines.append, lambda: None)
    kinds = {fault["kind"] for fault in lines[0]["json"]["faults"]}
    assert kinds == {"values", "interface"}, (
        kinds
    )  # it copies x; cases behind the first have no record
