"""``pmt profile --instructions``: counts from QEMU."""

import json
import re
from pathlib import Path

import pytest
from cli_files import write_model
from firmware_tools import EMULATOR, need_firmware_tools, random_dataset

import pmt
from pmt.cli import main
from pmt.firmware.board.instructions import KERNELS, count_instructions
from pmt.firmware.export import export
from pmt.firmware.export.report import (
    INSTRUCTIONS_OF_A_MAC,
    estimated_instructions,
    project_latency,
)
from pmt.firmware.export.target import find_target


def test_counts_of_ops_and_of_a_step(tmp_path, capsys):
    need_firmware_tools(EMULATOR, "make")
    arguments = ["profile", str(write_model(tmp_path)), "--instructions"]
    arguments += ["--kernels", "arm_dsp,portable", "--method", "default", "--queries", "4"]
    arguments += ["--clock", "100", "--cycles-per-instruction", "0.5"]
    assert main([*arguments, "--json", str(tmp_path / "counts.json")]) == 0
    figures = json.loads((tmp_path / "counts.json").read_text())
    ours, portable = figures["instructions"]
    assert (ours["kernels"], portable["kernels"]) == ("arm_dsp", "portable")
    assert [op["name"] for op in ours["ops"]] == [op["name"] for op in portable["ops"]]
    assert 0 < ours["forward_instructions"] < portable["forward_instructions"]
    assert ours["forward_instructions"] == sum(op["instructions"] for op in ours["ops"])
    calls = {part: counted["calls"] for part, counted in ours["step"].items()}
    assert calls == {part: counted["calls"] for part, counted in portable["step"].items()}
    assert calls["layers"] > 4 * 2
    printed = capsys.readouterr().out
    projected = 1e3 * ours["forward_instructions"] * 0.5 / 100e6
    assert f"arm_dsp: forward {projected:,.1f} ms" in printed
    assert "x 0.5 cycles per instruction / 100 MHz (as given)" in printed
    assert re.search(r"^beyond its forwards +[\d,]+ +[\d.]+% +[\d,]+ +[\d.]+%$", printed, re.M)
    assert ours["main_pass_instructions"] > ours["forward_instructions"]
    assert ours["whole_forwards_instructions"] > 8 * ours["forward_instructions"]


