"""Run folders that are damaged, gone, in use or full: one clear error each."""

import errno
import json
import os
import random
import re
import shutil
import threading
import zipfile

import numpy as np
import pytest
from networks import residual_network
from toy_trainer import Stop, Toy, ToyOptions, data, flat, stop_at

import pmt
from pmt._util.folder_lock import FolderLock

DEEP = "[" * 100_000
BYTES = b'{}[]"9e\n\0\xff\x01=-'


def begun(out, stop=4):
    with pytest.raises(Stop):
        Toy(losses=flat(9)).run(valid=data(5, 9), out=out, progress=stop_at(stop))
    return pmt.RunFolder(out)


def resume(out, **changes):
    return Toy(losses=flat(9), **changes).run(valid=data(5, 9), out=out)


def refusal(out):
    """Return the error that refuses a resumption; the folder's name where none does."""
    try:
        resume(out)
    except (ValueError, FileExistsError) as error:
        return str(error)
    return str(out)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{}", "it has no kind"),
        ("[]", "no JSON object"),
        ("3", "no JSON object"),
        ("", "no JSON"),
        ("{", "no JSON"),
        ("\0\0\0", "no JSON"),
        (DEEP, "no JSON"),
        ('{"kind": ' * 100_000, "no JSON"),
        ('{"kind": []}', "it has no kind"),
        ('{"kind": "step"}', "it has no step"),
        ('{"kind": "step", "step": 1}', "it has no loss"),
        ('{"kind": "start", "step": 1, "macs": 0}', "it has no forwards"),
        ('{"kind": "new", "step": 1, "valid_accuracy": 0.5}', "it has no valid_loss"),
        ('{"kind": "new", "step": 1e999}', "step = inf must be a whole number"),
        ('{"kind": "new", "step": "1"}', "step = '1' must be a whole number"),
        ('{"kind": "new", "step": true}', "step = True must be a whole number"),
        ('{"kind": "new", "step": 1, "loss": 1e999}', "loss = inf must be finite"),
        ('{"kind": "new", "step": 1, "rate": NaN}', "rate = nan must be finite"),
        ('{"kind": "new", "step": 1, "seconds": null}', "seconds = None must be a number"),
        ('{"kind": "new", "step": 1%s}' % ("0" * 400), "step is a number of more than 64 bits"),
        ('{"kind": "new", "step": 1%s}' % ("0" * 9999), "no JSON"),
    ],
)  # fmt: skip
def test_a_damaged_line_of_the_metrics_is_named(tmp_path, line, problem):
    folder = begun(tmp_path / "run")
    lines = folder.metrics.read_text().splitlines()
    folder.metrics.write_text("\n".join([*lines[:2], line, *lines[2:]]) + "\n")
    damaged = folder.metrics.read_bytes()
    message = (
        f"{folder.metrics}: line 3 is not a record of a run: {problem}; restore the file, or start "
        "the run again in another folder"
    )
    for read in (folder.read_metrics, lambda: resume(tmp_path / "run")):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            read()
    assert folder.metrics.read_bytes() == damaged


@pytest.mark.parametrize("end", ['{"kind": "step", "st', "[[[[", "\0" * 99, '{"kind": "step"}'])
def test_a_last_line_that_was_cut_short_is_left_out(tmp_path, end):
    folder = begun(tmp_path / "run")
    whole = folder.read_metrics()
    with folder.metrics.open("a") as file:
        file.write(end)
    assert folder.read_metrics() == whole
    resume(tmp_path / "run")
    assert [r["step"] for r in folder.read_metrics() if r["kind"] == "step"] == list(range(9))


def test_records_that_are_gone_are_missed(tmp_path):
    folder = begun(tmp_path / "run")
    folder.metrics.write_text("")
    with pytest.raises(ValueError, match="records of 0 steps, the checkpoint is of step 4;"):
        resume(tmp_path / "run")


