"""A firmware links the parts of the core that its model and options use, and no others."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from firmware_tools import TARGET, emulate, make, small_export
from networks import residual_network

import pmt
from pmt._util.native_files import core_folder
from pmt.firmware.export import export
from pmt.firmware.export.linked import LINKED, linked_parts


@pytest.mark.parametrize(
    ("options", "losses", "generators", "estimators"),
    [
        ({}, 0b1, 0b1, 0b1100),
        ({"rule": "weight", "generator": "xorshift32"}, 0b1, 0b10, 0b1),
        ({"rule": "node", "loss": "entropy", "layers": "B1"}, 0b1000, 0b1, 0b10),
    ],
)
def test_the_parts_that_options_use(options, losses, generators, estimators):
    model = residual_network()
    chosen = pmt.preset("default", **options)
    layers = model.select_layers(chosen.layers)
    found = linked_parts(model.core, [(chosen.to_core(), layers)])
    assert found.bits == {
        "ops": 0b10011110,  # conv2d, depthwise_conv2d, fully_connected, add, mean
        "depthwise_sides": 0b1000,
        "losses": losses,
        "generators": generators,
        "estimators": estimators,
    }


def test_a_predictor_trains_nothing():
    found = linked_parts(residual_network().core, [])
    assert (found.bits["estimators"], found.bits["losses"], found.bits["generators"]) == (0, 0, 0)
    header = found.headers()["core/base/linked/estimators.hpp"]
    assert "constexpr uint32_t estimators = 0x0;" in header.decode()


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("ops", ["kernels/arm_dsp/arm_dsp", "kernels/portable/portable", "ops/op"]),
        ("depthwise_sides", ["kernels/arm_dsp/arm_dsp_depthwise"]),
        ("losses", ["zo/loss", "zo/options"]),
        ("generators", ["zo/options", "zo/perturbation"]),
    ],
)
def test_few_sources_are_compiled_again_for_other_parts(firmware_objects, name, sources):
    core = firmware_objects / "build" / "core"
    found = [rule for rule in core.rglob("*.d") if f"{LINKED}/{name}.hpp" in rule.read_text()]
    assert sorted(str(rule.relative_to(core).with_suffix("")) for rule in found) == sources


def text_bytes(out: Path) -> int:
    sizes = ["arm-none-eabi-size", str(out / "build" / "fw.elf")]
    shown = subprocess.run(sizes, capture_output=True, text=True, check=True).stdout
    return int(shown.split()[6])


def test_the_bundled_network_takes_108_kilobytes_of_flash(tmp_path):
    out = tmp_path / "fw"
    data = pmt.datasets.bundled("train").take(32)
    options = pmt.preset("default", layers="B4,head", batch=32, queries=8)
    model = pmt.load("fashion_mnist_dscnn")
    report = export(
        model,
        target=TARGET,
        like="stm32f746g-disco",
        out=out,
        dataset=data,
        options=options,
        steps=1,
    )
    assert make(out, "build/fw.elf").returncode == 0
    program = str(out / "build" / "fw.elf")
    shown = ["arm-none-eabi-nm", "-C", program]
    names = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    for part in ("arm_dsp::mean", "convolve_plane<3", "cross_entropy", "PooledGradient"):
        assert part in names
    for part in ("max_pool", "average_pool", "convolve_plane<5", "xorshift", "entropy_gradient("):
        assert part not in names.replace("cross_entropy_gradient(", "")
    text = text_bytes(out)
    assert 106_000 < text < 110_000 < report.flash_used < 120_000
    # With the core's own headers everything is linked, trials of states, too: 15 KB more.
    for header in (core_folder().parent / LINKED).iterdir():
        shutil.copyfile(header, out / LINKED / header.name)
    assert make(out, "build/fw.elf").returncode == 0
    assert 14_500 < text_bytes(out) - text < 15_500


UNLINKED = "the program was built without this loss, generator, estimator or input stage"


@pytest.mark.parametrize(
    ("name", "bits", "error"),
    [
        ("losses", "0x2", UNLINKED),
        ("generators", "0x2", UNLINKED),
        ("estimators", "0x1", UNLINKED),
        ("ops", "0x8e", "unknown kind of op"),  # without add
    ],
)
def test_what_is_not_linked_is_an_error(name, bits, error, tmp_path):
    out = tmp_path / "fw"
    small_export(out)
    header = out / LINKED / f"{name}.hpp"
    text, changed = re.subn(rf" {name} = 0x\w+;", f" {name} = {bits};", header.read_text())
    assert changed == 1
    header.write_text(text)
    ok, log = emulate(out)
    assert not ok
    assert error in "\n".join(log)
