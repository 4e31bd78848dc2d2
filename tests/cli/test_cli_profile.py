"""``pmt profile`` as a program: what methods take, on a model and on a board."""

import json

import pytest
from cli_files import check_golden, write_model
from firmware_tools import need_firmware_tools, random_dataset

import pmt
from pmt.cli import main
from pmt.firmware.board.memory import link_firmware
from pmt.firmware.export import export
from pmt.firmware.export.linked import LinkedParts
from pmt.firmware.export.report import PlannedSizes, planned_sizes
from pmt.firmware.export.target import find_target

PAPER14 = ["profile", "cifar10_mcunet", "--method", "paper", "--layers", "paper14"]

pytestmark = pytest.mark.usefixtures("wide_terminal")


def test_all_methods_side_by_side(capsys):
    assert main([*PAPER14, "--batch", "1", "--queries", "50", "--against", "all"]) == 0
    check_golden("profile.txt", capsys.readouterr().out)


def test_figures_as_json(capsys):
    assert main([*PAPER14, "--batch", "2", "--queries", "50", "--json", "-"]) == 0
    figures = json.loads(capsys.readouterr().out)
    (profile,) = figures["profiles"]
    assert (profile["weights"], profile["batch"], profile["queries"]) == (177_456, 2, 50)
    work = profile["macs_per_image"]
    head = 1_600
    assert work["forward_macs"] - head * (1 + 50 * 14) == 7_857_858_304
    assert profile["macs_per_step"] == 2 * work["macs"]
    assert profile["forwards_per_step"] == 2 * 50 * 14
    memory = profile["memory"]
    parts = sum(size for part, size in memory.items() if part not in ("sram", "frozen"))
    assert parts == memory["sram"]


