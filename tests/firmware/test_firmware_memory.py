"""Firmware that trains MCUNet takes the memory that was planned, and no more."""

import pytest
from firmware_tools import (
    TARGET,
    check_linked,
    emulate,
    make,
    random_dataset,
    share_objects,
    small_export,
)

import pmt
from pmt.firmware.board.memory import linked_sizes
from pmt.firmware.export import export
from pmt.firmware.export.task import make_task
from pmt.firmware.monitor import TrainingLog
from pmt.train.costs.memory import arena_bytes


@pytest.mark.parametrize(
    ("layers", "arena"),
    [
        ("all", 606736),
        ("paper14", 298032),
        ("B1", 106032),
        ("B2", 117088),
        ("B3", 126528),
        ("B4", 231360),
        ("head", 92448),
    ],
)
def test_the_arenas_that_the_documents_give(layers, arena):
    model = pmt.load("cifar10_mcunet")
    task = make_task(
        model,
        dataset=random_dataset(model, 1),
        options=pmt.preset("paper", queries=50, batch=1),
        layers=layers,
        steps=1,
        batch=1,
        inferences=0,
    )
    given = (task.model.core, task.options, task.layers, task.batch)
    assert arena_bytes(*given) == arena


@pytest.mark.parametrize(
    ("layers", "options", "arena", "trained"),
    [
        ("B3", pmt.preset("paper", queries=2), 124032, 3),
        # In a stream, its sums of one layer in groups of channels.
        ("B2", pmt.preset("default", queries=2, rule="pooled"), 124368, 4),
    ],
    ids=["paper-B3", "pooled-B2"],
)
def test_a_block_trains_in_the_emulator_in_the_memory_that_was_planned(
    tmp_path, firmware_objects, layers, options, arena, trained
):
    model = pmt.load("cifar10_mcunet")
    report = export(
        model,
        target=TARGET,
        like="stm32f746g-disco",
        out=tmp_path / "fw",
        dataset=random_dataset(model, 3),
        options=options,
        layers=layers,
        steps=3,
        batch=1,
        inferences=1,
    )
    assert report.arena_bytes == arena
    share_objects(firmware_objects, report.path)
    ok, lines = emulate(report.path)
    linked = linked_sizes(report.path / "build" / "fw.elf")
    assert (linked.arena, linked.stack, linked.ram) == (arena, 4096, arena + 4096 + 1792)
    log = TrainingLog()
    for line in lines:
        log.read(line)
    # The ten logits, 40 bytes, are last; the arena's size is a multiple of 16.
    assert log.memory["arena"] == (arena - 8, arena)
    used, stack = log.memory["stack"]
    assert stack == 4096
    assert used < 3072
    assert log.verdict == f"ok (3 steps, {trained} layers, 51 activations)"
    assert ok


@pytest.mark.parametrize(
    ("board", "layers", "kilobytes"),
    [
        ("stm32h7b3i-dk", "all", 600),
        ("stm32h7b3i-dk", "paper14", 340),
        ("stm32f746g-disco", "B1", 256),
        ("stm32f746g-disco", "B2", 160),
        ("stm32f746g-disco", "B3", 160),
        ("stm32f746g-disco", "B4", 256),
    ],
)
def test_mcunet_links_for_the_papers_boards(tmp_path, firmware_objects, board, layers, kilobytes):
    model = pmt.load("cifar10_mcunet")
    report = export(
        model,
        target=board,
        out=tmp_path / "fw",
        dataset=random_dataset(model, 1),
        options=pmt.preset("paper", queries=50, batch=1),
        layers=layers,
        steps=1,
        batch=1,
        inferences=0,
    )
    assert report.ram_used <= kilobytes * 1024
    share_objects(firmware_objects, report.path)
    built = make(report.path)
    assert built.returncode == 0, built.stdout
    check_linked(report)


def test_a_write_beyond_the_arena_is_no_success(tmp_path, firmware_objects):
    report = small_export(tmp_path / "fw", like="stm32f746g-disco", steps=1)
    share_objects(firmware_objects, report.path)
    program = report.path / "app" / "main.cpp"
    text = program.read_text()
    end = "  return session.report();"
    assert text.count(end) == 1
    beyond = "  board::arena().data[board::arena().bytes + 99] = 1;\n"
    program.write_text(text.replace(end, beyond + end))
    ok, log = emulate(report.path)
    assert not ok
    size = report.arena_bytes
    assert f"arena: {size + 100} of {size} bytes used at most" in log
    assert log[-1] == "verify: arena: something wrote beyond its end"
