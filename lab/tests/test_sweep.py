"""A sweep's runs: what they leave, and that nothing is lost or done twice."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import time
from types import SimpleNamespace

import pytest
from lab_files import program
from sweep_files import RUNS, SLOW, left_by, write_grid

import pmt
from pmt import methods
from pmt.protocol import split
from pmt.protocol.data_source import DataSource
from pmt_lab.cli import main
from pmt_lab.sweep import plan, read_grid, run_all
from pmt_lab.sweep.execution import Outcome, execute
from pmt_lab.sweep.failure import note_failure, read_failures
from pmt_lab.sweep.result import pack, unpack


@pytest.fixture
def grid(tmp_path):
    return write_grid(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Results of a sweep from start to end."""
    folder = tmp_path_factory.mktemp("whole")
    out = folder / "out"
    assert run_all(plan(read_grid(write_grid(folder))).runs, out, jobs=1).failed == {}
    return left_by(out)


def wait_until(condition, process, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_run_is_what_python_would_do(grid, tmp_path):
    runs = [r for r in plan(read_grid(grid)).runs if r.axes["seed"] != 2]
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
    best = fitted.model
    for part, data in (
        ("test", images.test), ("clean", images.clean_test), ("held_out", images.held_out)
    ):  # fmt: skip
        after = best.evaluate(data)
        assert result["after"][part]["accuracy"] == after.accuracy
        assert result["after"][part]["loss"] == after.loss
        right = best.logits(data.images).argmax(axis=1) == data.labels
        assert unpack(result["after"][part]["right"], after.n).tolist() == right.tolist()
    assert result["before"]["test"]["loss"] == before.loss
    assert result["macs"] == fitted.epochs[-1]["macs"] == spec.macs
    assert result["forwards"] == fitted.epochs[-1]["forwards"] == spec.forwards
    assert result["chosen_epoch"] == fitted.kept.get("epoch", 0)
    assert result["axes"] == {
        "method": "default", "corruption": "contrast", "severity": 5, "layers": "B2",
        "preparation": "align+head", "seed": 1,
    }  # fmt: skip
    assert told[0].startswith("1/6  no_adaptation, gaussian_noise 5: accuracy 0.")
    assert re.fullmatch(
        r"6/6  paper, contrast 5, B2, seed 1: accuracy 0\.\d{4} -> 0\.\d{4}, loss \d\.\d{4} -> "
        r"\d\.\d{4}, \d+ s",
        told[5],
    )


def test_a_finished_sweep_does_nothing_more(grid, tmp_path, capsys):
    command = ["sweep", str(grid), "--out", str(tmp_path / "out"), "--jobs", "1"]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith(f"{RUNS} runs, 0 finished, {RUNS} left\n")
    files = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")}
    assert main([*command, "--json", "-"]) == 0
    printed = capsys.readouterr()
    assert printed.err == (
        f"{RUNS} runs, {RUNS} finished, 0 left\n"
        f"{RUNS} of {RUNS} runs are finished; `pmt-lab report {tmp_path / 'out'}`\n"
    )
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")} == files
    figures = json.loads(printed.out)
    assert len(figures["already"]) == len(figures["runs"]) == RUNS
    assert figures["finished"] == []
    assert figures["failed"] == {}


def test_shards_together_are_the_whole(grid, tmp_path, whole):
    for number in (1, 2, 3):
        out = str(tmp_path / "out")
        assert main(["sweep", str(grid), "--out", out, "--shard", f"{number}/3", "--jobs=1"]) == 0
    assert left_by(tmp_path / "out") == whole


def test_killed_in_mid_run_it_ends_with_the_same_bytes(grid, tmp_path, whole, capsys):
    out = tmp_path / "out"
    process = program("sweep", grid, "--out", out, "--jobs", "1", code=SLOW)

    def in_the_third_run():
        begun = [p for p in out.glob("*/metrics.jsonl") if not (p.parent / "DONE").exists()]
        results = len(list(out.glob("*/result.json")))
        return results >= 2 and any(p.read_text().count('"kind": "step"') > 2 for p in begun)

    wait_until(in_the_third_run, process)
    process.kill()
    process.communicate()
    assert len(list(out.glob("*.lock"))) == 1
    assert main(["sweep", str(grid), "--out", str(out), "--jobs", "1"]) == 0
    assert capsys.readouterr().out.startswith(f"{RUNS} runs, ")
    assert left_by(out) == whole
    assert list(out.glob("*.lock")) == []


def test_ctrl_c_says_how_to_go_on(grid, tmp_path, whole, capsys):
    out = tmp_path / "out"
    process = program("sweep", grid, "--out", out, "--jobs", "1", code=SLOW)
    wait_until(lambda: any(out.glob("*/metrics.jsonl")), process)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert process.returncode == 130
    assert error == "pmt: interrupted; the same command continues\n"
    assert list(out.glob("*.lock")) == []
    assert main(["sweep", str(grid), "--out", str(out), "--jobs", "1"]) == 0
    capsys.readouterr()
    assert left_by(out) == whole


def test_two_processes_in_one_folder_share_the_runs(grid, tmp_path, whole):
    out = tmp_path / "out"
    both = [program("sweep", grid, "--out", out, "--jobs", "1", code=SLOW) for _ in range(2)]
    printed = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], printed
    lines = [line for text, _ in printed for line in text.splitlines()]
    assert sum("accuracy" in line for line in lines) == RUNS
    assert left_by(out) == whole


