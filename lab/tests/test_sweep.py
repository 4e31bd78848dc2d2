"""A sweep's runs, in processes and on a cluster: nothing is lost or done twice."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import joblib
import numpy as np
import pytest
from lab_files import program
from sweep_files import RUNS, SLOW, left_by, write_grid

import pmt
from pmt.protocol import DataSource, split
from pmt_lab.cli import main
from pmt_lab.sweep import pack, plan, read_grid, run_all, unpack
from pmt_lab.sweep.execution import Outcome, execute

_SECONDS = 600


@pytest.fixture
def grid(tmp_path):
    return write_grid(tmp_path)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Folder of a sweep from start to end, in one process."""
    folder = tmp_path_factory.mktemp("whole")
    assert run_all(runs_of(write_grid(folder)), folder / "out", jobs=1).failed == {}
    return folder / "out"


@pytest.fixture(scope="module")
def whole(done):
    return left_by(done)


def runs_of(grid):
    return plan(read_grid(grid)).runs


def wait_until(condition, process) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def in_mid_run(out: Path) -> Path | None:
    """Return the folder of a run that is in its middle."""
    for metrics in out.glob("*/metrics.jsonl"):
        if (
            metrics.read_text().count('"kind": "step"') > 2
            and not (metrics.parent / "DONE").exists()
        ):
            return metrics.parent
    return None


def test_a_run_is_what_python_would_do(grid, tmp_path):
    runs = [r for r in runs_of(grid) if r.axes["seed"] != 2]
    told: list[str] = []
    assert run_all(runs, tmp_path / "out", jobs=1, tell=told.append).failed == {}
    (spec,) = [r for r in runs if (r.method, r.corruption) == ("default", "contrast")]
    result = json.loads((tmp_path / "out" / spec.hash / "result.json").read_text())

    model = pmt.load(spec.model["path"])
    source = DataSource(spec.data["path"], "contrast", 5)
    images = split(
        "default", source.pool("train", model), source.pool("test", model), images=40, held_out=8
    )
    before = model.evaluate(images.test)
    trainer = pmt.ZOTrainer(layers="B2", batch=8, queries=4, seed=1, macs=25_000_000)
    fitted = trainer.fit(model, images.train, held_out=images.held_out, progress=False)
    parts = {"test": images.test, "clean": images.clean_test, "held_out": images.held_out}
    for part, data in parts.items():
        after = fitted.model.evaluate(data)
        assert result["after"][part]["accuracy"] == after.accuracy
        assert result["after"][part]["loss"] == after.loss
        right = fitted.model.logits(data.images).argmax(axis=1) == data.labels
        assert unpack(result["after"][part]["right"], after.n).tolist() == right.tolist()
    assert result["before"]["test"]["loss"] == before.loss
    assert result["macs"] == fitted.epochs[-1]["macs"] == spec.macs
    assert result["forwards"] == fitted.epochs[-1]["forwards"]
    assert result["chosen_epoch"] == fitted.kept.get("epoch", 0)
    assert result["axes"] == {
        "method": "default", "corruption": "contrast", "severity": 5, "layers": "B2",
        "preparation": "input+align+head", "seed": 1,
    }  # fmt: skip
    assert told[0].startswith("1/6  no_adaptation, gaussian_noise 5: accuracy 0.")
    assert re.fullmatch(
        r"6/6  paper, contrast 5, B2, seed 1: accuracy 0\.\d{4} -> 0\.\d{4}, loss \d\.\d{4} -> "
        r"\d\.\d{4}",
        told[5],
    )


def test_a_finished_sweep_does_nothing_more(grid, tmp_path, capsys):
    command = ["sweep", str(grid), "--out", str(tmp_path / "out"), "--jobs", "1"]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith(f"{RUNS} runs, 0 finished, {RUNS} left, ")
    files = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")}
    assert main([*command, "--json", "-"]) == 0
    printed = capsys.readouterr()
    assert printed.err == (
        f"{RUNS} runs, {RUNS} finished, 0 left, 0 GMAC\n"
        f"{RUNS} of {RUNS} runs are finished; `pmt-lab report {tmp_path / 'out'}`\n"
    )
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")} == files
    figures = json.loads(printed.out)
    assert all(run["finished"] for run in figures["runs"])
    assert (len(figures["runs"]), figures["macs_left"], figures["failed"]) == (RUNS, 0, {})


