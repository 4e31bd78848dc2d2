"""One run, from its images to its result; in any process of any machine that sees the folder."""

import errno
import json
import time
import warnings
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pmt
from pmt import Model, RunFolder, RunResult, methods
from pmt.datasets import Dataset
from pmt.model import ImageScores
from pmt.protocol import Split
from pmt_lab.files import write_text
from pmt_lab.sweep.images import at_size, checksums, load_split, pools
from pmt_lab.sweep.result import failure_file, measure, read_result, write_result
from pmt_lab.sweep.run_spec import RunSpec

Scores = dict[str, dict[str, Any]]


class Outcome(NamedTuple):
    """End of a run.

    ``state`` is ``"finished"``; ``"found"`` where it was finished already; ``"busy"`` where another
    process has it, whose name ``text`` holds; ``"failed"``, with the error.
    """

    hash: str
    state: str
    text: str = ""


def execute(spec: RunSpec, out: str, threads: int) -> Outcome:
    """Do a run in its folder below ``out``, or continue it, unless another process does it.

    A run that raises an error has failed, and the sweep continues without it. The error is kept
    beside the folder until the run is tried again.
    """
    run = RunFolder(Path(out) / spec.hash)
    failure = failure_file(Path(out), spec.hash)
    try:
        if read_result(run.path) is not None:
            return Outcome(spec.hash, "found")
        if not run.lock.acquire():
            return Outcome(spec.hash, "busy", run.lock.holder())
        try:
            failure.unlink(missing_ok=True)
            if read_result(run.path) is not None:
                return Outcome(spec.hash, "found")
            _run(spec, run, threads)
        except Exception as error:
            text = _described(error, run.path)
            record = {"title": spec.title, "error": text, "trial": spec.trial}
            write_text(failure, json.dumps(record) + "\n")
            return Outcome(spec.hash, "failed", text)
        finally:
            run.lock.release()
    except Exception as error:  # such as a full disk
        return Outcome(spec.hash, "failed", _described(error, run.path))
    return Outcome(spec.hash, "finished")


def _described(error: Exception, folder: Path) -> str:
    """Return an error as text that says where it was, which a full disk alone does not."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
        text += f": {str(folder)!r}"
    return text.encode("utf-8", "backslashreplace").decode()


def _run(spec: RunSpec, run: RunFolder, threads: int) -> None:
    start = time.monotonic()
    model = pmt.load(**spec.model)
    _check(spec, spec.model["path"], {"model_crc32": zlib.crc32(model.image())})
    images = _images(spec, model)
    parts = {"held_out": images.held_out}
    if not spec.trial:  # whose test images have no say
        parts |= {"test": images.test, "clean": images.clean_test}
    there = {name: data for name, data in parts.items() if data is not None}

    def scored(model: Model, score: Callable[[Dataset], ImageScores] | None = None) -> Scores:
        score = score or (lambda data: model.score_images(data, threads=threads))
        return {name: measure(score, model, data) for name, data in there.items()}

    before = _once("before", _shift(spec, list(there)), lambda: scored(model))
    run.path.mkdir(parents=True, exist_ok=True)
    after, training = before, {"macs": 0, "forwards": 0, "steps": 0, "train_seconds": 0.0}
    if spec.trains:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # said when the sweep was planned
            trainer = methods.trainer(spec.base, threads=threads, **spec.options)
        trainer.preparation.admit(model, images.train.pixel_size)
        result = trainer.fit(
            model,
            at_size(images.train, model),
            held_out=None if images.held_out is None else at_size(images.held_out, model),
            out=run,
            source=spec.source(),
            progress=False,
        )
        training = _training(result)
        float_score = None
        if trainer.trains_floats:
            float_score = _float_score(trainer, run, result.model, len(images.train))
        after = scored(result.model, float_score)
    record = {
        **spec.definition(),
        "model": spec.model["path"],
        "data": spec.data["path"],
        "images": {"train": len(images.train)},
        **training,
        "before": before,
        "after": after,
        "seconds": round(time.monotonic() - start, 2),
        "threads": threads,
        "pmt": pmt.__version__,
        **({"tuning": dict(spec.tuning)} if spec.tuning else {}),
    }
    write_result(run.path, record)


def _check(spec: RunSpec, path: str, found: Mapping[str, int]) -> None:
    for name, crc in found.items():
        if spec.contents[name] != crc:
            raise ValueError(
                f"{path}: is not what the sweep was planned with ({name} {crc}, planned "
                f"{spec.contents[name]}); restore it, or start the sweep again"
            )


def _training(result: RunResult) -> dict[str, Any]:
    last = result.epochs[-1]
    kept = result.kept or last
    return {
        "macs": last["macs"],
        "forwards": last["forwards"],
        "steps": last["step"] + 1,
        "train_seconds": last["seconds"],
        "chosen_epoch": kept.get("epoch", 0),
        "chosen_state": kept.get("phase", "epoch"),
        "phases": result.phases,
        "epochs": last["epoch"],
    }


def _float_score(
    trainer: Any, run: RunFolder, model: Model, images: int
) -> Callable[[Dataset], ImageScores]:
    """Return the function that measures the float network of the last step.

    A ``.pmt`` holds int8 weights alone: the best float network is not kept, only the last one.
    """
    saved, _ = run.load_checkpoint()
    state = run.load_state(saved)
    # The run's own options: some trainers add to theirs what they chose by the data.
    again = type(trainer)(run.read_config()[0], threads=trainer.threads)
    stepper = again.stepper(model, images)
    stepper.load_state({name: state[name] for name in stepper.state()})

    def score(data: Dataset) -> ImageScores:
        found: ImageScores = stepper.score_images(model, data, trainer.threads)
        return found

    return score


# Data of the last run of this process; runs of one corruption follow each other.
_LAST: dict[str, tuple[str, Any]] = {}


def _once(what: str, key: str, make: Callable[[], Any]) -> Any:
    """Return the object of the last run, if that was for the same images."""
    if what not in _LAST or _LAST[what][0] != key:
        _LAST.pop(what, None)
        _LAST[what] = key, make()
    return _LAST[what][1]


def _shift(spec: RunSpec, more: object) -> str:
    shift = [dict(spec.contents), spec.corruption, spec.severity, dict(spec.protocol), more]
    return json.dumps(shift, sort_keys=True)


def _images(spec: RunSpec, model: Model) -> Split:
    def make() -> Split:
        pair = pools(spec.data, spec.corruption, spec.severity, model)
        _check(spec, spec.data["path"], checksums(pair, spec.protocol))
        return load_split(pair, spec.protocol)

    images: Split = _once("images", _shift(spec, spec.data["path"]), make)
    return images