def test_a_run_that_fails_stops_no_other(grid, tmp_path, capsys):
    runs = plan(read_grid(grid)).runs
    train = tmp_path / "data" / "train.npz"
    images = pmt.datasets.load(train)
    pmt.datasets.save_npz(images.shuffled(1), train)
    summary = run_all(runs[:2], tmp_path / "out", jobs=1)
    assert summary.finished == []
    assert len(summary.failed) == 2
    for error in summary.failed.values():
        assert "the images are not those that the sweep was planned with (train_crc32 " in error
    assert not any(path.is_dir() for path in (tmp_path / "out").iterdir())


def test_an_empty_lock_is_nobodys_and_keeps_nobody_waiting(grid, tmp_path):
    (run,) = plan(read_grid(grid)).runs[:1]
    out = tmp_path / "out"
    out.mkdir()
    (out / f"{run.hash}.lock").touch()
    told: list[str] = []
    assert run_all([run], out, jobs=1, tell=told.append).finished == [run.hash]
    assert len(told) == 1
    assert sorted(path.name for path in out.iterdir()) == [run.hash]


@pytest.mark.parametrize("where", ["metrics.jsonl", "checkpoint.pmt", "config.toml"])
def test_a_full_disk_is_named_with_its_path(grid, tmp_path, monkeypatch, where):
    run = next(run for run in plan(read_grid(grid)).runs if run.trains)
    out = tmp_path / "out"
    path = out / run.hash / where
    fsync, write = os.fsync, os.open

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def full_disk(descriptor):
        if f"/.{path.name}." in os.readlink(f"/proc/self/fd/{descriptor}"):
            full()
        fsync(descriptor)

    def full_append(name, flags, *mode, **more):
        if name == path and flags & os.O_APPEND:
            full()
        return write(name, flags, *mode, **more)

    monkeypatch.setattr(os, "fsync", full_disk)
    monkeypatch.setattr(os, "open", full_append)
    summary = run_all([run], out, jobs=1)
    monkeypatch.undo()
    error = summary.failed[run.hash]
    assert error.startswith("OSError: [Errno 28] ")
    assert error.endswith(f": '{path}'")
    assert list(out.glob("*.lock")) == []
    assert run_all([run], out, jobs=1).finished == [run.hash]