@pytest.mark.parametrize(
    ("number", "code", "jobs"),
    [
        (signal.SIGKILL, -9, 1),
        (signal.SIGINT, 130, 1),
        (signal.SIGINT, 130, 2),
        (signal.SIGTERM, 130, 2),
        (signal.SIGHUP, 130, 2),
    ],
)
def test_stopped_in_mid_run_it_ends_with_the_same_bytes(
    grid, tmp_path, whole, capsys, number, code, jobs
):
    out = tmp_path / "out"
    start = {"code": SLOW} if jobs == 1 else {}
    process = program("sweep", grid, "--out", out, "--jobs", jobs, **start)
    wait_until(lambda: in_mid_run(out) if jobs == 1 else any(out.glob("*/metrics.jsonl")), process)
    process.send_signal(number)
    _, error = process.communicate()
    assert process.returncode == code
    if code > 0:
        assert "pmt-lab: interrupted; the same command continues\n" in error
    assert main(["sweep", str(grid), "--out", str(out), "--jobs", "1"]) == 0
    assert capsys.readouterr().out.startswith(f"{RUNS} runs, ")
    assert left_by(out) == whole
    assert list(out.glob("*.lock")) == []


def test_two_processes_in_one_folder_share_the_runs(grid, tmp_path, whole):
    out = tmp_path / "out"
    both = [program("sweep", grid, "--out", out, "--jobs", "1", code=SLOW) for _ in range(2)]
    printed = [process.communicate(timeout=_SECONDS) for process in both]
    assert [process.returncode for process in both] == [0, 0], printed
    lines = [line for text, _ in printed for line in text.splitlines() if "accuracy" in line]
    assert len({line.partition("  ")[2] for line in lines}) == RUNS
    assert left_by(out) == whole


def test_processes_leave_what_one_process_leaves(grid, tmp_path, whole):
    told: list[str] = []
    summary = run_all(runs_of(grid), tmp_path / "out", jobs=2, tell=told.append)
    assert len(summary.finished) == len(told) == RUNS
    assert left_by(tmp_path / "out") == whole
    (threads,) = {json.loads(p.read_text())["threads"] for p in tmp_path.rglob("result.json")}
    assert threads == 1


def test_a_backend_can_be_chosen_from_outside(grid, tmp_path, whole):
    with joblib.parallel_config(backend="threading", n_jobs=2):
        run_all(runs_of(grid), tmp_path / "out")
    assert left_by(tmp_path / "out") == whole


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_who_is_told_ends_the_sweep(grid, tmp_path, jobs):
    def full(line: str) -> None:
        raise OSError(28, "No space left on device", "standard output")

    with pytest.raises(OSError, match="No space left"):
        run_all(runs_of(grid), tmp_path / "out", jobs=jobs, tell=full)


def test_a_killed_worker_process_is_told_and_the_same_command_continues(grid, tmp_path, whole):
    out = tmp_path / "out"
    command = ("sweep", grid, "--out", out, "--jobs", "2")
    process = program(*command)
    wait_until(lambda: any(out.glob("*.lock")), process)
    os.kill(holder(out, process), signal.SIGKILL)
    _, error = process.communicate(timeout=_SECONDS)
    assert process.returncode == 2
    assert error.startswith("pmt-lab: error: a worker process died (TerminatedWorkerError: ")
    process = program(*command)
    _, error = process.communicate(timeout=_SECONDS)
    assert process.returncode == 0, error
    assert left_by(out) == whole


def holder(out: Path, process: subprocess.Popen[str]) -> int:
    """Return the process that does a run."""
    found: list[int] = []

    def seen() -> bool:
        for lock in out.glob("*.lock"):
            with contextlib.suppress(OSError, ValueError):
                found.append(int(lock.read_text().rpartition(" ")[2]))
        return bool(found)

    wait_until(seen, process)
    return found[0]


def test_a_run_that_fails_stops_no_other(grid, tmp_path, capsys):
    runs, out = runs_of(grid), tmp_path / "out"
    train = tmp_path / "data" / "train.npz"
    sound = train.read_bytes()
    command = ["sweep", str(grid), "--out", str(out), "--jobs", "1"]
    pmt.datasets.save_npz(pmt.datasets.load(train).shuffled(1), train)
    summary = run_all(runs[:2], out, jobs=1)
    assert summary.finished == []
    assert len(summary.failed) == 2
    for name, error in summary.failed.items():
        assert "data: is not what the sweep was planned with (train_crc32 " in error
        assert json.loads((out / f"{name}.failed").read_text())["error"] == error
    assert not any(path.is_dir() for path in out.iterdir())
    train.write_bytes(sound)
    assert main(command) == 0
    assert sorted(out.glob("*.failed")) == []
    assert "failed" not in capsys.readouterr().out


