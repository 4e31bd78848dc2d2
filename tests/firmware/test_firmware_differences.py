"""Messages of the board when something is not as it should be."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from firmware_tools import TARGET, emulate, make, random_dataset, small_export
from networks import residual_network

import pmt
from pmt.firmware.export import export
from pmt.firmware.export.card import Expected, build_card, compute_expected
from pmt.firmware.export.task import make_task
from pmt.model.card import BLOCK, CardHeader, pack_blocks, pack_records

OPTIONS = pmt.preset("default", batch=3, queries=4, preparation="align")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("firmware") / "fw"
    small_export(folder, options=OPTIONS)
    return folder


def make_card(change: Callable[[Expected], Expected]) -> bytes:
    """The project's card with other expected results."""
    model = residual_network()
    data = random_dataset(model, 9)
    task = make_task(model, dataset=data, options=OPTIONS, steps=5)
    return build_card(task, change(compute_expected(task)))


def run_with(project: Path, card: bytes) -> tuple[bool, str]:
    ok, log = log_with(project, card)
    return ok, log[-1]


def log_with(project: Path, card: bytes) -> tuple[bool, list[str]]:
    original = (project / "card.img").read_bytes()
    (project / "card.img").write_bytes(card)
    try:
        ok, log = emulate(project)
    finally:
        (project / "card.img").write_bytes(original)
    return ok, log


def test_the_rebuilt_card_is_the_exported_one(project):
    assert make_card(lambda expected: expected) == (project / "card.img").read_bytes()


def test_a_flipped_weight_is_named(project):
    def flip(expected: Expected) -> Expected:
        weights, bias = expected.parameters[3][2]
        expected.parameters[3][2] = (weights ^ 1, bias)
        return expected

    ok, verdict = run_with(project, make_card(flip))
    assert not ok
    device, host = re.fullmatch(
        r"verify: step 3 layer depth weights differ \(device crc (\w{8}), host crc (\w{8})\)",
        verdict,
    ).groups()
    assert int(device, 16) ^ int(host, 16) == 1


def test_only_the_first_difference_is_named(project):
    def flip(expected: Expected) -> Expected:
        for step in (1, 4):
            weights, bias = expected.parameters[step][5]
            expected.parameters[step][5] = (weights, bias ^ 0x80000000)
        return expected

    ok, log = log_with(project, make_card(flip))
    assert not ok
    assert log[-4:-1] == [
        "verify: outputs of ops: 16 equal",
        "verify: losses, hits, changes: 5 equal",
        "verify: weights, biases: 60 compared, 2 differ",
    ]
    assert log[-1].startswith("verify: step 1 layer head biases differ (device crc ")


def test_a_different_activation_is_named(project):
    def flip(expected: Expected) -> Expected:
        expected.activations[1][4] ^= 1
        return expected

    ok, verdict = run_with(project, make_card(flip))
    assert not ok
    assert verdict.startswith("verify: inference 1 op sum activation differs (device crc ")


def test_a_different_loss_is_named(project):
    sums = []

    def change(expected: Expected) -> Expected:
        sums.append(expected.results[2]["loss_sum"])
        expected.results[2]["loss_sum"] += 1
        return expected

    ok, verdict = run_with(project, make_card(change))
    assert not ok
    assert verdict == f"verify: step 2 loss sum differs (device {sums[0]}, host {sums[0] + 1})"


def flip(card: bytes, place: int) -> bytes:
    return card[:place] + bytes([card[place] ^ 4]) + card[place + 1 :]


def with_header(card: bytes, **changes: Any) -> bytes:
    header = CardHeader.unpack(card)._replace(**changes)
    return pack_blocks(header.pack(), 0) + card[BLOCK:]


def first_block(card: bytes, section: str) -> int:
    return CardHeader.unpack(card).sections[section].first


NO_CARD = "this is not a card of pmt export, or of another version, or its header is damaged"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda card: card[:-512], "the card is smaller than its header says"),
        (
            lambda card: card[:100],
            "block 0 cannot be read: it lies beyond the end of the card (1 try)",
        ),
        (lambda card: b"X" + card[1:], NO_CARD),
        (lambda card: flip(card, 511), NO_CARD),
        (lambda card: with_header(card, magic=b"PMTX"), "this is not a card of pmt export"),
        (
            lambda card: with_header(card, version=2),
            "the card has a version that this firmware does not read",
        ),
        (
            lambda card: with_header(card, steps=6),
            "a section does not have the size its counts give",
        ),
        (lambda card: with_header(card, first_slot=2), "a section lies outside the card"),
        (
            lambda card: with_header(card, slot_blocks=1),
            "the slots of the checkpoints lie outside the card",
        ),
    ],
)
def test_a_damaged_card_is_refused(project, damage, message):
    ok, verdict = run_with(project, damage((project / "card.img").read_bytes()))
    assert not ok
    assert verdict == f"verify: card: {message}"