def test_failed_runs_are_exit_code_1(grid, tmp_path, capsys, monkeypatch):
    from pmt_lab.sweep import execution

    def out_of_memory(base, **options):
        if base == "paper":
            raise MemoryError("not enough")
        return methods.trainer(base, **options)

    monkeypatch.setattr(execution, "methods", SimpleNamespace(trainer=out_of_memory))
    assert main(["sweep", str(grid), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 1
    printed = capsys.readouterr()
    assert "paper, contrast 5, B2, seed 2: failed: MemoryError: not enough" in printed.out
    assert f"6 of {RUNS} runs are finished" in printed.out
    assert printed.err == "pmt: error: 4 runs failed, see above\n"
    monkeypatch.undo()
    assert main(["report", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.endswith(
        "\n- 4 runs failed; the same `pmt-lab sweep` tries them again. If the grid no longer "
        "has them, "
        "remove HASH.failed."
        "\n- No row for paper: runs failed and none is finished.\n"
    )
    assert main(["sweep", str(grid), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    assert list((tmp_path / "out").glob("*.failed")) == []
    capsys.readouterr()
    assert main(["report", str(tmp_path / "out")]) == 0
    assert "failed" not in capsys.readouterr().out


def test_an_error_that_names_a_file_in_another_encoding_is_kept(grid, tmp_path, monkeypatch):
    from pmt_lab.sweep import execution

    def damaged(*_, **__):
        raise ValueError("/data/caf\udce9.png: is damaged")

    (run,) = [r for r in plan(read_grid(grid)).runs if r.method == "paper"][:1]
    monkeypatch.setattr(execution, "load", damaged)
    error = "ValueError: /data/caf\\udce9.png: is damaged"
    assert run_all([run], tmp_path, jobs=1).failed == {run.hash: error}
    failed, unreadable = read_failures(tmp_path)
    assert failed[run.hash]["error"] == error
    assert unreadable == []


def test_a_failure_is_noted_while_the_run_is_locked(grid, tmp_path, monkeypatch):
    from pmt_lab.sweep import execution

    run = plan(read_grid(grid)).runs[0]
    record = tmp_path / f"{run.hash}.failed"
    lock = tmp_path / f"{run.hash}.lock"
    seen = []

    def fails(*_, **__):
        seen.append(record.exists())
        raise ValueError("no memory")

    def noted(*given):
        seen.append(lock.exists())
        note_failure(*given)

    monkeypatch.setattr(execution, "load", fails)
    monkeypatch.setattr(execution, "note_failure", noted)
    for _ in range(2):
        assert run_all([run], tmp_path, jobs=1).failed == {run.hash: "ValueError: no memory"}
        assert record.exists()
        assert not lock.exists()
    assert seen == [False, True, False, True]


def test_a_finished_run_has_no_failure(grid, tmp_path):
    run = plan(read_grid(grid)).runs[0]
    assert run_all([run], tmp_path, jobs=1).finished == [run.hash]
    note_failure(run, tmp_path, "OSError: the disk is full")
    assert run_all([run], tmp_path, jobs=1).already == [run.hash]
    assert list(tmp_path.glob("*.failed")) == []
    note_failure(run, tmp_path, "OSError: the disk is full")
    assert execute(run, str(tmp_path), 1) == Outcome(run.hash, "found")
    assert list(tmp_path.glob("*.failed")) == []


def test_a_damaged_result_is_named(grid, tmp_path, capsys):
    run = plan(read_grid(grid)).runs[0]
    folder = tmp_path / "out" / run.hash
    folder.mkdir(parents=True)
    for text in ("{", "[" * 100_000, "{}", "[]", '{"axes": 1}'):
        (folder / "result.json").write_text(text)
        assert main(["sweep", str(grid), "--out", str(tmp_path / "out")]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"pmt: error: {folder / 'result.json'}: ")
        assert error.endswith("; remove the file, and the sweep makes it again\n")


def test_bits_are_packed_and_unpacked():
    right = [True, False, True, True, False, False, False, False, True]
    import numpy as np

    assert pack(np.array(right)) == "sIA="
    assert unpack("sIA=", 9).tolist() == right
    with pytest.raises(ValueError, match="2 bytes do not hold 8 bits"):
        unpack("sIA=", 8)


def test_a_dask_cluster_has_its_own_workers(grid, tmp_path, capsys):
    assert main(["sweep", str(grid), "--out", str(tmp_path), "--dask", "x", "--jobs", "2"]) == 2
    assert "--jobs 2: the cluster of --dask has its own workers" in capsys.readouterr().err


def test_a_float_network_is_tested_as_it_is(tmp_path):
    """Its int8 rounding, which a run folder keeps, is another network."""
    pytest.importorskip("torch")
    grid = write_grid(tmp_path, seeds="[1]")
    text = grid.read_text().replace('"default", "paper"', '"bp_fp32"').replace("queries = 4\n", "")
    grid.write_text(text.replace(', "contrast"', ""))
    runs = [run for run in plan(read_grid(grid)).runs if run.trains]
    assert run_all(runs, tmp_path / "out", jobs=1).failed == {}
    (spec,) = runs
    folder = pmt.RunFolder(tmp_path / "out" / spec.hash)
    result = json.loads((folder.path / "result.json").read_text())
    last = [r for r in folder.read_metrics() if r["kind"] == "epoch"][-1]
    held_out = result["after"]["held_out"]
    assert held_out["accuracy"] == last["held_out_accuracy"]
    assert held_out["loss"] == pytest.approx(last["held_out_loss"], abs=1e-9)
    assert int(unpack(held_out["right"], held_out["n"]).sum()) == held_out["correct"]
    assert result["chosen_epoch"] == last["epoch"]


def test_a_notebook_shows_a_plan_by_method(tmp_path):
    found = plan(read_grid(write_grid(tmp_path, macs=1e7)))
    macs = {m: sum(r.macs for r in found.runs if r.method == m) / 1e9 for m in ("default", "paper")}
    rows = [
        "<td>no_adaptation</td><td></td><td>none</td><td>2</td><td>0.0</td>",
        f"<td>default</td><td>B2</td><td>align+head</td><td>4</td><td>{macs['default']:.1f}</td>",
        f"<td>paper</td><td>B2</td><td>none</td><td>4</td><td>{macs['paper']:.1f}</td>",
    ]
    head = "".join(f"<th>{t}</th>" for t in ("method", "layers", "preparation", "runs", "GMAC"))
    assert found._repr_html_() == (
        "<table><caption>10 runs; residual, 8 held-out and 20 test images</caption>"
        f"<thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table>"
    )
