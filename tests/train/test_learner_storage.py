"""The file that holds a learner's states: whose it is, what a boot is, what is damaged."""

import copy
import errno
import os
import pickle
import re
import subprocess
import sys

import pytest

import pmt
from pmt import corruptions, datasets


@pytest.fixture(scope="module")
def model():
    """The bundled network with statistics of clean images."""
    return pmt.statistics(pmt.load("fashion_mnist_dscnn"), datasets.bundled("train").images[-64:])


@pytest.fixture(scope="module")
def noisy():
    return corruptions.corrupt(datasets.bundled("train").take(20), "impulse_noise", 5, seed=0)


def committed(model, noisy, place, confirm=False):
    """Return a learner whose aligned state is in a storage."""
    learner = pmt.Learner(model, samples=20, storage=place)
    learner.observe(noisy.images)
    learner.learn("align")
    learner.commit()
    if confirm:
        learner.confirm()
    return learner


def test_a_storage_of_several_names_is_refused(model, noisy, tmp_path):
    place, other = tmp_path / "states.bin", tmp_path / "other.bin"
    learner = committed(model, noisy, place)
    os.link(place, other)
    before = place.read_bytes()
    for name in (other, place):
        rule = f"storage='{re.escape(str(name))}' has 2 names .*: copy it and give the copy"
        with pytest.raises(ValueError, match=rule):
            pmt.Learner(model, samples=20, storage=name)
    assert place.read_bytes() == before
    learner.confirm()  # it was there first
    place.unlink()
    again = pmt.Learner(model, samples=20, storage=other)
    assert (again.in_force, again.on_trial) == ("aligned", False)


def test_a_takeover_is_no_boot_of_a_trial(model, noisy, tmp_path):
    place = tmp_path / "states.bin"
    learner = committed(model, noisy, place)
    checksum, before = learner.checksum, place.read_bytes()
    for _ in range(5):
        learner = pmt.Learner(model, samples=20, storage=place)
        assert (learner.in_force, learner.on_trial) == ("aligned", True)
    assert learner.checksum == checksum
    assert place.read_bytes() == before
    learner.roll_back()
    assert pmt.Learner(model, samples=20, storage=place).in_force == "original"


def test_a_trial_that_was_given_up_does_not_come_back_by_a_takeover(model, noisy, tmp_path):
    place = tmp_path / "states.bin"
    learner = committed(model, noisy, place)
    for _ in range(3):
        del learner
        learner = pmt.Learner(model, samples=20, storage=place)
        assert learner.on_trial
        learner = pmt.Learner(model, samples=20, storage=place)
        assert learner.on_trial
    del learner
    for _ in range(2):
        learner = pmt.Learner(model, samples=20, storage=place)
        assert (learner.in_force, learner.on_trial) == ("original", False)


def test_another_process_boots_a_trial(model, noisy, tmp_path):
    place, network = tmp_path / "states.bin", tmp_path / "model.pmt"
    model.save(network)
    committed(model, noisy, place)
    program = (
        "import pmt; learner = pmt.Learner("
        f"pmt.load({str(network)!r}), samples=20, storage={str(place)!r}); print(learner.in_force)"
    )
    told = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        for _ in range(4)
    ]
    assert [each.stdout.strip() for each in told] == [*["aligned"] * 3, "original"]


@pytest.mark.parametrize("at", [0, 3, 20, 400])  # in the header, in the state
def test_a_damaged_state_is_told(model, noisy, tmp_path, at):
    place = tmp_path / "states.bin"
    committed(model, noisy, place, confirm=True)
    good = bytearray(place.read_bytes())
    good[at] ^= 1
    place.write_bytes(good)
    rule = r"states.bin' holds a state that is damaged, .* the original one is in force; bring back"
    with pytest.warns(UserWarning, match=rule) as told:
        learner = pmt.Learner(model, samples=20, storage=place)
    assert told[0].filename == __file__
    assert learner.in_force == "original"


@pytest.mark.parametrize("count", [4, 8, 31])
@pytest.mark.parametrize("erased", [b"\x00", b"\xff"])
def test_a_state_whose_beginning_is_erased_is_told(model, noisy, tmp_path, erased, count):
    place = tmp_path / "states.bin"
    committed(model, noisy, place, confirm=True)
    place.write_bytes(erased * count + place.read_bytes()[count:])
    with pytest.warns(UserWarning, match=r"holds a state that is damaged, .* the original one is"):
        assert pmt.Learner(model, samples=20, storage=place).in_force == "original"


def test_what_is_stored_is_brought_to_disk(model, noisy, tmp_path, monkeypatch):
    place, brought = tmp_path / "states.bin", []
    monkeypatch.setattr(os, "fsync", lambda file: brought.append(os.fstat(file).st_ino))
    learner = pmt.Learner(model, samples=20, storage=place)
    at, folder = place.stat().st_ino, tmp_path.stat().st_ino
    assert brought == [at, folder, at]  # before it has its name, that, and what the core wrote
    learner.observe(noisy.images)
    learner.learn("align")
    for call in (learner.commit, learner.confirm):
        del brought[:]
        call()
        assert brought == [place.stat().st_ino]


def test_a_disk_that_fails_is_told(model, noisy, tmp_path, monkeypatch):
    learner = pmt.Learner(model, samples=20, storage=tmp_path / "states.bin")
    learner.observe(noisy.images)
    learner.learn("align")

    def failing(file: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match=r"are stored, but a power cut may undo it \(Input/output er"):
        learner.commit()
    assert (learner.in_force, learner.on_trial) == ("aligned", True)