def test_a_figure_that_is_not_finite_ends_the_run(tmp_path):
    def diverged(stepper):
        step = stepper.step
        stepper.step = lambda *arguments: {**step(*arguments), "loss": float("inf")}

    with pytest.raises(ValueError, match="loss = inf must be finite"):
        Toy(change=diverged).run(out=tmp_path / "run")
    assert pmt.RunFolder(tmp_path / "run").read_metrics() == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "holds no [source]"),
        ("[source]\n", "holds no [options]"),
        ("[source]\na = []\n[options]", "[source] a is not text, a number, true or false"),
        ("source = 1\n[options]", "source is not in a table"),
        ('[source]\n[contents]\na = "b"\n[options]', "[contents] a = 'b' must be a whole number"),
        ("[source]\n[options]\nepochs = 1e", "is not valid TOML: "),
        (f"[source]\na = {DEEP}\n[options]", "is not valid TOML: it is nested more than 64 deep"),
        ("[source]\na\n[options]", "is not valid TOML: "),
    ],
)  # fmt: skip
def test_a_damaged_config_is_named(tmp_path, text, problem):
    folder = begun(tmp_path / "run")
    (folder.path / "config.toml").write_text(text)
    message = re.escape(f"{folder.path / 'config.toml'}: {problem}")
    with pytest.raises(ValueError, match=rf"^{message}.*; the run cannot be resumed$"):
        folder.read_config(ToyOptions)


def test_an_option_of_another_version_is_named(tmp_path):
    folder = begun(tmp_path / "run")
    config = folder.path / "config.toml"
    text = config.read_text()
    remedy = (
        "use the version of pmt that began the run, which env.json names, or start the run again "
        "in another folder"
    )
    config.write_text(text + "aligned_learning_rate = 0.05\n")
    with pytest.raises(ValueError, match="is not an option of this version") as caught:
        folder.read_config(ToyOptions)
    assert str(caught.value) == (
        f"{config}: [options] aligned_learning_rate is not an option of this version of pmt; "
        f"{remedy}"
    )
    config.write_text(re.sub("^batch = .*\n", "", text, flags=re.MULTILINE))
    assert folder.config(ToyOptions).absent == ("batch",)
    with pytest.raises(ValueError, match=r"option batch: there none, here 4$"):
        resume(tmp_path / "run")


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("1e9", "step = 1000000000.0 must be a whole number >= 0"),
        ("-1", "step = -1 must be a whole number >= 0"),
        ('"1"', "step = '1' must be a whole number >= 0"),
    ],
)
def test_a_checkpoint_of_no_step_is_named(tmp_path, step, problem):
    folder = begun(tmp_path / "run")
    graph = pmt.Model(folder.checkpoint.read_bytes()).to_graph()
    graph.metadata = {"training": {"step": json.loads(step)}}
    folder.checkpoint.write_bytes(pmt.Model.from_graph(graph).image())
    message = f"{folder.checkpoint}: {problem}; the run cannot be resumed"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        folder.load_checkpoint()