@pytest.mark.parametrize("section", ["options", "step_list", "sample_list", "parameters"])
def test_a_damaged_block_is_named(project, section):
    card = (project / "card.img").read_bytes()
    block = first_block(card, section)
    ok, verdict = run_with(project, flip(card, 512 * block + 7))
    assert not ok
    assert verdict == (
        f"verify: card: block {block} cannot be read: it does not hold what it should (4 tries)"
    )


def test_streams_of_another_training_are_refused(project):
    card = (project / "card.img").read_bytes()
    section = CardHeader.unpack(card).sections["streams"]
    stream = pack_records("streams", [(6, 7, 1)])  # into the head
    assert section.size == len(stream)
    block = pack_blocks(stream, section.first)
    begin = BLOCK * section.first
    ok, verdict = run_with(project, card[:begin] + block + card[begin + BLOCK :])
    assert not ok
    assert verdict.startswith("verify: trainer: ops that were chosen to stream cannot: they are of")


def test_a_card_of_another_model_is_refused(project, tmp_path):
    model = residual_network(seed=5)
    data = random_dataset(model, 9)
    export(model, target=TARGET, out=tmp_path / "other", dataset=data, options=OPTIONS)
    ok, verdict = run_with(project, (tmp_path / "other" / "card.img").read_bytes())
    assert not ok
    assert verdict == "verify: card: the card was made for another model: export again"


def exported(folder: Path, **budgets: int) -> pmt.firmware.export.ExportReport:
    return small_export(folder, options=OPTIONS, **budgets)


def test_an_arena_that_is_too_small_says_how_much_it_takes(tmp_path):
    size = exported(tmp_path / "fw").arena_bytes
    config = tmp_path / "fw" / "model" / "config.hpp"
    config.write_text(config.read_text().replace(f"{size};", f"{size - 16};"))
    ok, log = emulate(tmp_path / "fw")
    assert not ok
    assert log[0] == f"arena: {size - 16} bytes, at least {size} needed"
    assert log[-1] == "verify: trainer: the arena is smaller than the plan needs"


def test_a_stack_that_is_too_small_is_reported(tmp_path):
    exported(tmp_path / "fw", stack=1024)
    ok, log = emulate(tmp_path / "fw")
    assert not ok
    assert "export with a larger one" in log[-1]


@pytest.mark.parametrize(
    ("region", "origin"),
    [("RAM", "(rwx)  : ORIGIN = 0x20000000"), ("FLASH", "(rx) : ORIGIN = 0x00000000")],
)
def test_what_does_not_fit_a_region_does_not_link(tmp_path, region, origin):
    exported(tmp_path / "fw")
    script = tmp_path / "fw" / "board" / TARGET / "link.ld"
    text = script.read_text()
    line = f"{region} {origin}, LENGTH = 4194304"
    assert line in text
    script.write_text(text.replace(line, f"{region} {origin}, LENGTH = 8192"))
    built = make(tmp_path / "fw")
    assert built.returncode != 0
    assert f"region `{region}' overflowed by" in built.stdout


def test_the_build_prints_the_use_of_memory(tmp_path):
    exported(tmp_path / "fw", ram="256K", flash="1M")
    built = make(tmp_path / "fw")
    assert built.returncode == 0, built.stdout
    assert re.search(r"FLASH: +\d+ B +1 MB", built.stdout)
    assert re.search(r"RAM: +\d+ B +256 KB", built.stdout)
    assert "warning" not in built.stdout


def test_a_heap_does_not_link(tmp_path):
    exported(tmp_path / "fw")
    main = tmp_path / "fw" / "app" / "main.cpp"
    text = main.read_text().replace(
        "int main() {", "int* heap;\nint main() {\n  heap = new int[4];"
    )
    main.write_text(text)
    built = make(tmp_path / "fw")
    assert built.returncode != 0
    assert "undefined reference to `operator new[](unsigned int)'" in built.stdout