def test_failed_runs_are_exit_code_1(grid, tmp_path, capsys, monkeypatch):
    trainer = pmt.methods.trainer

    def out_of_memory(base, **options):
        if base == "paper" and "seed" in options and options["threads"] == 0:
            raise MemoryError("caf\udce9")
        return trainer(base, **options)

    monkeypatch.setattr(pmt.methods, "trainer", out_of_memory)
    assert main(["sweep", str(grid), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 1
    printed = capsys.readouterr()
    assert "paper, contrast 5, B2, seed 2: failed: MemoryError: caf\\udce9" in printed.out
    assert f"6 of {RUNS} runs are finished" in printed.out
    assert printed.err == "pmt-lab: error: 4 runs failed, see above\n"
    assert main(["report", str(tmp_path / "out")]) == 0
    assert "- 4 runs failed (paper, " in capsys.readouterr().out


def test_a_full_disk_is_named_with_its_path(grid, tmp_path, monkeypatch):
    run = next(run for run in runs_of(grid) if run.trains)
    out = tmp_path / "out"
    sync = os.fsync

    def full_disk(descriptor):
        if "/.config.toml." in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(28, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full_disk)
    error = run_all([run], out, jobs=1).failed[run.hash]
    assert error.startswith("OSError: [Errno 28] ")
    assert error.endswith(f": '{out / run.hash / 'config.toml'}'")
    assert list(out.glob("*.lock")) == []
    monkeypatch.undo()
    assert run_all([run], out, jobs=1).finished == [run.hash]


def test_an_empty_lock_is_nobodys_and_a_finished_run_is_found(grid, tmp_path):
    run, out = runs_of(grid)[0], tmp_path / "out"
    out.mkdir()
    (out / f"{run.hash}.lock").touch()
    assert run_all([run], out, jobs=1).finished == [run.hash]
    assert [path.name for path in out.iterdir()] == [run.hash]
    assert run_all([run], out, jobs=1).already == [run.hash]
    assert execute(run, str(out), 1) == Outcome(run.hash, "found")


def test_a_damaged_result_is_named(grid, tmp_path, capsys):
    folder = tmp_path / "out" / runs_of(grid)[0].hash
    folder.mkdir(parents=True)
    for text in ("{", "[" * 100_000, "{}", "[]", '{"axes": 1}'):
        (folder / "result.json").write_text(text)
        assert main(["sweep", str(grid), "--out", str(tmp_path / "out")]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"pmt-lab: error: {folder / 'result.json'}: ")
        assert error.endswith("; remove the file, and the sweep makes it again\n")


def test_bits_are_packed_and_unpacked():
    right = [True, False, True, True, False, False, False, False, True]
    assert pack(np.array(right)) == "sIA="
    assert unpack("sIA=", 9).tolist() == right
    with pytest.raises(ValueError, match="2 bytes do not hold 8 bits"):
        unpack("sIA=", 8)


def test_a_float_network_is_tested_as_it_is(tmp_path):
    """Its int8 rounding, which a run folder keeps, is another network."""
    pytest.importorskip("torch")
    grid = write_grid(tmp_path, seeds="[1]")
    text = grid.read_text().replace('"default", "paper"', '"bp_fp32"').replace("queries = 4\n", "")
    grid.write_text(text.replace(', "contrast"', ""))
    (spec,) = [run for run in runs_of(grid) if run.trains]
    assert run_all([spec], tmp_path / "out", jobs=1).failed == {}
    folder = pmt.RunFolder(tmp_path / "out" / spec.hash)
    result = json.loads((folder.path / "result.json").read_text())
    last = [r for r in folder.read_metrics() if r["kind"] == "epoch"][-1]
    held_out = result["after"]["held_out"]
    assert held_out["accuracy"] == last["held_out_accuracy"]
    assert held_out["loss"] == pytest.approx(last["held_out_loss"], abs=1e-9)
    assert int(unpack(held_out["right"], held_out["n"]).sum()) == held_out["correct"]
    assert result["chosen_epoch"] == last["epoch"]


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
        wait_until(lambda: file.exists() and file.read_text(), processes[0])
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


def test_a_killed_worker_of_a_dask_cluster_changes_no_table(grid, tmp_path, done, whole, capsys):
    out, folder = tmp_path / "out", tmp_path / "cluster"
    folder.mkdir()
    with cluster(folder, workers=2) as address:
        process = program("sweep", grid, "--out", out, "--dask", address)
        worker = holder(out, process)
        assert worker != process.pid
        os.kill(worker, signal.SIGKILL)
        printed, error = process.communicate(timeout=_SECONDS)
        assert process.returncode == 0, error
    assert f"{RUNS} of {RUNS} runs are finished" in printed
    assert left_by(out) == whole
    tables = []
    for each in (out, done):
        assert main(["report", str(each), "--baseline", "paper"]) == 0
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1]


def test_a_cluster_that_is_not_there_or_has_its_own_workers(grid, tmp_path, monkeypatch, capsys):
    pytest.importorskip("distributed")
    command = ["sweep", str(grid), "--out", str(tmp_path / "out"), "--dask", "tcp://127.0.0.1:9"]
    assert main([*command, "--jobs", "2"]) == 2
    assert "--jobs 2: the cluster of --dask has its own workers" in capsys.readouterr().err
    monkeypatch.setattr("pmt_lab.sweep.sweeping._SECONDS_TO_CONNECT", 1)
    assert main(command) == 2
    assert "--dask tcp://127.0.0.1:9: no scheduler answers there" in capsys.readouterr().err