def test_the_papers_training_of_mcunet_stays_within_its_instructions():
    need_firmware_tools(EMULATOR, "make")
    options = pmt.preset("paper", layers="paper14", queries=10)
    (count,) = count_instructions(pmt.load("cifar10_mcunet"), options=options)
    million = 1_000_000
    assert len(count.layers) == 43
    assert 30 * million < sum(op.instructions for op in count.layers) < 38 * million
    assert count.forward < count.main_pass < 45 * million  # in line buffers, with adds and the mean
    assert 2_300 * million < count.step_forwards < 2_800 * million
    beyond = count.step_total - count.step_forwards
    assert 0.01 < beyond / count.step_forwards < 0.10
    assert 0.01 < count.step_total / count.whole_forwards - 1.0 < 0.10  # with what streams repeat


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kernels", "avx2"], "kernels='avx2' is unknown; choose one of arm_dsp, portable"),
        (["--method", "bp_int8"], "method='bp_int8' is unknown"),
        (["--target", "esp32"], "target='esp32' is unknown; choose one of generic, qemu"),
        (["--clock", "0"], "clock=0.0 must be a finite number above 0"),
        (["--cycles-per-instruction", "nan"], "cycles-per-instruction=nan must be a finite"),
        (["--batch", "2"], "--batch cannot be given with --instructions; leave it out"),
        (["--kernels", "portable,"], "--kernels='portable,': a name is empty; remove a comma"),
    ],
)
def test_errors_are_one_line(tmp_path, capsys, arguments, message):
    assert main(["profile", str(write_model(tmp_path)), "--instructions", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("target", "mhz"),
    [("stm32f746g-disco", 216.0), ("stm32h7b3i-dk", 280.0), ("board.toml", 120.0)],
)
def test_the_clock_is_that_of_the_target(tmp_path, target, mhz):
    if target.endswith(".toml"):
        file = tmp_path / target
        wiring = 'supply = "ldo"\ncrystal_hz = 0\n'
        file.write_text(f'board = "stm32f746g-disco"\n{wiring}clock_hz = 120_000_000\n')
        target = str(file)
    latency = project_latency(find_target(target), None, 2.0)
    assert latency.clock_mhz == mhz
    assert latency.clock_source == f"that of {Path(target).stem}"
    assert latency.seconds(3_000_000) == 6.0 / mhz
    assert project_latency(find_target(target), 50.0, None).clock_mhz == 50.0


def test_an_emulated_board_has_the_emulators_speed():
    board = find_target("qemu-mps2-an500")
    latency = project_latency(board)
    assert latency.seconds(200_000_000) == 1.0
    assert latency.factors() == (
        "instructions x 1 cycles per instruction / 200 MHz (QEMU's speed, roughly)"
    )
    assert project_latency(board, None, 2.0).clock_mhz == 25.0


@pytest.mark.parametrize(
    ("name", "layers"),
    [("cifar10_mcunet", "B3"), ("cifar10_mcunet", "B1"), ("cifar10_small", "B2")],
)
def test_an_export_estimates_what_is_counted(tmp_path, name, layers):
    """One model of latency: an export estimates the instructions that a profile counts.

    Of one image, as a profile does: with several a device may repeat forwards for lack of memory.
    """
    need_firmware_tools(EMULATOR, "make")
    model = pmt.load(name)
    options = pmt.preset("default", layers=layers, batch=1, queries=10, preparation="head")
    (count,) = count_instructions(model, options=options)
    report = export(
        model,
        target="stm32f746g-disco",
        out=tmp_path / "fw",
        dataset=random_dataset(model, 4),
        options=options,
        steps=1,
        inferences=0,
    )
    assert report.instructions == pytest.approx(count.step_total, rel=0.15)
    latency = project_latency(find_target("stm32f746g-disco"))
    assert report.seconds == latency.seconds(report.instructions)
    assert f"projected: {latency.factors()}" in str(report)


def test_the_estimate_of_a_small_network_is_as_far_off_as_the_documents_say():
    need_firmware_tools(EMULATOR, "make")
    model = pmt.load("fashion_mnist_dscnn")
    options = pmt.preset("default", rule="by_dimension", queries=10, batch=1)
    (count,) = count_instructions(model, options=options)
    (head,) = [op for op in count.ops if op.kind == "fully_connected"]
    estimated = INSTRUCTIONS_OF_A_MAC["arm_dsp"]["fully_connected"]
    assert estimated == pytest.approx(head.instructions / head.macs, rel=0.05)
    assert count.step_total == pytest.approx(569e6, rel=0.02)  # lab/pages/performance.md


@pytest.mark.parametrize("kernels", KERNELS)
def test_the_estimate_of_a_forward_is_what_is_counted(kernels):
    need_firmware_tools(EMULATOR, "make")
    model = pmt.load("cifar10_mcunet")
    (count,) = count_instructions(model, kernels=[kernels])
    for kind in ("conv2d", "depthwise_conv2d"):
        ops = [op for op in count.ops if op.kind == kind]
        counted = sum(op.instructions for op in ops) / sum(op.macs for op in ops)
        assert INSTRUCTIONS_OF_A_MAC[kernels][kind] == pytest.approx(counted, rel=0.05)
    assert sum(estimated_instructions(model.core, kernels)) == pytest.approx(
        count.forward, rel=0.05
    )


def test_a_method_or_instructions_must_be_asked_for(tmp_path, capsys):
    assert main(["profile", str(write_model(tmp_path))]) == 2
    assert "--method is missing" in capsys.readouterr().err


def test_a_missing_compiler_is_named_with_its_package(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["profile", str(write_model(tmp_path)), "--instructions"]) == 2
    error = capsys.readouterr().err
    assert "arm-none-eabi-g++ is not installed" in error
    assert "apt-get install gcc-arm-none-eabi" in error
