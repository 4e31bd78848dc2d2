"""A run's lock: held by one, given back, taken over from the dead."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time

import pytest

from pmt._util import folder_lock as module
from pmt._util import processes
from pmt._util.folder_lock import FolderLock, LockLostError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.lock"


def owner(path, **changes):
    """Write the lock of this process, changed."""
    lock = FolderLock(path)
    assert lock.acquire()
    record = {**json.loads(path.read_text()), **changes}
    lock.release()
    path.write_text(json.dumps(record))


def age(path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_one_holds_it_and_gives_it_back(path):
    first, second = FolderLock(path), FolderLock(path)
    assert first.acquire()
    assert not second.acquire()
    assert second.holder() == f"{os.uname().nodename}, process {os.getpid()}"
    first.release()
    assert second.holder() == ""
    assert second.acquire()
    second.release()
    assert list(path.parent.iterdir()) == []


def test_as_a_block(path):
    with FolderLock(path).holding("the run"):
        message = f"the run is in use by {os.uname().nodename}, process {os.getpid()}: wait until "
        with pytest.raises(BlockingIOError, match=message), FolderLock(path).holding("the run"):
            pass
        assert path.exists()
    assert not path.exists()


def test_a_block_within_another_gives_nothing_back(path):
    lock = FolderLock(path)
    with lock.holding("the run"):
        with lock.holding("the run"):
            pass
        assert path.exists()
    assert list(path.parent.iterdir()) == []


def test_another_thread_is_no_holder(path):
    lock = FolderLock(path)
    with lock.holding("the run"):
        seen = []
        thread = threading.Thread(target=lambda: seen.append(lock.held))
        thread.start()
        thread.join()
        assert seen == [False]
        assert lock.held


def test_a_thread_that_is_refused_leaves_the_lock_to_its_holder(path):
    lock = FolderLock(path)
    refused = []

    def take():
        try:
            with lock.holding("the run"):
                pass
        except BlockingIOError as error:
            refused.append(str(error))

    with lock.holding("the run"):
        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
        assert len(refused) == 1
        assert refused[0].startswith("the run is in use by ")
        assert lock.held
        assert path.is_file()
        assert not FolderLock(path).acquire()
    assert not path.exists()


def test_of_threads_that_come_together_one_takes_the_lock(path):
    lock = FolderLock(path)
    start = threading.Barrier(8)
    taken = []

    def take():
        start.wait()
        taken.append(lock.acquire())

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [False] * 7 + [True]
    lock.release()


def test_a_folder_has_one_lock_by_whatever_name(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")
    names = (tmp_path / "run", tmp_path / "link", tmp_path / "run" / ".." / "run")
    assert {FolderLock.of_folder(name).path for name in names} == {tmp_path / "run.lock"}


@pytest.mark.parametrize("pid", [0, -1, 10**30])
def test_a_lock_of_no_process_is_stale(path, pid):
    owner(path, pid=pid, started="")
    assert FolderLock(path).is_stale()


def test_a_dead_process_leaves_a_stale_lock(path):
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    owner(path, pid=child.pid)
    assert FolderLock(path).is_stale()
    lock = FolderLock(path)
    assert lock.acquire()
    lock.release()


def test_a_later_process_of_the_same_number_is_another(path):
    owner(path, started="1")
    assert FolderLock(path).is_stale()


def test_a_zombie_is_dead(path):
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    owner(path, pid=child.pid, started=processes.started(child.pid))
    deadline = time.monotonic() + 30
    while processes.started(child.pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert FolderLock(path).is_stale()
    child.wait()


def test_another_machine_is_believed_for_five_minutes(path):
    owner(path, machine="another", pid=1)
    age(path, 290)
    assert not FolderLock(path).acquire()
    age(path, 310)
    lock = FolderLock(path)
    assert lock.acquire()
    lock.release()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "[" * 100_000, '{"pid": "1"}', "\xff"])
def test_a_lock_of_nobody_is_stale_at_once(path, text):
    path.write_text(text, encoding="latin-1")
    assert FolderLock(path).is_stale()
    lock = FolderLock(path)
    assert lock.acquire()
    lock.release()
    assert list(path.parent.iterdir()) == []


def test_a_lock_is_never_seen_half_written(path, monkeypatch):
    seen = []
    link = os.link

    def looked_at(aside, destination):
        seen.append((path.exists(), json.loads(aside.read_text())["pid"]))
        link(aside, destination)

    monkeypatch.setattr(os, "link", looked_at)
    with FolderLock(path).holding("the run"):
        assert json.loads(path.read_text())["pid"] == os.getpid()
    assert seen == [(False, os.getpid())]


def test_a_full_disk_leaves_no_lock_and_is_named(path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"could not write \d+ bytes \(No space left") as caught:
        FolderLock(path).acquire()
    assert caught.value.filename == str(path)
    assert list(path.parent.iterdir()) == []


def test_where_there_are_no_links_the_lock_is_renamed(path, monkeypatch):
    def no_links(aside, destination):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_links)
    first, second = FolderLock(path), FolderLock(path)
    assert first.acquire()
    assert not second.acquire()
    first.release()
    owner(path, started="1")
    assert second.acquire()
    second.release()
    assert list(path.parent.iterdir()) == []


def test_a_takeover_that_died_does_not_last(path):
    owner(path, started="1")
    guard = path.with_name("run.lock.takeover")
    guard.touch()
    assert not FolderLock(path).acquire()
    age(guard, 61)
    lock = FolderLock(path)
    assert lock.acquire()
    lock.release()
    assert list(path.parent.iterdir()) == []


def test_of_many_only_one_takes_over(path):
    for _ in range(10):
        owner(path, started="1")
        locks = [FolderLock(path) for _ in range(8)]
        taken: list[FolderLock] = []
        barrier = threading.Barrier(len(locks))

        def take(lock, barrier=barrier, taken=taken):
            barrier.wait()
            if lock.acquire():
                taken.append(lock)

        threads = [threading.Thread(target=take, args=(lock,)) for lock in locks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(taken) == 1
        taken[0].release()


def test_the_holder_gives_signs_of_life(path, monkeypatch):
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_BEATS", 0.01)
    lock = FolderLock(path)
    with lock.holding("the run"):
        age(path, 1000)
        deadline = time.monotonic() + 30
        while time.time() - path.stat().st_mtime > 500:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        lock.check()


def test_a_holder_that_slept_learns_that_it_lost(path, monkeypatch):
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_BEATS", 0.01)
    lock = FolderLock(path)
    assert lock.acquire()
    path.write_text(json.dumps({"token": "of another"}))
    assert lock._beats is not None
    lock._beats.join(30)
    with pytest.raises(LockLostError, match="another process took this run"):
        lock.check()
    lock.release()
    assert path.exists()