def test_a_plot_is_written(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    plot = tmp_path / "memory.svg"
    assert main([*PAPER14, "--against", "bp_int8", "--plot", str(plot)]) == 0
    assert "activation gradients" in plot.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "adam"], "method='adam' is unknown; choose one of paper, released"),
        (["--method", "mcutrain"], "is for MCUNet's 42 convolutions, this model has 5"),
        (["--method", "tinytrain"], "TinyTrain chooses by the data"),
        (["--method", "mcutrain", "--layers", "B1"], "what is trained follows scheme"),
        (
            ["--method", "mcutrain", "--scheme", "9KB"],
            "scheme='9KB' is neither a file nor one of 49KB",
        ),
        (["--method", "paper", "--against", "bp_int8,adam"], "--against='adam' is unknown"),
        (
            ["--method", "paper", "--scheme", "49KB"],
            "--scheme='49KB' is an option of mcutrain and tinytrain alone: leave it out",
        ),
    ],
)
def test_errors_are_one_line(tmp_path, capsys, arguments, message):
    assert main(["profile", str(write_model(tmp_path)), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


BOTH = ["--method", "weight_layer_wise", "--against", "bp_fp32", "--batch", "1"]


def figures_of(capsys, *arguments: object) -> dict:
    assert main(["profile", *map(str, arguments), "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def test_figures_of_firmware_that_is_linked(capsys):
    need_firmware_tools("make")
    options = ["--queries", "50", "--batch", "1", "--against", "weight_layer_wise,bp_fp32"]
    board = figures_of(capsys, *PAPER14[1:], *options, "--target", "stm32h7b3i-dk", "--link")[
        "board"
    ]
    assert (board["name"], board["ram"], board["flash"]) == ("stm32h7b3i-dk", 1048576, 2097152)
    rows = {row["method"]: row for row in board["methods"]}
    # The 14 layers' 177,456 + 4 x 2,624 bytes, and 163,840 of activations.
    assert rows["paper"]["analytic"] == 351_792
    assert rows["paper"]["planned"]["ram"] == 298_032 + 4_096 + 1_856
    linked = rows["paper"]["linked"]
    assert 520_256 + 78_000 < linked.pop("flash") <= rows["paper"]["planned"]["flash"] == 601_270
    ram = linked.pop("ram")
    assert linked == {"arena": 298_032, "stack": 4_096}
    assert 0 <= rows["paper"]["planned"]["ram"] - ram < 256
    assert rows["weight_layer_wise"]["linked"]["ram"] == ram - 298_032 + 296_048
    assert rows["bp_fp32"]["linked"] is None


def test_figures_of_a_small_model(tmp_path, capsys):
    target = ["--target", "stm32f746g-disco"]
    figures = figures_of(capsys, write_model(tmp_path), *BOTH, "--queries", "4", *target)
    ours, back = figures["board"]["methods"]
    assert ours == {
        "method": "weight_layer_wise",
        "analytic": 2_560 + 1_224 + 4 * 60,  # activations at `depth`, weights, biases
        "frozen": 0,
        "planned": {
            "arena": 10_720,
            "stack": 4_096,
            "variables": 1_856,
            "model": 2_864,
            "code": 78_064,
            "ram": 16_672,
            "flash": 80_928,
        },
        "linked": None,
        "is_bound": False,
        "fits": True,
        "ram_over": 0,
        "flash_over": 0,
    }
    assert back["analytic"] == figures["profiles"][1]["memory"]["sram"]
    assert (back["planned"], back["is_bound"], back["fits"]) == (None, True, True)


def test_what_does_not_fit_is_said_by_how_much_and_not_linked(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # nothing is built
    board = tmp_path / "tiny.toml"
    board.write_text(
        'board = "stm32f746g-disco"\nsupply = "ldo"\ncrystal_hz = 25000000\n'
        "[ram]\norigin = 0x2001_0000\nbytes = 0x1800\n"
        "[flash]\norigin = 0x0800_0000\nbytes = 0x1_0000\n"
    )
    arguments = [str(write_model(tmp_path)), *BOTH, "--target", str(board), "--link"]
    assert main(["profile", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("memory on tiny: 6.0 KB of RAM, 64.0 KB of flash")
    assert lines[start + 1 : start + 5] == [
        "KB                 analytic  planned  flash  verdict",
        "weight_layer_wise       3.9     22.3   79.0  "
        "RAM over by 16,672 bytes, flash over by 15,392 bytes",
        "bp_fp32                24.7        -      -  RAM over by at least 19,120 bytes",
        "nothing is linked: none of these has firmware that fits",
    ]


@pytest.mark.parametrize("target", ["stm32h7b3i-dk", "generic"])
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_what_is_planned_is_what_an_export_writes(tmp_path, target, preset):
    model = pmt.load("fashion_mnist_dscnn")
    options = pmt.preset(preset, layers="B1,head", batch=2, queries=6)
    report = export(
        model,
        target=target,
        out=tmp_path / "fw",
        dataset=random_dataset(model, 2),
        options=options,
        steps=1,
        inferences=0,
    )
    core = options.to_core()
    layers = model.select_layers("B1,head")
    planned = planned_sizes(find_target(target), model, core, layers, 2)
    assert (planned.arena, planned.stack) == (report.arena_bytes, report.stack_bytes)
    assert planned.model == report.model_bytes == 38_368
    assert (planned.ram, planned.flash) == (report.ram_used, report.flash_used)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "esp32"], "target='esp32' is unknown; choose one of generic, qemu"),
        (["--link"], "--link needs --target"),
        (["--link", "--target", "generic"], "target='generic' is a library, which the project"),
        (["--link", "--target", "stm32h7b3i-dk", "--instructions"], "and no --instructions"),
    ],
)
def test_errors_of_boards_are_one_line(tmp_path, capsys, arguments, message):
    assert main(["profile", str(write_model(tmp_path)), *BOTH, *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--clock 0", "--clock needs --instructions; leave it out"),
        ("--cycles-per-instruction 2", "--cycles-per-instruction needs --instructions; leave it"),
        ("--kernels portable", "--kernels needs --instructions; leave it out"),
        (
            "--queries 3",
            "--queries=3 is an option of perturbed forwards, which bp_fp32 has not: leave it out",
        ),
        ("--against paper,,mezo", "--against='paper,,mezo': a name is empty; remove a comma, or"),
        ("--layers conv1,,head", "--layers='conv1,,head': a name is empty; remove a comma, or na"),
    ],
)
def test_options_without_effect_and_empty_names_are_refused(capsys, arguments, message):
    command = ["profile", "fashion_mnist_dscnn", "--method", "bp_fp32", *arguments.split()]
    assert main(command) == 2
    assert capsys.readouterr().err.startswith(f"pmt: error: {message}")


def test_a_missing_compiler_is_named_with_its_package(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    arguments = ["profile", str(write_model(tmp_path)), *BOTH, "--target", "stm32h7b3i-dk"]
    assert main([*arguments, "--link"]) == 2
    error = capsys.readouterr().err
    assert "arm-none-eabi-g++ is not installed, and firmware is linked with it" in error
    assert "apt-get install gcc-arm-none-eabi" in error


def test_a_method_without_firmware_needs_a_board_to_link_for_as_well(tmp_path, capsys):
    arguments = ["profile", str(write_model(tmp_path)), "--method", "bp_fp32", "--link"]
    assert main([*arguments, "--target", "generic"]) == 2
    assert "target='generic' is a library" in capsys.readouterr().err


def test_a_library_has_no_budgets(tmp_path, capsys):
    assert main(["profile", str(write_model(tmp_path)), *BOTH, "--target", "generic"]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("memory on generic: a library, for a board of yours")
    assert lines[start + 1].split() == ["KB", "analytic", "planned", "flash"]


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ("", "the firmware could not be linked: make failed and printed nothing"),
        ("a\nx.cpp:1: error: b\nmake: c\n", "the firmware could not be linked: x.cpp:1: error: b"),
        ("region `RAM' overflowed by 8 bytes\nd\n", "linked: region `RAM' overflowed by 8 bytes"),
    ],
)
def test_what_does_not_link_says_why(tmp_path, monkeypatch, printed, message):
    for name in ("arm-none-eabi-g++", "make"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\ncat << 'END'\n{printed}\nEND\nexit 2\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    planned = PlannedSizes(16, 4096, 0, 16, 0, LinkedParts({}, {}))
    with pytest.raises(ChildProcessError, match=message):
        link_firmware(find_target("stm32h7b3i-dk"), bytes(16), [planned])


def test_a_preset_is_taken_as_a_method_is(capsys):
    printed = []
    for name in ("method", "preset"):
        assert main(["profile", "fashion_mnist_dscnn", f"--{name}", "paper"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    for options, message in (
        (["--preset", "best"], "preset='best' is unknown; choose one of default, paper"),
        (["--preset", "paper", "--method", "paper"], "--method and --preset exclude each other"),
    ):
        assert main(["profile", "fashion_mnist_dscnn", *options]) == 2
        assert message in capsys.readouterr().err
