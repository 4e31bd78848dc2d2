"""A folder's lock: held by one, given back, and by the system's care never left behind."""

import errno
import os
import subprocess
import sys
import threading

import pytest
from filelock import FileLock, Timeout

from pmt._util.folder_lock import FolderLock

HERE = f"{os.uname().nodename}, process {os.getpid()}"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.lock"


def in_thread(call):
    """Return what a call returns in another thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


def test_one_holds_it_and_gives_it_back(path):
    first, second = FolderLock(path), FolderLock(path)
    assert first.acquire()
    assert (first.held, second.held) == (True, False)
    assert not first.acquire()
    assert not second.acquire()
    assert second.holder() == HERE
    second.release()  # not its own
    assert not second.acquire()
    first.release()
    assert second.holder() == ""
    assert second.acquire()
    first.release()  # no longer its own
    assert path.exists()
    assert not first.acquire()
    second.release()
    assert list(path.parent.iterdir()) == []


def test_as_a_block(path):
    lock = FolderLock(path)
    with lock.holding("the run"):
        with lock.holding("the run"):  # gives nothing back
            pass
        message = f"^the run is in use by {HERE}: wait until .*the lock is .*run.lock"
        with pytest.raises(BlockingIOError, match=message), FolderLock(path).holding("the run"):
            pass
        assert path.exists()
    assert not path.exists()


def test_a_thread_that_is_refused_leaves_the_lock_to_its_holder(path):
    lock = FolderLock(path)

    def take():
        message = r"^the run is in use by "
        with pytest.raises(BlockingIOError, match=message), lock.holding("the run"):
            pass
        return lock.held

    with lock.holding("the run"):
        assert in_thread(take) is False
        assert lock.held
        assert not FolderLock(path).acquire()
    assert not path.exists()


def test_of_threads_that_come_together_one_takes_the_lock(path):
    for same in (FolderLock(path), None):
        start = threading.Barrier(8)
        taken = []

        def take(same=same, start=start, taken=taken):
            lock = same or FolderLock(path)
            start.wait()
            taken.append(lock.acquire())
            start.wait()
            lock.release()

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(taken) == [False] * 7 + [True]
        assert not path.exists()


def test_a_folder_has_one_lock_by_whatever_name(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")
    names = (tmp_path / "run", tmp_path / "link", tmp_path / "run" / ".." / "run")
    assert {FolderLock.of_folder(name).path for name in names} == {tmp_path / "run.lock"}


def test_a_killed_process_leaves_nothing_locked(path):
    code = (
        "import sys; from pmt._util.folder_lock import FolderLock as L\n"
        f"lock = L({str(path)!r}); print(lock.acquire(), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "True\n"
        lock = FolderLock(path)
        assert not lock.acquire()
        assert lock.holder() == f"{os.uname().nodename}, process {other.pid}"
        other.kill()
    assert path.exists()
    assert lock.acquire()
    assert lock.holder() == HERE
    lock.release()
    assert list(path.parent.iterdir()) == []


def test_a_forked_process_takes_it_only_where_its_parent_does_not_hold_it(path):
    code = (
        "import os; from pmt._util.folder_lock import FolderLock as L\n"
        f"lock = L({str(path)!r})\n"
        "def in_child():\n"
        "    if os.fork() == 0:\n"
        "        os._exit(2 * lock.held + lock.acquire())\n"
        "    return os.waitstatus_to_exitcode(os.wait()[1])\n"
        "print(lock.acquire(), in_child(), lock.held)\n"
        "lock.release(); print(in_child(), lock.acquire()); lock.release()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("True 0 True\n1 True\n", "")
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", '{"pid": 1}', "\xff"])
def test_a_file_that_nobody_holds_is_no_lock(path, text):
    path.write_text(text, encoding="latin-1")
    lock = FolderLock(path)
    assert lock.acquire()
    lock.release()
    assert list(path.parent.iterdir()) == []


def test_a_lock_that_is_removed_by_hand_is_lost(path):
    first, second = FolderLock(path), FolderLock(path)
    assert first.acquire()
    assert not first.is_lost
    path.unlink()
    assert first.is_lost
    assert second.acquire()
    assert (first.is_lost, second.is_lost) == (True, False)
    first.release()  # leaves the other's
    assert not second.is_lost
    second.release()
    assert list(path.parent.iterdir()) == []


def test_a_file_of_others_stays(path):
    """The folder `uv` has the lock `uv.lock`, which another program may need."""
    path.write_text("precious\n" * 200)
    message = (
        f"{path} is in the way of the lock of that name, which pmt needs: move it, or choose "
        "another folder"
    )
    with pytest.raises(FileExistsError) as caught:
        FolderLock(path).acquire()
    assert str(caught.value) == message
    assert path.read_text() == "precious\n" * 200


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("run.lock", path)])
def test_what_is_no_file_is_no_lock(make, path):
    make(path)
    with pytest.raises(FileExistsError, match=r"run\.lock is in the way of the lock of that name"):
        FolderLock(path).acquire()
    assert os.path.lexists(path)


def test_a_file_system_without_locks_is_named(path, monkeypatch):
    def refused(self, **arguments):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(FileLock, "acquire", refused)
    with pytest.raises(
        OSError, match=r"lock could not be taken \(No locks available\); .*run\.lock'"
    ):
        FolderLock(path).acquire()


def test_a_place_where_nothing_can_be_made_is_not_busy(tmp_path, monkeypatch):
    """filelock waits in /proc, whose files cannot be made, as if another process held the lock."""

    def late(self, **arguments):
        raise Timeout(self.lock_file)

    monkeypatch.setattr(FileLock, "acquire", late)
    place = tmp_path / "gone"
    with pytest.raises(FileNotFoundError) as caught, FolderLock(place / "a.lock").holding("out"):
        raise AssertionError("it is held")
    assert str(caught.value) == (
        "[Errno 2] nothing can be made in this folder (No such file or directory); "
        f"choose another folder: '{place}'"
    )
