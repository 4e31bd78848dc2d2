"""A run's lock: held by one, given back, taken over from the dead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from pmt.sweep import lock as module
from pmt.sweep.lock import LockLostError, RunLock


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.lock"


def owner(path, **changes):
    """Write the lock of this process, changed."""
    lock = RunLock(path)
    assert lock.acquire()
    record = {**json.loads(path.read_text()), **changes}
    lock.release()
    path.write_text(json.dumps(record))


def age(path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_one_holds_it_and_gives_it_back(path):
    first, second = RunLock(path), RunLock(path)
    assert first.acquire()
    assert not second.acquire()
    assert second.holder() == f"{os.uname().nodename}, process {os.getpid()}"
    first.release()
    assert second.holder() == ""
    assert second.acquire()
    second.release()
    assert list(path.parent.iterdir()) == []


def test_as_a_block(path):
    with RunLock(path), pytest.raises(BlockingIOError, match="held by"), RunLock(path):
        pass
    assert not path.exists()


def test_a_dead_process_leaves_a_stale_lock(path):
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    owner(path, pid=child.pid)
    assert RunLock(path).is_stale()
    lock = RunLock(path)
    assert lock.acquire()
    lock.release()


def test_a_later_process_of_the_same_number_is_another(path):
    owner(path, started="1")
    assert RunLock(path).is_stale()


def test_a_zombie_is_dead(path):
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    owner(path, pid=child.pid, started=module._process_start(child.pid))
    deadline = time.monotonic() + 30
    while module._process_start(child.pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert RunLock(path).is_stale()
    child.wait()


def test_another_machine_is_believed_for_five_minutes(path):
    owner(path, machine="another", pid=1)
    age(path, 290)
    assert not RunLock(path).acquire()
    age(path, 310)
    lock = RunLock(path)
    assert lock.acquire()
    lock.release()


def test_a_lock_that_is_being_written_is_held(path):
    path.touch()
    assert not RunLock(path).acquire()
    age(path, 310)
    assert RunLock(path).is_stale()


def test_a_takeover_that_died_does_not_last(path):
    owner(path, started="1")
    guard = path.with_name("run.lock.takeover")
    guard.touch()
    assert not RunLock(path).acquire()
    age(guard, 61)
    lock = RunLock(path)
    assert lock.acquire()
    lock.release()
    assert list(path.parent.iterdir()) == []


def test_of_many_only_one_takes_over(path):
    for _ in range(10):
        owner(path, started="1")
        locks = [RunLock(path) for _ in range(8)]
        taken: list[RunLock] = []
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
    with RunLock(path) as lock:
        age(path, 1000)
        deadline = time.monotonic() + 30
        while time.time() - path.stat().st_mtime > 500:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        lock.check()


def test_a_holder_that_slept_learns_that_it_lost(path, monkeypatch):
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_BEATS", 0.01)
    lock = RunLock(path)
    assert lock.acquire()
    path.write_text(json.dumps({"token": "of another"}))
    assert lock._beats is not None
    lock._beats.join(30)
    with pytest.raises(LockLostError, match="another process took this run"):
        lock.check()
    lock.release()
    assert path.exists()
