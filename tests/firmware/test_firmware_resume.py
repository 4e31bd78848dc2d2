"""Training that is interrupted goes on from the card, and ends with the bytes it would have had."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from firmware_tools import EMULATOR, TARGET, emulate, make, need_firmware_tools, random_dataset
from networks import residual_network

import pmt
from pmt.firmware.export import export, read_card
from pmt.firmware.monitor import TrainingLog
from pmt.model.card import CardHeader

STEPS = 7


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project that has trained: its card holds the checkpoints of steps 6 and 7."""
    need_firmware_tools(EMULATOR, "make")
    folder = tmp_path_factory.mktemp("firmware") / "fw"
    model = residual_network()
    export(
        model,
        target=TARGET,
        out=folder,
        dataset=random_dataset(model, 9),
        options=pmt.preset(
            "default", batch=3, queries=24, loss="entropy", diversity=0.5, preparation="align"
        ),
        steps=STEPS,
        save_interval=2,
    )
    ok, log = emulate(folder)
    assert ok, log
    read = TrainingLog()
    for line in log:
        read.read(line)
    assert (len(read.steps), read.total, read.checkpoints) == (STEPS, STEPS, 4)
    assert (read.unreadable, read.errors, read.equal) == (0, [], True)
    assert set(read.memory) == {"arena", "stack"}
    return folder


@pytest.fixture
def card(project):
    """The card that training left, as a file to change."""
    path = project / "build" / "card.img"
    whole = path.read_bytes()
    yield path
    path.write_bytes(whole)


def resume(project: Path) -> tuple[bool, list[str]]:
    run = make(project, "resume", "TIMEOUT=120")
    return run.returncode == 0, [x for x in run.stdout.splitlines() if not x.startswith("make:")]


def damage_slot(card: Path, sequence: int) -> None:
    """Damage the last byte of a checkpoint's first block of payload."""
    slot = next(one.slot for one in read_card(card).checkpoints if one.sequence == sequence)
    content = bytearray(card.read_bytes())
    header = CardHeader.unpack(content)
    content[(header.first_slot + slot * header.slot_blocks + 1) * 512 + 507] ^= 1
    card.write_bytes(content)


def test_the_card_holds_the_last_two_checkpoints(card):
    contents = read_card(card)
    assert (contents.steps, contents.samples, contents.steps_done) == (STEPS, 9, STEPS)
    assert [(one.sequence, one.steps) for one in contents.checkpoints] == [(4, 7), (3, 6)]
    assert contents.damage == ()
    assert contents.start.image() == residual_network().image()
    assert pmt.load(card).image() == contents.checkpoints[0].model.image()


def test_a_finished_card_has_nothing_to_do(project, card):
    before = card.read_bytes()
    ok, log = resume(project)
    assert ok
    assert "resume: 7 of 7 steps done, checkpoint 4" in log
    assert log[-1].startswith("verify: ok (0 steps after 7, 6 layers, ")
    assert card.read_bytes() == before


def test_a_damaged_checkpoint_is_replaced_from_the_one_before(project, card):
    trained = pmt.load(card).image()
    damage_slot(card, 4)
    assert read_card(card).steps_done == 6
    ok, log = resume(project)
    assert ok, log
    assert "resume: 6 of 7 steps done, checkpoint 3" in log
    assert log[-1].startswith("verify: ok (1 steps after 6, 6 layers, ")
    assert pmt.load(card).image() == trained
    assert [one.sequence for one in read_card(card).checkpoints] == [5, 3]


def test_two_damaged_checkpoints_stop_training(project, card):
    damage_slot(card, 4)
    damage_slot(card, 3)
    before = card.read_bytes()
    ok, log = resume(project)
    assert not ok
    assert log[-1] == (
        "verify: card: both checkpoints on the card are damaged: write card.img to it again"
    )
    assert card.read_bytes() == before


def test_without_an_earlier_run_nothing_resumes(project, card):
    card.unlink()
    ok, log = resume(project)
    assert not ok
    assert log == ["no card of an earlier run (build/card.img): make qemu first"]


def test_a_killed_run_goes_on_where_it_was(project, card):
    trained = pmt.load(card).image()
    run = subprocess.Popen(
        ["make", "-C", str(project), "qemu"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    seen = []
    for line in run.stdout:
        seen.append(line)
        if line.startswith("checkpoint 2:"):
            os.killpg(run.pid, signal.SIGKILL)
    run.stdout.close()
    run.wait()
    assert not any(line.startswith("verify: ok") for line in seen)
    done = read_card(card).steps_done
    assert 4 <= done < STEPS
    ok, log = resume(project)
    assert ok, log
    assert f"resume: {done} of 7 steps done, checkpoint {done // 2}" in log
    assert pmt.load(card).image() == trained