def test_files_without_a_state_are_no_damage(model, noisy, tmp_path, recwarn):
    for content in (None, bytes(100_000), b"\xff" * 100_000):
        place = tmp_path / "states.bin"
        place.unlink(missing_ok=True)
        if content is not None:
            place.write_bytes(content)
        learner = committed(model, noisy, place)
        learner.roll_back()
        assert pmt.Learner(model, samples=20, storage=place).in_force == "original"
        del learner
    assert [str(each.message) for each in recwarn] == []


def test_a_file_that_is_cut_off_while_a_learner_has_it_fails_what_is_stored(model, noisy, tmp_path):
    place = tmp_path / "states.bin"
    learner = committed(model, noisy, place)
    os.truncate(place, 100)
    for store in (learner.confirm, learner.roll_back):
        with pytest.raises(
            OSError, match=r"^\[Errno 5\] the states could not be stored: the file was cut"
        ):
            store()


@pytest.mark.parametrize("kept", [0, 4, 100, 0.5, -1])
@pytest.mark.parametrize("commits", [0, 1, 2])
def test_a_file_that_was_cut_off_is_told(model, noisy, tmp_path, commits, kept):
    place = tmp_path / "states.bin"
    learner = pmt.Learner(model, samples=20, storage=place)
    for number in range(commits):
        learner = committed(model, noisy[number:], place, confirm=True)
    whole = place.read_bytes()
    del learner
    size = kept if kept > 0 else len(whole) + kept
    size = {0: 0, 0.5: len(whole) // 2}.get(kept, size)  # a half: a slot's border
    place.write_bytes(whole[:size])
    rule = (
        rf"^storage='{re.escape(str(place))}' has {size:,} bytes, and the states of this learner "
        rf"take {len(whole):,}: the file was cut off; bring back a copy of it, or delete it to beg"
    )
    for _ in range(4):
        with pytest.raises(ValueError, match=rule):
            pmt.Learner(model, samples=20, storage=place)
    assert place.read_bytes() == whole[:size]
    place.write_bytes(whole)
    assert pmt.Learner(model, samples=20, storage=place).in_force == (
        "aligned" if commits else "original"
    )
    place.unlink()
    assert pmt.Learner(model, samples=20, storage=place).in_force == "original"
    assert len(place.read_bytes()) == len(whole)


def test_a_learner_that_is_killed_while_it_makes_its_file_leaves_none(model, tmp_path):
    network, place = tmp_path / "model.pmt", tmp_path / "states.bin"
    model.save(network)
    program = (
        "import os, signal, pmt; from pathlib import Path; "
        "Path.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL); "
        f"pmt.Learner(pmt.load({str(network)!r}), samples=20, storage={str(place)!r})"
    )
    killed = subprocess.run([sys.executable, "-c", program], check=False)
    assert killed.returncode == -9
    left = {path.name for path in tmp_path.iterdir()} - {"model.pmt"}
    assert len(left) == 1
    assert "states.bin" not in left
    assert pmt.Learner(model, samples=20, storage=place).in_force == "original"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.pmt", "states.bin"]


@pytest.mark.parametrize("at", [0, 20, 400])  # in the header, in the state
def test_a_trial_that_is_damaged_later_is_not_confirmed(model, noisy, tmp_path, at):
    place = tmp_path / "states.bin"
    committed(model, noisy, place).confirm()
    learner = committed(model, noisy[10:], place)
    kept, whole = learner.checksum, place.read_bytes()
    damaged = bytearray(whole)
    damaged[len(whole) // 2 + at] ^= 1
    place.write_bytes(damaged)
    with pytest.raises(
        ValueError, match=r"states\.bin': the stored state was damaged meanwhile, and stays on tri"
    ):
        learner.confirm()
    assert (learner.checksum, learner.on_trial) == (kept, True)
    assert place.read_bytes() == damaged
    learner.roll_back()
    assert (learner.in_force, learner.on_trial) == ("aligned", False)
    assert learner.checksum != kept


@pytest.mark.parametrize("at", [0, 20, 1003])  # in the header, in the state
def test_a_state_that_is_damaged_later_is_not_gone_back_to(model, noisy, tmp_path, at):
    place = tmp_path / "states.bin"
    committed(model, noisy, place).confirm()
    learner = committed(model, noisy[10:], place)
    damaged = bytearray(place.read_bytes())
    damaged[at] ^= 0x40  # of what is confirmed
    place.write_bytes(damaged)
    with pytest.raises(
        ValueError, match=r"states\.bin': the stored state is damaged, or cannot be o"
    ):
        learner.roll_back()
    assert (learner.in_force, learner.on_trial) == ("original", False)


def test_a_folder_is_no_storage(model, tmp_path):
    with pytest.raises(OSError, match=r"could not be stored \(Is a directory\); name a file in it"):
        pmt.Learner(model, samples=20, storage=tmp_path)


def test_a_learner_is_not_copied(model, noisy, tmp_path):
    learner = committed(model, noisy, tmp_path / "states.bin")
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(
            TypeError, match=r"^a Learner cannot be copied or pickled: take its mod"
        ):
            copied(learner)


def test_a_file_of_one_byte_is_told_in_the_singular(model, tmp_path):
    place = tmp_path / "states.bin"
    pmt.Learner(model, samples=20, storage=place)
    place.write_bytes(place.read_bytes()[:1])
    with pytest.raises(ValueError, match=r"' has 1 byte, and the states of this learner take "):
        pmt.Learner(model, samples=20, storage=place)
