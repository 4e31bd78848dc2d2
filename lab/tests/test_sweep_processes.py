"""Sweeps in worker processes and on a Dask cluster: a killed worker changes nothing."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_files import program
from sweep_files import left_by, write_grid

import pmt
from pmt_lab.cli import main
from pmt_lab.sweep import plan, read_grid, run_all

joblib = pytest.importorskip("joblib")

_SECONDS = 600
RUNS = 6  # 2 corruptions, 2 methods with a seed and one that has none
_ENOUGH_TO_BE_KILLED_IN = 2e8


@pytest.fixture
def grid(tmp_path):
    return write_grid(tmp_path, macs=_ENOUGH_TO_BE_KILLED_IN, seeds="[1]")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A sweep in one process."""
    folder = tmp_path_factory.mktemp("whole")
    grid = write_grid(folder, macs=_ENOUGH_TO_BE_KILLED_IN, seeds="[1]")
    assert run_all(plan(read_grid(grid)).runs, folder / "out", jobs=1).failed == {}
    return folder / "out"


def busy_worker(out: Path, process: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the process that is in the middle of a run, and the run's hash."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        for lock in out.glob("*.lock"):
            with contextlib.suppress(OSError, ValueError):
                worker = int(lock.read_text().rpartition(" ")[2])
                run = out / lock.stem
                steps = (run / "metrics.jsonl").read_text().count('"kind": "step"')
                if steps >= 3 and not (run / "DONE").exists():
                    return worker, lock.stem
        time.sleep(0.005)
    raise AssertionError("no run was seen in its middle")


def kill_a_worker(out: Path, process: subprocess.Popen[str]) -> tuple[int, str]:
    """Kill the process that is in the middle of a run; return it and the run's hash."""
    worker, run = busy_worker(out, process)
    os.kill(worker, signal.SIGKILL)
    return worker, run


def ends(pid: int) -> bool:
    """Whether a process that is not a child of ours ends within some seconds."""
    state = Path(f"/proc/{pid}/stat")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if state.read_text().rpartition(")")[2].split()[0] == "Z":  # nobody waits for it
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_processes_leave_what_one_process_leaves(grid, tmp_path, whole):
    told: list[str] = []
    summary = run_all(plan(read_grid(grid)).runs, tmp_path / "out", jobs=2, tell=told.append)
    assert len(summary.finished) == len(told) == RUNS
    assert left_by(tmp_path / "out") == left_by(whole)
    (threads,) = {json.loads(p.read_text())["threads"] for p in tmp_path.rglob("result.json")}
    assert threads == 1


def test_a_backend_can_be_chosen_from_outside(grid, tmp_path, whole):
    with joblib.parallel_config(backend="threading", n_jobs=2):
        run_all(plan(read_grid(grid)).runs, tmp_path / "out")
    assert left_by(tmp_path / "out") == left_by(whole)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_who_is_told_ends_the_sweep(grid, tmp_path, jobs):
    def full(line: str) -> None:
        raise OSError(28, "No space left on device", "standard output")

    with pytest.raises(OSError, match="No space left"):
        run_all(plan(read_grid(grid)).runs, tmp_path / "out", jobs=jobs, tell=full)


def test_a_killed_worker_process_changes_nothing(grid, tmp_path, whole):
    out = tmp_path / "out"
    process = program("sweep", grid, "--out", out, "--jobs", "2")
    kill_a_worker(out, process)
    printed, error = process.communicate(timeout=_SECONDS)
    assert process.returncode == 0, error
    assert "a worker died (TerminatedWorkerError); going on" in printed
    assert left_by(out) == left_by(whole)


def test_a_terminated_sweep_takes_its_workers_along_and_goes_on(grid, tmp_path, whole):
    out = tmp_path / "out"
    command = ("sweep", grid, "--out", out, "--jobs", "2")
    process = program(*command)
    worker, _ = busy_worker(out, process)
    process.terminate()
    _, error = process.communicate(timeout=_SECONDS)
    assert process.returncode == 130, error
    assert "pmt: interrupted; the same command continues\n" in error
    assert ends(worker)
    process = program(*command)
    _, error = process.communicate(timeout=_SECONDS)
    assert process.returncode == 0, error
    assert left_by(out) == left_by(whole)


@contextlib.contextmanager
def cluster(folder: Path, workers: int) -> Iterator[str]:
    """Start a scheduler and workers as processes of their own; yield the scheduler's address."""
    distributed = pytest.importorskip("distributed")
    package = str(Path(pmt.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": "1"}
    file = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    start = [sys.executable, "-m", "dask"]
    address = ["--scheduler-file", str(file)]
    local = ["--host", "127.0.0.1", "--no-dashboard"]
    processes = [subprocess.Popen([*start, "scheduler", *address, "--port", "0", *local], **quiet)]
    try:
        deadline = time.monotonic() + _SECONDS
        while not file.exists() or not file.read_text():
            assert processes[0].poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        worker = [*start, "worker", *address, "--nthreads", "1", "--no-nanny", *local]
        worker += ["--local-directory", str(folder)]
        processes += [subprocess.Popen(worker, **quiet) for _ in range(workers)]
        scheduler = json.loads(file.read_text())["address"]
        # joblib runs all by itself where it finds a single thread.
        with distributed.Client(scheduler) as client:
            client.wait_for_workers(workers, timeout=_SECONDS)
        yield scheduler
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def test_a_killed_worker_of_a_dask_cluster_changes_no_table(grid, tmp_path, whole, capsys):
    out = tmp_path / "out"
    folder = tmp_path / "cluster"
    folder.mkdir()
    with cluster(folder, workers=2) as address:
        process = program("sweep", grid, "--out", out, "--dask", address)
        worker, run = kill_a_worker(out, process)
        assert worker != process.pid
        printed, error = process.communicate(timeout=_SECONDS)
        assert process.returncode == 0, error
    assert f"{RUNS} of {RUNS} runs are finished" in printed
    assert left_by(out) == left_by(whole)
    assert (out / run / "result.json").exists()
    tables = []
    for folder in (out, whole):
        assert main(["report", str(folder), "--baseline", "paper"]) == 0
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1]


def test_a_scheduler_that_is_not_there(grid, tmp_path, monkeypatch, capsys):
    pytest.importorskip("distributed")
    from pmt_lab.sweep import sweeping

    monkeypatch.setattr(sweeping, "_SECONDS_TO_CONNECT", 1)
    out = str(tmp_path / "out")
    assert main(["sweep", str(grid), "--out", out, "--dask", "tcp://127.0.0.1:9"]) == 2
    assert "--dask tcp://127.0.0.1:9: no scheduler answers there" in capsys.readouterr().err
