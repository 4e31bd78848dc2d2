"""Studies of memory and multiply-accumulates: what is counted now is what the page shows."""

import json
from types import SimpleNamespace

import pytest
from firmware_tools import EMULATOR, need_firmware_tools

from pmt_lab.reproduce import STUDIES, costs, results
from pmt_lab.reproduce.study import Context, published

NAMES = ("memory-overview", "full-model-cost", "sparse-cost", "memory-formulas")
# Figures that other programs or sweeps make.
ELSEWHERE = ("torch_process_bytes", "instructions", "grids", "seconds")
COUNTED = {
    "latency": {"clock_mhz": 280.0},
    "instructions": [
        {
            "kernels": "arm_dsp",
            "forward_instructions": 37_072_703,
            "step": {"forwards": {"instructions": 12_000_000_000}, "update": {"instructions": 7}},
        }
    ],
}


def counted(data):
    """Return data as a result file gives it back, without what is measured elsewhere."""
    known = json.loads(json.dumps(data, allow_nan=False))
    return {name: value for name, value in known.items() if name not in ELSEWHERE}


@pytest.mark.parametrize("name", NAMES)
def test_costs_are_those_of_the_versioned_result(name, tmp_path):
    data = STUDIES[name].measure("small", Context(tmp_path / name, collect=True))
    assert counted(data) == counted(results.load(name)["data"])


def test_without_tools_no_instruction_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda tool: None)
    study = STUDIES["full-model-cost"]
    data = study.measure("full", Context(tmp_path))
    assert data["instructions"] is None
    rows = {row.what: row for row in study.compare(data, published(study.name))}
    for name in ("BP-free latency", "BP-free end-to-end time", "BP-free step over an inference"):
        assert (rows[name].ours, rows[name].verdict) == (None, "not run")
        assert rows[name].why.endswith("needs arm-none-eabi-g++ and qemu-system-arm")


def test_counted_instructions_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda tool: tool)
    counts = []

    def run(command, **given):
        counts.append(command[-3])
        return SimpleNamespace(returncode=0, stdout=json.dumps(COUNTED))

    monkeypatch.setattr(costs.subprocess, "run", run)

    def count(target):
        return costs._instructions("cifar10_mcunet", "B3", 50, target, Context(tmp_path))

    first = count("stm32f746g-disco")
    assert (first["step"], first["megahertz"]) == (12_000_000_007, 280.0)
    assert count("stm32f746g-disco") == first
    assert counts == ["stm32f746g-disco"]
    count("stm32h7b3i-dk")  # what is kept is of another board
    assert counts == ["stm32f746g-disco", "stm32h7b3i-dk"]


def test_instructions_are_those_of_pmt_profile(tmp_path):
    need_firmware_tools("make", EMULATOR)
    told = []
    context = Context(tmp_path, tell=told.append)
    given = ("fashion_mnist_dscnn", "B4", 2, "stm32f746g-disco", context)
    found = costs._instructions(*given)
    assert told == [
        "pmt profile fashion_mnist_dscnn --instructions --method paper --layers B4 --queries 2 "
        "--target stm32f746g-disco"
    ]
    assert (found["kernels"], found["megahertz"]) == ("arm_dsp", 216.0)
    assert 2e6 < found["forward"] < found["step"] < 40e6
