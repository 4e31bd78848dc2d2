"""The library for any board: its host port trains the same bytes."""

import re
import subprocess
from pathlib import Path

import pytest
from firmware_tools import SMALL, make, need_firmware_tools, small_export
from networks import residual_network
from required import need_tools

import pmt
from pmt import _core
from pmt.train.costs.memory import portable_arena_excess


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    need_tools("make", "g++", packages="make g++")
    out = tmp_path_factory.mktemp("generic") / "fw"
    report = small_export(out, target="generic", steps=3)
    assert report.run == f"make -C {out} run"
    built = make(out, "build/fw")
    assert built.returncode == 0, built.stdout
    return out


def test_it_trains_what_the_host_trains(folder):
    run = make(folder, "run")
    assert run.returncode == 0, run.stdout
    assert run.stdout.splitlines()[-1] == "verify: ok (3 steps, 6 layers, 16 activations)"
    assert "stack: not measured" in run.stdout.splitlines()


def test_a_compiler_that_is_missing_is_named(tmp_path):
    need_tools("make", packages="make")
    small_export(tmp_path / "fw", target="generic")
    run = make(tmp_path / "fw", "run", "CXX=no-such-g++ -m32")
    assert run.returncode != 0
    assert "no-such-g++ was not found: apt-get install g++" in run.stdout.splitlines()


def test_budgets_count_where_they_are_given(tmp_path):
    free = small_export(tmp_path / "free", target="generic")
    assert free.verdict().startswith(f"no budget given: {free.ram_used:,} bytes of RAM, 2,864 of")
    rows = free.memory_table().splitlines()[2:]
    assert [row.split("|")[4].strip() for row in rows] == ["-"] * len(rows)
    given = small_export(tmp_path / "given", target="generic", ram="64K")
    assert given.verdict().startswith(f"fits: {given.ram_used:,} of 65,536 bytes of RAM, 2,864 of")
    with pytest.raises(ValueError, match="ram=8192 is too small: training needs "):
        small_export(tmp_path / "small", target="generic", ram="8K")
    with pytest.raises(ValueError, match="flash=1024 is too small: the firmware needs at least"):
        small_export(tmp_path / "small", target="generic", flash="1K")


def test_without_an_earlier_run_nothing_resumes(folder):
    (folder / "build" / "card.img").unlink(missing_ok=True)
    run = make(folder, "resume")
    assert run.returncode != 0
    assert run.stdout.splitlines()[0] == (
        "no card of an earlier run (build/card.img): make run first"
    )


def test_it_needs_the_functions_of_the_board_and_no_others(folder):
    """The library leaves undefined the functions of a board, and those any C++ compiler calls."""

    command = ["nm", "-C", "--format=posix", "--undefined-only", folder / "build" / "libpmt.a"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    missing = {line.rsplit(" U", 1)[0].split("(")[0] for line in listed.splitlines()}
    assert {name for name in missing if name.startswith("pmt::board::")} == {
        f"pmt::board::{name}"
        for name in (
            "feed_watchdog", "milliseconds", "open_card", "print", "read_blocks", "set_led",
            "stack_use", "write_blocks",
        )
    }  # fmt: skip
    assert not {"malloc", "free", "printf"} & missing
    assert not {name for name in missing if name.startswith("operator ")}


def test_the_documents_list_what_it_takes_of_a_c_library(tmp_path):
    """Compiled for a processor with an FPU and for one without."""
    need_firmware_tools("make")
    text = (Path(__file__).parents[2] / "docs" / "guides" / "firmware.md").read_text()
    told = re.search(
        r"and calls (`.*?) and the\s+compiler's run-time; without\s+an\s+FPU also (`\w+`)", text
    )
    assert told is not None
    functions, without_fpu = (set(re.findall(r"`(\w+)`", part)) for part in told.groups())
    for flags, expected in (
        ("-mcpu=cortex-m7 -mthumb -mfpu=fpv5-sp-d16 -mfloat-abi=hard", functions),
        ("-mcpu=cortex-m0plus -mthumb", functions | without_fpu),
    ):
        out = tmp_path / flags.split()[0]
        small_export(out, target="generic")
        tools = ("CXX=arm-none-eabi-g++", "AR=arm-none-eabi-ar", f"TARGET_FLAGS={flags}")
        built = make(out, "build/libpmt.a", *tools)
        assert built.returncode == 0, built.stdout
        listed = subprocess.run(
            ["arm-none-eabi-nm", "--format=posix", str(out / "build" / "libpmt.a")],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        symbols = [line.split()[:2] for line in listed.splitlines() if len(line.split()) > 1]
        defined = {name for name, kind in symbols if kind not in "Uw"}
        missing = {name for name, kind in symbols if kind == "U"} - defined
        board = {name for name in missing if name.startswith("_ZN3pmt5board")}
        run_time = {name for name in missing if name.startswith("__aeabi_")}
        assert missing - board - run_time == expected


def test_it_has_neither_start_up_code_nor_a_c_library(folder):
    present = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert "common/memory.cpp" not in present
    assert "common/semihosting.cpp" not in present
    assert not any(name.startswith("drivers/") for name in present)
    assert "board/generic/port_host.cpp" in present


def test_its_arena_suffices_for_the_kernels_of_any_processor(tmp_path):
    """Without Arm's DSP extension the kernels' scratch is laid out in another way."""
    arenas = {
        target: small_export(tmp_path / target, target=target).arena_bytes
        for target in ("generic", "qemu-mps2-an500")
    }
    model, options = residual_network(), SMALL.to_core()
    layers = model.select_layers(SMALL.layers)
    excess = portable_arena_excess(model.core, options, layers, SMALL.batch)
    assert arenas["generic"] - arenas["qemu-mps2-an500"] == excess > 0


def test_its_arena_is_measured_with_the_streams_of_the_card():
    """The portable kernels alone would stream other ops, in another arena."""
    model = pmt.load("cifar10_mcunet")
    options = pmt.preset("paper", queries=50).to_core()
    given = (model.core, options, list(model.select_layers("B2")), 1)
    card = _core.DeviceMemory(*given)
    alone = _core.DeviceMemory(*given, portable=True)
    board = _core.DeviceMemory(*given, portable=True, streams=card.segments())
    assert board.segments() == card.segments() != alone.segments()
    assert board.arena_bytes - alone.arena_bytes == 1_408
    none = _core.DeviceMemory(*given, portable=True, streams=[])
    assert none.segments() == []
