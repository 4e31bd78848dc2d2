"""The repr of a plan."""

from __future__ import annotations

from sweep_files import write_grid

from pmt_lab.sweep import plan, read_grid


def test_a_plan_prints_its_methods(tmp_path):
    found = plan(read_grid(write_grid(tmp_path, macs=1e7)))
    macs = {m: sum(r.macs for r in found.runs if r.method == m) / 1e9 for m in ("default", "paper")}
    assert repr(found) == (
        "10 runs; residual, 8 held-out and 20 test images\n"
        "method         layers  preparation  runs  GMAC\n"
        "no_adaptation          none            2   0.0\n"
        f"default        B2      align+head      4  {macs['default']:4.1f}\n"
        f"paper          B2      none            4  {macs['paper']:4.1f}"
    )