def test_flipped_bytes_of_any_file_never_escape_as_another_error(tmp_path):
    folder = begun(tmp_path / "run")
    generator = random.Random(0)
    for path in sorted(folder.path.iterdir()):
        whole = path.read_bytes()
        for _ in range(60):
            flipped = bytearray(whole)
            for _ in range(generator.choice((1, 4))):
                flipped[generator.randrange(len(flipped))] = generator.choice(BYTES)
            shutil.copytree(folder.path, tmp_path / "copy")
            content = flipped if generator.random() < 0.7 else flipped[: len(flipped) // 2]
            (tmp_path / "copy" / path.name).write_bytes(content)
            assert str(tmp_path / "copy") in refusal(tmp_path / "copy")
            shutil.rmtree(tmp_path / "copy")


def test_a_state_that_claims_to_be_huge_is_refused(tmp_path):
    folder = begun(tmp_path / "run")
    state = folder.path / "checkpoint-4.npz"
    claims = {"descr": "<i8", "fortran_order": False, "shape": (10**15,)}
    with zipfile.ZipFile(state, "w") as archive, archive.open("velocity.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, claims)
    with pytest.raises(ValueError, match=r"checkpoint-4\.npz: .*; the run cannot be resumed"):
        resume(tmp_path / "run")


class _Hostile:
    """Makes a folder where it is unpickled as usual."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (self.place,)


def test_a_pickle_in_the_state_of_a_checkpoint_is_refused_and_runs_nothing(tmp_path):
    folder = begun(tmp_path / "run")
    state, made = folder.path / "checkpoint-4.npz", tmp_path / "made"
    with np.load(state) as arrays:
        names = arrays.files
    np.savez(state, **dict.fromkeys(names, np.array([_Hostile(str(made))], dtype=object)))
    with pytest.raises(ValueError, match=r"checkpoint-4\.npz: .*; the run cannot be resumed"):
        resume(folder.path)
    assert not made.exists()


@pytest.mark.parametrize("left", ["nothing", "folder"])
@pytest.mark.parametrize("step", [1, 5, 9])
def test_a_folder_that_vanishes_in_mid_run_is_an_error(tmp_path, left, step):
    out = tmp_path / "run"

    def vanish(done, record):
        if done == step:
            shutil.rmtree(out)
            if left == "folder":
                out.mkdir()

    with pytest.raises(FileNotFoundError) as caught:
        Toy().run(out=out, progress=vanish)
    assert caught.value.filename == str(out)
    assert caught.value.strerror == (
        "the run folder was removed or emptied while the run trained in it; start the run again"
    )
    assert not out.exists() or list(out.iterdir()) == []
    assert not (tmp_path / "run.lock").exists()


def test_a_full_disk_in_mid_run_names_the_file(tmp_path, monkeypatch):
    real = os.open

    def full(path, flags, *more):
        if str(path).endswith("metrics.jsonl") and flags & os.O_APPEND:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, flags, *more)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(OSError, match="records could not be written") as caught:
        Toy().run(out=tmp_path / "run")
    assert caught.value.filename == str(tmp_path / "run" / "metrics.jsonl")
    assert caught.value.strerror == (
        "records could not be written, and the run goes on from its last checkpoint (No space left "
        "on device); free some space or choose another folder"
    )
    monkeypatch.undo()
    Toy().run(out=tmp_path / "run")


def test_two_runs_in_one_folder_are_one_too_many(tmp_path):
    out = tmp_path / "run"
    first, second = threading.Event(), threading.Event()

    def wait(step, record):
        first.set()
        assert second.wait(60)

    thread = threading.Thread(target=lambda: Toy().run(out=out, progress=wait))
    thread.start()
    assert first.wait(60)
    try:
        with pytest.raises(BlockingIOError) as caught:
            Toy().run(out=out)
    finally:
        second.set()
        thread.join()
    assert str(caught.value) == (
        f"out='{out}' is in use by {os.uname().nodename}, process {os.getpid()}: wait until it has "
        f"ended, or choose another folder (the lock is {out}.lock)"
    )
    steps = [r["step"] for r in pmt.RunFolder(out).read_metrics() if r["kind"] == "step"]
    assert steps == list(range(9))
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("taken", [False, True])
def test_a_run_whose_lock_is_removed_ends_before_it_writes_again(tmp_path, taken):
    out = tmp_path / "run"
    lock = tmp_path / "run.lock"
    other = FolderLock(lock)

    def remove(step, record):
        if step == 3:
            lock.unlink()
            assert not taken or other.acquire()

    with pytest.raises(BlockingIOError) as caught:
        Toy().run(out=out, progress=remove)
    assert str(caught.value) == (
        f"{lock} was removed while the run trained, and another process may train in the folder; "
        "start the run again, and it goes on from its last checkpoint"
    )
    steps = [r["step"] for r in pmt.RunFolder(out).read_metrics() if r["kind"] == "step"]
    assert steps == [0, 1, 2]
    assert lock.exists() is taken
    other.release()
    Toy().run(out=out)
    steps = [r["step"] for r in pmt.RunFolder(out).read_metrics() if r["kind"] == "step"]
    assert steps == list(range(9))


def test_a_lock_that_is_held_outside_stays_held(tmp_path):
    folder = pmt.RunFolder(tmp_path / "run")
    with folder.lock.holding("the sweep's run"):
        Toy().run(out=folder)
        assert not FolderLock.of_folder(folder.path).acquire()
    assert FolderLock.of_folder(folder.path).holder() == ""


def test_a_model_that_happens_to_be_named_like_a_checkpoint_is_not_written_over(tmp_path):
    model = residual_network()
    model.save(tmp_path / "checkpoint.pmt")
    before = (tmp_path / "checkpoint.pmt").read_bytes()
    with pytest.raises(FileExistsError, match="already exists and holds no run; choose another"):
        Toy(losses=flat(9)).fit(model, data(), out=tmp_path, progress=False)
    assert (tmp_path / "checkpoint.pmt").read_bytes() == before


@pytest.mark.parametrize(
    ("names", "metrics", "is_free"),
    [
        ((), None, True),
        ((".checkpoint.pmt.1.part",), None, True),
        (("env.json",), None, True),
        (("env.json", "checkpoint.pmt"), "", True),
        (("env.json", "checkpoint.pmt"), "\n", False),  # recorded
        (("env.json", "notes.txt"), None, False),
        (("checkpoint.pmt",), "", False),
        ((), "", False),
    ],
)
def test_a_folder_is_free_if_nothing_but_a_run_that_began_is_there(
    tmp_path, names, metrics, is_free
):
    for name in names:
        (tmp_path / name).touch()
    if metrics is not None:
        (tmp_path / "metrics.jsonl").write_text(metrics)
    run = pmt.RunFolder(tmp_path)
    if is_free:
        run.check_free()
        return
    with pytest.raises(FileExistsError, match="already exists and holds no run; choose another"):
        run.check_free()


def test_a_file_is_no_free_folder(tmp_path):
    (tmp_path / "run").touch()
    with pytest.raises(FileExistsError, match="already exists and holds no run; choose another"):
        pmt.RunFolder(tmp_path / "run").check_free()


@pytest.mark.parametrize("damaged", ["best.pmt", "state"])
def test_a_damaged_best_state_is_named(tmp_path, damaged):
    def run(**changes):
        losses = [(2.0, 0.1), (1.25, 0.2), (1.25, 0.3), (1.25, 0.3)]
        Toy(losses=losses).run(held_out=data(5, 9), out=tmp_path / "run", **changes)

    with pytest.raises(Stop):
        run(progress=stop_at(3))
    (state,) = (tmp_path / "run").glob("checkpoint-*.npz")
    if damaged == "best.pmt":
        best = tmp_path / "run" / damaged
        best.write_bytes(best.read_bytes()[:99])
        message = r"best\.pmt: the image is shorter than .*; the run cannot be resumed$"
    else:
        with np.load(state) as arrays:
            np.savez(state, **{**arrays, "held_out_losses": np.float64(1)})
        message = rf"{re.escape(str(tmp_path / 'run'))}: .*; the run cannot be resumed$"
    with pytest.raises(ValueError, match=message):
        run()


def test_a_kept_model_that_is_gone_is_missed(tmp_path):
    """Its last state is another model than the one that the run kept."""
    run = pmt.RunFolder(tmp_path / "run")
    losses = [(2.0, 0.1), (1.25, 0.2), (1.25, 0.3), (1.25, 0.3)]
    Toy(losses=losses).run(held_out=data(5, 9), out=run.path)
    assert (run.path / "DONE").read_text() == "best.pmt\n"
    best = pmt.load(run.path).image()
    assert best != pmt.load(run.checkpoint).image()
    run.best.unlink()
    message = rf"{re.escape(str(run.path))}: best\.pmt, the model that the run kept, is not there; "
    for load in (lambda: pmt.load(run.path), lambda: run.trained):
        with pytest.raises(FileNotFoundError, match=message):
            load()
    (run.path / "DONE").write_text("")  # as earlier versions wrote it
    assert pmt.load(run.path).image() == pmt.load(run.checkpoint).image() != best
