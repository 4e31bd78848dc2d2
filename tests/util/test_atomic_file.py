"""Files written aside: what dead processes left is removed, what living ones write is not."""

import errno
import os
import stat
import subprocess
import sys
import threading
import time

import pytest

from pmt._util import atomic_file, processes
from pmt._util.processes import is_running


def aside(path, tag: str, pid: int):
    """Leave a file as another process writes it."""
    left = path.with_name(f".{path.name}.0.{tag}.{pid}.part")
    left.write_bytes(b"half")
    return left


@pytest.mark.parametrize("name", ["model.pmt", "a[b]*.npy"])
def test_a_write_removes_what_a_dead_process_left_of_the_file_and_nothing_else(tmp_path, name):
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    path = tmp_path / name
    here = processes.machine_tag()
    dead = aside(path, here, child.pid)
    kept = [
        aside(path, here, os.getppid()),
        aside(path, "00000000", child.pid),
        aside(tmp_path / "other", here, child.pid),
        tmp_path / f".{name}.part",
        tmp_path / f".{name}.0.{here}.x.part",
    ]
    for one in kept[3:]:
        one.touch()
    atomic_file.write_text(path, "whole")
    assert not dead.exists()
    assert all(one.exists() for one in kept)
    assert path.read_text() == "whole"


def test_a_file_of_another_machine_is_left_once_nobody_wrote_to_it_for_a_day(tmp_path):
    path = tmp_path / "model.pmt"
    new, old = aside(path, "00000000", 1), aside(path, "00000000", 2)
    for file, hours in ((new, 23), (old, 25)):
        then = time.time() - 3600 * hours
        os.utime(file, (then, then))
    atomic_file.remove_strays(path)
    assert new.exists()
    assert not old.exists()


def test_the_folder_is_synced_after_the_rename(tmp_path, monkeypatch):
    done = []
    replace, fsync = os.replace, os.fsync

    def seen_replace(*names):
        done.append("rename")
        replace(*names)

    def seen_fsync(descriptor):
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        done.append("sync folder" if folder else "sync file")
        fsync(descriptor)

    monkeypatch.setattr(os, "replace", seen_replace)
    monkeypatch.setattr(os, "fsync", seen_fsync)
    atomic_file.write_text(tmp_path / "a", "whole")
    assert done == ["sync file", "rename", "sync folder"]


def test_threads_that_write_one_file_do_not_meet(tmp_path):
    path = tmp_path / "a"
    texts = [str(n) * 100_000 for n in range(8)]
    threads = [threading.Thread(target=atomic_file.write_text, args=(path, t)) for t in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in texts
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_a_mode_and_a_pipe_stay_what_they_are(tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target.name)
    atomic_file.write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    atomic_file.write_text(pipe, "through")
    reader.join()
    assert read == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


FOREIGN = OSError(errno.ENOSPC, "full", "/another/file")


def test_a_pipe_that_is_linked_is_written():
    read, write = os.pipe()
    with os.fdopen(read, "rb") as reader:
        atomic_file.write_text(f"/dev/fd/{write}", "figures")
        os.close(write)
        assert reader.read() == b"figures"


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), ValueError("x"), FOREIGN, OSError("no number"), TimeoutError()]
)
def test_a_block_that_fails_leaves_the_old_file_and_raises_its_own_error(tmp_path, error):
    path = tmp_path / "a"
    path.write_text("old")

    def fail():
        with atomic_file.writing(path, 3) as file:
            file.write(b"new")
            file.flush()
            raise error

    with pytest.raises(type(error)) as caught:
        fail()
    assert caught.value is error
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a", "old")]


def test_a_full_disk_is_named_with_its_remedy(tmp_path):
    path = tmp_path / "a"
    with pytest.raises(OSError, match="No space") as caught, atomic_file.writing(path, 3):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert caught.value.strerror == (
        "could not write 3 bytes (No space left on device); the file that was there is unchanged; "
        "free some space or choose another folder"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(tmp_path):
    path = tmp_path / "none" / "figures.json"
    with pytest.raises(FileNotFoundError) as error:
        atomic_file.write_text(path, "x")
    assert error.value.strerror == (
        f"there is no folder {tmp_path}/none; make it, or choose another one"
    )


def test_a_process_that_ended_runs_no_more():
    child = subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE)
    assert child.stdout.read() == b""
    deadline = time.monotonic() + 30
    while is_running(child.pid):  # until it is a zombie
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child.wait()
    child.stdout.close()
    assert not is_running(child.pid)
    assert is_running(os.getpid())
